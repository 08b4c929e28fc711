"""The lowest free ids, the first policy MAPA compares with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement


class Baseline(MapaPolicy):
    """The free GPUs with the lowest ids, as a container runtime hands them out; tasks in the order of best AggBW.

    Where those have no link for some edge of the job, the next lowest that have.
    """

    name = "baseline"
    artifact_rule = "baseline"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """Return the lowest ids of `free` and all of `required`."""
        return self.first_fit(job, cluster, free, required)
