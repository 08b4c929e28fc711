"""Every placement of a small job on a small topology, tried one by one: the oracle of the policy tests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, permutations

from topoplace import JobGraph, Topology
from topoplace.objectives import EffectiveBandwidth, link_class

Gpus = tuple[int, ...]
Key = tuple[float, ...]


def placements(job: JobGraph, topology: Topology, free: Iterable[int]) -> Iterator[Gpus]:
    """Every order of every set of free GPUs that has a link for every edge, in the library's tie order."""
    for subset in combinations(sorted(free), job.num_tasks):
        for gpus in permutations(subset):
            if all(topology.bandwidth(gpus[a], gpus[b]) > 0 for a, b, _ in job.edges):
                yield gpus


def best_of_each_set(
    job: JobGraph,
    topology: Topology,
    free: Iterable[int],
    key: Callable[[Gpus], Key],
    order: Callable[[Gpus], Key],
) -> list[Gpus]:
    """The best placement of each GPU set by `order`, sets sorted by `key` (largest first), then by their ids."""
    best: dict[Gpus, Gpus] = {}
    for gpus in placements(job, topology, free):
        members = tuple(sorted(gpus))
        if members not in best or order(gpus) > order(best[members]):
            best[members] = gpus
    return [best[members] for members in sorted(best, key=lambda m: ([-part for part in key(best[m])], m))]


def aggregated(job: JobGraph, topology: Topology, gpus: Gpus) -> float:
    return sum(topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges)


def bottleneck(job: JobGraph, topology: Topology, gpus: Gpus) -> float:
    return min((topology.bandwidth(gpus[a], gpus[b]) for a, b, _ in job.edges), default=float("inf"))


def preserved(topology: Topology, free: Iterable[int], gpus: Gpus) -> float:
    return sum(topology.bandwidth(u, v) for u, v in combinations(sorted(set(free) - set(gpus)), 2))


def effective(job: JobGraph, topology: Topology, gpus: Gpus) -> float:
    classes = link_class(topology)
    used = [int(classes[gpus[a], gpus[b]]) for a, b, _ in job.edges]
    return float(EffectiveBandwidth().predict(used.count(0), used.count(1), used.count(2)))


def together(topology: Topology, gpus: Gpus) -> float:
    return float(len({(topology.gpus[gpu].machine, topology.gpus[gpu].socket) for gpu in gpus}) == 1)


def ranking(
    policy: str, job: JobGraph, topology: Topology, usable: Iterable[int], free: Iterable[int]
) -> list[Gpus]:
    """What the four policies of MAPA should rank, best first, by their definitions alone."""

    def agg(gpus: Gpus) -> Key:
        return (aggregated(job, topology, gpus),)

    def eff(gpus: Gpus) -> Key:
        return (effective(job, topology, gpus),)

    def left(gpus: Gpus) -> Key:
        return (preserved(topology, free, gpus), aggregated(job, topology, gpus))

    def slowest(gpus: Gpus) -> Key:
        return (bottleneck(job, topology, gpus), aggregated(job, topology, gpus))

    if policy == "mapa-preserve":
        sensitive = job.bandwidth_sensitive and bool(job.edges)
        key = (eff if job.num_tasks in range(2, 6) else slowest) if sensitive else left
        return best_of_each_set(job, topology, usable, key, key)
    keys: dict[str, Callable[[Gpus], Key]] = {
        "baseline": lambda gpus: (),
        "mapa-topo-aware": lambda gpus: (together(topology, gpus),),
        "mapa-greedy": agg,
    }
    return best_of_each_set(job, topology, usable, keys[policy], agg)
