"""Jobs with due dates, and their run times by VM type and number of GPUs."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.text_formats.csv_rows import number, records
from topoplace_lab.capacity.problem.catalogue import Catalogue

MAX_HOURS = 1e9


@dataclass(frozen=True, eq=False)
class CapacityJob:
    """A job with a due date; all times are in hours.

    Args:
        hours: (types, max GPUs) float64 array of run times; entry [v, g] is for g + 1 GPUs of VM type v. It is infinite
            if the job cannot run there or the type has fewer GPUs.
        weight: Cost in $ per hour of ending after `due` (ω in the paper).
        submit: Submission time.
    """

    job_id: str
    due: float
    weight: float
    hours: NDArray[np.float64]
    submit: float = 0.0

    def __init__(self, job_id: str, due: float, weight: float, hours: ArrayLike, submit: float = 0.0) -> None:
        """Create a job; raise ValueError if an argument is out of range or the job can run nowhere.

        Entries of `hours` are above 0, `weight` and `submit` at least 0; no finite number is beyond 1e9 hours or $.
        """
        what = f"job {_checks.shown(_checks.text(job_id, 'job_id', ValueError))}"
        object.__setattr__(self, "job_id", job_id)
        for name, value, low in (("due", due, -MAX_HOURS), ("weight", weight, 0.0), ("submit", submit, 0.0)):
            checked = _checks.real(value, f"{what}: {name}", ValueError, low=low, high=MAX_HOURS)
            object.__setattr__(self, name, checked)
        object.__setattr__(self, "hours", checked_hours(hours, f"{what}: hours", dimensions=2))

    @cached_property
    def gpu_hours(self) -> float:
        """Return the job's size: its least GPU hours (GPUs times run time) over all VM types and numbers of GPUs."""
        gpus = np.arange(1.0, self.hours.shape[1] + 1)
        return float(np.min(self.hours * gpus))


def checked_hours(hours: ArrayLike, what: str, *, dimensions: int) -> NDArray[np.float64]:
    """Check an array of run times in hours and return a read-only copy.

    Its last two axes are VM type and number of GPUs; there is one more axis, the job, if `dimensions` is 3. Times are
    above 0 and up to 1e9, or infinite where a job cannot run. Raises ValueError for a wrong shape, and names a wrong
    entry, or a job that can run nowhere. what: name of the array in messages.
    """
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
    """Return the array for `CapacityJob.hours` from run times in hours by (name of the VM type, number of GPUs).

    Args:
        what: Name of `times` in messages.

    Raises:
        ValueError: Names an invalid key or time.
    """
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
    """Read jobs from two CSV texts with headers, one of jobs and one of their run times; keep the order of `jobs`.

    Args:
        jobs: Columns job_id, due (hours), weight ($/h), and optionally submit (hours).
        times: Columns job_id, vm_type, gpus and hours, with one line for each VM type and number of GPUs on which a job
            can run.

    Raises:
        ValueError: Names the line of a time not above 0, an unknown type, too many GPUs, a job in only one text,
            or a repeated entry.
    """
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    with _errors_of("times"):
        tables = _tables(times, catalogue)
    with _errors_of("jobs"):
        read = tuple(_jobs(jobs, tables))
    for job_id, (line, _) in tables.items():
        raise ValueError(f"times, line {line}: job {_checks.shown(job_id)} is not in jobs")
    return read


Tables = dict[str, tuple[int, NDArray[np.float64]]]
"""For each job id, the first line of its run times, and its array of run times (`CapacityJob.hours`)."""


@contextmanager
def _errors_of(text: str) -> Generator[None]:
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{text}, {error}") from None


def _jobs(text: str, tables: Tables) -> Iterator[CapacityJob]:
    """Yield the jobs of a CSV text; each job's run times are taken out of `tables`."""
    line_of: dict[str, int] = {}
    for line, row in records(text, ("job_id", "due", "weight"), ("submit",)):
        job_id = row["job_id"].strip()
        if line_of.setdefault(job_id, line) != line:
            raise ValueError(f"line {line}: job {_checks.shown(job_id)} is also in line {line_of[job_id]}")
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
            raise ValueError(f"line {line}: repeats the job, type and number of GPUs of an earlier line")
        hours = number(row["hours"], float, line, "hours", high=MAX_HOURS)
        table[vm_type, gpus - 1] = _checks.positive(hours, f"line {line}: hours", ValueError)
    return tables


def same_shape(jobs: Sequence[CapacityJob], catalogue: Catalogue) -> None:
    """Raise ValueError if a job's array of run times does not have the catalogue's shape (types, max GPUs)."""
    shape = (len(catalogue), catalogue.max_gpus)
    for i, job in enumerate(jobs):
        _checks.instance(job, CapacityJob, f"jobs[{i}]", ValueError)
        if job.hours.shape != shape:
            raise ValueError(f"jobs[{i}]: hours has shape {job.hours.shape}, the catalogue needs {shape}")
