"""The problem of one decision: which VM types to rent, and on how many GPUs of which node each job runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.capacity.problem.catalogue import Catalogue
from topoplace.capacity.problem.job import MAX_HOURS, CapacityJob, checked_hours, same_shape

Floats = NDArray[np.float64]
MAX_NODES = 1 << 16


@dataclass(frozen=True, eq=False)
class Problem:
    """The input of a local controller (Filippini et al., Table I), with jobs in order of submission.

    due: (jobs,) hours from now, negative if the due date has passed. weight: (jobs,) ω, $ per hour of tardiness.
    hours: (jobs, types, max GPUs) remaining execution time, as in `CapacityJob`. interval: H, most hours until the next
    decision. postponement: factor ρ. idle: μ, $ per rented but unused GPU.

    The objective is (P1a) less a constant. The delay that a job already has costs the same in every plan, so it is not
    counted. As printed, (P1h) charges ω times this delay to a waiting job, and (P1i) charges ρ ω times it to a running
    one. The text, however, states that a running job has no worst-case tardiness. So both pay 1 + ρ times the delay,
    and a past due date is equivalent to one now.
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
        """Check and copy the arguments; ValueError names argument, index and value of an entry out of range."""
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
        """Build the problem of `jobs` at time `now` (hours). left: (jobs,) fraction of each still to do; 1 if None."""
        jobs = _checks.sequence(jobs, "jobs", ValueError)
        _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
        same_shape(jobs, catalogue)
        now = _checks.real(now, "now", ValueError)
        fraction = np.ones(len(jobs)) if left is None else _column(left, "left", 0.0, 1.0)
        if len(fraction) != len(jobs):
            raise ValueError(f"left has {len(fraction)} entries for {len(jobs)} jobs")
        for i in np.flatnonzero(fraction == 0)[:1]:
            raise ValueError(f"left[{i}] = 0: the job has ended")
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
        """Return the number of nodes that (P1n) requires a plan to rent."""
        return min(self.num_nodes, self.num_jobs)

    @cached_property
    def num_gpus(self) -> NDArray[np.int32]:
        """Return G_v (types,), the number of GPUs of each VM type."""
        return _gpus(self.catalogue)

    @cached_property
    def price(self) -> Floats:
        """Return c_v (types,), the price of each VM type in $ per hour."""
        return np.array([vm_type.cost_per_hour for vm_type in self.catalogue])

    @cached_property
    def tardiness(self) -> Floats:
        """Return ω τ (jobs, types, max GPUs), the cost of tardiness in $; infinite if the job cannot run there."""
        return self._weighted(np.maximum(self.hours - np.maximum(self.due, 0.0)[:, None, None], 0.0))

    @cached_property
    def deployment(self) -> Floats:
        """Return π = t c (jobs, types, max GPUs), the price in $ of the node until the job ends.

        It is infinite if the job cannot run there.
        """
        runs = np.isfinite(self.hours)
        return np.where(runs, np.where(runs, self.hours, 0.0) * self.price[:, None], math.inf)

    @cached_property
    def waiting(self) -> Floats:
        """Return ρ ω max(0, H + M - d) (jobs,), the cost in $ of postponing a job with longest time M (P1i)."""
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
    """Refuse times on more GPUs than a type has."""
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
        raise ValueError(f"{name}[{i}] = {column[i]:g} is not in {low:g}..{high:g}")
    column.flags.writeable = False
    return column
