"""Keep jobs that communicate on the GPUs of one maker, as the collective libraries of two makers cannot communicate.

A job that requires models of several makers may mix them. The rules of a policy ignore makers. If a placement mixes
them, each maker is tried in turn, with the GPUs of all other makers drained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.placement import Placement, Refusal
from topoplace.topology.makers import LIBRARY_OF, are_mixed, gpus_by_maker, names_several

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.makers import Maker
    from topoplace.topology.topology import Topology


def is_bound(job: JobGraph, topology: Topology) -> bool:
    """Return True if the topology has GPUs of several makers, and the job must use those of one maker only."""
    return bool(job.edges and topology.derived(gpus_by_maker)) and not names_several(job.gpu_models)


def mixes(job: JobGraph, placement: Placement) -> bool:
    """Return True if a placement has GPUs of several makers for a job that must use those of one maker only."""
    return is_bound(job, placement.topology) and are_mixed(placement.topology, placement.gpus)


def decided(find: Callable[[Cluster], Placement | None], cluster: Cluster) -> Placement | None:
    """Return the fastest placement on GPUs of one maker; None if there is none.

    find: returns the placement of the job on a cluster.
    """
    each = (find(_with_one(maker, cluster)) for maker in cluster.topology.derived(gpus_by_maker))
    found = [placement for placement in each if placement is not None]
    return min(found, key=lambda placement: placement.time, default=None)


def kept(
    find: Callable[[Cluster], Placement | None],
    job: JobGraph,
    cluster: Cluster,
    candidates: Iterator[Placement | Refusal],
) -> Iterator[Placement | Refusal]:
    """Yield the candidates that do not mix makers; if the first one does, yield the placement of `decided` instead."""
    for place, one in enumerate(candidates):
        if isinstance(one, Refusal) or not mixes(job, one):
            yield one
        elif not place:
            yield decided(find, cluster) or refusal(job, cluster)


def refusal(job: JobGraph, cluster: Cluster) -> Refusal:
    """Return why a job gets no GPUs of one maker, though enough GPUs of several makers are free."""
    if (never := why_never(job, cluster)) is not None:
        return never
    return Refusal(f"cannot start now: {_needs(job)}; free are {_counts(cluster, cluster.free_gpus())}")


def why_never(job: JobGraph, cluster: Cluster) -> Refusal | None:
    """Return a refusal if no single maker's GPUs are ever enough for a job; None if they may be."""
    topology = cluster.topology
    if not is_bound(job, topology):
        return None
    by_maker = topology.derived(gpus_by_maker).values()
    unknown = topology.num_gpus - sum(map(len, by_maker))
    if max(map(len, by_maker)) + unknown >= job.num_tasks:
        return None
    counts = _counts(cluster, range(topology.num_gpus))
    return Refusal(f"never fits: {_needs(job)}; the topology has {counts}", permanent=True)


def _with_one(maker: Maker, cluster: Cluster) -> Cluster:
    """Return a copy of a cluster in which the accelerators of all other makers are drained."""
    copy = cluster.copy()
    for other, gpus in cluster.topology.derived(gpus_by_maker).items():
        if other is not maker:
            for gpu in sorted(gpus):
                copy.drain(gpu)
    return copy


def _needs(job: JobGraph) -> str:
    return f"needs {job.num_tasks} GPUs of one maker, as its tasks communicate"


def _counts(cluster: Cluster, gpus: Iterable[int]) -> str:
    """Return how many of some GPUs are of each maker, and whose libraries do not meet."""
    some = frozenset(gpus)
    makers = cluster.topology.derived(gpus_by_maker)
    counts = " and ".join(f"{len(own & some)} of {maker.value}" for maker, own in makers.items())
    libraries = " and ".join(LIBRARY_OF.get(maker, f"that of {maker.value}") for maker in makers)
    return f"{counts}, whose libraries ({libraries}) do not meet"
