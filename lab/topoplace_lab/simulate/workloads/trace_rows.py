"""Read job lists in CSV: traces of GPU clusters in several formats, a short format of our own, and MAPA's job files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from types import MappingProxyType
from typing import Any, Final

from topoplace import _checks
from topoplace.cluster.hosts import cpus_of
from topoplace.jobs.groups import sized_groups
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import Lines, checked_header, lines, number, records, rows_below
from topoplace_lab.simulate.workloads.job_columns import Unsaid, job_of
from topoplace_lab.simulate.workloads.row_report import RowCounter, RowReport
from topoplace_lab.simulate.workloads.trace_formats import TraceFormat, TraceRow, format_of, without_header

_CSV_COLUMNS: Final = ("pattern", "gpus", "submit", "run_time", "bandwidth_sensitive", "profile")
_MAPA_COLUMNS: Final = ("gpus", "pattern", "submit", "run_time", "bandwidth_sensitive", "profile")


class TraceColumns:
    """The columns of a workload that is being read, one entry per job, and the count of rows read."""

    def __init__(self, *, skip_bad_rows: bool = False) -> None:
        self.counter = RowCounter(skip_bad_rows=_checks.flag(skip_bad_rows, "skip_bad_rows", ValueError))
        self.jobs: list[JobGraph] = []
        self.submit: list[float] = []
        self.base: list[float] = []
        self.ids: list[str] = []
        self.unsaid = Unsaid()
        """Facts about jobs that their rows do not state."""

    def report(self) -> RowReport:
        """Return the report of all rows read; ValueError if no job has a model that is named as sensitive."""
        return self.counter.report(len(self.jobs), self.unsaid.assumed())

    def count_from_first(self) -> None:
        """Shift the times of submission so that the first one is 0."""
        first = min(self.submit)
        self.submit = [submit - first for submit in self.submit]

    def add(self, job: JobGraph, submit: float, base: float, job_id: str) -> None:
        """Append a job. submit: submission time in seconds. base: run time at full speed in seconds."""
        self.jobs.append(job)
        self.submit.append(submit)
        self.base.append(base)
        self.ids.append(job_id)


def read_trace(
    text: Lines,
    unsaid: Unsaid,
    columns: Mapping[str, str] = MappingProxyType({}),
    *,
    without_gpus: bool = False,
    skip_bad_rows: bool = False,
) -> TraceColumns:
    """Read the jobs of a CSV trace of any format in `trace_formats`; see `Workload.from_trace`.

    unsaid: facts about jobs that their rows do not state. columns: names of columns by field. without_gpus: keep jobs
    without GPUs, too.
    """
    found = TraceColumns(skip_bad_rows=skip_bad_rows)
    found.unsaid = unsaid
    _checks.flag(without_gpus, "without_gpus", ValueError)
    form, header, rows, assumed = _begun(text, columns)
    if assumed:
        unsaid.assume(assumed)
    used = {form.columns[field].name for field in form.columns}
    found.counter.ignore(name for name in header if name not in used)
    reader = _CsvReader(found, unsaid, without_gpus=without_gpus)
    for line, cells in rows_below(header, rows, found.counter.row):
        with found.counter.row():
            reader.add(TraceRow(form, line, cells))
    if reader.is_dated and found.submit:
        found.count_from_first()
    return found


def _begun(
    text: Lines, columns: Mapping[str, str]
) -> tuple[TraceFormat, list[str], Iterator[tuple[int, list[str]]], str]:
    """Return the format of a text, its columns, (line number, fields) of the rows, and what is assumed of columns."""
    _checks.instance(columns, Mapping, "columns", ValueError)
    rows = lines(text)
    line, first = next(rows, (1, list[str]()))
    bare = without_header(first)
    if bare is not None:
        return bare.with_columns(columns), list(bare.header), chain([(line, first)], rows), ""
    names = [name.strip() for name in first]
    form = format_of(names).with_columns(columns)
    for column in columns.values():
        if column not in names:
            raise ValueError(f"columns = {_checks.shown(column)}: the columns are {', '.join(names)}")
    form, assumed = form.with_processes(names)
    return form, checked_header(first, form.needed_columns()), rows, assumed


class _CsvReader:
    """Turns the rows of a trace into jobs."""

    def __init__(self, found: TraceColumns, unsaid: Unsaid, *, without_gpus: bool) -> None:
        self._found = found
        self._unsaid = unsaid
        self._without_gpus = without_gpus
        self._line_of: dict[str, int] = {}
        self.is_dated = False

    def add(self, row: TraceRow) -> None:
        """Add the job of a row, or count why there is none; ValueError names the row, the column and the value."""
        instances = row.whole("instances", 1, MAX_TASKS) or 1
        size, fraction = _gpus(row, instances)
        if not size and not self._without_gpus:
            self._found.counter.skip("without GPUs")
            return
        start = row.time("start_s")
        if row.of.runs_from_start and start is None:
            self._found.counter.skip("that never ran")
            return
        job_id = "/".join(filter(None, (row.text("job_id"), row.text("part"))))
        _check_id(job_id, row, self._line_of)
        submit = row.time("submit_s")
        stated = _run_time(row, submit if start is None else start)
        try:
            job = _job(row, size, fraction, instances, self._unsaid)
            base = self._unsaid.base_time(job, stated, row.name("duration_s"))
        except ValueError as error:
            text = str(error)
            raise ValueError(text if text.startswith("line ") else f"line {row.line}: {text}") from None
        if submit is None:
            if row.has("submit_s"):
                raise row.error("submit_s", "not a time")
            submit = float(len(self._found.jobs))
            self._unsaid.assume("one job submitted each second, in the order of the rows")
        self.is_dated |= row.is_dated
        self._found.add(job, submit, base, job_id)


def _check_id(job_id: str, row: TraceRow, line_of: dict[str, int]) -> None:
    """Raise ValueError if the job id is empty or is also the id of an earlier line; record its line in `line_of`."""
    line, what = row.line, row.name("job_id")
    _checks.text(job_id, f"line {line}: {what}", ValueError)
    if line_of.setdefault(job_id, line) != line:
        raise ValueError(f"line {line}: {what} = {_checks.shown(job_id)}, already in line {line_of[job_id]}")


def _gpus(row: TraceRow, instances: int) -> tuple[int, float]:
    """Return the number of GPUs of a row, and the share of each that the job uses."""
    each = row.number("gpus_each")
    if each is None:
        size = row.whole("num_gpus", 0, MAX_TASKS) or 0
        milli = row.number("gpu_milli", 1 if size else 0, 1000)
        return size, 1.0 if milli is None else milli / 1000
    if each > 1 and not each.is_integer():
        raise row.error("gpus_each", "neither whole GPUs nor a share of one")
    count = instances * int(max(each, 1)) if each else 0
    if count > MAX_TASKS:
        raise row.error("gpus_each", f"{instances} times, is more than {MAX_TASKS} GPUs")
    return count, min(each, 1.0)


def _run_time(row: TraceRow, start: float | None) -> float | None:
    """Return the run time in seconds that a row states, or that is between its start and its end; None for neither."""
    stated = row.number("duration_s")
    end = row.time("end_s")
    if stated is not None or end is None or start is None:
        return stated
    if end < start:
        raise row.error("end_s", "is before the start")
    return end - start


def _job(row: TraceRow, size: int, fraction: float, instances: int, unsaid: Unsaid) -> JobGraph:
    nodes = 1 if row.of.one_machine else row.whole("nodes", 1)
    cpus, memory_gb = _cpus(row, instances) or None, _memory_gb(row, instances, nodes) or None
    if not size:
        if not cpus and not memory_gb:
            raise ValueError("needs no GPU, no CPU and no memory")
        return _grouped(_without_gpus(cpus, memory_gb), row.text("groups"))
    kinds = tuple(kind for kind in row.text("gpu_type").split("|") if kind)
    needs = {
        "gpu_fraction": fraction,
        "mig": row.text("mig") or None,
        "gpu_model": kinds or None,
        "cpus": cpus,
        "memory_gb": memory_gb,
        "single_machine": nodes == 1,
        "max_machines": nodes if nodes and nodes > 1 else None,
        "processes": instances,
        "min_utility": row.number("min_utility") or 0.0,
        "balanced": row.text("balanced") or None,
        "elastic": _elastic(row, size),
    }
    return _grouped(_with(_graph(row, size, unsaid), tuple(needs.items())), row.text("groups"))


def _elastic(row: TraceRow, size: int) -> tuple[int, int]:
    """Return the least and the largest number of tasks of a row's job."""
    return row.whole("min_gpus", 1, size) or size, size


def _graph(row: TraceRow, size: int, unsaid: Unsaid) -> JobGraph:
    """Return the tasks of a row's job and their communication, without requirements."""
    model, batch = row.text("model"), row.text("batch")
    profile = f"{model}/{batch}" if model and batch else model or None
    sensitive = row.whole("bandwidth_sensitive", 0, 1)
    stated = None if sensitive is None else bool(sensitive)
    return unsaid.job(size, profile, row.text("pattern") or None, stated)


def _memory_gb(row: TraceRow, instances: int, nodes: int | None) -> float:
    """Return the GB of memory of the whole job."""
    parts = instances * ((nodes or 1) if row.of.memory_per_node else 1)
    return (row.number("mem_mib") or 0.0) * parts * 2**20 / 1e9


@lru_cache(maxsize=4096)
def _with(job: JobGraph, needs: tuple[tuple[str, Any], ...]) -> JobGraph:
    return job.with_(**dict(needs))


@lru_cache(maxsize=4096)
def _grouped(job: JobGraph, text: str) -> JobGraph:
    """Return the job with the groups that a cell such as "48@nvlink_domain;8@machine" requires."""
    for one in filter(None, text.split(";")):
        try:
            groups, level = sized_groups(one)
            job = job.grouped(groups, within=level)
        except ValueError as error:
            raise ValueError(f"groups = {_checks.shown(text)}: {error}") from None
    return job


@lru_cache(maxsize=4096)
def _without_gpus(cpus: float | None, memory_gb: float | None) -> JobGraph:
    return JobGraph.without_gpus(cpus=cpus, memory_gb=memory_gb)


def _cpus(row: TraceRow, instances: int) -> float:
    """Return the CPUs of a row, rounded up to thousandths."""
    return cpus_of(math.ceil((row.number("cpus") or 0.0) * instances * 1000 - 1e-6))


def read_csv(text: Lines) -> TraceColumns:
    """Read jobs from CSV with a header, in our short format; see `Workload.from_csv`."""
    return _read_rows(records(text, _CSV_COLUMNS[:4], _CSV_COLUMNS[4:]))


def read_mapa(text: Lines) -> TraceColumns:
    """Read jobs from the lines of a job file of MAPA's published code; see `Workload.from_mapa`."""
    return _read_rows(_mapa_rows(text))


def _read_rows(rows: Iterator[tuple[int, dict[str, str]]]) -> TraceColumns:
    columns = TraceColumns()
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


def _mapa_rows(text: Lines) -> Iterator[tuple[int, dict[str, str]]]:
    for line, fields in lines(text):
        if len(fields) != len(_MAPA_COLUMNS):
            raise ValueError(f"line {line}: {len(fields)} columns, {len(_MAPA_COLUMNS)} needed")
        yield line, dict(zip(_MAPA_COLUMNS, fields, strict=True))
