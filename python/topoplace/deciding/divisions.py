"""Divisions of a gang among machines: what one machine has of it tells how fast it can be at the most.

Rings leave a machine by the adapters of its tasks, and pass the links between them (`bounds.MachineLimits`). So for
each such limit, the division in which no machine is slower and the most tasks stay where they were is found, over all
divisions (`gang_divisions.hpp`). It is a candidate, and no placement in which more tasks stay is within the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _core
from topoplace.kernels.divisions import Division

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from topoplace.deciding.bounds import MachineLimits

    Ints = NDArray[np.int64]


_MOST_STEPS: Final = 100_000_000
"""Limit on units x options of machines x limits on seconds."""
_MOST_STEPS_OF_ONE: Final = 1_000_000_000
"""The same for a division that must be found: about a second of work."""


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
        found = self._divided((), below, _MOST_STEPS)
        return None if found is None else Divisions(found, below)

    def least_moves(self) -> Division | None:
        """Return the division with the fewest moves, however slow it is; None if there is no room."""
        found = self._divided((math.inf,), math.inf, _MOST_STEPS_OF_ONE)
        return found[0] if found else None

    def _divided(self, seconds: Sequence[float], below: float, most_steps: int) -> list[Division] | None:
        known = np.zeros(len(self._most), np.uint8)
        known[list(self._known)] = 1
        stays, order = np.array(self._stays, np.int32), np.array(self._order, np.int32)
        found, too_many, _, _ = _core.divide_gang(
            self._limits.native,
            (self._limits.units, stays, order),
            self._usable.view(np.uint8),
            self._most.astype(np.int32),
            known,
            np.array(seconds, np.float64),
            below,
            most_steps,
        )
        divisions = [Division(moves, limit, gpus if gpus.size else None) for moves, limit, gpus in found]
        return None if too_many else divisions
