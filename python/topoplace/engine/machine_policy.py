"""A policy that takes the best machine by some order, and several only where no machine has room."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.engine import multi_machine
from topoplace.engine.admission import why_never, why_not_now
from topoplace.engine.machine_class import MachineClass, Mask
from topoplace.engine.machine_state import ClusterView, MachineState
from topoplace.engine.option_heap import Option, OptionHeap, Options
from topoplace.engine.plan import Explanation, Plan, QueuedJob
from topoplace.engine.queueing import Outcome, checked_queue, walk
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.links import link_scores
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.engine.multi_machine import MachineOffer, MachineSplit
    from topoplace.engine.request import JobRequest


class Evaluation(NamedTuple):
    """The value of an assignment to several machines."""

    utility: float
    """The utility to the job."""
    details: Any
    """The argument of `MachinePolicy.scores`."""


class MachinePolicy(ABC):
    """Base of policies that place a job on the machine with the best option, or split it if no machine has room.

    Options are cached by request and machine, and recomputed only for machines that changed.
    """

    name: str
    out_of_order: ClassVar[bool] = True
    """Whether jobs may start before older ones that have no room."""

    # ---- rules of a policy ---------------------------------------------------------------------------------

    @abstractmethod
    def options(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> Iterable[Option]:
        """Return the options of one machine among those of its GPUs that are free and suit."""

    @abstractmethod
    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return ways to split a job that is too large for any machine among those with room, best first."""

    @abstractmethod
    def evaluate(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Evaluation | None:
        """Return the value of GPUs of several machines, in task order; None if tasks that communicate have no path."""

    @abstractmethod
    def scores(self, details: Any) -> Mapping[str, float]:
        """Return the scores of an option or evaluation besides those of its links, "utility" among them."""

    def task_order(self, request: JobRequest, gpus: Sequence[int], view: ClusterView) -> Sequence[int]:
        """Return the GPU of each task out of at least as many on several machines; by default the first ones."""
        return gpus[: request.size]

    def max_tasks(self, request: JobRequest, state: MachineState) -> int:
        """Return the most tasks of the job that a machine in this state may have."""
        return request.size

    def max_split_utility(self, request: JobRequest) -> float:
        """Return an upper bound on the utility of any split."""
        return math.inf

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """Return the utility below which the job waits, after `postponed` deferrals."""
        return -math.inf

    def why_unfit(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster, other than too few GPUs; None if it could."""
        return None

    def lack(self, job: JobGraph) -> str | None:
        """Return why a job does not fit although enough free GPUs are suitable; None if links are missing."""
        return None

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the best placement of `job` on the free GPUs; None when nothing fits or waiting is better."""
        return self.search(job, _view(job, cluster), self.least_utility(job))

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the `top` best GPU sets with their scores, and the reason where `place` gives None."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        view = _view(job, cluster)
        chosen = self.search(job, view, self.least_utility(job))
        candidates = tuple(islice(self._ranked(job, view, chosen), top))
        if chosen is not None:
            return Explanation(self.name, candidates)
        if candidates:
            best = max(candidate.scores["utility"] for candidate in candidates)
            return Explanation(self.name, candidates, _too_low(job, best))
        return Explanation(
            self.name, (), self.why_never(job, view) or why_not_now(job, cluster, self.lack(job))
        )

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start what can start, oldest first; defer jobs whose utility is too low, reject those that never fit."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = checked_queue(queue)
        with cluster.what_if() as state:
            planning = _Planning(self, state)
            return walk(
                entries,
                planning.decide,
                head_blocks=not self.out_of_order,
                exhausted=lambda: planning.num_free <= 0,
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def refused_utility(self, job: JobGraph, view: ClusterView, least_utility: float) -> float | None:
        """Return the utility that a waiting job could have now; None if nothing fits."""
        other = self.search(job, view, -math.inf) if least_utility > -math.inf else None
        return other.scores["utility"] if other else None

    def search(self, job: JobGraph, view: ClusterView, least_utility: float) -> Placement | None:
        """Return the best placement of at least that utility to the job; None where there is none."""
        if not 0 < job.num_tasks <= view.cluster.num_free:
            return None
        request = view.request(job)
        if not request.anti_affine:
            heap = self._heap(request, view)
            if found := heap.best(least_utility):
                return self._placement(job, view, *found)
            if heap.best():
                return None  # it has room, though not a good one; several machines would be worse
        if job.single_machine:
            return None
        return self._across(job, request, view, least_utility)

    def _across(
        self, job: JobGraph, request: JobRequest, view: ClusterView, least_utility: float
    ) -> Placement | None:
        """Return the first split whose links connect the job's tasks and whose utility is high enough."""
        if self.max_split_utility(request) < least_utility:
            return None  # not worth the search
        topology = view.cluster.topology
        for gpus in multi_machine.candidates(self, request, view):
            found = self.evaluate(request, gpus, view)
            if found and found.utility >= least_utility and topology.is_legal(gpus):
                scores = {**link_scores(job.edges, gpus, topology), **self.scores(found.details)}
                return Placement(tuple(gpus), scores=scores, topology=topology, job=job)
        return None

    def why_never(self, job: JobGraph, view: ClusterView) -> Refusal | None:
        """Return why a job could not run even on the idle cluster; None if it could."""
        request, topology = view.request(job), view.cluster.topology
        return request.table(
            (self, "never"), lambda: why_never(job, topology) or self.why_unfit(request, view)
        )

    def _ranked(self, job: JobGraph, view: ClusterView, chosen: Placement | None) -> Iterator[Placement]:
        """Yield `chosen`, and then all other sets of GPUs of one machine, best first."""
        seen: set[frozenset[int]] = set()
        request = view.request(job)
        machines = () if request.anti_affine else range(view.classes.num_machines)
        heap = self._heap(request, view)
        options = [
            (option.order, machine, option) for machine in machines for option in heap.options(machine)
        ]
        options.sort(key=lambda entry: entry[:2])
        ranked = (self._placement(job, view, machine, option) for _, machine, option in options)
        first = chosen or (None if options else self.search(job, view, -math.inf))
        for placement in chain([first] if first else [], ranked):
            gpus = frozenset(placement.gpus)
            if gpus not in seen:
                seen.add(gpus)
                yield placement

    def _heap(self, request: JobRequest, view: ClusterView) -> OptionHeap:
        def evaluate(machine_class: MachineClass, state: MachineState) -> Options:
            return self._options(request, machine_class, state)

        return view.table((self, request), lambda: OptionHeap(view, evaluate))

    def _options(self, request: JobRequest, machine_class: MachineClass, state: MachineState) -> Options:
        """Return the options of a machine, best first."""
        usable = state.free & request.suitable(machine_class)
        if not 0 < request.size <= usable.bit_count():
            return ()
        if self.max_tasks(request, state) < request.size:
            return ()
        found = self.options(request, machine_class, state, usable)
        return sorted(found, key=lambda option: (option.order, sorted(option.gpus), option.gpus))

    def _placement(self, job: JobGraph, view: ClusterView, machine: int, option: Option) -> Placement:
        numbers, request = view.classes.gpus_of[machine], view.request(job)
        links = request.link_scores(view.classes.of(machine), option.gpus)
        gpus = tuple(numbers[local] for local in option.gpus)
        scores = {**links, **self.scores(option.details)}
        return Placement(gpus, scores=scores, topology=view.cluster.topology, job=job)


class _Planning:
    """The decisions of one walk along a queue, on a cluster whose changes are undone afterwards."""

    def __init__(self, policy: MachinePolicy, state: Cluster) -> None:
        self.num_free = state.num_free
        self._policy = policy
        self._state = state
        self._view = state.view(ClusterView)
        self._failed: dict[JobRequest, tuple[float, float | None]] = {}

    def decide(self, entry: QueuedJob) -> Outcome:
        """Return the outcome of a job; a placement is taken."""
        job, policy = entry.job, self._policy
        if self.num_free < job.num_tasks <= self._state.topology.num_gpus:
            # Only a head that blocks the queue needs to know whether it can ever run.
            return None if policy.out_of_order else policy.why_never(job, self._view)
        request = self._view.request(job)
        least = policy.least_utility(job, entry.postponed)
        known = self._failed.get(request)
        if known is None or least < known[0]:  # starting others makes no room for this request
            placement = policy.search(job, self._view, least)
            if placement is not None:
                self._state.allocate(entry.job_id, placement)
                self.num_free -= job.num_tasks
                return placement
            if refusal := policy.why_never(job, self._view):
                return refusal
            known = self._failed[request] = (least, policy.refused_utility(job, self._view, least))
        return None if known[1] is None else _too_low(job, known[1])


def _too_low(job: JobGraph, utility: float) -> Refusal:
    return Refusal(f"postponed: its utility would be {utility:.3f} now, {job.min_utility:g} is asked for")


def _view(job: JobGraph, cluster: Cluster) -> ClusterView:
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    return cluster.view(ClusterView)
