"""Every placement of a small job on a small topology, tried one by one: the oracle of the policy tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations

from topoplace import JobGraph, Topology

Score = tuple[float, ...]


def placements(job: JobGraph, topology: Topology, free: Iterable[int]) -> Iterator[tuple[int, ...]]:
    """Every order of every set of free GPUs, in the library's tie order, that has a link for every edge."""
    for subset in combinations(sorted(free), job.num_tasks):
        for gpus in permutations(subset):
            if all(topology.bandwidth(gpus[a], gpus[b]) > 0 for a, b, _ in job.edges):
                yield gpus


def best(
    job: JobGraph, topology: Topology, free: Iterable[int], score: Callable[[tuple[int, ...]], Score]
) -> tuple[Score, tuple[int, ...]] | None:
    """The largest score and the first placement, in tie order, that has it."""
    found: tuple[Score, tuple[int, ...]] | None = None
    for gpus in placements(job, topology, free):
        value = score(gpus)
        if found is None or value > found[0]:
            found = (value, gpus)
    return found


def aggregated(job: JobGraph, topology: Topology, gpus: tuple[int, ...]) -> float:
    return sum(topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges)


def bottleneck(job: JobGraph, topology: Topology, gpus: tuple[int, ...]) -> float:
    return min((topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges), default=float("inf"))


def preserved(topology: Topology, free: Iterable[int], gpus: tuple[int, ...]) -> float:
    return sum(topology.bandwidth(u, v) for u, v in combinations(sorted(set(free) - set(gpus)), 2))
