"""The cheapest levels of running jobs (stay, move, pre-empt) that satisfy all conditions known so far."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from topoplace.kernels.limits import check_deadline, until_deadline

Condition = Mapping[int, int]
"""A condition: at least one job must have at least the level given for its number."""
_TOLERANCE = 1e-9


class Shortage(NamedTuple):
    """A condition on the sum of the gains of all jobs' levels."""

    gains: Sequence[Sequence[int]]
    """For each job, the gain of each level."""
    needed: int


class CheapestLevels:
    """A branch-and-bound search for levels of least total cost; conditions are added as they become known.

    The problem is a minimum-cost hitting set with knapsack conditions. Costs ascend with the level; a level of infinite
    cost is not allowed. Equal costs are decided by the order of jobs.
    """

    def __init__(self, costs: Sequence[Sequence[float]], shortages: Sequence[Shortage] = ()) -> None:
        self._costs = costs
        self._shortages = shortages
        self._conditions: list[tuple[Condition, _Sets]] = []
        self._highest = [
            max(level for level, cost in enumerate(row) if cost < math.inf) for row in until_deadline(costs)
        ]
        self._least = 0.0
        """The least cost of the last solution; conditions have only been added since."""
        self._best: tuple[float, list[int] | None] = (math.inf, None)

    def require(self, condition: Condition) -> None:
        """Add a condition, which holds from now on."""
        self._conditions.append((condition, _sets(condition.items())))

    def solve(self, below: float = math.inf) -> tuple[float, list[int]] | None:
        """Return the least cost and the levels; None if every choice costs `below` or more, or there is none.

        Raise DeadlineError after the deadline (`kernels.limits.deadline`).
        """
        self._best = (below, None)
        self._search([0] * len(self._costs), list(self._highest), 0.0)
        return self._found()

    def _found(self) -> tuple[float, list[int]] | None:
        cost, levels = self._best
        if levels is None:
            return None
        self._least = cost
        return cost, levels

    @property
    def least(self) -> float:
        """Return the least cost of the last solution, a lower bound on that of the next; 0 before the first."""
        return self._least

    def bound(self) -> float:
        """Return a lower bound on the least cost, without a search; infinite if nothing meets the conditions."""
        levels = [0] * len(self._costs)
        ways = [self._ways(one, levels, self._highest) for one, _ in self._conditions]
        return self._least_more(ways, levels, self._highest)

    def _search(self, levels: list[int], highest: list[int], cost: float) -> None:
        check_deadline()
        if self._best[1] is not None and self._best[0] <= self._least:
            return  # there is no cheaper solution
        moved, stopped = _sets(
            (job, each) for job, level in enumerate(levels) for each in range(1, level + 1)
        )
        unmet = [one for one, sets in self._conditions if not (sets[0] & moved or sets[1] & stopped)]
        ways = [self._ways(one, levels, highest) for one in unmet]
        if cost + self._least_more(ways, levels, highest) >= self._best[0] - _TOLERANCE:
            return
        if not ways:
            ways = [found for one in self._shortages if (found := self._fillers(one, levels, highest))]
        if not ways:
            self._best = (cost, list(levels))
            return
        highest = list(highest)
        for more, job, level, least in min(ways, key=len):
            before, levels[job] = levels[job], level
            self._search(levels, highest, cost + more)
            levels[job] = before
            highest[job] = least - 1  # from here on, this way is not taken

    def _ways(self, condition: Condition, levels: list[int], highest: list[int]) -> list[_Way]:
        """Return the ways to meet a condition, cheapest first."""
        found = (self._raised(job, least, levels, highest) for job, least in condition.items())
        return sorted(way for way in found if way)

    def _raised(self, job: int, least: int, levels: list[int], highest: list[int]) -> _Way | None:
        costs = self._costs[job]
        for level in range(max(least, levels[job] + 1), highest[job] + 1):
            if costs[level] < math.inf:
                return costs[level] - costs[levels[job]], job, level, least
        return None

    def _fillers(self, shortage: Shortage, levels: list[int], highest: list[int]) -> list[_Way]:
        """Return the ways to lessen a shortage, most gain for its cost first; [] if nothing is short."""
        if self._missing(shortage, levels) <= 0:
            return []
        return [way for _, _, way in self._by_price(shortage, levels, highest)]

    def _by_price(
        self, shortage: Shortage, levels: list[int], highest: list[int]
    ) -> list[tuple[float, int, _Way]]:
        """Return (cost per gain, gain, way) of all single raises that gain something, the best first."""
        found: list[tuple[float, int, _Way]] = []
        for job, gains in enumerate(until_deadline(shortage.gains)):
            for least in range(levels[job] + 1, highest[job] + 1):
                gain = gains[least] - gains[levels[job]]
                if gain > 0 and (way := self._raised(job, least, levels, highest)) and way[2] == least:
                    found.append((way[0] / gain, gain, way))
        return sorted(found)

    def _missing(self, shortage: Shortage, levels: list[int]) -> int:
        return shortage.needed - sum(
            gains[level] for gains, level in zip(shortage.gains, levels, strict=True)
        )

    def _least_more(self, ways: list[list[_Way]], levels: list[int], highest: list[int]) -> float:
        """Return a lower bound on what it costs to meet all conditions: by those without a common job, by shortages."""
        apart, used = 0.0, set[int]()
        for one in sorted(ways, key=len):
            if not one:
                return math.inf
            if used.isdisjoint(way[1] for way in one):
                used.update(way[1] for way in one)
                apart += one[0][0]
        return max((apart, *(self._price_of(one, levels, highest) for one in self._shortages)))

    def _price_of(self, shortage: Shortage, levels: list[int], highest: list[int]) -> float:
        """Return the least cost of filling a shortage if jobs could be taken in part."""
        missing, total = self._missing(shortage, levels), 0.0
        if missing <= 0:
            return 0.0
        for price, gain, _ in self._by_price(shortage, levels, highest):
            if gain >= missing:
                return total + price * missing
            missing -= gain
            total += price * gain
        return math.inf


def _sets(levels: Iterable[tuple[int, int]]) -> _Sets:
    """Return the jobs that occur with level 1 and with level 2, as bit masks."""
    masks = [0, 0]
    for job, level in levels:
        masks[level - 1] |= 1 << job
    return masks[0], masks[1]


_Sets = tuple[int, int]
_Way = tuple[float, int, int, int]
"""(additional cost, job, its new level, the required level)."""
