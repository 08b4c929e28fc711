"""Waiting jobs of the same kind: they get the same answer at the same time, unless one of them starts in between."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from operator import itemgetter
from typing import TYPE_CHECKING, Generic, TypeVar

from topoplace.engine.queueing import WaitingJob

if TYPE_CHECKING:
    from collections.abc import Hashable


Job = TypeVar("Job", bound=WaitingJob)
_number = itemgetter(0)


class WaitingKind(Generic[Job]):
    """The waiting jobs of one kind, oldest first, with numbers that are higher for younger jobs.

    Only the oldest job leaves, and if a job is deferred, all older ones are too. One count for each youngest deferred
    job is therefore enough. Deferring takes constant time for all jobs, and logarithmic time for some of them.
    """

    __slots__ = ("_up_to", "_youngest", "jobs", "key", "postponed")

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.jobs: deque[tuple[int, Job]] = deque()
        self.postponed = 0
        """The number of times that the oldest job was deferred."""
        self._youngest: dict[int, int] = {}
        """By number of a job: how often it was the youngest one that was deferred."""
        self._up_to = 0
        """Jobs with numbers below this one are deferred at the present time."""

    @property
    def first(self) -> int:
        """Return the number of the oldest job."""
        return self.jobs[0][0]

    def take(self) -> Job:
        """Remove and return the oldest job."""
        number, job = self.jobs.popleft()
        job.postponed = self.postponed
        if self._youngest:
            self.postponed -= self._youngest.pop(number, 0)
        return job

    def defer(self, below: int) -> None:
        """Defer the jobs with a number under `below` now; `count` then adds one for each of them."""
        self._up_to = max(self._up_to, below)

    def count(self) -> None:
        """Count all deferrals of a job since the last call as one."""
        up_to, self._up_to = self._up_to, 0
        if not self.jobs or self.first >= up_to:
            return
        youngest = self.jobs[-1][0]
        if youngest >= up_to:
            youngest = self.jobs[bisect_left(self.jobs, up_to, key=_number) - 1][0]
        self._youngest[youngest] = self._youngest.get(youngest, 0) + 1
        self.postponed += 1
