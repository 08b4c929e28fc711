"""The default policy: the least communication time."""

from __future__ import annotations

import math
from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace import _checks
from topoplace._lazy import above
from topoplace.cluster.cluster import Cluster
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.deciding import bounds, ranked_sets, waiting
from topoplace.deciding.plain_jobs import PlainJobs, Rule
from topoplace.engine import one_maker
from topoplace.engine.admission import has_exact_room
from topoplace.engine.gangs.rules import allowed_splits, has_domain
from topoplace.engine.gangs.splits import nearest
from topoplace.engine.machine_policy import Evaluation, MachinePolicy, placed_on
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.decided_job import DecidedJob
from topoplace.engine.machines.machine_class import mask_of
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.engine.machines.machine_options import Choice, RuleOptions
from topoplace.engine.memo import Memo
from topoplace.engine.requirements import SPREADS_SHARES
from topoplace.errors import DeadlineError
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels.limits import check_deadline, deadline
from topoplace.objectives.communication import running_gangs, seconds_of
from topoplace.placement import Placement, Scores
from topoplace.topology.links.nccl_rates import Rates, rates_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from topoplace import kernels
    from topoplace.engine.admission import GpuSet
    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState
    from topoplace.engine.machines.machine_options import MachineOptions, Option, Options, OptionTable
    from topoplace.engine.request import JobRequest
    from topoplace.placement import Refusal

_ROUNDING: Final = 3e-9
_placed_again: Callable[..., Placement | None] = above("placed_again")
_placed_beside: Callable[..., Placement | None] = above("placed_beside")


class LeastTime(MachinePolicy):
    """The default policy: the least communication time (`communication_time`), by ports, rings and all levels of the
    fabric.

    Placements whose times differ by no more than `slack` count as equal. Ties go, in this order, to the nearest links,
    no part of an idle machine, the domains with the fewest free GPUs (outermost level first), and the machine with the
    fewest. Further ties go to the fewest broken whole parts of a machine, no slow links, the most ring bandwidth left
    on the machine, and the smallest GPU list. A gang on several machines is mapped to their GPUs (`kernels.map_gang`).
    Ties of gangs go to the least use of uplinks, then to the fewest machines, in the fewest and fullest domains. The
    traffic of running gangs on adapters and uplinks counts, but not for jobs on one machine, which use no uplink.

    A job with a `min_utility` waits until a placement reaches it; younger jobs may overtake it. Its utility is its time
    on the same cluster without jobs, divided by its time in the placement. 0.1 means ten times slower; 1.0 means as
    fast (within `slack`) or no communication. Only such jobs have the score "utility".

    Args:
        slack: The share by which times may differ and count as equal.
        others: False decides as if no other job communicated. Scores are always those of the job alone.
        rates: The rates of links with which the library plans rings on a machine, as in `topoplace.collective`; they
            may be measured. `Placement.time` uses these rates.
        timeout: Limit in seconds on the search for GPUs of one machine, and on that for the machines of a gang; both
            also have a limit on steps. If time ends before all sets of GPUs of one machine are compared, only a few
            sets of near GPUs are. The search for the machines of a gang goes on until it has found the first ones.
        split: A job that fits one machine is placed on several machines if that makes it at least this many times
            faster, as it then uses network ports of other jobs. None never splits such a job; jobs with `same_gpus` or
            `spread` are not split either.
        waits: How long a job in a queue waits for one machine or NVLink domain, or for the fewest machines, instead of
            starting on more. The unit is the seconds that starting on more would add to its run; 0 means no waiting, as
            in `place`. See docs/policies.md.
        compact: The share by which a step of a gang may be longer to put the gang into fewer domains with narrow
            uplinks, narrower than the adapters below them. Other jobs also need these uplinks. With 0, only time
            counts. For a job without `tflop`, a step is its communication only.
    """

    name = "least-time"
    honours = frozenset(("min_utility", SPREADS_SHARES))
    asks_for_regions = True
    places_without_gpus = True
    sees_jobs = False
    before_domains = ranked_sets.BEFORE_DOMAINS

    def __init__(
        self,
        slack: float = 0.01,
        *,
        others: bool = True,
        rates: Rates | str = DEFAULT_RATES,
        timeout: float | None = None,
        split: float | None = 1.5,
        waits: float = 10.0,
        compact: float = 0.02,
    ) -> None:
        self.slack = _checks.real(slack, "slack", ValueError, high=1.0) or 1e-9
        self.others = _checks.flag(others, "others", ValueError)
        rates_of(rates)  # checks them; a name is kept, as it can be pickled
        self.rates = rates
        self._timing = ranked_sets.Timing(self.slack, rates)
        self.timeout = None if timeout is None else _checks.positive(timeout, "timeout", ValueError)
        self.split = None if split is None else _checks.real(split, "split", ValueError, low=1.0, high=1e9)
        self.waits = _checks.real(waits, "waits", ValueError)
        self.compact = _checks.real(compact, "compact", ValueError, high=1.0)

    # ---- what a queue asks ---------------------------------------------------------------------------------

    def awaited(self, job: JobGraph, cluster: Cluster) -> JobGraph:
        """Return the job limited to the number of machines, or the NVLink domain, that it waits for; itself if it waits
        for none.
        """
        if not self.waits or job.single_machine or not job.num_tasks:
            return job
        view = self.view_of(cluster)
        known = view.table((LeastTime, "awaited"), _no_awaited)

        def limited() -> tuple[JobGraph, JobGraph]:
            found = self._awaited(view.request(job), view)
            other = job if found is None else found.limited(job)
            return job, job if self.refusal_of(other, cluster) else other

        return known.get_or_build(id(job), limited)[1]  # holds the job, so that no other gets its id

    def patience(
        self, job: JobGraph, cluster: Cluster, seconds: float, other: Placement | None = None
    ) -> float:
        """Return `waits` times the seconds by which another placement makes the job longer; 0 if it waits for nothing.

        other: the other placement; None for the best split. Also return 0 if no machine or domain could hold the job
        because GPUs are out of service.
        """
        view = self.view_of(cluster)
        request = view.request(job)
        awaited = self._awaited(request, view) if self.waits and request.size else None
        if awaited is None or not self._is_in_service(request, awaited, view):
            return 0.0
        expected = waiting.UNKNOWN_RUN_TIME if math.isnan(seconds) else seconds
        return self.waits * (self._slowdown_if_split(request, awaited, view, other) - 1) * expected

    def why_awaits(self, job: JobGraph, cluster: Cluster, other: Placement | None = None) -> Refusal:
        """Return why a job waits for few machines or an NVLink domain, and how much longer it would take otherwise."""
        view = self.view_of(cluster)
        request = view.request(job)
        awaited = self._awaited(request, view)
        assert awaited is not None  # only a job that waits is asked about
        slowdown = self._slowdown_if_split(request, awaited, view, other)
        return awaited.refusal(job, slowdown, 2 if other is None else awaited.num_domains(other, view))

    def _awaited(self, request: JobRequest, view: ClusterView) -> waiting.Awaited | None:
        def find() -> tuple[waiting.Awaited | None]:
            if not waiting.may_wait(request, view):
                return (None,)
            alone = self.search(request.job, view.without_jobs, -math.inf)
            return (waiting.awaited_by(request, view, alone) if alone else None,)

        return request.table((self, "awaited"), find)[0]

    def _is_in_service(self, request: JobRequest, awaited: waiting.Awaited, view: ClusterView) -> bool:
        lost = view.cluster.out_of_service()
        return request.table(
            (waiting.Awaited, lost),
            lambda: awaited.is_in_service(request, view, lost, self.max_tasks),
        )

    def _slowdown_if_split(
        self, request: JobRequest, awaited: waiting.Awaited, view: ClusterView, other: Placement | None
    ) -> float:
        """Return how many times as long a job runs with a placement as in such domains; None for the best split."""

        def find() -> waiting.Pace:
            inside = self._seconds_without_jobs(awaited.limited(request.job), view)
            return waiting.Pace.of(request, awaited, view, inside, self._timing.rates)

        pace = request.table((self, "if split"), find)
        return pace.slowdown_if_split if other is None else pace.slowdown(other.scores["communication_time"])

    # ---- jobs that were decided before ---------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the best placement of a job on the free GPUs; None when nothing fits or waiting is better.

        Raise ValueError for a requirement that this policy or the cluster cannot honour, and for a machine of more than
        4096 GPUs.
        """
        if type(cluster) is Cluster and type(job) is JobGraph:
            view = cluster.view(ClusterView)
            decided = view.decided.get((self, self.split, id(job)))
            if decided is not None and (placement := decided.placement()) is not None:
                return placement
            if not job.requirements:
                return self.found(job, view)
        return super().place(job, cluster)

    def found(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the placement of `find`; see `PolicyDriver.found`. A second decision about a job prepares the next."""
        decided = view.decided.get(key := (self, self.split, id(job)))
        if decided is not None and (placement := decided.placement()) is not None:
            return placement
        plain = self._plain_jobs(view)
        if plain is None:
            return super().found(job, view, postponed)
        is_second = decided is None and id(job) in plain.known
        is_direct = plain.has_one_maker and not job.min_utility
        placement, is_final = plain.place(job) if is_direct else (None, False)
        if not is_final or (placement is None and job.is_preemptible):
            placement = super().found(job, view, postponed)
        if is_second and self._depends_on_condition(job, view):
            view.decided[key] = self._decided(job, view)
        return placement

    def search(self, job: JobGraph, view: ClusterView, least_utility: float) -> Placement | None:
        """Return the result of `MachinePolicy.search`; a plain job takes one or two calls of C++."""
        plain = self._plain_jobs(view)
        if plain is None:
            return super().search(job, view, least_utility)
        placement, is_final = plain.place(job, self._most_seconds(job, view, least_utility))
        if not is_final:
            return super().search(job, view, least_utility)
        if placement is None or not job.min_utility:
            return placement
        reached = self._utility(placement.scores["communication_time"], view.request(job), view)
        return replace(placement, scores={**placement.scores, "utility": reached})

    def _plain_jobs(self, view: ClusterView) -> PlainJobs | None:
        """Return what decides plain jobs by this rule; None if some are decided otherwise."""
        if type(self) is not LeastTime or self._reslicing:
            return None  # a subclass may decide otherwise
        key = self, self.split, self.compact, self.others, self.timeout  # which may be set
        known: PlainJobs | None = view.plain_jobs.get(key)
        if known is not None:
            return known
        rule = Rule(
            self._timing,
            self.split or 0.0,
            self.compact,
            self.others,
            self.timeout,
            self._is_plain,
            self._machine_options,
            self._ranked_as,
        )
        found = view.plain_jobs[key] = PlainJobs(view, rule)
        return found

    def _depends_on_condition(self, job: JobGraph, view: ClusterView) -> bool:
        """Return True if the placement on a machine follows from the machine's condition alone."""
        request = view.request(job)
        if not request.size or request.needs_hosts or request.anti_affine or self.may_reslice:
            return False
        if request.asks_utility or len(request.memory_limits) > 1 or not self._is_plain(request):
            return False
        return not one_maker.is_bound(job, view.cluster.topology)

    def _is_plain(self, request: JobRequest) -> bool:
        """Return True if machines in one condition have the same sets of GPUs for a request of whole ones or shares."""
        is_apart = request.anti_affine and not (request.needs_sockets or request.takes_parts)
        return request.job.mig is None and (is_apart or self._goes_by_machine(request))

    def _decided(self, job: JobGraph, view: ClusterView) -> DecidedJob:
        request = view.request(job)

        def place(machine: int, choice: Choice) -> Placement | None:
            placement = self._placement(job, request, view, machine, choice)
            is_final = self.split is None or not self._may_be_faster(placement, request, view)
            return placement if is_final else None

        options = self._machine_options(request, view)
        return DecidedJob(job, options, view.cluster, view.classes.gpus_of, place)

    # ---- what the engine asks ------------------------------------------------------------------------------

    def choose(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the placement on one machine, or one on several machines if no machine has room or that is much
        faster.
        """
        if not request.size:
            from topoplace.deciding.without_gpus import placed

            return placed(job, view)
        if not self._are_compared(job, request, view, least_utility):
            return self._found_so_far(job, request, view, least_utility)
        placement = super().choose(job, request, view, least_utility)
        if self.split is None or (placement is None and least_utility == -math.inf):
            return placement
        alone = placement
        if placement is None or len(request.memory_limits) > 1:  # then one with more memory may be faster
            alone = super().choose(job, request, view, -math.inf)
        if alone is None or not self._may_be_faster(alone, request, view):
            return placement
        other = self._across(job, request, view, -math.inf)
        if other is None or other.scores.get("utility", math.inf) < least_utility:
            return placement
        time = "communication_time"
        return other if other.scores[time] * self.split <= alone.scores[time] else placement

    def _are_compared(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> bool:
        """Return False if time ends before the sets of all machines are compared."""
        if self.timeout is None or not self._goes_by_machine(request):
            return True
        plain = self._plain_jobs(view)
        is_late = plain is not None and plain.is_late(job)
        try:
            with deadline(0.0 if is_late else self.timeout / 2):
                self._machine_options(request, view).best(least_utility)
        except DeadlineError:
            return False
        return True

    def _may_be_faster(self, placement: Placement, request: JobRequest, view: ClusterView) -> bool:
        """Return True if a job that fits one machine may be much faster on several than with this placement on one."""

        def least() -> tuple[float]:
            may_be = request.fits_any_machine and not request.job.single_machine
            return (bounds.least_if_split(request.job, view, self._timing.rates) if may_be else math.inf,)

        (seconds,) = request.table((bounds.least_if_split, view.cluster.topology, self._timing.rates), least)
        if placement.scores["communication_time"] < seconds * (self.split or 1.0):
            return False
        return len(view.classes.by_machine(placement.gpus)) == 1

    def _found_so_far(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the best placement on one machine that is found in time; the sets of few machines are all compared."""
        near = self._with_near_sets(view)
        with suppress(DeadlineError), deadline((self.timeout or 0.0) / 2):
            return near.choose(job, request, view, least_utility)
        check_deadline()  # that of the caller
        every = [policy._machine_options(request, view).best_so_far() for policy in (self, near)]
        found = [one for one in every if one is not None and one[1].option.utility >= least_utility]
        if not found:
            return near.choose(job, request, view, least_utility)
        machine, choice = min(found, key=lambda one: one[1].option.order)
        return self._placement(job, request, view, machine, choice)

    def _with_near_sets(self, view: ClusterView) -> LeastTime:
        """Return the same policy, comparing only few sets of the GPUs of a machine."""

        def near() -> LeastTime:
            other = copy(self)
            other._timing, other.timeout = self._timing._replace(near_only=True), None
            return other

        options = self.split, self.compact, self.others  # which may be set
        return view.table((self, "near sets", options), near)

    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return the best sets of GPUs of a machine; raise DeadlineError after `timeout`."""
        check_deadline()
        return ranked_sets.ranked(request, machine_class, state, free, self._timing)

    def _table(self, request: JobRequest, view: ClusterView, conditions: Conditions) -> OptionTable:
        takes_sets = request.size > 0 and request.job.mig is None
        is_plain = takes_sets and not (request.asks_utility or self.may_reslice)
        is_own = type(self) is LeastTime  # a subclass may have other options
        if is_own and is_plain and len(request.memory_limits) == 1:
            return ranked_sets.SetTable(request, view, conditions, self._timing)
        if not request.asks_utility:
            return super()._table(request, view, conditions)

        def evaluate(machine_class: MachineClass, state: MachineState) -> Options:
            found = self._options(request, machine_class, state)
            utilities = [self._utility(option.details.seconds, request, view) for option in found]
            return [
                option._replace(utility=utility, details=replace(option.details, utility=utility))
                for option, utility in zip(found, utilities, strict=True)
            ]

        return RuleOptions(conditions, evaluate)

    def _all_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        thorough = copy(self)
        thorough._timing = self._timing._replace(alternatives=ranked_sets.MOST_OPTIONS)
        return thorough._machine_options(request, view)

    def best(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        """Return the best placement on GPUs of `free` that uses all GPUs in `required`, on a cluster of one machine.

        Return None if there are fewer GPUs in `free` than tasks.
        """
        view = self.checked_view(job, cluster)
        request, machine_class = view.request(job), view.classes.of(0)
        if not len(required) <= request.size <= len(free):
            return None
        _, state = view.conditions(Sight(jobs=False)).of_machine(0)
        masks = mask_of(free), mask_of(required)
        found = ranked_sets.ranked(request, machine_class, state, masks[0], self._timing, masks[1])
        best = min(found, key=lambda option: (option.order, sorted(option.gpus)), default=None)
        if best is None:
            return None
        scores = {
            **request.link_scores(machine_class, best.gpus),
            **self.scores_of(request, machine_class, best),
        }
        return placed_on(job, best.gpus, cluster, scores, rates=self.rates)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement from `best`, smaller is better; equal for times that count as equal."""
        return (ranked_sets.grade(placement.scores["communication_time"], self.slack),)

    def ranked_machines(self, job: JobGraph, cluster: Cluster) -> Iterator[list[int]]:
        """Yield machines on which the whole job fits, best first; see `MachinePolicy.ranked_machines`."""
        if job.num_tasks:
            return super().ranked_machines(job, cluster)
        from topoplace.deciding.without_gpus import ranked

        return ([machine] for machine in ranked(job, self.checked_view(job, cluster)))

    def _machine_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        return super()._machine_options(self._ranked_as(request, view), view)

    def _placement(
        self, job: JobGraph, request: JobRequest, view: ClusterView, machine: int, choice: Choice
    ) -> Placement:
        if self._ranked_as(request, view) is not request:
            machine_class, option = view.classes.of(machine), choice.option
            own = self.scores_of(request, machine_class, option)
            choice = Choice(option, Scores({**request.link_scores(machine_class, option.gpus), **own}))
        return super()._placement(job, request, view, machine, choice)

    def _ranked_as(self, request: JobRequest, view: ClusterView) -> JobRequest:
        """Return a request that has the same options, in the same order, on all machines.

        It is that of a chain with the same requirements, if all GPUs of each machine are alike. Machines of several
        classes must come in the same order for both.
        """
        if not _is_alike_anywhere(request, view):
            return request
        key = LeastTime, "chain", request.resource_key
        chain = view.table(key, lambda: view.request(_chain_like(request.job)))
        is_same = self._class_order(request, view) == self._class_order(chain, view)
        return chain if is_same else request

    def _class_order(self, request: JobRequest, view: ClusterView) -> list[int]:
        """Return the place of each class of machines with room for a job, by its time there; equal ones share one."""
        if len(view.classes.classes) == 1:
            return []

        def find() -> list[int]:
            large = [one for one in view.classes.classes if one.alone.num_gpus >= request.size]
            grades = [ranked_sets.of_any(one, request, self._timing)[1] for one in large]
            places: list[int] = np.unique(grades, return_inverse=True)[1].tolist()
            return places

        return request.table((LeastTime, "classes", self._timing), find)

    def scores_of(
        self, request: JobRequest, machine_class: MachineClass, option: Option
    ) -> Mapping[str, float]:
        """Return the communication time, the bandwidths behind it, and the utility of a job with a `min_utility`."""
        chosen: ranked_sets.Chosen = option.details
        is_alike = ranked_sets.is_alike(machine_class)
        if is_alike and not request.asks_utility:
            chosen = ranked_sets.of_any(machine_class, request, self._timing)[0]

        def carried() -> dict[str, float]:
            from topoplace.objectives.job_bandwidth import bandwidth_scores

            alone, rates = machine_class.alone, self._timing.rates
            return bandwidth_scores(request.job, chosen.seconds, option.gpus, alone, rates)

        key = ("bandwidths", machine_class, None if is_alike else option.gpus, self._timing.rates)
        return self.scores(replace(chosen, bandwidths=request.table(key, carried)))

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return splits over the fewest machines, the nearest first, for gangs that are not mapped to the tree."""
        return nearest(
            offers, request.size, view.cluster.topology.fabric, anti_affine=request.job.anti_affinity
        )

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task: on one machine by its best set, on several by the mapping of gangs."""
        from topoplace.deciding.gangs import local_gpus, order_on
        from topoplace.engine.gangs.division import Part

        masks = view.classes.by_machine(gpus)
        if len(masks) > 1 or request.anti_affine:
            others = self._others(view)
            found = order_on(request, masks, view, timing=self._timing, others=others, timeout=self.timeout)
            return found or super().task_order(request, gpus, view)

        machine, usable = next(iter(masks.items()))
        numbers = view.classes.gpus_of[machine]
        part = Part(machine, usable, list(range(request.size)))
        return [numbers[local] for local in local_gpus(part, request.job, view, self._timing)]

    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the time of an assignment; None if tasks that communicate have no path."""
        job, topology, others = request.job, view.cluster.topology, self._others(view)
        seconds, beside = seconds_of(job, np.array(gpus, np.int64), topology, others, self._timing.rates)
        if seconds == math.inf:
            return None
        from topoplace.objectives.job_bandwidth import bandwidth_scores

        carried = bandwidth_scores(job, seconds, gpus, topology, self._timing.rates)
        chosen = ranked_sets.Chosen(seconds, bandwidths=carried)
        if request.asks_utility:
            utility = self._utility(seconds, request, view)
            return Evaluation(utility, replace(chosen, utility=utility))
        return Evaluation(-beside, chosen)

    def _others(self, view: ClusterView) -> kernels.FlowCounts | None:
        """Return the flows of running gangs; None if they do not count, or there are none."""
        return view.cluster.view(running_gangs).now() if self.others else None

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return the job's `min_utility`; minus infinity if it has none."""
        return job.min_utility - _ROUNDING if job.min_utility else -math.inf

    def scores(self, details: Any) -> Mapping[str, float]:
        """Return the communication time, the bandwidths behind it, and the utility of a job with a `min_utility`."""
        chosen: ranked_sets.Chosen = details
        found = {"communication_time": chosen.seconds, **chosen.bandwidths}
        return found if chosen.utility is None else {**found, "utility": chosen.utility}

    def proof(
        self, request: JobRequest, machine: int, option: Option, view: ClusterView
    ) -> tuple[bool, float | None]:
        """Return True if the option is as fast as any, and a lower bound on the seconds of all placements.

        Both are known on a single machine, and if all GPUs of each machine are alike; otherwise False and None.
        """
        machine_class = view.classes.of(machine)

        def of_alike() -> tuple[bool, float] | None:
            if not _is_alike_anywhere(request, view):
                return None
            seconds = ranked_sets.of_any(machine_class, request, self._timing)[0].seconds
            least = bounds.least_seconds_of_one(request, view, self._timing.rates)
            return seconds <= least * (1 + _ROUNDING), least

        known = request.table((LeastTime, machine_class, self._timing), of_alike)
        if known is not None:
            return known
        is_only = view.classes.num_machines == 1 and len(request.memory_limits) == 1
        optimal = is_only and option.details.is_proven
        return optimal, option.details.seconds / (1 + self.slack) if optimal else None

    def _utility(self, seconds: float, request: JobRequest, view: ClusterView) -> float:
        least = self._least_seconds(request, view)
        return 1.0 if seconds <= least * (1 + self.slack) else least / seconds

    def _most_seconds(self, job: JobGraph, view: ClusterView, least_utility: float) -> float:
        """Return the longest communication time with this utility."""
        if least_utility <= 0:
            return math.inf
        least = self._least_seconds(view.request(job), view)
        return max(least * (1 + self.slack), least / least_utility)

    def _least_seconds(self, request: JobRequest, view: ClusterView) -> float:
        return request.table((self, "without jobs"), lambda: self._seconds_without_jobs(request.job, view))

    def _seconds_without_jobs(self, job: JobGraph, view: ClusterView) -> float:
        """Return the time of the placement on the cluster without jobs; infinity if there is none."""
        placement = self.search(job.with_(min_utility=0.0), view.without_jobs, -math.inf)
        return placement.scores["communication_time"] if placement else math.inf

    def _evaluated(
        self, request: JobRequest, view: ClusterView, most_memory_gb: float
    ) -> Iterator[tuple[Sequence[int], Evaluation]]:
        from topoplace.deciding import gangs

        offers = self._offers(request, view, most_memory_gb)
        if request.job.max_machines and not self._has_split(request, view, offers):
            return
        mapped = gangs.mapped(
            request,
            view,
            offers,
            timing=self._timing,
            others=self._others(view),
            timeout=self.timeout,
            compact=self.compact,
        )
        if mapped is not None and (found := self.evaluate(request, mapped.gpus, view)):
            # Otherwise, machines with more memory may be faster, or have room for tasks that need fewer CPUs.
            is_all = most_memory_gb == request.memory_limits[-1]
            if is_all and has_exact_room(request.job, view.cluster):
                seconds = found.details.seconds
                longest = max(seconds, -found.utility)  # beside others, it may take longer than it says
                optimal = 0 < seconds <= longest <= mapped.least_seconds * (1 + _ROUNDING)
                found = found._replace(bound=mapped.least_seconds, optimal=optimal)
            yield mapped.gpus, found
            return
        others = super()._evaluated(request, view, most_memory_gb)
        # Where some pairs have no path, the nearest machines may have the slowest ones.
        yield from others if self.joins_all(view) else sorted(others, key=lambda one: one[1].details.seconds)

    def _has_split(self, request: JobRequest, view: ClusterView, offers: Offers) -> bool:
        if request.is_divided:
            return False
        return any(allowed_splits(request, offers, view, lambda some: self.splits(request, some, view)))

    def _fits_one(self, request: JobRequest, view: ClusterView) -> bool:
        if self.timeout is None:
            return super()._fits_one(request, view)
        with suppress(DeadlineError), deadline(self.timeout / 2):
            return super()._fits_one(request, view)
        check_deadline()  # that of the caller
        offers = self._offers(request, view, request.memory_limits[-1])
        if offers.is_simple and request.fits_any_machine and not request.needs_sockets:
            return int(offers.sizes.max(initial=0)) >= request.size
        return self._with_near_sets(view)._fits_one(request, view)

    def finds_any(self, job: JobGraph, view: ClusterView) -> bool:
        """Return True if `find` returns a placement; if any mapping of a gang is good enough, there is no search."""
        request = view.request(job)
        is_certain = self.joins_all(view) and not (request.asks_utility or self.may_reslice)
        if is_certain and request.size and not (job.single_machine or request.needs_sockets):
            if not self.may_fit(job, view.cluster.num_free):
                return False
            from topoplace.deciding.gangs import can_be_mapped

            offers = (self._offers(request, view, limit) for limit in request.memory_limits)
            large = [one for one in offers if has_domain(request, view, one)]
            if any(
                can_be_mapped(request, view, one, self._timing.rates, self.timeout)
                or self._has_split(request, view, one)
                for one in large
            ):
                return True
        return super().finds_any(job, view)


def _is_alike_anywhere(request: JobRequest, view: ClusterView) -> bool:
    """Return True if a job that communicates takes the same time on any GPUs of a machine."""
    may_be = request.job.edges and not (request.takes_parts or request.asks_utility)
    return bool(may_be) and ranked_sets.are_alike(view.cluster.topology)


def _no_awaited() -> Memo[int, tuple[JobGraph, JobGraph]]:
    """Return no jobs with what they wait for, by the identities of their graphs."""
    return Memo()


def _chain_like(job: JobGraph) -> JobGraph:
    """Return a chain of as many tasks with the same requirements."""
    return JobGraph.chain(job.num_tasks).with_(**{name: getattr(job, name) for name in job.requirements})


_DEFAULT = LeastTime()


def place(
    job: JobGraph, cluster: Cluster, *, previous: Placement | None = None, beside: str | None = None
) -> Placement | None:
    """Return the placement with the least communication time, by the policy least-time; None if the job must wait.

    The cluster does not change. For options, and for the reason why there is no placement, use the policy:
    `topoplace.policies.get("least-time", slack=0.05).explain(job, cluster)`.

    Args:
        previous: Where the job ran before it was requeued or updated. Tasks stay where that takes at most 1 % longer
            (the policy's slack); of such placements, the one with the fewest moves that is found is returned. GPUs keep
            their identity if the topology has changed, as for `Cluster.with_topology`.
        beside: The id of a running job, such as that to which this one adds a group. Of placements that take at most
            1 % longer, one is on its machines, else in its innermost domains with room.

    Raises:
        ValueError: Names a wrong argument, or a requirement that cannot be honoured; with `previous`, also one that
            repairs do not honour.
    """
    if previous is not None and beside is not None:
        raise ValueError("previous and beside exclude each other")
    if previous is not None:
        return _placed_again(job, cluster, previous, _DEFAULT)
    return _DEFAULT.place(job, cluster) if beside is None else _placed_beside(job, cluster, beside, _DEFAULT)
