"""Read job lists in three CSV formats: traces of GPU clusters, a short format of our own, and MAPA's job files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from topoplace import _checks
from topoplace.cluster.hosts import cpus_of
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.simulate.workloads.job_columns import job_of
from topoplace.simulate.workloads.row_report import RowCounter
from topoplace.text_formats.csv_rows import MAX_NUMBER, lines, number, records

NEEDED: Final = ("job_id", "submit_s", "num_gpus")
_USED: Final = frozenset(
    (
        *(*NEEDED, "duration_s", "gpu_milli", "gpu_type", "cpus", "mem_mib", "nodes"),
        *("model", "batch", "min_utility"),
    )
)

_CSV_COLUMNS: Final = ("pattern", "gpus", "submit", "run_time", "bandwidth_sensitive", "profile")
_MAPA_COLUMNS: Final = ("gpus", "pattern", "submit", "run_time", "bandwidth_sensitive", "profile")


class Columns:
    """The columns of a workload that is being read, one entry per job, and the count of rows read."""

    def __init__(self, *, skip_bad_rows: bool = False) -> None:
        self.counter = RowCounter(skip_bad_rows=_checks.flag(skip_bad_rows, "skip_bad_rows", ValueError))
        self.jobs: list[JobGraph] = []
        self.submit: list[float] = []
        self.base: list[float] = []
        self.ids: list[str] = []

    def add(self, job: JobGraph, submit: float, base: float, job_id: str) -> None:
        """Append a job. submit: submission time in seconds. base: run time at full speed in seconds."""
        self.jobs.append(job)
        self.submit.append(submit)
        self.base.append(base)
        self.ids.append(job_id)


def read_trace(
    text: str,
    pattern: str,
    sensitive: bool,
    profile: PerformanceProfile | None = None,
    duration: float | None = None,
    *,
    skip_bad_rows: bool = False,
) -> Columns:
    """Read the jobs of a CSV trace that need GPUs; see `Workload.from_trace`.

    pattern, sensitive: communication pattern and bandwidth sensitivity of every job. profile, duration: run times for
    rows that state none.
    """
    columns = Columns(skip_bad_rows=skip_bad_rows)
    line_of: dict[str, int] = {}
    if duration is not None:
        duration = _checks.real(duration, "duration", ValueError, high=MAX_NUMBER)
    for line, row in records(text, NEEDED, None, columns.counter.row):
        columns.counter.ignore(row.keys() - _USED)
        with columns.counter.row():
            size = int(number(row["num_gpus"], int, line, "num_gpus", high=MAX_TASKS))
            if not size:
                columns.counter.skip("without GPUs")
                continue
            _check_id(row["job_id"], line, line_of)
            try:
                job = _job(pattern, size, sensitive, row, line)
                base = _base_time(job, row, line, profile)
            except ValueError as error:
                text = str(error)
                raise ValueError(text if text.startswith("line ") else f"line {line}: {text}") from None
            if (base := duration if base is None else base) is None:
                raise ValueError(
                    f"line {line}: duration_s is unknown: add it, or give a profile or a duration"
                )
            columns.add(job, number(row["submit_s"], float, line, "submit_s"), base, row["job_id"])
    return columns


def _check_id(job_id: str, line: int, line_of: dict[str, int]) -> None:
    """Raise ValueError if the job id is empty or is also the id of an earlier line; record its line in `line_of`."""
    _checks.text(job_id, f"line {line}: job_id", ValueError)
    if line_of.setdefault(job_id, line) != line:
        raise ValueError(f"line {line}: job_id = {_checks.shown(job_id)}, already in line {line_of[job_id]}")


def _job(pattern: str, size: int, sensitive: bool, row: Mapping[str, str], line: int) -> JobGraph:
    fields = {key: value.strip() for key, value in row.items() if value.strip()}
    model, batch = fields.get("model"), fields.get("batch")
    profile = f"{model}/{batch}" if model and batch else model
    job = job_of(pattern, size, sensitive, profile)
    kinds = [kind for kind in fields.get("gpu_type", "").split("|") if kind]
    needs: dict[str, Any] = {
        "gpu_fraction": _gpu_fraction(fields, line),
        "gpu_model": tuple(kinds) or None,
        "cpus": _cpus(fields, line) or None,
        "memory_gb": _value(fields, "mem_mib", line) * 2**20 / 1e9 or None,
        "single_machine": _nodes(fields, line) == 1,
        "min_utility": _value(fields, "min_utility", line),
    }
    return _with(job, tuple(needs.items()))


@lru_cache(maxsize=4096)
def _with(job: JobGraph, needs: tuple[tuple[str, Any], ...]) -> JobGraph:
    return job.with_(**dict(needs))


def _gpu_fraction(fields: Mapping[str, str], line: int) -> float:
    return number(fields.get("gpu_milli", "1000"), float, line, "gpu_milli", low=1, high=1000) / 1000


def _nodes(fields: Mapping[str, str], line: int) -> float | None:
    """Return the number of machines that a row requests; None if the row does not state it."""
    if "nodes" not in fields:
        return None
    nodes = number(fields["nodes"], float, line, "nodes", low=1)
    if not nodes.is_integer():
        raise ValueError(f"line {line}: nodes = {_checks.shown(fields['nodes'])}, not a whole number")
    return nodes


def _cpus(fields: Mapping[str, str], line: int) -> float:
    """Return the CPUs of a row, rounded up to thousandths."""
    return cpus_of(math.ceil(_value(fields, "cpus", line) * 1000 - 1e-6))


def _value(fields: Mapping[str, str], column: str, line: int) -> float:
    return number(fields[column], float, line, column) if column in fields else 0.0


def _base_time(
    job: JobGraph, row: Mapping[str, str], line: int, profile: PerformanceProfile | None
) -> float | None:
    """Return a job's run time in seconds: as stated in its row, else as measured in `profile`; None if unknown."""
    if row.get("duration_s", "").strip():
        return number(row["duration_s"], float, line, "duration_s")
    return profile.ideal_time(job.profile or "", job.num_tasks) if profile else None


def read_csv(text: str) -> Columns:
    """Read jobs from CSV with a header, in our short format; see `Workload.from_csv`."""
    return _read_rows(records(text, _CSV_COLUMNS[:4], _CSV_COLUMNS[4:]))


def read_mapa(text: str) -> Columns:
    """Read jobs from the lines of a job file of MAPA's published code; see `Workload.from_mapa`."""
    return _read_rows(_mapa_rows(text))


def _read_rows(rows: Iterator[tuple[int, dict[str, str]]]) -> Columns:
    columns = Columns()
    for line, given in rows:
        columns.counter.rows += 1
        row = {key: value.strip() for key, value in given.items()}
        sensitive = bool(
            number(row.get("bandwidth_sensitive", "0"), int, line, "bandwidth_sensitive", high=1)
        )
        size = int(number(row["gpus"], int, line, "gpus", low=1))
        try:
            job = job_of(row["pattern"], size, sensitive, row.get("profile") or None)
        except ValueError as error:
            raise ValueError(f"line {line}: {error}") from None
        submit = number(row["submit"], float, line, "submit")
        columns.add(job, submit, number(row["run_time"], float, line, "run_time"), str(len(columns.jobs)))
    return columns


def _mapa_rows(text: str) -> Iterator[tuple[int, dict[str, str]]]:
    for line, fields in lines(text):
        if len(fields) != len(_MAPA_COLUMNS):
            raise ValueError(f"line {line}: {len(fields)} columns, {len(_MAPA_COLUMNS)} needed")
        yield line, dict(zip(_MAPA_COLUMNS, fields, strict=True))
