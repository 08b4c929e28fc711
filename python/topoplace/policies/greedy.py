"""Two reference policies of MAPA: the lowest free ids, and the largest aggregated bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster import Cluster
    from topoplace.jobgraph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.base import GpuSet


class Baseline(MapaPolicy):
    """The free GPUs with the lowest ids, as a container runtime hands them out; tasks in the order of best AggBW."""

    name = "baseline"
    artifact_rule = "baseline"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """The lowest ids of `free` besides `required`."""
        return self.embed(job, cluster, lowest(job.num_tasks, free, required))


class Greedy(MapaPolicy):
    """The largest aggregated bandwidth (MAPA eq. 1), whatever it leaves to later jobs."""

    name = "mapa-greedy"
    artifact_rule = "greedy"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """The embedding in `free` with the largest sum of link bandwidths."""
        return self.embed(job, cluster, free, required)

    def rank(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Aggregated bandwidth."""
        return (placement.scores["aggregated_bandwidth"],)


def lowest(count: int, free: GpuSet, required: GpuSet) -> GpuSet:
    """`required` and the lowest other ids of `free`, `count` in all."""
    return required | frozenset(sorted(free - required)[: count - len(required)])
