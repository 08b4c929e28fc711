"""Dispatch rules, which choose the controller for an arriving job.

The paper sends jobs to controllers in turn and leaves other rules to future work; three other rules are here. A job's
size is its `gpu_hours`.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol, runtime_checkable

from topoplace_lab.capacity.problem.job import CapacityJob


@dataclass(frozen=True, slots=True)
class ControllerView:
    """A controller as dispatch rules see it.

    Args:
        jobs: (job, fraction of its work left) of each unfinished job of the controller; empty for rules whose
            `needs_state` is False.
    """

    num_nodes: int
    jobs: tuple[tuple[CapacityJob, float], ...]

    def work(self, due_by: float = float("inf")) -> float:
        """Return the controller's remaining work in GPU hours per node, of its jobs due by `due_by` (hours)."""
        return sum(left * job.gpu_hours for job, left in self.jobs if job.due <= due_by) / self.num_nodes


@runtime_checkable
class DispatchRule(Protocol):
    """The interface of dispatch rules, which choose a controller for each job when it arrives."""

    @property
    def name(self) -> str:
        """Return the rule's name, as printed in tables."""
        ...

    @property
    def needs_state(self) -> bool:
        """Return True if the rule reads the controllers' jobs; else `ControllerView.jobs` is empty, which is faster."""
        ...

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller for the last job in `arrived`, which lists all jobs so far."""
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """The paper's dispatch rule, which sends jobs to the controllers in turn."""

    name: str = "round-robin"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the next controller in turn."""
        return (len(arrived) - 1) % len(controllers)


@dataclass(frozen=True, slots=True)
class LeastLoaded:
    """A dispatch rule that sends a job to the controller with the least remaining work per node."""

    name: str = "least-loaded"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller with the least remaining work per node."""
        del arrived
        work = [view.work() for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class DueDateAware:
    """A dispatch rule that sends a job to the controller with the least work per node due by the job's due date.

    Ties go to the controller with the least remaining work per node, whenever due.
    """

    name: str = "due-date-aware"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller with the least work per node due by the last arrived job's due date."""
        due = arrived[-1].due
        work = [(view.work(due), view.work()) for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class SizeAware:
    """A dispatch rule that sends jobs of similar size to one controller, to keep short jobs from waiting for long ones.

    This is size interval task assignment (SITA). The range of job sizes seen so far is cut into one interval per
    controller. The total work of an interval's jobs is proportional to the controller's number of nodes.
    """

    name: str = "size-aware"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """Return the index of the controller whose interval of job sizes contains the last arrived job's size."""
        own = arrived[-1].gpu_hours
        sizes = [job.gpu_hours for job in arrived]
        below = sum(other for other in sizes if other < own) + sizes.count(own) * own / 2
        shares = list(accumulate(view.num_nodes for view in controllers))
        return min(bisect.bisect_right(shares, below / sum(sizes) * shares[-1]), len(shares) - 1)


RULES: tuple[DispatchRule, ...] = (RoundRobin(), LeastLoaded(), DueDateAware(), SizeAware())
