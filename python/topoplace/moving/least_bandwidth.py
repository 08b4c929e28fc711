"""The policy that places jobs that need a minimum bandwidth between their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import _checks, kernels
from topoplace.engine.policy import SearchPolicy
from topoplace.objectives.links import scores_of
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph


class LeastBandwidth(SearchPolicy):
    """A policy that places a job only if all links between its tasks reach a bandwidth, with the fastest slowest link.

    gb_per_s: the minimum bandwidth, GB/s. Raise ValueError unless it is positive.
    """

    name = "the search for min_bandwidth"

    def __init__(self, gb_per_s: float) -> None:
        self.gb_per_s = _checks.positive(gb_per_s, "min_bandwidth", ValueError)

    def best(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        """Return the placement with the fastest slowest link; None if that is too slow."""
        found = kernels.best_subgraph(
            job.graph,
            cluster.topology.graph,
            objective="bottleneck",
            free=free,
            required=required,
            min_weight=self.gb_per_s,
        )
        if found is None:
            return None
        gpus = tuple(found.vertices.tolist())
        scores = scores_of(job, gpus, cluster.topology, cluster.free_gpus())
        return Placement(gpus, scores=scores, optimal=found.optimal, topology=cluster.topology, job=job)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better: the negated bandwidth of its slowest link."""
        return (-placement.scores["bottleneck_bandwidth"],)
