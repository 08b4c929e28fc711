"""The cost of a place to a job: equations 10 to 13 of the thesis, for arrays of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks
from topoplace.engine.free_resources import Ints
from topoplace.policies.drmaestro.network import NetworkLoad, Reals

if TYPE_CHECKING:
    from topoplace.jobs.network_profile import NetworkProfile

SCALE: Final = 1 << 20
"""A cost of 1.0 in the units of the kernel, which counts in whole numbers; costs are rounded to the nearest."""
LOCAL: Final = 1.0
"""P of eq. 12 where a job finds its GPUs on its own machine or in its pool."""
REMOTE: Final = 2.0
"""P where it does not: the thesis' preference for locality, which it gives no number."""
WAITING: Final = 1000.0
"""P of eq. 13: large enough that no job waits while there is a place for it."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The weights of the costs of DRMaestro.

    goal: the promised completion time of a job, as a multiple of its time on an idle network (its SLO, tau).
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
        """Return eq. 11 for an expected completion time of `slowdown` times that on an idle network."""
        utility = 1 - slowdown / self.goal
        late = utility * (10 - self.importance) / 9
        return np.where(slowdown <= self.goal, utility, late)

    def place(self, slowdown: Reals, preference: Reals | float) -> Ints:
        """Return eq. 12, rounded to the units of a phase."""
        return units((1 - self.utility(slowdown)) * preference)

    def wait(self, seconds: Reals) -> Ints:
        """Return eq. 13 for jobs by waiting time; of equal ones the first costs the most, so that it goes first."""
        alone = (1 - self.utility(np.ones(1))) * WAITING
        order = np.arange(len(seconds))[::-1]
        return units(alone + self.impatience * np.minimum(seconds, 1e6)) + order


@dataclass(frozen=True, slots=True)
class Prices:
    """Costs of places under the load of a network."""

    costs: Costs
    network: NetworkLoad

    def local(self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None)) -> Ints:
        """Return the cost of a place on these machines (default: all) for jobs with local GPUs."""
        return self.costs.place(self.network.slowdown(profile, machines, remote=False), LOCAL)

    def remote(self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None)) -> Ints:
        """Return the cost of a place on these machines (default: all) for jobs with remote GPUs."""
        return self.costs.place(self.network.slowdown(profile, machines, remote=True), REMOTE)

    def shared(self, profile: NetworkProfile, *, remote: bool) -> int:
        """Return the extra cost when a second job of this kind shares the network."""
        mutual = 2 * profile.traffic(remote=remote) * profile.sensitivity(remote=remote)
        return int(units(np.array([mutual / self.costs.goal * (REMOTE if remote else LOCAL)]))[0])


def units(cost: Reals) -> Ints:
    """Return costs in the units of the kernel."""
    return np.rint(cost * SCALE).astype(np.int64)


def sizes(amounts: Ints, largest: Ints) -> Reals:
    """Return eq. 10: each row of resources as one number, with every resource relative to the largest machine's."""
    relative: Reals = amounts / np.maximum(largest, 1)
    return np.asarray(relative.sum(axis=-1))
