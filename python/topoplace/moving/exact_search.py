"""The cheapest way to make room among a few jobs, by conditions learned from failed attempts (implicit hitting sets).

A choice of jobs whose leaving is not enough is extended by further jobs as long as the new job does not fit. One of the
remaining jobs must then leave. If the moved jobs find no placements, one of the jobs must rise a level. The cheapest
levels that meet all conditions so far are tried next. The first that succeed are therefore the best, and until then
their cost is a lower bound. This assumes that a job that fits also fits with more room.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topoplace.errors import DeadlineError
from topoplace.kernels.limits import deadline
from topoplace.moving.cheapest_levels import CheapestLevels, Shortage
from topoplace.moving.movers import FORBIDDEN, PREEMPT, STAY

if TYPE_CHECKING:
    from topoplace.moving.attempts import Arrangement, Attempts

_TOLERANCE = 1e-9
_SEEKING = 0.8
"""The share of the time after which a plan is no longer improved."""
_MOST_FAILED = 4
"""Limit on failed choices of jobs before the search turns to other machines."""


@dataclass
class ExactSearch:
    """A search for the cheapest arrangement: each call of `among` tries other jobs and keeps the best so far.

    timeout: seconds from `start`; after 80 % of them, the search ends as soon as it has an arrangement. The deadline of
    the surrounding block (`kernels.limits.deadline`) ends it in any case.
    """

    attempts: Attempts
    timeout: float
    start: float
    """Start of the search, in seconds of `time.monotonic`."""
    best: Arrangement | None = None
    cost: float = math.inf
    """Cost of the best arrangement so far."""
    _numbers: Sequence[int] = field(default=(), init=False)
    _unsure: float = field(default=math.inf, init=False)
    """The least cost of levels whose places were not all tried, since the last call of `among`."""
    _ended: bool = field(default=False, init=False)

    def out_of_time(self) -> bool:
        """Return True after the time at which the search ends if it has a plan."""
        return time.monotonic() > self.start + _SEEKING * self.timeout

    @contextmanager
    def leaving_time(self, share: float) -> Generator[None]:
        """Open a block that ends without an error after this share of the time; other blocks may follow."""
        with suppress(DeadlineError), deadline(self.start + share * self.timeout - time.monotonic()):
            yield
        self._ended = False

    def is_over(self) -> bool:
        """Return True if the deadline has passed, or the time is up and there is a plan."""
        return self._ended or (self.best is not None and self.out_of_time())

    def end(self) -> None:
        """Mark the search as over, as the deadline has passed."""
        self._ended = True

    def consider(self, found: Arrangement | None) -> None:
        """Store an arrangement if it is cheaper than the best so far."""
        if found and found.cost < self.cost - _TOLERANCE:
            self.best, self.cost = found, found.cost

    def among(self, numbers: Sequence[int], shortages: Sequence[Shortage], *, alone: bool = True) -> float:
        """Search with the jobs of these numbers, and return a lower bound on the cost of every arrangement with them.

        shortages: conditions on the gains of these jobs, in their order, that hold for every arrangement. The bound is
        at most the cost of the best arrangement so far. alone: True if no other job can leave. If False, moved jobs
        might fit if others left, so the search ends after a few choices whose moved jobs do not fit.
        """
        self._numbers = numbers
        movers = [self.attempts.movers[number] for number in numbers]
        levels = CheapestLevels([mover.costs for mover in movers], shortages)
        self._unsure, least = math.inf, levels.bound()
        try:
            return min(self._least(levels, alone=alone), self._unsure, self.cost)
        except DeadlineError:
            self.end()
            return min(max(levels.least, least), self._unsure, self.cost)

    def _least(self, levels: CheapestLevels, *, alone: bool) -> float:
        """Return the least cost of levels that were not tried, infinite if all were."""
        num_failed = 0
        while (found := levels.solve(self.cost)) is not None:
            cost, chosen = found
            if self.is_over():
                return cost
            leaving = {i for i, level in enumerate(chosen) if level > STAY}
            if not self.attempts.fits_without(self._numbers[i] for i in leaving):
                condition = self._someone_else(leaving)
            else:
                condition, certain = self._arranged(chosen)
                if not (certain and alone):
                    self._unsure = min(self._unsure, cost)
                num_failed += 1
            if not condition or (num_failed == _MOST_FAILED and not alone):
                break
            levels.require(condition)
        return math.inf

    def _someone_else(self, leaving: set[int]) -> dict[int, int]:
        """Return the condition that a job leaves without which, too, the new job does not fit."""
        numbers = self._numbers
        cheapest_first = sorted(
            range(len(numbers)), key=lambda i: (self.attempts.movers[numbers[i]].cheapest, i)
        )
        gone = self.attempts.still_too_few(
            {numbers[i] for i in leaving}, (numbers[i] for i in cheapest_first)
        )
        return {i: 1 for i, number in enumerate(numbers) if number not in gone}

    def _arranged(self, chosen: Sequence[int]) -> tuple[dict[int, int], bool]:
        """Try to place all jobs; return the condition that excludes these levels, and whether they certainly fail."""
        found, certain = self.attempts.arranged(dict(zip(self._numbers, chosen, strict=True)))
        self.consider(found)
        higher = {
            i: level + 1
            for i, (number, level) in enumerate(zip(self._numbers, chosen, strict=True))
            if level < PREEMPT and min(self.attempts.movers[number].costs[level + 1 :]) < FORBIDDEN
        }
        return higher, certain
