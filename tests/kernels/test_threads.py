"""Handles are shared between threads: whoever asks first builds what searches need, and all get the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import topoplace as tp
from topoplace import kernels

NUM_THREADS = 8
NUM_ROUNDS = 600
JOBS = [
    pattern(size) for pattern in (tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.tree) for size in (3, 5, 7)
]


def fresh_jobs() -> list[tp.JobGraph]:
    """Return job graphs of which no search has prepared anything; those of `JobGraph.ring` are kept and shared."""
    return [tp.JobGraph.from_edges(job.num_tasks, job.edges) for job in JOBS]


def answers(machine: tp.Topology, jobs: Sequence[tp.JobGraph]) -> list[object]:
    """One answer of every kind for every job, as plain values."""
    classes = tp.objectives.link_class(machine)
    by_counts = kernels.LinkCountScore(classes, tp.objectives.EffectiveBandwidth())
    found: list[object] = []
    for job in jobs:
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
    alone = answers(tp.Topology.from_json(machine.to_json()), fresh_jobs())
    fresh = tp.Topology.from_json(machine.to_json())
    jobs = fresh_jobs()
    start = Barrier(NUM_THREADS)

    def ask(_: int) -> list[object]:
        start.wait()
        return answers(fresh, jobs)

    with ThreadPoolExecutor(NUM_THREADS) as pool:
        assert list(pool.map(ask, range(NUM_THREADS))) == [alone] * NUM_THREADS


def test_threads_prepare_a_pattern_once() -> None:
    """Nothing is prepared before the threads start, and all of them begin with the same pattern."""
    target = tp.machines.get("dgx1-v100").graph
    edges = tp.JobGraph.mesh((2, 4)).edges

    def ask(pattern: kernels.Graph) -> list[object]:
        start.wait()
        counts = [
            kernels.count_subgraphs(pattern, target, distinct=kind) for kind in ("images", "vertex_sets")
        ]
        remainder = kernels.best_remainder(pattern, target)
        best = kernels.best_subgraph(pattern, target)
        assert remainder is not None
        assert best is not None
        return [*counts, pattern.num_automorphisms, remainder.vertices.tolist(), best.vertices.tolist()]

    start = Barrier(1)
    alone = ask(kernels.Graph.from_edges(8, edges))
    start = Barrier(NUM_THREADS)
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for _ in range(NUM_ROUNDS):
            pattern = kernels.Graph.from_edges(8, edges)
            assert list(pool.map(ask, [pattern] * NUM_THREADS)) == [alone] * NUM_THREADS
