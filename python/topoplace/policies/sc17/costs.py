"""The base class of SC'17's policies, which compute the cost and utility of each placement (`objectives.utility`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from topoplace import _checks
from topoplace.engine.admission import why_no_memory_bandwidth
from topoplace.engine.gangs.assignments import communication_range
from topoplace.engine.machine_policy import Evaluation, MachinePolicy
from topoplace.engine.machines.machine_class import MachineClass, Mask, mask_of
from topoplace.engine.machines.machine_options import Option
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives.authors_utility import AuthorsUtility
from topoplace.objectives.interference import JobKind, interference_ratios, worst_ratio
from topoplace.objectives.utility import Costs, Formula, Utility, job_communication_cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Refusal

_ROUNDING = 1e-9


class Costing:
    """Computes the costs of placements from a performance profile, and checks limits on host memory bandwidth."""

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

    def on_machine(
        self,
        request: JobRequest,
        machine_class: MachineClass,
        state: MachineState,
        gpus: tuple[int, ...],
        left: Mask,
    ) -> Costs:
        """Return the costs of running task i on `gpus[i]` of one machine in the given state.

        gpus: local GPU numbers. left: the machine's GPUs that stay free afterwards.
        """
        communication = request.communication(machine_class, gpus)
        sockets = machine_class.touched(mask_of(gpus))
        where = "intra-socket" if sockets.bit_count() == 1 else "inter-socket"
        ratios = self._interference(request, sockets, state, where)
        least, most = request.communication_range
        return Costs(
            *(request.size, communication, least, most, *ratios, self._worst_of(request)),
            machine_class.fragmentation(left),
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
        ratios = [ratio for ratio, _ in parts]
        fragments = [fragmentation for _, fragmentation in parts]
        return Costs(
            num_gpus=request.size,
            communication=job_communication_cost(request.job, gpus, view.cluster.topology),
            least=communication_range[0],
            most=communication_range[1],
            suffered=min(suffered for suffered, _ in ratios),
            shared=sum(shared for _, shared in ratios) / len(ratios),
            worst=self._worst_of(request),
            fragmentation=sum(fragments) / len(fragments),
        )

    def _parts(
        self, request: JobRequest, gpus: Sequence[int], view: ClusterView
    ) -> list[tuple[tuple[float, float], float]]:
        """Return, for each machine of `gpus`, the ratios of `_interference` and the fragmentation afterwards.

        They are computed once for machines in one condition that give the same GPUs.
        """
        conditions = view.conditions(sees_jobs=self.sees_jobs)
        known: dict[tuple[int, Mask], tuple[tuple[float, float], float]] = {}
        parts: list[tuple[tuple[float, float], float]] = []
        for machine, mask in view.classes.by_machine(gpus).items():
            key = conditions.native.condition_of(machine), mask
            if key not in known:
                machine_class, state = conditions.of(key[0])
                ratios = self._interference(request, machine_class.touched(mask), state, "inter-machine")
                known[key] = ratios, machine_class.fragmentation(state.free & ~mask)
            parts.append(known[key])
        return parts

    def across_at_best(self, request: JobRequest) -> Costs:
        """Return a lower bound on the costs of splitting a job over machines although it fits on one.

        Its communication cost counts as the highest one on a single machine; the other costs are the best possible.
        """
        least, most = request.communication_range
        suffered, _ = interference_ratios(self.profile, (request.profile, request.size), "inter-machine", ())
        return Costs(request.size, most, least, most, suffered, suffered, self._worst_of(request), 0.0)

    def max_tasks(self, job: JobGraph, used: float = 0.0) -> int:
        """Return for how many of the job's tasks one machine has enough host memory bandwidth.

        used: GB/s of the machine's memory bandwidth that are already in use. The result is the number of all tasks if
        the bandwidth is not limited or the job needs none.
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

    def _worst_of(self, request: JobRequest) -> float:
        job = (request.profile, request.size)
        if job not in self._worst:
            self._worst[job] = worst_ratio(self.profile, job)
        return self._worst[job]

    def _interference(
        self, request: JobRequest, sockets: Mask, state: MachineState, where: str
    ) -> tuple[float, float]:
        """Return two ratios of 0..1, where 1 means no interference: the job's own, and the mean over it and neighbours.

        The mean is SC'17's eq. 4. Neighbours are jobs that share one of `sockets`. where: placement class of the job.
        """
        if self.profile is None:
            return 1.0, 1.0
        others = [(name, size) for name, size, theirs in state.neighbours if theirs & sockets]
        return interference_ratios(self.profile, (request.profile, request.size), where, others)


class UtilityPolicy(MachinePolicy):
    """Base of the policies of SC'17: among all candidate GPU choices, a job gets the one with the smallest `order`.

    profile: measured run times and interference of jobs; without it, no job is assumed to interfere with another.
    utility: the formula of the scores "utility" and "system_utility". It is a `Formula`, such as a `Utility` with the
    weights of the parts of eq. 1 (by default equal ones), or "authors" for the published code's formula, which differs
    from the paper's. memory_bandwidth: GB/s of host memory bandwidth of each machine, which limits jobs that ask for
    some (the paper's t_bw <= p_bw); with None it is unknown, and jobs that ask for some are refused.
    """

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | Literal["authors"] | None = None,
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

        free: the machine's GPUs that are free and meet the job's requirements.
        """

    @abstractmethod
    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return the sort key of a GPU choice; smaller is better. `free`: GPUs left on the machine afterwards."""

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterator[Option]:
        """Yield an option for each of `mappings` in which all communicating tasks have a path between their GPUs."""
        for gpus in self.mappings(request, machine_class, free):
            left = state.free & ~mask_of(gpus)
            costs = self.costing.on_machine(request, machine_class, state, gpus, left)
            if costs.communication < math.inf:
                order = self.order(machine_class, left, gpus, costs)
                yield Option(order, gpus, self.utility.job(costs), costs)

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the utility and the costs of running task i on `gpus[i]`, on several machines.

        None if tasks that communicate have no path between their GPUs.
        """
        extremes = communication_range(self, request, view)
        costs = self.costing.on_machines(request, gpus, extremes, view)
        return Evaluation(self.utility.job(costs), costs) if costs.communication < math.inf else None

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
        """Return the most tasks that a machine in this state has the CPUs, memory and memory bandwidth for."""
        hosted = super().max_tasks(request, state)
        return min(hosted, self.costing.max_tasks(request.job, state.memory_bandwidth))

    def max_split_utility(self, request: JobRequest) -> float:
        """Return an upper bound on the utility of splitting the job over machines; infinity if it fits on none."""
        if not request.classes_that_fit:
            return math.inf
        return self.utility.job(self.costing.across_at_best(request))

    def why_unfit(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why idle machines cannot provide the host memory bandwidth for a job; None if they can."""
        return self.costing.why_never(request, view)

    def lack(self, job: JobGraph) -> str | None:
        """Return a text about lacking memory bandwidth if it is limited and the job needs some, else None."""
        limited = self.costing.memory_bandwidth is not None and job.memory_bandwidth
        return "the free GPUs are on machines without the memory bandwidth it needs" if limited else None


def _formula(utility: Formula | Literal["authors"] | None) -> Formula:
    if utility is None:
        return Utility()
    if utility == "authors":
        return AuthorsUtility()
    _checks.instance(utility, Formula, "utility", ValueError)
    return utility
