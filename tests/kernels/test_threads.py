"""Handles are shared between threads: whoever asks first builds what searches need, and all get the same answers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import topoplace as tp
from topoplace import kernels

NUM_THREADS = 8
JOBS = [
    pattern(size) for pattern in (tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.tree) for size in (3, 5, 7)
]


def answers(machine: tp.Topology) -> list[object]:
    """One answer of every kind for every job, as plain values."""
    classes = tp.objectives.link_class(machine)
    by_counts = kernels.LinkCountScore(classes, tp.objectives.EffectiveBandwidth())
    found: list[object] = []
    for job in JOBS:
        for objective in ("sum", "bottleneck", by_counts):
            best = kernels.best_subgraph(job.graph, machine.graph, objective=objective)
            assert best is not None
            found.append((best.vertices.tolist(), best.score, best.optimal))
        found.append(kernels.count_subgraphs(job.graph, machine.graph, min_weight=20.0, distinct="images"))
        remainder = kernels.best_remainder(job.graph, machine.graph)
        assert remainder is not None
        found.append((remainder.vertices.tolist(), remainder.remainder))
    return found


def test_threads_that_share_handles_get_the_same_answers() -> None:
    machine = tp.machines.get("cubemesh-16")
    alone = answers(tp.Topology.from_json(machine.to_json()))
    fresh = tp.Topology.from_json(machine.to_json())
    start = Barrier(NUM_THREADS)

    def ask(_: int) -> list[object]:
        start.wait()
        return answers(fresh)

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        assert list(pool.map(ask, range(NUM_THREADS))) == [alone] * NUM_THREADS
