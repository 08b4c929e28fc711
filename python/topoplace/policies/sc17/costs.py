"""The base class of SC'17's policies, which compute the cost and utility of each placement (`objectives.utility`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from topoplace import _checks
from topoplace.engine.admission import why_no_memory_bandwidth
from topoplace.engine.gangs.assignments import communication_range
from topoplace.engine.machine_policy import Evaluation, MachinePolicy
from topoplace.engine.machines.machine_class import MachineClass, Mask, mask_of
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.machines.machine_options import Option
from topoplace.engine.memo import Memo
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives.authors_utility import AuthorsUtility
from topoplace.objectives.colocation import JobKind, interference_ratios, worst_ratio
from topoplace.objectives.pair_links import job_communication_cost
from topoplace.objectives.printed_utility import PrintedUtility
from topoplace.objectives.utility import Costs, Formula, Utility

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Refusal

FormulaName = Literal["authors", "printed"]
Ratios = tuple[float, float, float]
"""Ratios of run times, 0..1: 1 means no interference."""
_FORMULAS: Final[Mapping[str, type[AuthorsUtility | PrintedUtility]]] = {
    "authors": AuthorsUtility,
    "printed": PrintedUtility,
}
_ROUNDING = 1e-9
_MAX_KNOWN = 1 << 12
"""Maximum number of choices and options that are cached per request."""


class Costing:
    """The costs of placements, from a performance profile, and limits on host memory bandwidth."""

    def __init__(self, profile: PerformanceProfile | None, memory_bandwidth: float | None) -> None:
        """Check and store the arguments, which are those of `UtilityPolicy`."""
        if profile is not None:
            _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        if memory_bandwidth is not None:
            _checks.positive(memory_bandwidth, "memory_bandwidth", ValueError)
        self.profile = profile
        self.memory_bandwidth = memory_bandwidth
        self.sees_jobs = profile is not None or memory_bandwidth is not None
        self._worst: dict[JobKind, float] = {}
        self._ratios: Memo[tuple[str, int, str, tuple[JobKind, ...]], Ratios] = Memo()

    def on_machine(
        self,
        request: JobRequest,
        machine_class: MachineClass,
        gpus: tuple[int, ...],
        left: Mask,
        others: tuple[JobKind, ...],
    ) -> Costs:
        """Return the costs of running task i on `gpus[i]` of one machine.

        gpus: local GPU numbers. left: the machine's GPUs that stay free afterwards. others: the jobs with which this
        one shares a socket; see `neighbours`.
        """
        communication = request.communication(machine_class, gpus)
        sockets = machine_class.touched(mask_of(gpus))
        where = "intra-socket" if sockets.bit_count() == 1 else "inter-socket"
        suffered, shared, disturbed = self.ratios_among(request, others, where)
        return Costs(
            *(request.size, communication, *request.communication_range),
            *(suffered, shared, self.worst_of(request)),
            fragmentation=machine_class.fragmentation(left),
            disturbed=disturbed,
            weight=request.mean_weight,
            unused=machine_class.unused(left),
        )

    def on_machines(
        self,
        request: JobRequest,
        gpus: Sequence[int],
        communication_range: tuple[float, float],
        view: ClusterView,
    ) -> Costs:
        """Return the costs of running task i on `gpus[i]`, on several machines.

        The interference that the job suffers is that of its worst machine. The mean interference of eq. 4 and the
        fragmentation are averages over its machines. communication_range: lowest and highest communication cost of the
        job.
        """
        parts = self._parts(request, gpus, view)
        suffered, shared, disturbed = zip(*(ratios for ratios, *_ in parts), strict=True)
        return Costs(
            num_gpus=request.size,
            communication=job_communication_cost(request.job, gpus, view.cluster.topology),
            least=communication_range[0],
            most=communication_range[1],
            suffered=min(suffered),
            shared=sum(shared) / len(shared),
            worst=self.worst_of(request),
            fragmentation=sum(fragmentation for _, fragmentation, _ in parts) / len(parts),
            disturbed=min(disturbed),
            weight=request.mean_weight,
            unused=sum(unused for *_, unused in parts) / len(parts),
        )

    def _parts(
        self, request: JobRequest, gpus: Sequence[int], view: ClusterView
    ) -> list[tuple[Ratios, float, float]]:
        """Return, for each machine of `gpus`, the ratios of `_interference`, and its fragmentation and `unused` then.

        They are computed once for machines in one condition that give the same GPUs.
        """
        conditions = view.conditions(Sight(jobs=self.sees_jobs))
        known: dict[tuple[int, Mask], tuple[Ratios, float, float]] = {}
        parts: list[tuple[Ratios, float, float]] = []
        for machine, mask in view.classes.by_machine(gpus).items():
            key = conditions.native.condition_of(machine), mask
            if key not in known:
                machine_class, state = conditions.of(key[0])
                ratios = self._interference(request, machine_class.touched(mask), state, "inter-machine")
                left = state.free & ~mask
                known[key] = ratios, machine_class.fragmentation(left), machine_class.unused(left)
            parts.append(known[key])
        return parts

    def across_at_best(self, request: JobRequest) -> Costs:
        """Return a lower bound on the costs of splitting a job over several machines that fits on one.

        Its communication cost counts as the highest one on a single machine; the other costs are the best possible.
        """
        least, most = request.communication_range
        suffered, *_ = interference_ratios(self.profile, (request.profile, request.size), "inter-machine", ())
        worst, weight = self.worst_of(request), request.mean_weight
        return Costs(request.size, most, least, most, suffered, suffered, worst, 0.0, weight=weight)

    def max_tasks(self, job: JobGraph, used: float = 0.0) -> int:
        """Return the number of the job's tasks for which one machine has enough host memory bandwidth.

        used: GB/s of the machine's memory bandwidth that are in use. If the bandwidth is not limited or the job needs
        none, return the number of all tasks.
        """
        if self.memory_bandwidth is None or not job.memory_bandwidth:
            return job.num_tasks
        tasks = (self.memory_bandwidth - used) * job.num_tasks / job.memory_bandwidth
        return min(max(math.floor(tasks + _ROUNDING), 0), job.num_tasks)

    def why_never(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why idle machines cannot provide the host memory bandwidth for a job; None if they can."""
        suitable = (
            request.suitable(view.classes.of(m)).bit_count() for m in range(view.classes.num_machines)
        )
        return why_no_memory_bandwidth(
            request.job, self.memory_bandwidth, self.max_tasks(request.job), suitable
        )

    def worst_of(self, request: JobRequest) -> float:
        """Return the worst known ratio of run times of a job of this name and size, or of a job next to it."""
        job = (request.profile, request.size)
        if job not in self._worst:
            self._worst[job] = worst_ratio(self.profile, job)
        return self._worst[job]

    def neighbours(self, state: MachineState, sockets: Mask) -> tuple[JobKind, ...]:
        """Return the name and size of each job that has GPUs on one of `sockets`; () if none of them interferes."""
        if self.profile is None:
            return ()
        return tuple([one[:2] for one in state.neighbours if one.sockets & sockets])

    def _interference(self, request: JobRequest, sockets: Mask, state: MachineState, where: str) -> Ratios:
        """Return what `ratios_among` returns, for a job on `sockets` of a machine in the given state."""
        return self.ratios_among(request, self.neighbours(state, sockets), where)

    def ratios_among(self, request: JobRequest, others: tuple[JobKind, ...], where: str) -> Ratios:
        """Return the job's own ratio of run times, the mean over it and `others` (eq. 4), and the lowest of `others`.

        others: jobs with which it shares a socket. where: placement class of the job.
        """
        if self.profile is None:
            return 1.0, 1.0, 1.0
        key = request.profile, request.size, where, others
        known = self._ratios.get(key)
        if known is None:
            known = self._ratios[key] = interference_ratios(self.profile, key[:2], where, others)
        return known


class _Options(NamedTuple):
    """What a policy computed for one request."""

    mappings: Memo[tuple[MachineClass, Mask], tuple[tuple[int, ...], ...]]
    """The candidate GPU choices by class of machines and free GPUs."""
    options: Memo[tuple[MachineClass, tuple[int, ...], Mask, tuple[JobKind, ...]], Option | None]
    """The option of a choice, by class, GPUs, GPUs that stay free, and neighbours; None if tasks have no path."""


class UtilityPolicy(MachinePolicy):
    """Base of the policies of SC'17: among all candidate GPU choices, a job gets the one with the smallest `order`.

    Args:
        profile: Measured run times and interference of jobs; without it, no job is assumed to interfere with another.
        utility: The formula of the scores "utility" and "system_utility". It is a `Formula`, such as a `Utility` with
            the weights of the parts of eq. 1 (equal by default). "authors" is the formula of the published code, and
            "printed" is eq. 2 as printed.
        memory_bandwidth: GB/s of host memory bandwidth of each machine, which limits jobs that require some (the
            paper's t_bw <= p_bw). None means unknown: jobs that require some are refused.
    """

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | FormulaName | None = None,
        memory_bandwidth: float | None = None,
    ) -> None:
        self.costing = Costing(profile, memory_bandwidth)
        self.honours = frozenset(("min_utility", *(("memory_bandwidth",) if memory_bandwidth else ())))
        self.sees_jobs = self.costing.sees_jobs
        self.utility = _formula(utility)

    @abstractmethod
    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the candidate GPU choices for the whole job on one machine, each with the GPU of each task.

        Args:
            free: The machine's GPUs that are free and meet the job's requirements.
        """

    @abstractmethod
    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return the sort key of a GPU choice; smaller is better. `free`: GPUs left on the machine afterwards."""

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterator[Option]:
        """Yield an option for each of `mappings_in` in which all communicating tasks have a path between their GPUs."""
        known = self._known(request)
        for gpus in self.mappings_in(request, machine_class, state, free):
            taken = mask_of(gpus)
            others = self.costing.neighbours(state, machine_class.touched(taken))
            key = machine_class, gpus, state.free & ~taken, others
            option = known.options.get_or_build(key, partial(self._option, request, *key))
            if option is not None:
                yield option

    def mappings_in(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return the candidate GPU choices on a machine in this state; by default `mappings`, for any running jobs."""
        known = self._known(request).mappings
        mappings = known.get((machine_class, free))
        if mappings is None:
            mappings = known[machine_class, free] = tuple(self.mappings(request, machine_class, free))
        return mappings

    def _known(self, request: JobRequest) -> _Options:
        return request.table((self, _Options), lambda: _Options(Memo(_MAX_KNOWN), Memo(_MAX_KNOWN)))

    def _option(
        self,
        request: JobRequest,
        machine_class: MachineClass,
        gpus: tuple[int, ...],
        left: Mask,
        others: tuple[JobKind, ...],
    ) -> Option | None:
        costs = self.costing.on_machine(request, machine_class, gpus, left, others)
        if costs.communication == math.inf:
            return None
        return Option(
            self.order(machine_class, left, gpus, costs), gpus, self.own_utility(costs), costs
        ).checked()

    def own_utility(self, costs: Costs) -> float:
        """Return the utility to the job that is compared with its `min_utility`."""
        return self.utility.job(costs)

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the utility and the costs of running task i on `gpus[i]`, on several machines.

        Return None if tasks that communicate have no path between their GPUs.
        """
        extremes = communication_range(self, request, view)
        costs = self.costing.on_machines(request, gpus, extremes, view)
        return Evaluation(self.own_utility(costs), costs) if costs.communication < math.inf else None

    def scores(self, details: Any) -> dict[str, float]:
        """Return the scores computed from `Costs`: the three cost parts of eq. 1, and both utilities."""
        costs: Costs = details
        return {
            "communication_cost": costs.communication,
            "interference": 1 - costs.shared,
            "fragmentation": costs.fragmentation,
            "utility": self.utility.job(costs),
            "system_utility": self.utility.system(costs),
        }

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the most tasks for which a machine in this state has the CPUs, memory and memory bandwidth."""
        hosted = super().max_tasks(request, state)
        return min(hosted, self.costing.max_tasks(request.job, state.memory_bandwidth))

    def max_split_utility(self, request: JobRequest) -> float:
        """Return an upper bound on the utility of splitting the job over machines; infinity if it fits on none."""
        if not request.classes_that_fit or isinstance(self.utility, PrintedUtility):
            return math.inf  # eq. 2 as printed has no such bound: it grows with interference
        return self.utility.job(self.costing.across_at_best(request))

    def why_unfit(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why idle machines cannot provide the host memory bandwidth for a job; None if they can."""
        return self.costing.why_never(request, view)

    def lack(self, job: JobGraph) -> str | None:
        """Return the reason of missing memory bandwidth if it is limited and the job needs some, else None."""
        limited = self.costing.memory_bandwidth is not None and job.memory_bandwidth
        return "the free GPUs are on machines without the memory bandwidth it needs" if limited else None


def _formula(utility: Formula | FormulaName | None) -> Formula:
    if utility is None:
        return Utility()
    if isinstance(utility, str):
        return _FORMULAS[_checks.one_of(utility, "utility", _FORMULAS, ValueError)]()
    _checks.instance(utility, Formula, "utility", ValueError)
    return utility
