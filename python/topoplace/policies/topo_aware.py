"""The topology-aware scheduler of Amaral et al. (SC'17, section 4): TOPO-AWARE and TOPO-AWARE-P."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Literal

from topoplace import _checks
from topoplace.policies.across import least_communication
from topoplace.policies.machine_policy import MachinePolicy
from topoplace.policies.shares import Room, Shares, nearest

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.objectives.utility import Costs, Formula
    from topoplace.policies.kinds import Kind
    from topoplace.policies.occupancy import Occupancy
    from topoplace.policies.shapes import Mask, Shape

_ROUNDING = 1e-9
_MAX_SOCKETS = 4
"""Up to so many sockets with free GPUs every set of them is tried; of more, each one, and all together."""


class TopoAware(MachinePolicy):
    """The placement of the highest system utility (`objectives.utility`); a job is placed at once where it fits.

    Machines that do not meet the job's constraints are left out (Algorithm 1); on each other one the job is mapped by
    dual recursive bi-partitioning (Algorithms 2 and 3; up to 8 GPUs by a proof) into every set of its sockets that
    has room, and the mapping of the highest utility counts. Where no machine has room for all of it, the job gets
    as few as possible, as near as possible. Jobs start in the order of their submission; one that does not fit lets
    the next go first.
    """

    name = "topo-aware"

    def mappings(self, kind: Kind, shape: Shape, free: Mask) -> Iterable[tuple[int, ...]]:
        """The least communication in every set of sockets."""
        regions = kind.regions(shape, free) if shape.partitions else _unions(shape, free, kind.size)
        return {kind.mapped(shape, region) for region in regions}

    def order(self, shape: Shape, free: Mask, gpus: tuple[int, ...], costs: Costs) -> tuple[float, ...]:
        """Highest system utility, then least communication, then the fullest machine."""
        return (-round(self.utility.system(costs), 12), costs.communication, free.bit_count())

    def shares(self, kind: Kind, rooms: Sequence[Room], occupancy: Occupancy) -> Iterable[Shares]:
        """The fewest machines, and of these the nearest."""
        apart = kind.job.anti_affinity
        return nearest(rooms, kind.size, occupancy.cluster.topology.fabric, apart=apart)

    def task_order(self, kind: Kind, gpus: Sequence[int], occupancy: Occupancy) -> Sequence[int]:
        """The mapping of least communication."""
        return least_communication(kind, gpus, occupancy)


class TopoAwareP(TopoAware):
    """As `TopoAware`, but a job waits while no placement has its `min_utility`; younger ones may overtake it.

    max_postponements: how often a job is put off at most; after that it takes what there is. None for no limit.
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
        """Its `min_utility`, until it has been put off often enough."""
        if self.max_postponements is not None and postponed >= self.max_postponements:
            return -math.inf
        return job.min_utility - _ROUNDING


def _unions(shape: Shape, free: Mask, size: int) -> list[Mask]:
    """The free GPUs of every set of sockets that has enough of them."""
    sockets = [free & socket for socket in shape.sockets if free & socket]
    if len(sockets) > _MAX_SOCKETS:
        unions = [*sockets, free]
    else:
        sizes = range(1, len(sockets) + 1)
        unions = [sum(chosen) for count in sizes for chosen in combinations(sockets, count)]
    return [union for union in unions if union.bit_count() >= size]
