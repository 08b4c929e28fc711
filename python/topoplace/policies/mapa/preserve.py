"""MAPA's own policy: fast links for the jobs that need them, and the rest kept free for those to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import _checks, kernels
from topoplace.objectives.effective_bandwidth import FITTED_TASKS, MAPA_COEFFICIENTS, EffectiveBandwidth
from topoplace.objectives.links import LinkTables
from topoplace.placement import Refusal
from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.policies.mapa.artifact_order import TieBreak


class Preserve(MapaPolicy):
    """MAPA's Algorithm 1: sensitive jobs get the largest effective bandwidth, others leave the most bandwidth free.

    A bandwidth-sensitive job of 2 to 5 tasks gets the placement with the largest predicted effective bandwidth
    (eq. 2). Outside those sizes eq. 2 was never fitted and extrapolates wildly, so larger jobs get the largest
    bottleneck bandwidth and, among equals, the largest aggregated bandwidth; `force_eq2=True` takes eq. 2 at any
    size. `effective_bandwidth_extrapolated` in the scores is 1.0 for those sizes. Every other job, and one
    without links of its own, leaves the largest preserved bandwidth (eq. 3); ties go to the larger aggregated
    bandwidth.

    min_effective_bandwidth: GB/s of eq. 2 below which a sensitive job waits, where eq. 2 decides. The paper
    does not mention it, but its artifact refuses predictions up to 12.335, eq. 2 without any link, and the claim that
    the minimum of Preserve equals the 25th percentile of the others rests on that; the default follows the text.
    coefficients: theta 1 to 14 of eq. 2, such as `EffectiveBandwidth.fit(table).coefficients`.
    """

    name = "mapa-preserve"
    artifact_rule = "preserve"

    def __init__(
        self,
        min_effective_bandwidth: float | None = None,
        coefficients: Sequence[float] = MAPA_COEFFICIENTS,
        *,
        force_eq2: bool = False,
        tie_break: TieBreak = "lexicographic",
        timeout: float | None = None,
        max_nodes: int | None = 2_000_000,
    ) -> None:
        super().__init__(tie_break=tie_break, timeout=timeout, max_nodes=max_nodes)
        if min_effective_bandwidth is not None:
            _checks.real(min_effective_bandwidth, "min_effective_bandwidth", ValueError)
        self.min_effective_bandwidth = min_effective_bandwidth
        self.force_eq2 = _checks.flag(force_eq2, "force_eq2", ValueError)
        self.model = EffectiveBandwidth(coefficients)

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """Return the best placement by Algorithm 1."""
        if not _wants_bandwidth(job):
            return self._leave_most(job, cluster, free, required)
        if not self._trusts_eq2(job):
            return self.embed(job, cluster, free, required, "bottleneck_sum")
        return self.embed(
            job, cluster, free, required, cluster.topology.derived(LinkTables).count_score(self.model)
        )

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return a key by which the largest scores come first, of those Algorithm 1 compares for this job."""
        names: tuple[str, ...]
        if not _wants_bandwidth(job):
            names = ("preserved_bandwidth", "aggregated_bandwidth")
        elif self._trusts_eq2(job):
            names = ("effective_bandwidth",)
        else:
            names = ("bottleneck_bandwidth", "aggregated_bandwidth")
        return tuple(-placement.scores[name] for name in names)

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return the refusal of a placement below the minimum effective bandwidth."""
        least, best = self.min_effective_bandwidth, placement.scores["effective_bandwidth"]
        if least is None or best >= least or not _wants_bandwidth(job) or not self._trusts_eq2(job):
            return None
        return Refusal(
            f"waits: the best effective bandwidth now is {best:.3f} GB/s, the minimum is {least:g}"
        )

    def _trusts_eq2(self, job: JobGraph) -> bool:
        return self.force_eq2 or job.num_tasks in FITTED_TASKS

    def _leave_most(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet
    ) -> Placement | None:
        kept = [gpu for gpu in cluster.free_gpus() if gpu not in free]
        found = kernels.best_remainder(
            job.graph,
            cluster.topology.graph,
            free=free,
            kept=kept,
            required=required,
            timeout=self.timeout,
            max_nodes=self.max_nodes,
        )
        return None if found is None else self.scored(job, cluster, found.vertices.tolist(), found.optimal)


def _wants_bandwidth(job: JobGraph) -> bool:
    return job.bandwidth_sensitive and bool(job.edges)
