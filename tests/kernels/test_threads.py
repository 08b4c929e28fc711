"""Handles are shared between threads: whoever asks first builds what searches need, and all get the same answers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import topoplace as tp
from topoplace import kernels

NUM_THREADS = 8
NUM_ROUNDS = 50
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
    """Nothing is prepared before the threads start, and preparing a star of 128 takes longer than starting."""
    target = tp.machines.get("cubemesh-16").graph
    star, mesh = tp.JobGraph.star(128), tp.JobGraph.mesh((4, 4))

    def fresh_patterns() -> tuple[kernels.Graph, kernels.Graph]:
        return kernels.Graph.from_edges(128, star.edges), kernels.Graph.from_edges(16, mesh.edges)

    def ask(patterns: tuple[kernels.Graph, kernels.Graph]) -> list[object]:
        start.wait()
        automorphisms = patterns[0].num_automorphisms
        remainder = kernels.best_remainder(patterns[1], target, max_nodes=1000)
        best = kernels.best_subgraph(patterns[1], target, max_nodes=1000)
        return [automorphisms, *(None if one is None else one.vertices.tolist() for one in (remainder, best))]

    start = Barrier(1)
    alone = ask(fresh_patterns())
    start = Barrier(NUM_THREADS)
    with ThreadPoolExecutor(NUM_THREADS) as pool:
        for _ in range(NUM_ROUNDS):
            assert list(pool.map(ask, [fresh_patterns()] * NUM_THREADS)) == [alone] * NUM_THREADS
