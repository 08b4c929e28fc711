"""The costs of placing a job or letting it wait (equations 10 to 13 of the thesis), computed on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks
from topoplace.policies.drmaestro.free_resources import Ints
from topoplace.policies.drmaestro.network import NetworkLoad, Reals

if TYPE_CHECKING:
    from topoplace.jobs.network_profile import NetworkProfile

SCALE: Final = 1 << 20
"""The integer that represents a cost of 1.0 in the flow kernel; costs are rounded to the nearest 1 / SCALE."""
LOCAL: Final = 1.0
"""The preference factor P of eq. 12 for GPUs on the process's own machine or in its pool."""
REMOTE: Final = 2.0
"""The preference factor P of eq. 12 for remote GPUs; the thesis gives no value for it."""
WAITING: Final = 1000.0
"""The preference factor P of eq. 13 for waiting: so large that no job waits if it can be placed."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The parameters of DRMaestro's cost functions.

    goal: promised completion time of a job, as a multiple of its run time on an idle network (the SLO tau).
    importance: weight z of eq. 11 from 1 (missing the goal costs most) to 10 (it costs nothing). impatience: cost added
    per second that a job has waited (W of eq. 13; the thesis counts scheduling rounds instead of seconds).
    Raises ValueError for a goal below 1, or for an importance or impatience out of range.
    """

    goal: float = 1.05
    importance: float = 1.0
    impatience: float = 1.0

    def __post_init__(self) -> None:
        if _checks.positive(self.goal, "goal", ValueError) < 1:
            raise ValueError(f"goal = {self.goal} is less than 1: shorter than the job takes alone")
        _checks.real(self.importance, "importance", ValueError, low=1.0, high=10.0)
        _checks.real(self.impatience, "impatience", ValueError, high=1e6)

    def utility(self, slowdown: Reals) -> Reals:
        """Return the utility of each expected slowdown (eq. 11); larger is better, at most 0 if the goal is missed.

        slowdown: expected completion times relative to those on an idle network.
        """
        utility = 1 - slowdown / self.goal
        late = utility * (10 - self.importance) / 9
        return np.where(slowdown <= self.goal, utility, late)

    def scores(self, load: float, slowdown: float) -> dict[str, float]:
        """Return the scores of a placement whose network has this load and slows the job down by this factor."""
        utility = float(self.utility(np.array([slowdown]))[0])
        return {"network_load": load, "network_slowdown": slowdown, "goal_utility": utility}

    def place(self, slowdown: Reals, preference: Reals | float) -> Ints:
        """Return the cost of placing a job with this expected slowdown (eq. 12), in units of 1 / SCALE.

        preference: `LOCAL` or `REMOTE`, or a factor per element.
        """
        return units((1 - self.utility(slowdown)) * preference)

    def wait(self, seconds: Reals) -> Ints:
        """Return the cost of letting each job wait on (eq. 13), in units of 1 / SCALE.

        seconds: waiting times so far; beyond a million the cost stays the same. Among equal ones, the first job costs
        slightly more, so it is placed first.
        """
        alone = (1 - self.utility(np.ones(1))) * WAITING
        order = np.arange(len(seconds))[::-1]
        return units(alone + self.impatience * np.minimum(seconds, 1e6)) + order


@dataclass(frozen=True, slots=True)
class Prices:
    """The costs of placing jobs on machines, given the current load of their networks."""

    costs: Costs
    network: NetworkLoad

    def local(self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None)) -> Ints:
        """Return the cost of a job with local GPUs on each of these machines (default: all), in units of 1 / SCALE."""
        return self.costs.place(self.network.slowdown(profile, machines, remote=False), LOCAL)

    def remote(self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None)) -> Ints:
        """Return the cost of a job on each of these machines (default: all) with remote GPUs, in 1 / SCALE."""
        return self.costs.place(self.network.slowdown(profile, machines, remote=True), REMOTE)

    def shared(self, profile: NetworkProfile, *, remote: bool) -> int:
        """Return the extra cost if two jobs with this profile share a network, in units of 1 / SCALE.

        It includes the slowdown of both jobs. remote: True if they use remote GPUs.
        """
        mutual = 2 * profile.traffic(remote=remote) * profile.sensitivity(remote=remote)
        return int(units(np.array([mutual / self.costs.goal * (REMOTE if remote else LOCAL)]))[0])


def units(cost: Reals) -> Ints:
    """Convert costs to integers in units of 1 / SCALE, as the flow kernel needs."""
    return np.rint(cost * SCALE).astype(np.int64)


def sizes(amounts: Ints, largest: Ints) -> Reals:
    """Return one number per row of `amounts` (eq. 10): the sum over resources of amount / largest amount."""
    relative: Reals = amounts / np.maximum(largest, 1)
    return np.asarray(relative.sum(axis=-1))
