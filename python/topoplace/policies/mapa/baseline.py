"""The policy that takes the lowest free GPU ids, the first policy with which MAPA compares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement


class Baseline(MapaPolicy):
    """The policy that takes the free GPUs with the lowest ids, as a container runtime does.

    Tasks are assigned to these GPUs for the largest aggregated bandwidth. If the lowest GPUs lack a link for some edge
    of the job, the policy takes the lexicographically smallest GPU set that has all links.
    """

    name = "baseline"

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement on the GPUs in `required` and the lowest other GPUs in `free`.

        If these lack a link for some edge of the job, return the placement on the lexicographically smallest set that
        has all links; None if there is none.
        """
        return self.first_fit(job, cluster, free, required, budget)
