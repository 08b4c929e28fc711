"""Jobs with due dates, and how long each takes on so many GPUs of each type of virtual machine."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.capacity.problem.catalogue import Catalogue
from topoplace.text_formats.csv_rows import number, records

MAX_HOURS = 1e9


@dataclass(frozen=True, eq=False)
class CapacityJob:
    """One job; clock times and durations in hours.

    hours: (types, most GPUs) float64, the execution time t_jvg on type v with g + 1 GPUs; infinite where the job
    cannot run, which includes more GPUs than the type has. weight: of tardiness, ω in $ per hour past `due`.
    """

    job_id: str
    due: float
    weight: float
    hours: NDArray[np.float64]
    submit: float = 0.0

    def __init__(self, job_id: str, due: float, weight: float, hours: ArrayLike, submit: float = 0.0) -> None:
        """ValueError naming the entry for a time that is NaN, 0 or less, and for a job that can run nowhere."""
        what = f"job {_checks.shown(_checks.text(job_id, 'job_id', ValueError))}"
        object.__setattr__(self, "job_id", job_id)
        for name, value, low in (("due", due, -MAX_HOURS), ("weight", weight, 0.0), ("submit", submit, 0.0)):
            checked = _checks.real(value, f"{what}: {name}", ValueError, low=low, high=MAX_HOURS)
            object.__setattr__(self, name, checked)
        object.__setattr__(self, "hours", checked_hours(hours, f"{what}: hours", dimensions=2))

    @cached_property
    def gpu_hours(self) -> float:
        """The fewest in which it can be done, on any type with any number of GPUs."""
        gpus = np.arange(1.0, self.hours.shape[1] + 1)
        return float(np.min(self.hours * gpus))


def checked_hours(hours: ArrayLike, what: str, *, dimensions: int) -> NDArray[np.float64]:
    """A read-only copy of execution times; every job, the last two axes, must be able to run somewhere."""
    times = _checks.numbers_of(hours, what, ValueError)
    if times.ndim != dimensions or 0 in times.shape[-2:]:
        raise ValueError(
            f"{what} has shape {times.shape}; {dimensions} axes, the last types and GPUs, are needed"
        )
    for place in np.argwhere(~((times > 0) & ((times <= MAX_HOURS) | (times == math.inf))))[:1].tolist():
        value = times[tuple(place)]
        raise ValueError(f"{what}{place} = {value:g} is not a time above 0 and up to {MAX_HOURS:g} h")
    for place in np.argwhere(~np.isfinite(times).any(axis=(-2, -1)))[:1].tolist():
        raise ValueError(f"{what}{place or ''}: it can run on no type with any number of GPUs")
    times.flags.writeable = False
    return times


def time_table(
    times: Mapping[tuple[str, int], float], catalogue: Catalogue, what: str = "times"
) -> NDArray[np.float64]:
    """`CapacityJob.hours` from hours by (name of the type, GPUs); ValueError naming the key that is not possible."""
    _checks.instance(times, Mapping, what, ValueError)
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    table = np.full((len(catalogue), catalogue.max_gpus), math.inf)
    for key, hours in times.items():
        pair = _checks.sequence(key, f"{what}: key", ValueError)
        if len(pair) != 2:
            raise ValueError(f"{what}: key {_checks.shown(key)} is not (name of a type, GPUs)")
        name, gpus = pair
        row = catalogue.index_of(name)
        entry = f"{what}[{name!r}, {gpus!r}]"
        column = _checks.integer(gpus, f"{entry}: GPUs", ValueError, low=1, high=catalogue[row].num_gpus) - 1
        table[row, column] = _checks.positive(hours, entry, ValueError, high=MAX_HOURS)
    return table


def jobs_from_csv(jobs: str, times: str, catalogue: Catalogue) -> tuple[CapacityJob, ...]:
    """Jobs in the order of their lines, from two CSV texts with headers.

    jobs: job_id, due, weight, and optionally submit (hours; $/h). times: job_id, vm_type, gpus, hours, a line for each
    way in which a job can run. ValueError naming the line for a time that is no number above 0, a type that is not in
    the catalogue or has fewer GPUs, a job that is not in the other text, and whatever is there twice.
    """
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    with _errors_of("times"):
        tables = _tables(times, catalogue)
    with _errors_of("jobs"):
        read = tuple(_jobs(jobs, tables))
    for job_id, (line, _) in tables.items():
        raise ValueError(f"times, line {line}: job {_checks.shown(job_id)} is none of the jobs")
    return read


Tables = dict[str, tuple[int, NDArray[np.float64]]]
"""By job, the first line that tells of it, and its table."""


@contextmanager
def _errors_of(text: str) -> Generator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{text}, {error}") from None


def _jobs(text: str, tables: Tables) -> Iterator[CapacityJob]:
    """Each with its table, which is taken out of `tables`."""
    line_of: dict[str, int] = {}
    for line, row in records(text, ("job_id", "due", "weight"), ("submit",)):
        job_id = row["job_id"].strip()
        if line_of.setdefault(job_id, line) != line:
            raise ValueError(f"line {line}: job {_checks.shown(job_id)} is in line {line_of[job_id]}, too")
        if job_id not in tables:
            raise ValueError(f"line {line}: job {_checks.shown(job_id)} has no times")
        due = number(row["due"], float, line, "due", low=-MAX_HOURS, high=MAX_HOURS)
        weight = number(row["weight"], float, line, "weight", high=MAX_HOURS)
        submit = number(row.get("submit", "0"), float, line, "submit", high=MAX_HOURS)
        yield CapacityJob(job_id, due, weight, tables.pop(job_id)[1], submit)


def _tables(text: str, catalogue: Catalogue) -> Tables:
    tables: Tables = {}
    for line, row in records(text, ("job_id", "vm_type", "gpus", "hours")):
        try:
            vm_type = catalogue.index_of(row["vm_type"].strip())
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        gpus = int(number(row["gpus"], int, line, "gpus", low=1, high=catalogue[vm_type].num_gpus))
        empty = np.full((len(catalogue), catalogue.max_gpus), math.inf)
        if not (job_id := row["job_id"].strip()):
            raise ValueError(f"line {line}: job_id is empty")
        table = tables.setdefault(job_id, (line, empty))[1]
        if table[vm_type, gpus - 1] != math.inf:
            raise ValueError(f"line {line}: the same job, type and number of GPUs as before")
        hours = number(row["hours"], float, line, "hours", high=MAX_HOURS)
        table[vm_type, gpus - 1] = _checks.positive(hours, f"line {line}: hours", ValueError)
    return tables


def same_shape(jobs: Sequence[CapacityJob], catalogue: Catalogue) -> None:
    """ValueError naming the first job whose table does not fit the catalogue."""
    shape = (len(catalogue), catalogue.max_gpus)
    for i, job in enumerate(jobs):
        _checks.instance(job, CapacityJob, f"jobs[{i}]", ValueError)
        if job.hours.shape != shape:
            raise ValueError(f"jobs[{i}]: hours has shape {job.hours.shape}, the catalogue needs {shape}")
