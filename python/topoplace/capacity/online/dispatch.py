"""Which local controller an arriving job is sent to.

The paper sends jobs round in turn, and leaves other rules to future work; three of them are here. A job's size is
its `gpu_hours`.
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
    """What a rule sees of a controller: how many nodes it has, and the jobs in its system with the fraction left."""

    num_nodes: int
    jobs: tuple[tuple[CapacityJob, float], ...]

    def work(self, due_by: float = float("inf")) -> float:
        """GPU hours per node left of the jobs due by that time."""
        return sum(left * job.gpu_hours for job, left in self.jobs if job.due <= due_by) / self.num_nodes


@runtime_checkable
class DispatchRule(Protocol):
    """Sends jobs to controllers as they arrive."""

    @property
    def name(self) -> str:
        """How tables call it."""
        ...

    @property
    def needs_state(self) -> bool:
        """Whether it looks at the jobs of controllers; they are shown without any if not, and run faster."""
        ...

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """The place of the controller for the last of the jobs that `arrived` so far."""
        ...


@dataclass(frozen=True, slots=True)
class RoundRobin:
    """One after the other (the paper's)."""

    name: str = "round-robin"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """See `DispatchRule`."""
        return (len(arrived) - 1) % len(controllers)


@dataclass(frozen=True, slots=True)
class LeastLoaded:
    """Where the least work per node is left."""

    name: str = "least-loaded"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """See `DispatchRule`."""
        del arrived
        work = [view.work() for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class DueDateAware:
    """Where the least work per node is due before the job is; of equal ones where the least is left at all."""

    name: str = "due-date-aware"
    needs_state: bool = True

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """See `DispatchRule`."""
        due = arrived[-1].due
        work = [(view.work(due), view.work()) for view in controllers]
        return work.index(min(work))


@dataclass(frozen=True, slots=True)
class SizeAware:
    """Jobs of like size together, so that short ones do not wait for long ones (size interval task assignment).

    The sizes seen so far are cut into intervals with as much work in each as its controller has nodes.
    """

    name: str = "size-aware"
    needs_state: bool = False

    def choose(self, arrived: Sequence[CapacityJob], controllers: Sequence[ControllerView]) -> int:
        """See `DispatchRule`."""
        own = arrived[-1].gpu_hours
        sizes = [job.gpu_hours for job in arrived]
        below = sum(other for other in sizes if other < own) + sizes.count(own) * own / 2
        shares = list(accumulate(view.num_nodes for view in controllers))
        return min(bisect.bisect_right(shares, below / sum(sizes) * shares[-1]), len(shares) - 1)


RULES: tuple[DispatchRule, ...] = (RoundRobin(), LeastLoaded(), DueDateAware(), SizeAware())
