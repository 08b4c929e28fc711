"""Waiting jobs of one kind: jobs that get the same answer at the same time, unless one of them starts in between."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

    from topoplace.jobs.job_graph import JobGraph

_number = attrgetter("number")


class WaitingJob:
    """A job in a queue. It has what a rule reads of a `QueuedJob`."""

    __slots__ = ("item", "job", "job_id", "number", "postponed")

    def __init__(self, number: int, job_id: str, job: JobGraph, item: Any) -> None:
        self.number = number
        """Its place in the order of submission; not all numbers need to be in the queue."""
        self.job_id = job_id
        self.job = job
        self.item = item
        """What the queue's user keeps with the job."""
        self.postponed = 0
        """Number of points in time at which the job was deferred; current while it is the oldest of its kind."""


class WaitingKind:
    """The waiting jobs of one kind, oldest first.

    Only the oldest job leaves, and if a job is deferred, all older ones are too. So one count for each youngest job
    that was deferred is enough, and to defer any number of jobs takes constant time, or logarithmic if not all are.
    """

    __slots__ = ("_up_to", "_youngest", "jobs", "key", "postponed")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.jobs: deque[WaitingJob] = deque()
        self.postponed = 0
        """How often the oldest job was deferred."""
        self._youngest: dict[int, int] = {}
        """By number of a job: how often it was the youngest one that was deferred."""
        self._up_to = -1
        """Jobs with numbers below this one are deferred at the present time."""

    @property
    def first(self) -> int:
        """The number of the oldest job."""
        return self.jobs[0].number

    def oldest(self) -> WaitingJob:
        """Return the oldest job, which stays in the queue."""
        job = self.jobs[0]
        job.postponed = self.postponed
        return job

    def take(self) -> WaitingJob:
        """Remove and return the oldest job."""
        job = self.jobs.popleft()
        job.postponed = self.postponed
        if self._youngest:
            self.postponed -= self._youngest.pop(job.number, 0)
        return job

    def defer(self, below: int) -> None:
        """Defer the jobs with a number under `below`, at the present time: `count` adds one for each of them."""
        self._up_to = max(self._up_to, below)

    def count(self) -> None:
        """Count the deferrals since the last call as one."""
        up_to, self._up_to = self._up_to, -1
        if not self.jobs or self.first >= up_to:
            return
        youngest = self.jobs[-1].number
        if youngest >= up_to:
            youngest = self.jobs[bisect_left(self.jobs, up_to, key=_number) - 1].number
        self._youngest[youngest] = self._youngest.get(youngest, 0) + 1
        self.postponed += 1
