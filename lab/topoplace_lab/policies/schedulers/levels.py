"""The domains with room for a job at each level, numbered from 0; the lowest level is the machines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.packing import DomainTree

    Ints = NDArray[np.int64]


class Levels:
    """The domains of each depth: 0 for all machines together, 1 for the outermost level, `last` for the machines."""

    def __init__(self, tree: DomainTree) -> None:
        self.depth_of = tree.depth_of
        """The depth of each level, by name."""
        self.last = max(tree.depth_of.values())
        starts = [tree.first_of(depth) for depth in range(self.last + 2)]
        self.above = [tree.parent[starts[d] : starts[d + 1]] - starts[d - 1] for d in range(1, self.last + 1)]
        self.above.insert(0, np.zeros(1, dtype=np.int64))
        """At each depth, for each domain, the one above that has it; in ascending order."""
        self.machines = tree.machines
        """The machine of each domain of the last depth."""
        self._codes = [np.zeros_like(tree.levels[0].codes), *(level.codes for level in tree.levels)]
        self.room = tree.room[starts[self.last] :]
        """The number of tasks for which each machine has room."""

    def up(self, depth: int, amounts: Ints) -> Ints:
        """Add up the amounts of a depth's domains, for each domain of the depth above."""
        sums = np.bincount(self.above[depth], weights=amounts, minlength=len(self.above[depth - 1]))
        return sums.astype(np.int64)

    def totals(self, amounts: Ints) -> list[Ints]:
        """Return the sums of the machines' amounts, for the domains of each depth."""
        found = [amounts]
        for depth in range(self.last, 0, -1):
            found.append(self.up(depth, found[-1]))
        return found[::-1]

    def whole(self, amounts: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the sums for the domains of each depth, over all their machines, with or without room.

        amounts: (machines, n) of all machines of the cluster.
        """
        found: list[NDArray[np.float64]] = []
        one_of = self.machines
        for depth in range(self.last, -1, -1):
            codes = self._codes[depth]
            sums = [np.bincount(codes, weights=column).astype(np.float64) for column in amounts.T]
            found.append(np.stack(sums, axis=1)[codes[one_of]])
            one_of = one_of[np.flatnonzero(np.diff(self.above[depth], prepend=-1))]
        return found[::-1]

    def inside(self, depth: int, domain: int, deeper: int) -> slice:
        """Return the range of domains of the same or a deeper depth that are inside a domain."""
        low, high = domain, domain + 1
        for below in range(depth + 1, deeper + 1):
            low, high = np.searchsorted(self.above[below], (low, high)).tolist()
        return slice(low, high)

    def around(self, domain: int, depth: int) -> int:
        """Return the domain of a depth that contains a machine; domain: the machine's number at the last depth."""
        for below in range(self.last, depth, -1):
            domain = int(self.above[below][domain])
        return domain
