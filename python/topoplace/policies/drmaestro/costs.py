"""What a place costs a job: equations 10 to 13 of the thesis, for numbers and for arrays of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.policies.drmaestro.phase import SCALE, Ints

Reals = NDArray[np.float64]
LOCAL: Final = 1.0
"""P of eq. 12 where a job finds its GPUs on its own machine or in its pool."""
REMOTE: Final = 2.0
"""P where it does not: the thesis' preference for locality, which it gives no number."""
WAITING: Final = 1000.0
"""P of eq. 13: so much that no job waits while there is a place for it."""


@dataclass(frozen=True, slots=True)
class Costs:
    """goal: the completion time a job is promised, as a multiple of its time on an idle network (its SLO, tau).
    importance: z of eq. 11, 1 (a missed goal costs most) to 10 (nothing). impatience: what a second of waiting adds to
    the cost of waiting on (W of eq. 13, which is a counter of scheduling rounds there)."""

    goal: float = 1.05
    importance: float = 1.0
    impatience: float = 1.0

    def __post_init__(self) -> None:
        if _checks.positive(self.goal, "goal", ValueError) < 1:
            raise ValueError(f"goal = {self.goal} is less than 1: shorter than the job takes alone")
        _checks.real(self.importance, "importance", ValueError, low=1.0, high=10.0)
        _checks.real(self.impatience, "impatience", ValueError, high=1e6)

    def utility(self, slowdown: Reals) -> Reals:
        """Eq. 11 for an expected completion time of `slowdown` times that on an idle network."""
        utility = 1 - slowdown / self.goal
        late = utility * (10 - self.importance) / 9
        return np.where(slowdown <= self.goal, utility, late)

    def place(self, slowdown: Reals, preference: Reals | float) -> Ints:
        """Eq. 12, rounded to the units of a phase."""
        return units((1 - self.utility(slowdown)) * preference)

    def wait(self, seconds: Reals) -> Ints:
        """Eq. 13 for jobs that have waited so long; of equal ones the first costs the most, so that it goes first."""
        alone = (1 - self.utility(np.ones(1))) * WAITING
        order = np.arange(len(seconds))[::-1]
        return units(alone + self.impatience * np.minimum(seconds, 1e6)) + order


def units(cost: Reals) -> Ints:
    """Costs as the kernel counts them."""
    return np.rint(cost * SCALE).astype(np.int64)


def sizes(amounts: NDArray[np.int64], largest: NDArray[np.int64]) -> Reals:
    """Eq. 10: rows of resources as one number each, every resource relative to the most that one machine has."""
    shares: Reals = amounts / np.maximum(largest, 1)
    return np.asarray(shares.sum(axis=-1))
