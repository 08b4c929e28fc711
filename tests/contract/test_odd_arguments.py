"""Every argument of the functions of `objectives`, `kernels` and `Cluster`, with values that nobody should pass."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from odd_values import MATRIX, ODD
from topoplace import kernels, objectives
from topoplace.errors import SearchTimeoutError
from topoplace.objectives import authors_utility

TOPOLOGY = tp.machines.get("dgx1-v100")
JOB = tp.JobGraph.ring(3)
RING, CLIQUE = tp.JobGraph.ring(4).graph, tp.JobGraph.clique(6).graph
DISTANCE = np.ones((6, 6)) - np.eye(6)
TABLES = TOPOLOGY.derived(objectives.LinkTables)
MODEL = objectives.EffectiveBandwidth()
COSTS = objectives.Costs(2, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0, 0.0)
EDGES = [(0, 1, 1.0), (1, 2, 2.0)]
FLOW: dict[str, Any] = {
    **{
        "num_nodes": 3,
        "tail": [0, 1],
        "head": [1, 2],
        "capacity": [1, 1],
        "cost": [1, 1],
        "supply": [1, 0, -1],
    }
}


def cluster() -> tp.Cluster:
    made = tp.Cluster(TOPOLOGY, tp.HostResources(cpus=8, memory_gb=8.0))
    made.allocate("known", [0, 1])
    return made


def network() -> kernels.FlowNetwork:
    made = kernels.FlowNetwork()
    made.add_nodes([1, 0, -1])
    made.add_arcs([0, 1], [1, 2], [1, 1], [1, 1])
    return made


def scores(counts: Any) -> Any:
    return np.zeros(len(counts))


def on(make: Callable[[], Any], method: str) -> Callable[..., object]:
    return lambda **arguments: getattr(make(), method)(**arguments)


PLACED: dict[str, Any] = {"job": JOB, "gpus": [0, 1, 2], "topology": TOPOLOGY}
MATCHED: dict[str, Any] = {
    "candidates": np.ones((4, 6)),
    "min_weight": 1.0,
    "limit": 5,
    "timeout": 9.0,
    "induced": False,
}
BALANCE: dict[str, Any] = {
    **{"fraction": 0.5, "imbalance": 0.1, "vertex_weights": np.ones(6, int), "fixed": np.full(6, -1)}
}
CALLS: dict[str, tuple[Callable[..., object], dict[str, Any]]] = {
    "aggregated_bandwidth": (objectives.aggregated_bandwidth, PLACED),
    "bottleneck_bandwidth": (objectives.bottleneck_bandwidth, PLACED),
    "link_counts": (objectives.link_counts, PLACED),
    "communication_cost": (objectives.communication_cost, PLACED),
    "scores_of": (objectives.scores_of, {**PLACED, "free": range(8), "model": MODEL}),
    "preserved_bandwidth": (
        objectives.preserved_bandwidth,
        {"gpus": [0, 1], "topology": TOPOLOGY, "free": range(8)},
    ),
    "fragmentation": (objectives.fragmentation, {"gpus": [0, 1], "topology": TOPOLOGY, "free": range(8)}),
    "link_scores": (
        objectives.link_scores,
        {"edges": EDGES, "gpus": [0, 1, 2], "topology": TOPOLOGY, "model": MODEL},
    ),
    "scores_from": (
        objectives.scores_from,
        {
            "edges": EDGES,
            "gpus": [0, 1, 2],
            "bandwidth": TABLES.bandwidth,
            "classes": TABLES.classes,
            "model": MODEL,
        },
    ),
    "interference": (
        objectives.interference,
        {"profile": None, "job": ("a", 2), "placement": "pack", "others": [("b", 2)]},
    ),
    "link_class": (objectives.link_class, {"topology": TOPOLOGY}),
    "class_of": (objectives.class_of, {"link": TOPOLOGY.link(0, 1)}),
    "LinkTables": (objectives.LinkTables, {"topology": TOPOLOGY}),
    "Utility": (objectives.Utility, {"communication": 0.5, "interference": 0.25, "fragmentation": 0.25}),
    "Utility.job": (objectives.Utility().job, {"costs": COSTS}),
    "Utility.system": (objectives.Utility().system, {"costs": COSTS}),
    "AuthorsUtility.job": (objectives.AuthorsUtility().job, {"costs": COSTS}),
    "AuthorsUtility.system": (objectives.AuthorsUtility().system, {"costs": COSTS}),
    "EffectiveBandwidth": (objectives.EffectiveBandwidth, {"coefficients": objectives.MAPA_COEFFICIENTS}),
    "EffectiveBandwidth.predict": (MODEL.predict, {"x": 1, "y": [1, 2], "z": 0}),
    "EffectiveBandwidth.of_counts": (MODEL.of_counts, {"x": 1, "y": 2, "z": 0}),
    "EffectiveBandwidth.__call__": (MODEL, {"counts": np.array([[1, 1, 1]])}),
    "authors' communication_cost": (
        authors_utility.communication_cost,
        {"num_gpus": 2, "distance": 3.0, "least": 1.0, "worst": 2.0},
    ),
    "authors' fragmentation_cost": (authors_utility.fragmentation_cost, {"shares": (0.5,)}),
    "authors_utility": (
        authors_utility.authors_utility,
        {"communication": 0.1, "interference": 0.1, "fragmentation": 0.1, "on_others": 0.1},
    ),
    "authors' job_utility": (authors_utility.job_utility, {"communication": 0.1, "interference": 0.1}),
    "Graph": (kernels.Graph, {"weights": MATRIX}),
    "Graph.of": (kernels.Graph.of, {"graph": MATRIX}),
    "Graph.from_edges": (kernels.Graph.from_edges, {"num_vertices": 3, "edges": [(0, 1)]}),
    "count_automorphisms": (RING.count_automorphisms, {"timeout": 9.0}),
    "enumerate_subgraphs": (
        kernels.enumerate_subgraphs,
        {"pattern": RING, "target": CLIQUE, "distinct": "images", **MATCHED},
    ),
    "count_subgraphs": (
        kernels.count_subgraphs,
        {"pattern": RING, "target": CLIQUE, "distinct": "images", **MATCHED},
    ),
    "best_subgraph": (
        kernels.best_subgraph,
        {
            **{
                "pattern": RING,
                "target_weights": CLIQUE,
                "objective": "sum",
                "free": range(6),
                "required": [0],
            },
            **{"min_weight": 1.0, "timeout": 9.0, "max_nodes": 100, "budget": kernels.WorkBudget()},
            "tolerance": 0.1,
        },
    ),
    "best_remainder": (
        kernels.best_remainder,
        {
            **{"pattern": RING, "target": CLIQUE, "free": range(5), "kept": [5], "required": [0]},
            **{"timeout": 9.0, "max_nodes": 100, "budget": kernels.WorkBudget()},
        },
    ),
    "verify_embedding": (
        kernels.verify_embedding,
        {"pattern": RING, "target": CLIQUE, "vertices": [0, 1, 2, 3], "induced": False, "min_weight": 1.0},
    ),
    "LinkCountScore": (kernels.LinkCountScore, {"link_class": np.zeros((6, 6), int), "function": scores}),
    "LinkCountScore.table": (
        kernels.LinkCountScore(np.zeros((6, 6), int), scores).table,
        {"target": CLIQUE, "num_edges": 4},
    ),
    "TargetDistance": (kernels.TargetDistance, {"distance": DISTANCE}),
    "map_graph": (kernels.map_graph, {"source": RING, "target_distance": DISTANCE, "method": "drb"}),
    "verify_bipartition": (
        kernels.verify_bipartition,
        {"graph": CLIQUE, "side": [0, 0, 0, 1, 1, 1], "cut": 9.0, **BALANCE},
    ),
    "min_cost_flow": (
        kernels.min_cost_flow,
        {
            **FLOW,
            **{"lower": [0, 0], "algorithm": "auto", "structure": True, "timeout": 9.0, "max_nodes": 1000},
            "warm_start": kernels.min_cost_flow(**FLOW),
        },
    ),
    "verify_flow": (
        kernels.verify_flow,
        {**FLOW, "flow": [1, 1], "potential": [0, 1, 2], "total": 2, "lower": [0, 0]},
    ),
    "WorkBudget": (kernels.WorkBudget, {"nodes": 3}),
    "WorkBudget.limit": (kernels.WorkBudget(5).limit, {"max_nodes": 3}),
    "WorkBudget.charge": (on(lambda: kernels.WorkBudget(5), "charge"), {"nodes": 3}),
    "add_nodes": (on(network, "add_nodes"), {"supply": [1]}),
    "add_arcs": (on(network, "add_arcs"), {"tail": [0], "head": [2], "capacity": [1], "cost": [1]}),
    "remove_nodes": (on(network, "remove_nodes"), {"nodes": [0]}),
    "remove_arcs": (on(network, "remove_arcs"), {"arcs": [0]}),
    "set_supply": (on(network, "set_supply"), {"nodes": [0], "supply": [1]}),
    "set_capacity": (on(network, "set_capacity"), {"arcs": [0], "capacity": [1]}),
    "set_cost": (on(network, "set_cost"), {"arcs": [0], "cost": [1]}),
    "solve": (on(network, "solve"), {"algorithm": "auto", "timeout": 9.0, "max_nodes": 100}),
    "Cluster": (tp.Cluster, {"topology": TOPOLOGY, "hosts": tp.HostResources(cpus=8, memory_gb=8.0)}),
    "occupants": (cluster().occupants, {"gpus": [0, 1, 2]}),
    "gpus_of": (cluster().gpus_of, {"job_id": "known"}),
    "allocate": (on(cluster, "allocate"), {"job_id": "new", "placement": [2, 3, 4], "job": JOB}),
    "undrain": (on(cluster, "undrain"), {"gpu_or_machine": 0}),
    "with_topology": (
        on(cluster, "with_topology"),
        {"topology": TOPOLOGY, "hosts": tp.HostResources(cpus=8, memory_gb=8.0)},
    ),
    "is_drained": (cluster().hosts.is_drained, {"machine": 0}),
    "HostResources": (tp.HostResources, {"cpus": 1, "memory_gb": 1.0, "drives": 0, "pool": "p"}),
    "HostShare": (tp.HostShare, {"machine": 0, "cpus": 1, "memory_gb": 1.0}),
    "Placement": (
        tp.Placement,
        {
            **{"gpus": (0, 1), "topology": TOPOLOGY, "scores": {"a": 1.0}, "optimal": False, "job": None},
            **{"hosts": (tp.HostShare(0),), "remote": (), "drives": ()},
        },
    ),
}
"""Calls that succeed; the test replaces one argument after the other."""
OTHER_NAMES = ("target_distance", "gpus", "gpu", "machine", "edges", "utility", "job")
"""What a message may name instead of an argument: a part of it, or what it was converted to."""


@pytest.mark.parametrize("name", CALLS)
def test_an_odd_argument_is_taken_or_refused_by_name(name: str) -> None:
    call, arguments = CALLS[name]
    call(**arguments)
    known = re.compile(rf"\b({'|'.join((*arguments, *OTHER_NAMES))})\b")
    for argument in arguments:
        for value in ODD:
            try:
                call(**{**arguments, argument: value})
            except SearchTimeoutError:
                continue
            except ValueError as error:
                message = str(error)
                assert known.search(message), (argument, message)
                assert len(message) < 400
                assert "\n" not in message
                assert "truth value" not in message


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: cluster().occupants(None), "gpus = None is not a sequence"),
    (
        lambda: kernels.count_subgraphs(RING, CLIQUE, distinct=["x"]),
        r"distinct = \['x'\] is not one of mappings",
    ),
    (lambda: kernels.map_graph(RING, DISTANCE, method=None), "method = None is not one of drb, exact"),
    (
        lambda: objectives.link_scores([(0, 3, 1.0)], [0, 1, 2], TOPOLOGY),
        r"edges\[0\]\[1\] = 3 is not in 0..2",
    ),
    (
        lambda: objectives.link_scores([(0, -1, 1.0)], [0, 1], TOPOLOGY),
        r"edges\[0\]\[1\] = -1 is not in 0..1",
    ),
    (
        lambda: objectives.link_scores([(0, 1, -1.0)], [0, 1], TOPOLOGY),
        r"edges\[0\]\[2\] = -1.0 is not above 0",
    ),
    (
        lambda: objectives.link_scores([(0, 1, np.nan)], [0, 1], TOPOLOGY),
        r"edges\[0\]\[2\] = nan is not a finite",
    ),
    (
        lambda: objectives.link_scores([(1, 1, 1.0)], [0, 1], TOPOLOGY),
        r"edges\[0\] = \(1, 1, 1.0\) joins a task",
    ),
    (
        lambda: objectives.link_scores([(0, 1)], [0, 1], TOPOLOGY),
        r"edges\[0\] = \(0, 1\) is not \(a, b, weight\)",
    ),
    (
        lambda: objectives.scores_from([(0, 1, 1.0)], [0, -1], TABLES.bandwidth, TABLES.classes),
        r"gpus\[1\] = -1",
    ),
    (
        lambda: objectives.scores_from([(0, 1, 1.0)], [0, 9], TABLES.bandwidth, TABLES.classes),
        "bandwidth has no entry",
    ),
    (
        lambda: objectives.scores_from([(0, 1, 1.0)], [0, 1], TABLES.bandwidth, {0: {1: 7}}),
        r"classes\[0\]\[1\] = 7",
    ),
    (
        lambda: kernels.bipartition([[0, 1], [2, 0]]),
        r"graph has a zero diagonal, but graph\[0, 1\] = 1",
    ),
    (lambda: kernels.Graph(MATRIX == 1), "weights has dtype bool; numbers are needed"),
    (lambda: kernels.best_subgraph(MATRIX == 1, CLIQUE), "pattern has dtype bool; numbers are needed"),
    (lambda: kernels.best_subgraph([(0, 0)], CLIQUE), r"pattern: edges\[0\] = \(0, 0, 1.000000\) is a loop"),
    (lambda: MODEL.predict(-1, 0, 0), "x = -1 is not a number of links"),
    (lambda: MODEL.of_counts(0, 0, np.nan), "z = nan is not an integer"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_what_cannot_be_meant_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("gpus", [{0, 1, 2}, frozenset([0, 1, 2]), {0: "", 1: "", 2: ""}.keys()], ids=repr)
def test_gpus_of_tasks_have_an_order(gpus: Any) -> None:
    for call in (
        lambda: objectives.link_counts(JOB, gpus, TOPOLOGY),
        lambda: objectives.link_scores(EDGES, gpus, TOPOLOGY),
        lambda: tp.Placement(gpus, topology=TOPOLOGY),
        lambda: cluster().allocate("new", gpus),
    ):
        with pytest.raises(ValueError, match=r"gpus = .* is a set, which has no order"):
            call()


def test_two_edges_are_a_list_of_edges_unless_they_may_be_weights() -> None:
    assert kernels.Graph.of([(0, 1), (1, 2)]).num_vertices == 3
    assert kernels.Graph.of([(0, 1), (1, 0)]).num_vertices == 2
    assert kernels.Graph.from_edges(3, [(0, 1), (2, 0)]).num_edges == 2


def test_a_set_will_do_where_order_means_nothing() -> None:
    assert objectives.preserved_bandwidth({0, 1}, TOPOLOGY, frozenset(range(4))) == (
        objectives.preserved_bandwidth([1, 0], TOPOLOGY, [3, 2, 1, 0])
    )
    assert not kernels.verify_embedding(RING, CLIQUE, {0, 1, 2, 3})
    assert kernels.verify_embedding(RING, CLIQUE, [0, 1, 2, 3])
