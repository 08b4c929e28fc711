"""Rules that choose the local controller for an arriving job.

The paper sends jobs to controllers in turn and leaves other rules to future work. Three other rules are here. A job's
size is its `gpu_hours`.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

from topoplace.capacity.problem.job import CapacityJob


@dataclass(frozen=True, slots=True)
class ControllerView:
    """A controller as dispatch rules see it: number of nodes, and (job, fraction left) of each job in its system."""

    num_nodes: int
    jobs: tuple[tuple[CapacityJob, float], ...]

    def work(self, due_by: float = float("inf")) -> float:
        """Return the GPU hours per node that remain of the jobs due by `due_by` (hours)."""
        return sum(left * job.gpu_hours for job, left in self.jobs if job.due <= due_by) / self.num_nodes


@runtime_checkable
class DispatchRule(Protocol):
    """A rule that sends each job to a controller when it arrives."""

    @property
    def name(self) -> str:
        """Name the rule in tables."""
        ...

    @property
    def needs_state(self) -> bool:
        """Return True if the rule reads the jobs of controllers. If not, views contain no jobs, which is faster."""
        ...

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller for the last job in `arrived`, which lists all jobs so far."""
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """Send jobs to the controllers in turn (the paper's rule)."""

    name: str = "round-robin"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the next controller in turn."""
        return (len(arrived) - 1) % len(controllers)


@dataclass(frozen=True, slots=True)
class LeastLoaded:
    """Send a job to the controller with the least work left per node."""

    name: str = "least-loaded"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller with the least work left per node."""
        del arrived
        work = [view.work() for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class DueDateAware:
    """Send a job to the controller with the least work per node due by the job's due date.

    Ties go to the controller with the least work left per node.
    """

    name: str = "due-date-aware"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller with the least work per node due by the last job's due date."""
        due = arrived[-1].due
        work = [(view.work(due), view.work()) for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class SizeAware:
    """Send jobs of similar size to one controller, so that short jobs do not wait for long ones.

    This is size interval task assignment (SITA). The sizes seen so far are cut into one interval per controller, with
    work in proportion to its number of nodes.
    """

    name: str = "size-aware"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller whose interval of sizes contains the last job's size."""
        own = arrived[-1].gpu_hours
        sizes = [job.gpu_hours for job in arrived]
        below = sum(other for other in sizes if other < own) + sizes.count(own) * own / 2
        shares = list(accumulate(view.num_nodes for view in controllers))
        return min(bisect.bisect_right(shares, below / sum(sizes) * shares[-1]), len(shares) - 1)


RULES: tuple[DispatchRule, ...] = (RoundRobin(), LeastLoaded(), DueDateAware(), SizeAware())
