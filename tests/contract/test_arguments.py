"""Arguments that cannot be meant are refused with the name of the argument, and never taken for something else."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace import kernels, objectives

DGX = tp.machines.get("dgx1-v100")
RING = tp.JobGraph.ring(3)
MASKED = np.ma.masked_equal([1, -1], -1)


def deep() -> list[Any]:
    """Return a list nested a hundred thousand times."""
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


REFUSED: list[tuple[Callable[[], object], type[ValueError], str]] = [
    (
        lambda: objectives.aggregated_bandwidth(RING, [-1, 0, 1], DGX),
        ValueError,
        r"gpus\[0\] = -1 is not in 0..7",
    ),
    (
        lambda: objectives.bottleneck_bandwidth(RING, [0, 0, 1], DGX),
        ValueError,
        r"gpus = .* lists GPU 0 twice",
    ),
    (
        lambda: objectives.link_counts(RING, [0, 1, 2, 3], DGX),
        ValueError,
        "gpus = .*: 4 for a job of 3 tasks",
    ),
    (
        lambda: objectives.communication_cost(RING, [0, 1], DGX),
        ValueError,
        "gpus = .*: 2 for a job of 3 tasks",
    ),
    (lambda: objectives.scores_of(RING, [0, 1, 8], DGX, range(8)), ValueError, r"gpus\[2\] = 8"),
    (lambda: objectives.scores_of(RING, [0, 1, 2], DGX, [0, 9]), ValueError, r"free\[1\] = 9"),
    (lambda: objectives.link_scores((), [True], DGX), ValueError, r"gpus\[0\] = True is not an integer"),
    (lambda: objectives.link_scores((), [0], DGX, 3), ValueError, "model = 3 is not a EffectiveBandwidth"),
    (lambda: objectives.preserved_bandwidth([0], DGX, [0, 0]), ValueError, "free = .* lists GPU 0 twice"),
    (lambda: objectives.fragmentation([0, 1], DGX, "zz"), ValueError, "free = 'zz' is not a sequence"),
    (lambda: objectives.fragmentation([], DGX, [0]), ValueError, "gpus is empty"),
    (lambda: objectives.fragmentation([0], None, [0]), ValueError, "topology = None is not a Topology"),
    (lambda: objectives.aggregated_bandwidth(None, [0], DGX), ValueError, "job = None is not a JobGraph"),
    (lambda: objectives.interference(None, ("a", 1), "x", [3]), ValueError, r"others\[0\] = 3"),
    (lambda: objectives.interference(None, ("a", 0), "x", []), ValueError, r"job\[1\] = 0"),
    (lambda: objectives.interference({}, ("a", 1), "x", []), ValueError, "profile = {}"),
    (lambda: tp.JobGraph.ring(deep()), tp.JobGraphError, "k = a list nested too deeply to show"),
    (lambda: tp.JobGraph.from_edges(3, count()), tp.JobGraphError, "edges has more than 16777216 items"),
    (
        lambda: kernels.best_subgraph(RING.graph, DGX.graph, free=range(10**9)),
        ValueError,
        "free has more than",
    ),
    (
        lambda: kernels.best_subgraph(RING.graph, DGX.graph, objective=None),
        ValueError,
        "objective = None is not",
    ),
    (lambda: kernels.best_subgraph([[0, -1], [-1, 0]], DGX.graph), ValueError, r"pattern\[0, 1\] = -1"),
    (
        lambda: kernels.best_subgraph(RING.graph, [[0, -1], [-1, 0]]),
        ValueError,
        r"target_weights\[0, 1\] = -1",
    ),
    (
        lambda: kernels.count_subgraphs(RING.graph, [[0.5, 1]]),
        ValueError,
        r"target\[0, 0\] = 0.5 is not a vertex",
    ),
    (
        lambda: kernels.count_subgraphs(RING.graph, DGX.graph, induced=1),
        ValueError,
        "induced = 1 is not True",
    ),
    (lambda: kernels.map_graph([[0, -1], [-1, 0]], DGX.graph), ValueError, r"source\[0, 1\] = -1"),
    (lambda: kernels.LinkCountScore(np.zeros((3, 3), int), 5), ValueError, "function = 5 is not a function"),
    (
        lambda: kernels.best_subgraph(RING.graph, DGX.graph, budget=5),
        ValueError,
        "budget = 5 is not a WorkBudget",
    ),
    *(
        (call, ValueError, f"{name} is an array with masked entries")
        for name, call in (
            ("supply", lambda: kernels.min_cost_flow(2, [0], [1], [5], [1], MASKED)),
            ("capacity", lambda: kernels.min_cost_flow(2, [0, 0], [1, 1], MASKED, [1, 1], [1, -1])),
            ("cost", lambda: kernels.min_cost_flow(2, [0, 0], [1, 1], [5, 5], MASKED, [1, -1])),
            ("supply", lambda: kernels.FlowNetwork().add_nodes(MASKED)),
            ("link_class", lambda: kernels.LinkCountScore(np.ma.masked_equal([[0, 1], [1, 0]], 1), len)),
            ("side", lambda: kernels.verify_bipartition([(0, 1)], MASKED, 1.0)),
        )
    ),
    (
        lambda: kernels.Graph(np.ma.masked_equal([[0, 1], [1, 0]], 1)),
        ValueError,
        "weights is an array with masked",
    ),
    (lambda: tp.Cluster(DGX).allocate("a", [0], job={}), tp.AllocationError, "job = {} is not a JobGraph"),
    (lambda: tp.policies.get("drmaestro", costs={}), ValueError, "costs = {} is not a Costs"),
    *(
        (lambda name=name: tp.policies.get(name).place(RING, {}), ValueError, "cluster = {} is not a Cluster")
        for name in tp.policies.names()
    ),
    (lambda: DGX.machine([]), tp.TopologyError, r"name = \[\] is not a non-empty string"),
    (lambda: DGX.select(None), tp.TopologyError, "suits = None is not a function"),
    (lambda: tp.JobGraph.ring(1).with_(gpu_model=[]), tp.JobGraphError, "gpu_model is empty"),
    (lambda: tp.JobGraph.ring(1).with_(gpu_model=["a", 3]), tp.JobGraphError, r"gpu_model\[1\] = 3"),
]


@pytest.mark.parametrize(
    "case", range(len(REFUSED)), ids=[f"{i} {case[2]}" for i, case in enumerate(REFUSED)]
)
def test_an_argument_that_cannot_be_meant_is_named(case: int) -> None:
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()


def test_an_index_is_a_number() -> None:
    gpu: Any = tp.Topology.from_links(1, []).gpus[0]
    with pytest.raises(tp.TopologyError, match=r"gpus\[0\].index = False"):
        tp.Topology((type(gpu)(False, "gpu"),), ())


def test_kept_vertices_are_never_used() -> None:
    found = kernels.best_remainder(RING.graph, DGX.graph, free=range(6), kept=(1, 2))
    assert found is not None
    assert not {1, 2} & set(found.vertices.tolist())
    assert kernels.best_remainder(RING.graph, DGX.graph, free=range(4), kept=(1, 2)) is None
    everywhere = kernels.best_remainder(RING.graph, DGX.graph, kept=(1, 2))
    assert everywhere is not None
    assert not {1, 2} & set(everywhere.vertices.tolist())


def test_a_pattern_without_vertices_uses_no_required_vertex() -> None:
    empty = kernels.Graph.from_edges(0, [])
    assert kernels.best_subgraph(empty, DGX.graph) is not None
    assert kernels.best_subgraph(empty, DGX.graph, required=[0]) is None
    assert kernels.best_remainder(empty, DGX.graph, required=[0]) is None
