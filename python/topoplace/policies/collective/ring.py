"""The policy that gives every job the GPUs among which a collective library's rings carry the most."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.collective.rates import Rates, rates_of
from topoplace.policies.mapa import rings
from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement, Refusal


class Collective(MapaPolicy):
    """The largest ring bandwidth; of sets that tie, the one that costs other jobs the least. Nothing is fitted.

    `topoplace.collective.ring_bandwidth` is what NCCL's rings carry among the GPUs, on one machine of up to 64. Sets
    within steps of 10 % tie, as NCCL's figures are quantised. Of these the policy takes the one after which
    `topoplace.collective.left_bandwidth` of the machine's free GPUs falls the least, then the smallest GPU list. For a
    job without edges all sets tie. A job over several machines, or on a larger one, gets the fastest slowest link. All
    sets are compared if there are at most 13,000, as on machines of 16 GPUs; of more, a few near ones. A placement is
    `optimal` if no set has a better figure; other rings than NCCL's might carry more.

    Args:
        min_ring_bandwidth: GB/s below which a job with edges waits; None is no limit.
        rates: As in `topoplace.collective`.
        timeout: Limit in seconds on putting the tasks on the chosen GPUs, as for MAPA's policies.
        max_nodes: Limit in search tree nodes on the same, as for MAPA's policies.
    """

    name = "collective"
    artifact_rule = ""

    def __init__(
        self,
        min_ring_bandwidth: float | None = None,
        *,
        rates: Rates | str = "nccl-2.30",
        timeout: float | None = None,
        max_nodes: int | None = 2_000_000,
    ) -> None:
        super().__init__(timeout=timeout, max_nodes=max_nodes)
        if min_ring_bandwidth is not None:
            _checks.real(min_ring_bandwidth, "min_ring_bandwidth", ValueError)
        self.min_ring_bandwidth = min_ring_bandwidth
        rates_of(rates)  # checks them; a name is kept, as it can be pickled
        self.rates = rates

    def search(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement with the best rings inside `free` that uses all of `required`, None if there is none."""
        return rings.place(rings.Search(self, job, cluster, free, required, budget, self.rates))

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better."""
        return rings.order(job, placement)

    def reason_to_wait(self, job: JobGraph, placement: Placement) -> Refusal | None:
        """Return a refusal if the best rings carry less than `min_ring_bandwidth`, else None."""
        return rings.reason_to_wait(job, placement, self.min_ring_bandwidth)
