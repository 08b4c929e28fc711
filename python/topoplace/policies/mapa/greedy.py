"""The policy that maximises aggregated bandwidth, one of the policies with which MAPA compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement


class Greedy(MapaPolicy):
    """The policy that maximises the sum of the bandwidths of the job's links (MAPA, eq. 1), ignoring later jobs."""

    name = "mapa-greedy"

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement inside `free`, using all of `required`, with the largest sum of link bandwidths.

        Return None if there is no such placement.
        """
        return self.embed(job, cluster, free, required, budget)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better: the negated aggregated bandwidth."""
        return (-placement.scores["aggregated_bandwidth"],)
