"""A queue whose jobs start as soon as they are decided, for simulators that carry out every plan at once."""

from __future__ import annotations

import math
from bisect import insort
from operator import attrgetter
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol

from topoplace.placement import Placement, Refusal
from topoplace_lab.simulate.disciplines.waiting_kind import Job, WaitingKind

if TYPE_CHECKING:
    from collections.abc import Hashable

    from topoplace.engine.plan import QueuedJob
    from topoplace.engine.queueing import WaitingJob
    from topoplace.jobs.job_graph import JobGraph

_first = attrgetter("first")
_MAX_KINDS = 1024
"""Number of kinds above which a kind is dropped when its last job leaves."""


class LiveRule(Protocol):
    """An interface for a policy's decisions about one cluster's waiting jobs, job by job.

    The decisions are those of `Policy.plan` in a walk along the queue.
    """

    @property
    def head_blocks(self) -> bool:
        """Return True if no job starts before an older one that waits."""
        ...

    @property
    def wakes(self) -> float:
        """Return the time in seconds of the next walk along the queue even without an event; infinity for never."""
        ...

    def kind_of(self, entry: QueuedJob | WaitingJob) -> Hashable:
        """Return the job's kind: while a job waits, younger jobs of the same kind wait for the same reason."""
        ...

    def begin(self, now: float) -> None:
        """Begin a walk along the queue at time `now`, in seconds."""
        ...

    def decide(self, entry: QueuedJob | WaitingJob) -> Placement | Refusal | None:
        """Return the placement of a job that starts and is now allocated, its refusal, or None if it waits."""
        ...

    def can_defer(self, job: JobGraph) -> bool:
        """Return False if a walk gives no more reasons to wait to jobs of this kind, although it did to older ones."""
        ...

    def exhausted(self) -> bool:
        """Return True if no resources are left, which ends the walk."""
        ...


class Decided(NamedTuple, Generic[Job]):
    """The jobs that left a queue, in the order of decisions; GPUs of jobs that start are already allocated.

    move: ids of running jobs that now hold the GPUs of a new placement. preempt: ids of jobs that lost their GPUs.
    """

    start: list[tuple[Job, Placement]]
    reject: list[tuple[Job, Refusal]]
    move: tuple[tuple[str, Placement], ...] = ()
    preempt: tuple[str, ...] = ()


class LiveQueue(Generic[Job]):
    """The waiting jobs of one cluster under one rule, in order of submission, grouped by kind.

    A walk along the queue decides about each kind until a job of it waits. Its cost therefore grows with the numbers of
    kinds and of starting jobs, but not with the number of waiting jobs. After an exception in `decide`, neither the
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
    def head(self) -> Job | None:
        """Return the oldest job; None if there is none."""
        return self._kinds[0].jobs[0][1] if self._kinds else None

    @property
    def wakes(self) -> float:
        """Return the time in seconds of the next decision even if no job arrives or ends; infinity for never."""
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

    def put_back(self, number: int, job: Job) -> None:
        """Add a job that was `number`-th to be submitted, and has left the queue, at its former place."""
        kind: WaitingKind[Job] = WaitingKind(
            number
        )  # of its own, as it was deferred less often than its neighbours
        kind.postponed = job.postponed
        kind.jobs.append((number, job))
        self.num_waiting += 1
        insort(self._kinds, kind, key=_first)

    def take_head(self) -> Job:
        """Remove and return the oldest job."""
        return self._take(0)

    def decide(self, now: float) -> Decided[Job]:
        """Start every job that the rule starts now; remove and return these jobs and the rejected ones.

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
                self._by_key.pop(kind.key, None)
        elif len(kinds) > 1:
            del kinds[at]
            insort(kinds, kind, lo=at, key=_first)
        return job
