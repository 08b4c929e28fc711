"""Two policies MAPA compares with: the lowest free ids, and the largest aggregated bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.base import GpuSet


class Baseline(MapaPolicy):
    """The free GPUs with the lowest ids, as a container runtime hands them out; tasks in the order of best AggBW.

    Where those have no link for some edge of the job, the next lowest that have.
    """

    name = "baseline"
    artifact_rule = "baseline"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """The lowest ids of `free` besides `required`."""
        return self.first_fit(job, cluster, free, required)


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
