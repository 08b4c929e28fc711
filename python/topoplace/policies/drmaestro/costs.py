"""The costs of placing a job or letting it wait (equations 10 to 13 of the thesis), computed on numpy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

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
FAR_APART: Final = 1.5
"""P for local GPUs that are as far apart as possible, if their topology counts; from `LOCAL` to this, P grows with the
communication cost.
"""
REMOTE: Final = 2.0
"""The preference factor P of eq. 12 for remote GPUs; the thesis gives no value for it."""
WAITING: Final = 1000.0
"""The preference factor P of eq. 13 for waiting: so large that no job waits if it can be placed."""


@dataclass(frozen=True, slots=True)
class Costs:
    """The parameters of DRMaestro's cost functions.

    goal: promised completion time of a job, as a multiple of its run time on an idle network (the SLO tau). importance:
    weight z of eq. 11 from 1 (missing the goal costs most) to 10 (it costs nothing). impatience: cost added per second,
    or per round, that a job has waited (W of eq. 13). waiting: the unit of W. The thesis counts "rounds", the plans
    that left a job waiting; "seconds" do not depend on how often the policy plans.

    load: how network load is counted. With "capacity", loads are fractions of the interface's capacity; a place costs
    the job's own slowdown and the slowdown it causes there. With "fullest", a place costs the job's sensitivity times
    its load divided by that of the fullest machine (section 5.6.5.1).

    Raise ValueError for a goal below 1, or for another argument out of range.
    """

    goal: float = 1.05
    importance: float = 1.0
    impatience: float = 1.0
    waiting: Literal["seconds", "rounds"] = "seconds"
    load: Literal["capacity", "fullest"] = "capacity"

    def __post_init__(self) -> None:
        if _checks.positive(self.goal, "goal", ValueError) < 1:
            raise ValueError(f"goal = {self.goal} is less than 1: shorter than the job takes alone")
        _checks.real(self.importance, "importance", ValueError, low=1.0, high=10.0)
        _checks.real(self.impatience, "impatience", ValueError, high=1e6)
        _checks.one_of(self.waiting, "waiting", ("seconds", "rounds"), ValueError)
        _checks.one_of(self.load, "load", ("capacity", "fullest"), ValueError)

    def utility(self, slowdown: Reals) -> Reals:
        """Return the utility of each expected slowdown (eq. 11); larger is better, at most 0 if the goal is missed.

        slowdown: expected completion times relative to those on an idle network.
        """
        utility = 1 - slowdown / self.goal
        late = utility * (10 - self.importance) / 9
        return np.where(slowdown <= self.goal, utility, late)

    def scores(self, load: float, slowdown: float) -> dict[str, float]:
        """Return the scores of a placement whose network has this load and slows the job down by this factor."""
        utility = float(self.utility(np.array(slowdown)))
        return {"network_load": load, "network_slowdown": slowdown, "goal_utility": utility}

    def place(self, slowdown: Reals, preference: Reals | float) -> Ints:
        """Return the cost of placing a job with this expected slowdown (eq. 12), in units of 1 / SCALE.

        preference: `LOCAL` or `REMOTE`, or a factor per element.
        """
        return units((1 - self.utility(slowdown)) * preference)

    def wait(self, waited: Reals) -> Ints:
        """Return the cost of letting each job wait on (eq. 13), in units of 1 / SCALE.

        waited: seconds, or rounds, that each has waited so far; the cost does not grow beyond a million. Of equal jobs,
        the first costs slightly more, so it is placed first.
        """
        alone = (1 - self.utility(np.ones(()))) * WAITING
        order = np.arange(len(waited))[::-1]
        return units(alone + self.impatience * np.minimum(waited, 1e6)) + order


@dataclass(frozen=True, slots=True)
class Prices:
    """The costs of placing jobs on machines, given the current load of their networks."""

    costs: Costs
    network: NetworkLoad

    def local(
        self,
        profile: NetworkProfile,
        machines: Sequence[int] | slice = slice(None),
        apart: Reals | float = 0.0,
    ) -> Ints:
        """Return the cost of a job with local GPUs on each of these machines (default: all), in units of 1 / SCALE.

        apart: how far the job's GPUs are from each other, from 0 (near) to 1.
        """
        preference = LOCAL + apart * (FAR_APART - LOCAL)
        return self.costs.place(self.slowdown(profile, machines, remote=False), preference)

    def remote(self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None)) -> Ints:
        """Return the cost of a job on each of these machines (default: all) with remote GPUs, in 1 / SCALE."""
        return self.costs.place(self.slowdown(profile, machines, remote=True), REMOTE)

    def slowdown(
        self, profile: NetworkProfile, machines: Sequence[int] | slice = slice(None), *, remote: bool
    ) -> Reals:
        """Return the slowdown by which a job on each of these machines (default: all) is priced; 1 means none."""
        if self.costs.load == "fullest":
            return self.network.relative_slowdown(profile, machines, remote=remote)
        return self.network.slowdown(profile, machines, remote=remote)

    def shared(self, profile: NetworkProfile, *, remote: bool) -> int:
        """Return the extra cost if two jobs with this profile share a network, in units of 1 / SCALE.

        The cost includes the slowdown of both jobs; it is 0 if only the load of running jobs counts. remote: True if
        the jobs use remote GPUs.
        """
        if self.costs.load == "fullest":
            return 0
        mutual = 2 * profile.traffic(remote=remote) * profile.sensitivity(remote=remote)
        return int(units(np.array(mutual / self.costs.goal * (REMOTE if remote else LOCAL))))


def units(cost: Reals) -> Ints:
    """Convert costs to integers in units of 1 / SCALE, as the flow kernel needs."""
    return np.rint(cost * SCALE).astype(np.int64)


def sizes(amounts: Ints, largest: Ints) -> Reals:
    """Return one number per row of `amounts` (eq. 10): the sum over resources of amount / largest amount."""
    relative: Reals = amounts / np.maximum(largest, 1)
    return np.asarray(relative.sum(axis=-1))
