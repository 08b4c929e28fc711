"""Base class of policies that put a job on the best single machine and split it only if no machine has room."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from functools import cached_property, partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from topoplace._core import DomainFill
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import host_shares, megabytes, millicpus, needs_hosts
from topoplace.engine import one_maker
from topoplace.engine.admission import needs_of, why_never, why_no_machine
from topoplace.engine.driver import PolicyDriver
from topoplace.engine.gangs import assignments, rules
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.level_chain import LevelChains
from topoplace.engine.machine_state import ClusterView
from topoplace.engine.machines.machine_class import MachineClass, Mask
from topoplace.engine.machines.machine_conditions import Conditions, MachineState, Sight
from topoplace.engine.machines.machine_options import (
    Choice,
    DomainOrder,
    MachineOptions,
    Option,
    Options,
    OptionTable,
    RuleOptions,
)
from topoplace.engine.requirements import BY_LEVEL, GROUPED
from topoplace.engine.slices import slices_for
from topoplace.jobs.job_graph import JobGraph
from topoplace.mig import Reslicing
from topoplace.objectives.links import job_link_scores
from topoplace.placement import LateScores, Placement, Refusal, Scores

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.engine.effort import Effort
    from topoplace.engine.gangs.offers import MachineOffer, Offers
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.request import JobRequest
    from topoplace.topology.links.nccl_rates import Rates


class Evaluation(NamedTuple):
    """The utility of one assignment of a job to GPUs of several machines, with the data for its scores."""

    utility: float
    """The utility to the job; larger is better."""
    details: Any
    """Policy-specific data, later passed to `MachinePolicy.scores`."""
    bound: float | None = None
    """Lower bound on the seconds that any placement communicates; None if unknown."""
    optimal: bool = False
    """True if no placement is better."""


class MachinePolicy(PolicyDriver):
    """Base of policies that place a job on the machine with the best option, or split it if no machine has room.

    An option is one choice of GPUs on one machine. `options` is called once for each job request and condition of
    machines: equal hardware, equal free GPUs, and equal jobs if `sees_jobs`. Free CPUs and memory are compared machine
    by machine; the states that rules see do not contain them.
    """

    _reslicing: Reslicing = Reslicing.NONE
    """The GPUs that the policy may reslice for a job that fits nowhere else."""
    _plain: MachinePolicy | None = None
    """The same policy that may reslice fewer GPUs, if there is one; it is asked first."""
    before_domains: int | None = None
    """The count of numbers of an option's sort key that precede the fill of domains (fewest free GPUs first); None
    ignores the fill.
    """
    asks_for_regions: bool = False
    """True if `options` come from the sets of `JobRequest.regions`, and so keep a job in one socket if required."""
    rates: Rates | str | None = None
    """The rates of links by which `Placement.time` is computed; None for the default ones."""
    timeout: float | None = None
    """Limit in seconds on the search for the tasks of each machine and their GPUs; None for no limit."""
    places_without_gpus: bool = False
    """True if the policy also places jobs without GPUs."""
    sees_jobs: bool = True
    """True if options depend on the jobs that run on the machine; False makes decisions faster."""

    splits_over_any_room: bool = True
    """True if a job is split whenever machines together have room for it, all GPUs have paths to each other, and the
    job does not limit its machines.
    """

    def with_reslicing(self) -> Self:
        """Return a copy of this policy that may reslice GPUs, if a job fits nowhere else.

        The copy gives up idle MIG slices to cut others. If that is not enough, it cuts free GPUs into slices, and makes
        GPUs whole whose slices are all idle. `Placement.resliced` names these GPUs.
        """
        if self.may_reslice:
            return self
        other = self
        for reslicing in (Reslicing.CUT_GPUS, Reslicing.ALL_GPUS):
            plain, other = other, copy(self)
            other._reslicing, other._plain = reslicing, plain
        return other

    @property
    def may_reslice(self) -> bool:
        """Return True if the policy may reslice GPUs for a job; see `with_reslicing`."""
        return bool(self._reslicing)

    # ---- rules of a policy ---------------------------------------------------------------------------------

    @abstractmethod
    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return the ways to place the whole job on one machine in this state.

        Args:
            free: The machine's GPUs that are free and meet the job's requirements.
        """

    @abstractmethod
    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return ways to split a job among several machines, best first.

        Args:
            offers: The machines that can take a part of the job.
        """

    @abstractmethod
    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the utility, and the data for scores, of running task i on `gpus[i]`, on several machines.

        Return None if tasks that communicate have no path between their GPUs.
        """

    @abstractmethod
    def scores(self, details: Any) -> Mapping[str, float]:
        """Return the policy's own scores of an option or evaluation, including "utility"; link scores are added later.

        Args:
            details: The `details` of the option or evaluation.
        """

    def proof(
        self, request: JobRequest, machine: int, option: Option, view: ClusterView
    ) -> tuple[bool, float | None]:
        """Return True if no placement is better than this option, and a lower bound on the seconds of all; None if
        unknown.
        """
        return False, None

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task, chosen from `gpus` of several machines; by default the first ones in order.

        Args:
            gpus: At least one GPU per task. An anti-affine job gets at most one of each machine.
        """
        return assignments.lowest_gpus(request, gpus, view)

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the largest number of the job's tasks that a machine in this state may have; CPUs and memory are
        ignored.
        """
        return request.size

    def max_split_utility(self, request: JobRequest) -> float:
        """Return an upper bound on the utility of any split of the job over several machines; by default infinity."""
        return math.inf

    def why_unfit(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster, which has enough suitable GPUs, else None."""
        return None

    def lack(self, job: JobGraph) -> str | None:
        """Return the reason to report if enough suitable GPUs are free but the job cannot start.

        For None, the reason is missing links between the GPUs or, for a job without edges, that the policy chooses
        none.
        """
        return None

    # ---- what the driver asks ------------------------------------------------------------------------------

    def find(self, job: JobGraph, view: ClusterView, postponed: int = 0) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better."""
        return self.search(job, view, self.least_utility(job, postponed))

    def candidates(self, job: JobGraph, view: ClusterView, effort: Effort) -> Iterator[Placement]:
        """Yield placements on different GPU sets: that of `find`, then every option on one machine, best first.

        If there are none, yield the best split over several machines.
        """
        seen: set[frozenset[int]] = set()
        request, chosen = view.request(job), self.find(job, view)
        options = self._all_options(request, view).ranked() if self._goes_by_machine(request) else ()
        ranked = (self._placement(job, request, view, *found) for found in options)
        second = next(ranked, None)
        first = chosen or second or self.search(job, view, -math.inf)
        for placement in chain((one for one in (first, second) if one), ranked):
            gpus = frozenset(placement.gpus)
            if gpus not in seen:
                seen.add(gpus)
                yield placement

    def why_not(self, job: JobGraph, view: ClusterView, candidates: Sequence[Placement]) -> Refusal | None:
        """Return why `find` returns no placement; None if it returns the first of `candidates`."""
        asks = self.least_utility(job) > -math.inf
        if not candidates or not asks or self.find(job, view) is not None:
            return super().why_not(job, view, candidates)
        return self.why_postponed(job, max(candidate.scores["utility"] for candidate in candidates))

    def lack_of(self, job: JobGraph, view: ClusterView, least_utility: float) -> float | None:
        """Return the utility of the best placement now, for a job that has to wait for a better one; else None."""
        return self.refused_utility(job, view, least_utility)

    def why_deferred(self, job: JobGraph, lack: float | None) -> Refusal | None:
        """Return the refusal of a job that waits for a higher utility than `lack`; None if `lack` is None."""
        return None if lack is None else self.why_postponed(job, lack)

    def honoured_on(self, cluster: Cluster) -> frozenset[str]:
        """Return the requirements that the policy honours on this cluster, by its rules or by the engine."""
        return self.all_honoured

    def ranked_machines(self, job: JobGraph, cluster: Cluster) -> Iterator[list[int]]:
        """Yield the machines on which the whole job fits, best first; equally good machines are in one list.

        A machine counts by its best option. The first machine here is the one that `place` chooses.

        Raises:
            ValueError: Names a requirement that cannot be honoured.
        """
        view = self.checked_view(job, cluster)
        if not self.may_fit(job, cluster.num_free):
            return iter(())
        return self._machine_options(view.request(job), view).ranked_machines(self.least_utility(job))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(){'.with_reslicing()' if self.may_reslice else ''}"

    # ---- inside --------------------------------------------------------------------------------------------

    @cached_property
    def all_honoured(self) -> frozenset[str]:
        """Return the requirements honoured by the policy's rules or the engine, beyond those of every policy."""
        return self.honours | BY_LEVEL | GROUPED | {"same_gpus", "gpu_fraction", "mig"}

    def may_fit(self, job: JobGraph, num_free: int) -> bool:
        """Return False if `num_free`, the number of wholly free GPUs, is too small for a job that needs whole GPUs."""
        if not job.num_tasks:
            return self.places_without_gpus
        return job.num_tasks <= num_free or job.takes_parts or self.may_reslice

    def refused_utility(self, job: JobGraph, view: ClusterView, least_utility: float) -> float | None:
        """Return the utility of the best placement now, below `least_utility`, for a job that has to wait.

        Return None if no placement exists or `least_utility` is minus infinity.
        """
        if least_utility == -math.inf:
            return None
        known = self._first_splits(view).get((view.request(job), view.cluster.native.num_changes))
        if known is not None:
            return known
        other = self.search(job, view, -math.inf)
        return other.scores["utility"] if other else None

    def why_not_now(self, job: JobGraph, view: ClusterView) -> Refusal:
        """Return why a job that could run on an idle cluster cannot start now."""
        if not job.num_tasks:
            return Refusal(f"cannot start now: {needs_of(job, hosts=True)}, and no machine has that free")
        request = view.request(job)
        offers = self._offers(request, view)
        return rules.why_not_now(request, view, offers, self.lack(job), may_reslice=self.may_reslice)

    def why_postponed(self, job: JobGraph, utility: float) -> Refusal:
        """Return why a job waits although there is room; utility: that of its best placement now."""
        return Refusal(f"postponed: its utility would be {utility:.3f} now, {job.min_utility:g} is asked for")

    def has_room(self, job: JobGraph, cluster: Cluster) -> bool:
        """Return True if `place` returns a placement now; for most gangs, without a search for it."""
        if (is_room := self._has_room(job, cluster)) or not job.is_preemptible:
            return is_room
        with cluster.lending(job) as are_any:
            return are_any and self._has_room(job, cluster)

    def _has_room(self, job: JobGraph, cluster: Cluster) -> bool:
        view = self.checked_view(job, cluster)
        if one_maker.is_bound(job, cluster.topology):
            return self.place(job, cluster) is not None
        request = view.request(job)
        if self.least_utility(job) > -math.inf or not self._is_split_over_any_room(request, view):
            return self.finds_any(job, view)
        if not self.may_fit(job, cluster.num_free):
            return False
        if self._goes_by_machine(request) and self._fits_one(request, view):
            return True
        if job.single_machine:
            return False
        offers = self._offers(request, view, request.memory_limits[-1])
        if not offers.is_simple:
            return self.finds_any(job, view)
        if request.is_divided:
            from topoplace.engine.gangs.division import can_be_divided

            return can_be_divided(request, offers, view)
        return int(offers.sizes.sum()) >= request.size

    def _fits_one(self, request: JobRequest, view: ClusterView) -> bool:
        return self._machine_options(request, view).best() is not None

    def finds_any(self, job: JobGraph, view: ClusterView) -> bool:
        """Return True if `find` returns a placement."""
        return self.find(job, view) is not None

    def _is_split_over_any_room(self, request: JobRequest, view: ClusterView) -> bool:
        limits = request.limits_machines or request.anti_affine or request.needs_sockets
        if (
            not self.splits_over_any_room
            or self.may_reslice
            or limits
            or request.takes_parts
            or not request.size
        ):
            return False
        return self.joins_all(view)

    def joins_all(self, view: ClusterView) -> bool:
        """Return True if every two GPUs of the cluster have a path."""
        topology = view.cluster.topology
        return view.table((MachinePolicy, "paths"), lambda: view.classes.have_all_paths(topology))

    def search(self, job: JobGraph, view: ClusterView, least_utility: float) -> Placement | None:
        """Return the best placement on one machine, or else the first one on several, that has enough utility, or None.

        Args:
            least_utility: The smallest utility to the job that is enough. A job that fits one machine only with a lower
                utility is not split; return None for it.
        """
        if not self.may_fit(job, view.cluster.num_free):
            return None
        return self.search_for(job, view.request(job), view, least_utility)

    def search_for(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the result of `search` for a job with this request; there must be a free GPU for each task."""
        plain = self._plain
        while plain is not None and not plain._reslicing.serves(job.mig):
            plain = plain._plain
        placement = None if plain is None else plain.search(job, view, least_utility)
        if placement is not None:
            return placement
        return self.choose(job, request, view, least_utility)

    def choose(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the result of `search_for` with all reslicing that the policy allows; less of it has found nothing."""
        if self._goes_by_machine(request):
            options = self._machine_options(request, view)
            if found := options.best(least_utility):
                return self._placement(job, request, view, *found)
            if options.best():
                return None  # one machine has room, but with too low utility; a split would be worse
        if job.single_machine and not request.needs_sockets:
            return None
        return self._across(job, request, view, least_utility)

    def _goes_by_machine(self, request: JobRequest) -> bool:
        """Return True if the options on single machines honour what the job requires."""
        in_region = self.asks_for_regions and request.in_one_socket and not request.anti_affine
        return request.fits_any_machine or in_region

    def _across(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the first placement over several machines that has at least `least_utility`, else None.

        In a placement, every two tasks that communicate have a path between their GPUs.
        """
        if self.max_split_utility(request) < least_utility:
            return None  # not worth the search
        topology = view.cluster.topology
        for limit in request.memory_limits:
            if job.within and not rules.has_domain(request, view, self._offers(request, view, limit)):
                continue
            for gpus, found in self._evaluated(request, view, limit):
                self._note_first_split(request, view, found.utility)
                if found.utility >= least_utility:
                    scores = {**job_link_scores(job, gpus, topology), **self.scores(found.details)}
                    return placed_on(
                        job,
                        tuple(gpus),
                        view.cluster,
                        scores,
                        bound=found.bound,
                        optimal=found.optimal,
                        rates=self.rates,
                    )
        return None

    def _first_splits(self, view: ClusterView) -> dict[tuple[JobRequest, int], float]:
        """Return the utility of the last first split, by its request and the number of changes before it.

        The first split is what a search without a least utility returns.
        """
        return view.table((self, "first split"), _no_splits)

    def _note_first_split(self, request: JobRequest, view: ClusterView, utility: float) -> None:
        known, now = self._first_splits(view), (request, view.cluster.native.num_changes)
        if now not in known:
            known.clear()
            known[now] = utility

    def _evaluated(
        self, request: JobRequest, view: ClusterView, most_memory_gb: float
    ) -> Iterator[tuple[Sequence[int], Evaluation]]:
        """Yield the possible assignments over several machines that the policy tries, or else one that a search finds.

        most_memory_gb: limit on the memory of each GPU, GB.
        """
        offers = self._offers(request, view, most_memory_gb)
        legal, possible = view.cluster.topology.is_legal, False
        assigned = assignments.in_parts if request.is_divided else assignments.candidates
        for gpus in assigned(self, request, view, offers):
            found = self.evaluate(request, gpus, view)
            if found and legal(gpus):
                possible = True
                yield gpus, found
        other = (
            None
            if possible or request.is_divided
            else assignments.connected_assignment(request, view, offers)
        )
        if other and (found := self.evaluate(request, other, view)):
            yield other, found

    def _offers(self, request: JobRequest, view: ClusterView, most_memory_gb: float = math.inf) -> Offers:
        is_limited = type(self).max_tasks is not MachinePolicy.max_tasks
        return offers_of(
            self.max_tasks if is_limited else None,
            request,
            view,
            most_memory_gb,
            sees_jobs=self.sees_jobs,
            reslicing=self._reslicing,
        )

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if no such reason is known."""
        if not job.num_tasks and self.places_without_gpus:
            needs = millicpus(job.cpus or 0), megabytes(job.memory_gb or 0.0)
            return why_no_machine([needs], view.cluster.hosts.resources)
        request, cluster = view.request(job), view.cluster

        def find() -> Refusal | None:
            by_count = why_never(job, cluster.topology, cluster.hosts)
            return by_count or self.why_unfit(request, view) or rules.why_never(request, view, self.max_tasks)

        return request.table((self, "never"), find)

    def scores_of(
        self, request: JobRequest, machine_class: MachineClass, option: Option
    ) -> Mapping[str, float]:
        """Return the policy's own scores of an option."""
        return self.scores(option.details)

    def _machine_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        return view.table((self, request), partial(self._new_options, request, view))

    def _new_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        def scores(machine_class: MachineClass, option: Option) -> Mapping[str, float]:
            own = self.scores_of(request, machine_class, option)
            return Scores({**request.link_scores(machine_class, option.gpus), **own})

        sight = Sight(jobs=self.sees_jobs, shares=request.takes_parts or self.may_reslice)
        conditions = view.conditions(sight)
        domains, table = self._domain_order(request, view, conditions), self._table(request, view, conditions)
        return MachineOptions(conditions, request.whole_job, table, scores, domains)

    def _all_options(self, request: JobRequest, view: ClusterView) -> MachineOptions:
        """Return the options to compare for an explanation; by default those of a decision."""
        return self._machine_options(request, view)

    def _table(self, request: JobRequest, view: ClusterView, conditions: Conditions) -> OptionTable:
        """Return the options of machines in these conditions."""
        return RuleOptions(conditions, partial(self._options, request))

    def _domain_order(
        self, request: JobRequest, view: ClusterView, conditions: Conditions
    ) -> DomainOrder | None:
        """Return how the domains of machines count; None if they do not, or there are none."""
        if self.before_domains is None:
            return None
        levels = view.cluster.topology.derived(LevelChains).of(()) or ()
        codes = [level.codes.tolist() for level in levels[:0:-1]]  # the outermost first, without the machines
        if not codes:
            return None
        fill = view.table((DomainFill, conditions), lambda: DomainFill(conditions.native, codes))
        return DomainOrder(fill, self.before_domains + (len(request.memory_limits) > 1))

    def _options(self, request: JobRequest, machine_class: MachineClass, state: MachineState) -> Options:
        """Return the ways to place the whole job on a machine of this class in this state, best first."""
        free = request.free_on(machine_class, state, reslicing=self._reslicing)
        usable = free & request.suitable(machine_class)
        if not 0 < request.size <= usable.bit_count():
            return ()
        if self.max_tasks(request, state) < request.size:
            return ()
        found = (one.checked() for one in self._options_by_memory(request, machine_class, state, usable))
        return sorted(found, key=lambda option: (option.order, sorted(option.gpus), option.gpus))

    def _options_by_memory(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, usable: Mask
    ) -> Iterator[Option]:
        """Yield the options under each limit on GPU memory; if there are several, sort keys begin with the limit."""
        limits = request.memory_limits
        for limit in limits:
            within = usable & request.suitable(machine_class, limit)
            if within.bit_count() < request.size:
                continue
            for option in self.options(request, machine_class, state, within):
                yield option if len(limits) == 1 else option._replace(order=(limit, *option.order))

    def _placement(
        self, job: JobGraph, request: JobRequest, view: ClusterView, machine: int, choice: Choice
    ) -> Placement:
        numbers, option, scores = view.classes.gpus_of[machine], choice.option, choice.scores
        gpus = tuple([numbers[local] for local in option.gpus])
        optimal, bound = self.proof(request, machine, option, view)
        return placed_on(job, gpus, view.cluster, scores, optimal=optimal, bound=bound, rates=self.rates)


def placed_on(
    job: JobGraph,
    gpus: tuple[int, ...],
    cluster: Cluster,
    scores: Mapping[str, float] | LateScores,
    *,
    optimal: bool = False,
    bound: float | None = None,
    rates: Rates | str | None = None,
) -> Placement:
    """Return the placement of a job on these GPUs, with its shares of the hosts, and its MIG slices if it has any."""
    topology = cluster.topology
    hosts = host_shares(job, gpus, topology) if needs_hosts(job) else ()
    is_sliced = job.mig is not None or cluster.sliced_gpus
    slices, resliced = slices_for(job, gpus, cluster) if is_sliced else ((), ())
    return Placement(
        gpus,
        scores=scores,
        topology=topology,
        job=job,
        hosts=hosts,
        slices=slices,
        resliced=resliced,
        optimal=optimal,
        bound=bound,
        rates=rates,
    )


def _no_splits() -> dict[tuple[JobRequest, int], float]:
    return {}
