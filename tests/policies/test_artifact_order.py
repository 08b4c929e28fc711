"""The order in which MAPA's artifact compares sets of GPUs."""

from __future__ import annotations

from itertools import combinations

import pytest

import topoplace as tp
from topoplace.objectives import EffectiveBandwidth
from topoplace.policies.mapa.artifact_order import candidates_of


@pytest.mark.parametrize(
    ("pattern", "positions"),
    [
        (tp.JobGraph.ring(3), (1, 0, 2)),
        (tp.JobGraph.clique(3), (1, 0, 2)),
        (tp.JobGraph.ring(4), (2, 0, 1, 3)),
        (tp.JobGraph.clique(4), (2, 0, 1, 3)),
        (tp.JobGraph.ring(5), (3, 2, 0, 1, 4)),
        (tp.JobGraph.clique(5), (3, 0, 1, 2, 4)),
        (tp.JobGraph.star(5), (0, 1, 2, 3, 4)),
    ],
    ids=lambda value: f"{value.name}-{value.num_tasks}" if isinstance(value, tp.JobGraph) else "",
)
def test_sets_are_in_the_order_of_the_miner(pattern: tp.JobGraph, positions: tuple[int, ...]) -> None:
    topology = tp.Topology.from_links(8, [], 12.0)
    sets = sorted(
        combinations(range(8), pattern.num_tasks), key=lambda gpus: [gpus[position] for position in positions]
    )
    found = candidates_of(topology, pattern, EffectiveBandwidth()).members.tolist()
    assert found == list(map(list, sets))


def test_a_single_task_preserves_bandwidth_even_if_it_is_sensitive() -> None:
    topology = tp.Topology.from_links(3, [(0, 1, 50.0)], 12.0)
    job = tp.JobGraph.ring(1).with_(bandwidth_sensitive=True)
    placement = tp.policies.Preserve(tie_break="artifact").place(job, tp.Cluster(topology))
    assert placement is not None
    assert placement.gpus == (2,)
