"""The planning problem of one decision: which VMs to rent, and on how many GPUs of which VM each job runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace_lab.capacity.problem.catalogue import Catalogue
from topoplace_lab.capacity.problem.job import MAX_HOURS, CapacityJob, checked_hours, same_shape

Floats = NDArray[np.float64]
MAX_NODES = 1 << 16


@dataclass(frozen=True, eq=False)
class Problem:
    """The input of one planning decision: VM types, jobs, and a limit on the number of rented nodes (VMs).

    Jobs are in order of submission. Filippini et al. (Table I) call `weight`, `interval`, `postponement` and `idle` ω,
    H, ρ and μ.

    The cost of a plan is the paper's objective (P1a) without a constant. Tardiness that a job already has costs the
    same in every plan, so it is not counted; a past due date is equivalent to one now. The printed paper charges this
    tardiness to waiting jobs too (P1h) and, times ρ, to running jobs (P1i): every job pays alike. Its text, however,
    states that a running job has no worst-case tardiness.

    Args:
        due: (jobs,) hours from now, negative if the due date has passed.
        weight: (jobs,) cost in $ per hour of tardiness.
        hours: (jobs, types, max GPUs) remaining run time, as in `CapacityJob`.
        interval: Longest time in hours until the next decision.
        postponement: Factor on the worst-case tardiness cost of a waiting job.
        idle: $ per rented but unused GPU, once a plan.
    """

    catalogue: Catalogue
    num_nodes: int
    due: Floats
    weight: Floats
    hours: Floats
    interval: float = 1.0
    postponement: float = 100.0
    idle: float = 1.0

    def __init__(
        self,
        catalogue: Catalogue,
        num_nodes: int,
        due: ArrayLike,
        weight: ArrayLike,
        hours: ArrayLike,
        interval: float = 1.0,
        postponement: float = 100.0,
        idle: float = 1.0,
    ) -> None:
        """Check and copy the arguments; raise ValueError that names a wrong shape or the first entry out of range."""
        _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
        columns = {
            "due": _column(due, "due", -MAX_HOURS),
            "weight": _column(weight, "weight", 0.0),
            "hours": checked_hours(hours, "hours", dimensions=3),
        }
        count = len(columns["due"])
        shapes = {
            "due": (count,),
            "weight": (count,),
            "hours": (count, len(catalogue), catalogue.max_gpus),
        }
        for name, column in columns.items():
            if column.shape != shapes[name]:
                raise ValueError(f"{name} has shape {column.shape}: must be {shapes[name]}")
        _check_gpus(columns["hours"], catalogue)
        checked = {
            "num_nodes": _checks.integer(num_nodes, "num_nodes", ValueError, low=1, high=MAX_NODES),
            "interval": _checks.real(interval, "interval", ValueError, high=MAX_HOURS),
            "postponement": _checks.real(postponement, "postponement", ValueError, high=MAX_HOURS),
            "idle": _checks.real(idle, "idle", ValueError, high=MAX_HOURS),
        }
        for name, value in {"catalogue": catalogue, **columns, **checked}.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(
        cls,
        jobs: Sequence[CapacityJob],
        catalogue: Catalogue,
        num_nodes: int,
        now: float = 0.0,
        left: ArrayLike | None = None,
        *,
        interval: float = 1.0,
        postponement: float = 100.0,
        idle: float = 1.0,
    ) -> Problem:
        """Return the planning problem for `jobs` at time `now` (hours).

        Args:
            left: (jobs,) fraction of each job's work still to do, above 0; None means all of it.
            num_nodes: Limit on the number of rented nodes.
            interval: See `Problem`.
            postponement: See `Problem`.
            idle: See `Problem`.

        Raises:
            ValueError: For a job that does not fit the catalogue or is finished, or for an argument out of range.
        """
        jobs = _checks.sequence(jobs, "jobs", ValueError)
        _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
        same_shape(jobs, catalogue)
        now = _checks.real(now, "now", ValueError)
        fraction = np.ones(len(jobs)) if left is None else _column(left, "left", 0.0, 1.0)
        if len(fraction) != len(jobs):
            raise ValueError(f"left has {len(fraction)} entries for {len(jobs)} jobs")
        for i in np.flatnonzero(fraction == 0)[:1]:
            raise ValueError(f"left[{i}] = 0: the job is finished")
        shape = (len(jobs), len(catalogue), catalogue.max_gpus)
        hours = np.array([job.hours for job in jobs]).reshape(shape) * fraction[:, None, None]
        due = [max(job.due - now, -MAX_HOURS) for job in jobs]
        weight = [job.weight for job in jobs]
        return cls(catalogue, num_nodes, due, weight, hours, interval, postponement, idle)

    @property
    def num_jobs(self) -> int:
        """Return the number of jobs, running and waiting."""
        return len(self.due)

    @property
    def used_nodes(self) -> int:
        """Return the number of nodes that a plan has to rent by the paper's (P1n): one per job, up to `num_nodes`."""
        return min(self.num_nodes, self.num_jobs)

    @cached_property
    def num_gpus(self) -> NDArray[np.int32]:
        """Return the number of GPUs of each VM type, as an array (types,)."""
        return _gpus(self.catalogue)

    @cached_property
    def price(self) -> Floats:
        """Return the price of each VM type in $ per hour, as an array (types,)."""
        return np.array([vm_type.cost_per_hour for vm_type in self.catalogue])

    @cached_property
    def tardiness(self) -> Floats:
        """Return each job's tardiness cost in $ by VM type and number of GPUs minus 1, (jobs, types, max GPUs).

        It is the cost of ending after the due date if the job starts now, and infinite if the job cannot run there.
        """
        return self._weighted(np.maximum(self.hours - np.maximum(self.due, 0.0)[:, None, None], 0.0))

    @cached_property
    def deployment(self) -> Floats:
        """Return the price in $ of renting a node until a job ends, (jobs, types, max GPUs).

        It is the job's run time on a VM type and number of GPUs, times the type's price (π in the paper). It is
        infinite if the job cannot run there.
        """
        runs = np.isfinite(self.hours)
        return np.where(runs, np.where(runs, self.hours, 0.0) * self.price[:, None], math.inf)

    @cached_property
    def waiting(self) -> Floats:
        """Return the cost in $ of letting each job wait, (jobs,).

        It is the job's worst-case tardiness, times its `weight` and `postponement` (the paper's P1i). In the worst
        case, the job starts after `interval` hours on its slowest VM type and number of GPUs.
        """
        longest = np.where(np.isfinite(self.hours), self.hours, 0.0).max(axis=(1, 2), initial=0.0)
        late = np.maximum(self.interval + longest - np.maximum(self.due, 0.0), 0.0)
        cost: Floats = self.postponement * self.weight * late
        return cost

    def _weighted(self, hours: Floats) -> Floats:
        runs = np.isfinite(hours)
        return np.where(runs, np.where(runs, hours, 0.0) * self.weight[:, None, None], math.inf)


def _gpus(catalogue: Catalogue) -> NDArray[np.int32]:
    return np.array([vm_type.num_gpus for vm_type in catalogue], dtype=np.int32)


def _check_gpus(hours: Floats, catalogue: Catalogue) -> None:
    """Raise ValueError if `hours` has a finite run time on more GPUs than the VM type has."""
    for v, vm_type in enumerate(catalogue):
        beyond: NDArray[np.bool_] = np.isfinite(hours[:, v, vm_type.num_gpus :])
        for j, g in np.argwhere(beyond)[:1].tolist():
            gpus = vm_type.num_gpus + g + 1
            value = hours[j, v, gpus - 1]
            raise ValueError(
                f"hours[{j}, {v}, {gpus - 1}] = {value:g}: {vm_type.name} has fewer than {gpus} GPUs"
            )


def _column(values: ArrayLike, name: str, low: float, high: float = MAX_HOURS) -> Floats:
    column = _checks.numbers_of(values, name, ValueError)
    if column.ndim != 1:
        raise ValueError(f"{name} has shape {column.shape}: must have one value per job")
    for i in np.flatnonzero(~((column >= low) & (column <= high)))[:1]:
        raise ValueError(f"{name}[{i}] = {column[i]:g} is not in {_checks.bound(low)}..{_checks.bound(high)}")
    column.flags.writeable = False
    return column
