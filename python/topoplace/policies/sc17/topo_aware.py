"""The topology-aware policies of Amaral et al. (SC'17, section 4): TOPO-AWARE and TOPO-AWARE-P."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.engine.gangs.assignments import least_communication
from topoplace.engine.gangs.splits import nearest
from topoplace.engine.memo import Memo
from topoplace.placement import Refusal
from topoplace.policies.sc17.bipartition import UtilityBipartition
from topoplace.policies.sc17.costs import UtilityPolicy

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import MachineOffer
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.objectives.utility import Costs, Formula
    from topoplace.policies.sc17.costs import FormulaName

_MAX_KNOWN = 1 << 12
_ROUNDING = 1e-9
_MAX_SOCKETS = 4
"""Largest number of sockets with free GPUs for which every set is tried; above it, only single sockets and all."""


class TopoAware(UtilityPolicy):
    """TOPO-AWARE: place each job at once if possible, with the highest system utility (`objectives.utility`).

    Machines that do not meet the job's constraints are excluded (Algorithm 1). On each other machine, the job is mapped
    into every set of sockets with enough free GPUs, and the mapping of the highest system utility counts. If more than
    4 sockets have free GPUs, only single sockets and all of them together are tried. The mapping is by dual recursive
    bipartitioning (Algorithms 2 and 3), or by exact search for up to 8 GPUs. If no machine has room for the whole job,
    it is split over the fewest machines, as close together as possible. Jobs are tried in order of submission; a job
    that does not fit does not block younger ones.

    Other arguments are those of `UtilityPolicy`.

    Args:
        utility_in_bipartition: If True, utility decides inside the bipartition, task by task, as Algorithm 3 is printed
            (`UtilityBipartition`), and not among complete mappings. Each machine then has only one mapping. Jobs on
            several machines, and machines with fixed partitions, are mapped as without it.
    """

    name = "topo-aware"

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | FormulaName | None = None,
        memory_bandwidth: float | None = None,
        utility_in_bipartition: bool = False,
    ) -> None:
        super().__init__(profile=profile, utility=utility, memory_bandwidth=memory_bandwidth)
        _checks.flag(utility_in_bipartition, "utility_in_bipartition", ValueError)
        self.bipartition = UtilityBipartition(self.costing, self.utility) if utility_in_bipartition else None

    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the mapping of lowest communication cost into each set of sockets with enough free GPUs.

        If the machine's GPUs are only allocated in fixed partitions, map into each free partition of the job's size.
        """
        if machine_class.partitions:
            regions = request.regions(machine_class, free)
        else:
            regions = _unions(machine_class, free, request.size)
        return {request.mapped(machine_class, region) for region in regions}

    def mappings_in(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the candidate GPU choices on a machine in this state; with `utility_in_bipartition`, only one."""
        rules = self.bipartition
        if rules is None or machine_class.partitions or free.bit_count() < request.size:
            return super().mappings_in(request, machine_class, state, free)
        found: Memo[object, tuple[int, ...]] = request.table(
            (self, UtilityBipartition), lambda: Memo(_MAX_KNOWN)
        )
        key = machine_class, free, state.free, state.neighbours
        gpus = found.get_or_build(key, lambda: rules.mapped(request, machine_class, state, free))
        if request.communication(machine_class, gpus) == math.inf:  # task by task, no path may be left
            return super().mappings_in(request, machine_class, state, free)
        return (gpus,)

    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return the sort key of a choice, smaller is better; `free`: GPUs left on the machine afterwards.

        The highest system utility comes first, then the lowest communication cost, then the fewest GPUs left free.
        """
        return (-round(self.utility.system(costs), 12), costs.communication, free.bit_count())

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return splits of the job over machines: the fewest ones that are closest together first; see `nearest`."""
        fabric = view.cluster.topology.fabric
        return nearest(offers, request.size, fabric, anti_affine=request.job.anti_affinity)

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task, chosen from `gpus` for the lowest communication cost."""
        return least_communication(request, gpus, view)


class TopoAwareP(TopoAware):
    """TOPO-AWARE-P: like `TopoAware`, but a job waits until a placement reaches the job's `min_utility`.

    Younger jobs may overtake a waiting one.

    Other arguments are those of `TopoAware`.

    Args:
        max_postponements: After this many deferrals the job accepts any placement; None for no limit.
        protect_running: Limit on the slowdown of a running job by a placement: 1.0 means none, 1.05 means 5 %. A job
            waits if it would slow another job more than that; None for no limit, as in the paper.

    Raises:
        ValueError: `protect_running` is below 1, or is given without the `profile` that contains slowdowns.
    """

    name = "topo-aware-p"

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | FormulaName | None = None,
        memory_bandwidth: float | None = None,
        utility_in_bipartition: bool = False,
        max_postponements: int | None = None,
        protect_running: float | None = None,
    ) -> None:
        super().__init__(
            profile=profile,
            utility=utility,
            memory_bandwidth=memory_bandwidth,
            utility_in_bipartition=utility_in_bipartition,
        )
        if max_postponements is not None:
            _checks.integer(max_postponements, "max_postponements", ValueError, low=0, high=1 << 30)
        if protect_running is not None:
            _checks.real(protect_running, "protect_running", ValueError, low=1.0)
            if profile is None:
                raise ValueError("protect_running needs a profile, by which slowdowns are known")
        self.max_postponements = max_postponements
        self.protect_running = protect_running

    def own_utility(self, costs: Costs) -> float:
        """Return the utility to the job; minus infinity if the placement slows a running job too much."""
        if self.protect_running is not None and costs.disturbed * self.protect_running < 1 - _ROUNDING:
            return -math.inf
        return super().own_utility(costs)

    def why_postponed(self, job: JobGraph, utility: float) -> Refusal:
        """Return why a job waits although there is room; utility: that of its best placement now."""
        if utility >= job.min_utility - _ROUNDING and self.protect_running is not None:
            return Refusal(
                f"postponed: it would slow a running job by more than {self.protect_running - 1:.1%} now"
            )
        return super().why_postponed(job, utility)

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return the job's `min_utility`; minus infinity once it was postponed `max_postponements` times."""
        if self.max_postponements is not None and postponed >= self.max_postponements:
            return -math.inf
        return job.min_utility - _ROUNDING


def _unions(machine_class: MachineClass, free: Mask, size: int) -> list[Mask]:
    """Return the free GPUs of each set of sockets that has at least `size` of them.

    On a machine with more than 4 sockets that have free GPUs, only single sockets and all sockets together are tried.
    """
    sockets = [free & socket for socket in machine_class.sockets if free & socket]
    if len(sockets) > _MAX_SOCKETS:
        unions = [*sockets, free]
    else:
        sizes = range(1, len(sockets) + 1)
        unions = [sum(chosen) for count in sizes for chosen in combinations(sockets, count)]
    return [union for union in unions if union.bit_count() >= size]
