"""A queue whose jobs start as they are decided: for simulators that would carry out every plan at once."""

from __future__ import annotations

import math
from bisect import insort
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from topoplace.experiments.simulate.disciplines.waiting_kind import Job, WaitingKind
from topoplace.placement import Placement, Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from topoplace.engine.plan import QueuedJob
    from topoplace.engine.queueing import WaitingJob
    from topoplace.jobs.job_graph import JobGraph

_first = attrgetter("first")
_MAX_KINDS = 1024
"""If there are more kinds than this, a kind is dropped when its last job leaves."""


class LiveRule(Protocol):
    """An interface for the decisions of a policy about the waiting jobs of one cluster, job by job.

    What it decides is what `Policy.plan` decides in a walk along the queue.
    """

    @property
    def head_blocks(self) -> bool:
        """True if no job starts before an older one that waits."""
        ...

    @property
    def wakes(self) -> float:
        """Return when, in seconds, to walk along the queue again even if nothing has happened; infinity for never."""
        ...

    def kind_of(self, entry: QueuedJob | WaitingJob) -> Hashable:
        """Return the job's kind: if a job of a kind waits, younger ones of this kind do, for the same reason."""
        ...

    def begin(self, now: float) -> None:
        """Begin a walk along the queue at time `now`, in seconds."""
        ...

    def decide(self, entry: QueuedJob | WaitingJob) -> Placement | Refusal | None:
        """Return the placement of a job that starts and is now allocated, its refusal, or None if it waits."""
        ...

    def can_defer(self, job: JobGraph) -> bool:
        """Return False if jobs of this kind get no reason to wait any more in this walk, although older ones did."""
        ...

    def exhausted(self) -> bool:
        """Return True if no resources are left, which ends the walk."""
        ...


class Decided(NamedTuple, Generic[Job]):
    """The jobs that left a queue, each in the order of decision; those that start are allocated.

    move: ids of running jobs that now hold the GPUs of a new placement. preempt: ids of those that hold none any more.
    """

    start: list[tuple[Job, Placement]]
    reject: list[tuple[Job, Refusal]]
    move: tuple[tuple[str, Placement], ...] = ()
    preempt: tuple[str, ...] = ()


class LiveQueue(Generic[Job]):
    """The waiting jobs of one cluster under one rule, in order of submission, grouped by kind.

    A walk along the queue asks about each kind until a job of it waits. So its cost grows with the number of kinds, and
    with that of the jobs that start, but not with that of all waiting jobs. After an exception in `decide`, neither the
    queue nor the cluster can be used any more.
    """

    def __init__(self, rule: LiveRule) -> None:
        self.num_waiting = 0
        self._rule = rule
        self._head_blocks = rule.head_blocks
        self._kinds: list[WaitingKind[Job]] = []
        """The kinds that have jobs, by their oldest job."""
        self._by_key: dict[Hashable, WaitingKind[Job]] = {}
        self._deferred: list[WaitingKind[Job]] = []
        self._next_number = 0

    @property
    def wakes(self) -> float:
        """When, in seconds, to decide again even if no job arrives or ends; infinity for never."""
        return self._rule.wakes if self.num_waiting else math.inf

    def submit(self, job: Job) -> None:
        """Add a job behind all others."""
        number = self._next_number
        self._next_number = number + 1
        self.num_waiting += 1
        key = None if self._head_blocks else self._rule.kind_of(job)
        kind = self._by_key.get(key)
        if kind is None:
            kind = self._by_key[key] = WaitingKind(key)
        if not kind.jobs:
            self._kinds.append(kind)
        kind.jobs.append((number, job))

    def take_head(self) -> Job:
        """Remove and return the oldest job."""
        return self._take(0)

    def decide(self, now: float) -> Decided[Job]:
        """Start every job that the rule starts now, and return these jobs and the rejected ones; both are removed.

        now: the time in seconds.
        """
        rule, kinds = self._rule, self._kinds
        decided: Decided[Job] = Decided([], [])
        open_kinds: list[WaitingKind[Job]] = []
        rule.begin(now)
        at, passed = 0, self._next_number
        while at < len(kinds):
            kind = kinds[at]
            number, job = kind.jobs[0]
            job.postponed = kind.postponed
            outcome = rule.decide(job)
            if isinstance(outcome, Placement):
                self._take(at)
                decided.start.append((job, outcome))
                if open_kinds:
                    open_kinds = self._still_open(open_kinds, number)
            elif outcome is not None and outcome.permanent:
                self._take(at)
                decided.reject.append((job, outcome))
                continue
            else:
                if outcome is not None:
                    self._defer(kind, open_kinds)
                if self._head_blocks:
                    break
                at += 1
            if rule.exhausted():
                passed = number + 1
                break
        for kind in open_kinds:
            kind.defer(passed)
        return decided

    def count_deferred(self) -> None:
        """Count one postponement for each job that was deferred since the last call and still waits."""
        for kind in self._deferred:
            kind.count()
        self._deferred.clear()

    def _defer(self, kind: WaitingKind[Job], open_kinds: list[WaitingKind[Job]]) -> None:
        """Defer the oldest job of a kind; add the kind to `open_kinds` if younger ones may be deferred too."""
        self._deferred.append(kind)
        if self._head_blocks or len(kind.jobs) == 1:
            kind.defer(kind.first + 1)
        else:
            open_kinds.append(kind)

    def _still_open(self, open_kinds: list[WaitingKind[Job]], started: int) -> list[WaitingKind[Job]]:
        """Return the kinds whose jobs can still be deferred; of the others, defer jobs older than number `started`."""
        still: list[WaitingKind[Job]] = []
        for kind in open_kinds:
            if self._rule.can_defer(kind.jobs[0][1].job):
                still.append(kind)
            else:
                kind.defer(started)
        return still

    def _take(self, at: int) -> Job:
        """Remove and return the oldest job of a kind, and move the kind to its new place."""
        self.num_waiting -= 1
        kinds = self._kinds
        kind = kinds[at]
        job = kind.take()
        if not kind.jobs:
            del kinds[at]
            if len(self._by_key) > _MAX_KINDS:
                del self._by_key[kind.key]
        elif len(kinds) > 1:
            del kinds[at]
            insort(kinds, kind, lo=at, key=_first)
        return job
