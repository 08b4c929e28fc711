"""MAPA's own policy: give fast links to bandwidth-sensitive jobs, and let other jobs leave them free for later ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import _checks, kernels
from topoplace.objectives.effective_bandwidth import FITTED_TASKS, MAPA_COEFFICIENTS, EffectiveBandwidth
from topoplace.objectives.links import LinkTables, preserved_bandwidth
from topoplace.placement import Refusal
from topoplace.policies.mapa import gangs
from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement


class Preserve(MapaPolicy):
    """MAPA's Algorithm 1: sensitive jobs get the largest effective bandwidth, others leave the most bandwidth free.

    A bandwidth-sensitive job of 2 to 5 tasks gets the placement with the largest predicted effective bandwidth (eq. 2).
    Eq. 2 was not fitted on larger jobs and extrapolates badly. A larger sensitive job therefore gets the largest
    bottleneck bandwidth, ties broken by the largest aggregated bandwidth; with `force_eq2=True`, eq. 2 decides at any
    size. The score `effective_bandwidth_extrapolated` is 1.0 for sizes outside 2 to 5. A job that is not sensitive, or
    has no edges, gets the placement that leaves the largest preserved bandwidth (eq. 3), ties broken by the largest
    aggregated bandwidth.

    The paper's claim that the minimum of Preserve equals the 25th percentile of the other policies depends on the limit
    `min_effective_bandwidth`.

    Args:
        min_effective_bandwidth: Predicted GB/s below which a job that is placed by eq. 2 waits. None, the default,
            means no limit, as in the paper's text. The paper's artifact refuses predictions up to 12.335, the value of
            eq. 2 without any link.
        coefficients: Theta 1 to 14 of eq. 2, such as `EffectiveBandwidth.fit(table).coefficients`.
    """

    name = "mapa-preserve"

    def __init__(
        self,
        min_effective_bandwidth: float | None = None,
        coefficients: Sequence[float] = MAPA_COEFFICIENTS,
        *,
        force_eq2: bool = False,
        timeout: float | None = None,
        max_nodes: int | None = 2_000_000,
    ) -> None:
        super().__init__(timeout=timeout, max_nodes=max_nodes)
        if min_effective_bandwidth is not None:
            _checks.real(min_effective_bandwidth, "min_effective_bandwidth", ValueError)
        self.min_effective_bandwidth = min_effective_bandwidth
        self.force_eq2 = _checks.flag(force_eq2, "force_eq2", ValueError)
        self.model = EffectiveBandwidth(coefficients)

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement that MAPA's Algorithm 1 prefers, inside `free` and using all of `required`.

        Return None if there is no such placement.
        """
        if not _wants_bandwidth(job):
            return self._leave_most(job, cluster, free, required, budget)
        if not self._trusts_eq2(job):
            return self.embed(job, cluster, free, required, budget, "bottleneck_sum")
        return self.embed(
            job, cluster, free, required, budget, cluster.topology.derived(LinkTables).count_score(self.model)
        )

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better: the negated scores that Algorithm 1 maximises."""
        names: tuple[str, ...]
        if not _wants_bandwidth(job):
            names = ("preserved_bandwidth", "aggregated_bandwidth")
        elif self._trusts_eq2(job):
            names = ("effective_bandwidth",)
        else:
            names = ("bottleneck_bandwidth", "aggregated_bandwidth")
        return tuple(-placement.scores[name] for name in names)

    def machine_order(self, job: JobGraph, placement: Placement, machine: Cluster) -> tuple[float, ...]:
        """Return the sort key by which machines compare: `order`, but with the loss of preserved bandwidth."""
        key = self.order(job, placement)
        if _wants_bandwidth(job):
            return key
        return preserved_bandwidth((), machine.topology, machine.free_gpus()) + key[0], *key[1:]

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return a refusal if `placement` has less than `min_effective_bandwidth` and eq. 2 decides, else None."""
        least, best = self.min_effective_bandwidth, placement.scores["effective_bandwidth"]
        if least is None or best >= least or not _wants_bandwidth(job) or not self._trusts_eq2(job):
            return None
        return Refusal(
            f"waits: the best effective bandwidth now is {best:.3f} GB/s, the minimum is {least:g}"
        )

    def _trusts_eq2(self, job: JobGraph) -> bool:
        return self.force_eq2 or job.num_tasks in FITTED_TASKS

    def _leave_most(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        if len(free) == job.num_tasks:  # whatever is done, all of it is taken
            gang = gangs.on_machines(job, cluster.topology, free, "sum")
            if gang is not None:
                return self.scored(job, cluster, gang.gpus, gang.proven)
        kept = [gpu for gpu in cluster.free_gpus() if gpu not in free]
        found = kernels.best_remainder(
            job.graph,
            cluster.topology.graph,
            free=free,
            kept=kept,
            required=required,
            timeout=self.timeout,
            max_nodes=self.max_nodes,
            budget=budget,
        )
        return None if found is None else self.scored(job, cluster, found.vertices.tolist(), found.optimal)


def _wants_bandwidth(job: JobGraph) -> bool:
    return job.bandwidth_sensitive and bool(job.edges)
