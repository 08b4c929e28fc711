"""The topology-aware scheduler of Amaral et al. (SC'17, section 4): TOPO-AWARE and TOPO-AWARE-P."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from topoplace import _checks
from topoplace.engine.multi_machine import least_communication, nearest
from topoplace.policies.sc17.costs import UtilityPolicy

if TYPE_CHECKING:
    from topoplace.engine.machine_class import MachineClass, Mask
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.multi_machine import MachineOffer, MachineSplit
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.objectives.utility import Costs, Formula

_ROUNDING = 1e-9
_MAX_SOCKETS = 4
"""Up to this many sockets with free GPUs, every set of them is tried; of more, each one, and all together."""


class TopoAware(UtilityPolicy):
    """The placement of the highest system utility (`objectives.utility`); a job is placed at once where it fits.

    Machines that do not meet the job's constraints are left out (Algorithm 1); on each other one the job is mapped by
    dual recursive bi-partitioning (Algorithms 2 and 3; up to 8 GPUs by a proof) into every set of its sockets that
    has room, and the mapping of the highest utility counts. Where no machine has room for all of it, the job gets
    as few as possible, as near as possible. Jobs start in the order of their submission; one that does not fit lets
    the next go first.
    """

    name = "topo-aware"

    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the mapping of least communication into every set of sockets."""
        if machine_class.partitions:
            regions = request.regions(machine_class, free)
        else:
            regions = _unions(machine_class, free, request.size)
        return {request.mapped(machine_class, region) for region in regions}

    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return a key for the highest system utility, then least communication, then the fullest machine."""
        return (-round(self.utility.system(costs), 12), costs.communication, free.bit_count())

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return splits over the fewest machines, those closest to each other first."""
        fabric = view.cluster.topology.fabric
        return nearest(offers, request.size, fabric, anti_affine=request.job.anti_affinity)

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the mapping of least communication."""
        return least_communication(request, gpus, view)


class TopoAwareP(TopoAware):
    """As `TopoAware`, but a job waits while no placement has its `min_utility`; younger ones may overtake it.

    max_postponements: how often a job is deferred at most; after that it takes what there is. None for no limit.
    """

    name = "topo-aware-p"

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | Literal["authors"] | None = None,
        memory_bandwidth: float | None = None,
        max_postponements: int | None = None,
    ) -> None:
        super().__init__(profile=profile, utility=utility, memory_bandwidth=memory_bandwidth)
        if max_postponements is not None:
            _checks.integer(max_postponements, "max_postponements", ValueError, low=0, high=1 << 30)
        self.max_postponements = max_postponements

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return its `min_utility`, until it has been deferred often enough."""
        if self.max_postponements is not None and postponed >= self.max_postponements:
            return -math.inf
        return job.min_utility - _ROUNDING


def _unions(machine_class: MachineClass, free: Mask, size: int) -> list[Mask]:
    """Return the free GPUs of every set of sockets that has enough of them."""
    sockets = [free & socket for socket in machine_class.sockets if free & socket]
    if len(sockets) > _MAX_SOCKETS:
        unions = [*sockets, free]
    else:
        sizes = range(1, len(sockets) + 1)
        unions = [sum(chosen) for count in sizes for chosen in combinations(sockets, count)]
    return [union for union in unions if union.bit_count() >= size]
