"""Divisions of a gang among machines: what one machine has of it tells how fast it can be at the most.

Rings leave a machine by the adapters of its tasks, and pass the links between them (`bounds.MachineLimits`). So for
each such limit, the division in which no machine is slower and the most tasks stay where they were is found, over all
divisions (`kernels.divide`). It is a candidate, and no placement in which more tasks stay is within the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace.kernels.divisions import DivisionProblem, divide

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from topoplace.deciding.bounds import MachineLimits
    from topoplace.kernels.divisions import Division

    Ints = NDArray[np.int64]
    Reals = NDArray[np.float64]


_MOST_STEPS: Final = 1_000_000_000
"""Limit on units x options of machines for a division that must be found: about a second of work."""


@dataclass(frozen=True, slots=True)
class Divisions:
    """The divisions with the fewest moves for each time that no machine exceeds, the longest time first."""

    found: list[Division]
    below: float
    """The seconds that all are faster than."""

    def least(self, moves: float) -> float:
        """Return a lower bound on the seconds of placements with fewer moves that divide no unit."""
        return min((one.seconds for one in self.found if one.moves < moves), default=self.below)

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield the GPU of each task in these divisions; of those with as many moves, in the fastest."""
        for one in self.found:
            if one.gpus is not None:
                yield tuple(one.gpus.tolist())


class Divider:
    """Divides a job by its units: tasks, or the tasks of each group that must be on one machine."""

    def __init__(
        self,
        limits: MachineLimits,
        usable: NDArray[np.bool_],
        most: Ints,
        stays: Sequence[int] = (),
        known: Sequence[int] = (),
        order: Sequence[int] = (),
    ) -> None:
        """Store the arguments.

        Args:
            usable: (GPUs,) True for GPUs that the job may use.
            most: (machines,) the most tasks of each machine.
            stays: The GPU on which each task may stay; -1 for none. Empty if no task was anywhere.
            known: The machines of the job; of divisions with as few moves, that with the fewest others is found.
            order: The units in the order in which those that move get their places; empty for ascending.
        """
        self._limits, self._usable, self._most = limits, usable, most
        self._stays, self._known, self._order = stays, known, order

    def divisions(self, below: float) -> Divisions | None:
        """Return the division with the fewest moves for each limit on the seconds of a machine; None for too many.

        below: what limits are less than.
        """
        found = divide(self._problem, below=below)
        return found and Divisions(found.found, below)

    def least_moves(self) -> Division | None:
        """Return the division with the fewest moves, however slow it is; None if there is no room."""
        found = divide(self._problem, limits=[math.inf], most_steps=_MOST_STEPS)
        return found.found[0] if found and found.found else None

    def fastest(self) -> Divisions | None:
        """Return the division with the least limit alone; None if limits are too many, or there is no room."""
        found = divide(self._problem, fastest=True)
        return Divisions(found.found, math.inf) if found and found.found else None

    @cached_property
    def _problem(self) -> DivisionProblem:
        limits = self._limits
        count, size = limits.units.shape
        classes = limits.view.classes
        have_room = np.flatnonzero(self._most >= size)
        class_of = np.array(classes.class_of)
        _, firsts = np.unique(class_of[have_room], return_index=True)
        sets: list[Reals] = [np.empty(0)] * (int(class_of.max(initial=0)) + 1)
        for machine in have_room[firsts].tolist():
            sets[class_of[machine]] = limits.native.of_sets(machine)
        is_counted = np.array([not one.size for one in sets])[class_of]
        most = min(count, int(self._most[is_counted].max(initial=0)) // size)
        return DivisionProblem(
            limits.units,
            limits.view.cluster.topology.machine_of,
            self._usable,
            self._most,
            class_of,
            sets,
            limits.native.of_counts(most),
            self._stays,
            self._known,
            self._order,
        )
