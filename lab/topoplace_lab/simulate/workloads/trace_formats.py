"""The columns of published traces of GPU clusters, and their meaning.

`job_id,submit_s,…` is topoplace's own format. openb is Alibaba's `cluster-trace-gpu-v2023` (FGD, ATC'23); PAI is
`pai_task_table` of its `cluster-trace-gpu-v2020` (NSDI'22). Helios is `cluster_log` of SenseTime's trace (SC'21). Acme
is `trace_seren` and `trace_kalos` of Shanghai AI Lab (NSDI'24). The README of each trace describes its columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER, number

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a trace; its values, times `times` and divided by `over`, are in the unit of the field."""

    name: str
    times: float = 1.0
    over: float = 1.0


FIELDS: Final = (
    *("job_id", "submit_s", "start_s", "end_s", "duration_s", "num_gpus", "gpu_milli", "gpu_type", "cpus"),
    *("mem_mib", "nodes", "model", "batch", "min_utility", "pattern", "bandwidth_sensitive", "mig"),
    *("instances", "gpus_each", "groups", "balanced", "min_gpus"),
)
"""The facts that a trace may state about a job; in topoplace's own format, columns have these names.

`instances` are the equal processes of a job, each with `gpus_each` GPUs (below 1 is a share of one), CPUs and memory.
"""

_WORKER: Final = r"(?:workers?|inst(?:ance)?s?|replicas?|pods?|tasks?|process(?:es)?|ranks?)"
_PLACE: Final = rf"(?:{_WORKER}|nodes?|machines?|hosts?|servers?)"
_GPUS_EACH: Final = re.compile(
    rf"plan_gpus?|(?=.*gpu)(?:.*_)?(?:per|each)(?:_{_PLACE})?|{_PLACE}_(?:num_)?gpus?(?:_(?:num|count))?"
)
"""Names of columns with the GPUs of each process of a job; words are joined by _."""
_INSTANCES: Final = re.compile(
    rf"(?:num|n|count|number|no)(?:_of)?_{_WORKER}|{_WORKER}_(?:num|n|count|number|size)|(?:workers|instances|replicas)"
)
"""Names of columns with the number of equal processes of a job."""
_NODES: Final = re.compile(
    rf"(?:num|n|count|number|no)(?:_of)?_{_PLACE}|{_PLACE}_(?:num|n|count|number)|nodes|machines"
)
"""Names of columns with the number of machines, or of processes, of a job."""
_HUNDREDTHS: Final = ("plan_gpu", "plan_gpus")
"""Columns with PAI's names, which count hundredths of a GPU."""


@dataclass(frozen=True)
class TraceFormat:
    """A format: the column of each field, and what holds for all its rows."""

    name: str
    columns: Mapping[str, Column]
    """The columns by field. `FIELDS` aside, there is `part`, a name that makes the id of a job unique."""
    needed: tuple[str, ...]
    """The fields that a text of this format must have."""
    one_machine: bool = False
    """True if each job runs on one machine."""
    runs_from_start: bool = False
    """True if a job without a start never ran. False if such a job counts as started when it was submitted."""
    memory_per_node: bool = False
    """True if the memory is that of each of the job's nodes; False if it is that of the whole job."""
    header: tuple[str, ...] = ()
    """The names of the columns, if files are published without a header; () if they have one."""

    def with_columns(self, given: Mapping[str, str]) -> TraceFormat:
        """Return the format with other names of columns, by field; ValueError for an unknown field."""
        columns = dict(self.columns)
        for field, name in given.items():
            if field not in FIELDS:
                raise ValueError(f"columns = {_checks.shown(field)}: not one of {', '.join(FIELDS)}")
            columns[field] = replace(OWN.columns[field], name=_checks.text(name, "columns", ValueError))
        return replace(self, columns=columns, needed=tuple(dict.fromkeys((*self.needed, *given))))

    def with_processes(self, names: Sequence[str]) -> tuple[TraceFormat, str]:
        """Return the format for a text with the columns `names`, and what it assumes of them, "" for nothing.

        If a column counts the GPUs of each process, the format reads it instead of the job's total. A column that only
        counts processes changes nothing.
        """
        own = (self.columns.get(field) for field in ("gpus_each", "instances"))
        if all(column is not None and column.name in names for column in own):
            return self._without_total(self.columns), ""
        count = self._column_of("instances", _INSTANCES, names)
        each, total = (
            self._column_of("gpus_each", _GPUS_EACH, names),
            self._column_of("num_gpus", None, names),
        )
        if total is not None and _GPUS_EACH.fullmatch(_plain(total)):
            each, total = total, None
        if each is None or total is not None:
            return self, "" if count is None else f"{total} is of the whole job, not of each of {count}"
        columns = {
            **self.columns,
            "gpus_each": Column(each, over=100.0 if _plain(each) in _HUNDREDTHS else 1.0),
        }
        count = count or self._column_of("nodes", _NODES, names)
        if count is None:
            return self._without_total(columns), f"a job has {each} GPUs, as one process"
        columns["instances"] = Column(count)
        return self._without_total(columns), f"a job has {each} x {count} GPUs"

    def _without_total(self, columns: Mapping[str, Column]) -> TraceFormat:
        """Return the format with `columns`, which tell the number of GPUs without `num_gpus`."""
        needed = tuple(field for field in self.needed if field != "num_gpus")
        return replace(self, columns=columns, needed=needed)

    def _column_of(self, field: str, pattern: re.Pattern[str] | None, names: Sequence[str]) -> str | None:
        """Return the column of a field, or else the only one whose name fits `pattern`; None without one."""
        known = self.columns.get(field)
        if known is not None and known.name in names:
            return known.name
        found = [name for name in names if pattern is not None and pattern.fullmatch(_plain(name))]
        return found[0] if len(found) == 1 else None

    def needed_columns(self) -> tuple[str, ...]:
        """Return the names of the columns that a text of this format must have."""
        return tuple(self.columns[field].name for field in self.needed)


def _plain(name: str) -> str:
    """Return the name of a column in small letters, its words joined by _."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def _format(
    name: str, needed: Sequence[str], columns: Mapping[str, str | Column], **options: bool | tuple[str, ...]
) -> TraceFormat:
    named = {field: Column(one) if isinstance(one, str) else one for field, one in columns.items()}
    return TraceFormat(name, MappingProxyType(named), tuple(needed), **options)  # type: ignore[arg-type]


OWN: Final = _format("trace", ("job_id", "submit_s", "num_gpus"), {field: field for field in FIELDS})
_SLURM: Final[Mapping[str, str | Column]] = {
    **{"job_id": "job_id", "submit_s": "submit_time", "start_s": "start_time", "end_s": "end_time"},
    **{"num_gpus": "gpu_num", "cpus": "cpu_num", "nodes": "node_num"},
}
FORMATS: Final = (
    _format(
        "openb",
        ("job_id", "num_gpus", "gpu_milli", "cpus", "mem_mib"),
        {
            **{"job_id": "name", "submit_s": "creation_time", "start_s": "scheduled_time"},
            **{"end_s": "deletion_time", "num_gpus": "num_gpu", "gpu_milli": "gpu_milli"},
            **{"gpu_type": "gpu_spec", "cpus": Column("cpu_milli", over=1000), "mem_mib": "memory_mib"},
        },
        one_machine=True,
    ),
    _format(
        "PAI",
        ("job_id", "part", "instances", "gpus_each", "submit_s"),
        {
            **{"job_id": "job_name", "part": "task_name", "instances": "inst_num"},
            **{"submit_s": "start_time", "start_s": "start_time", "end_s": "end_time"},
            **{"cpus": Column("plan_cpu", over=100), "gpus_each": Column("plan_gpu", over=100)},
            "mem_mib": Column("plan_mem", times=1024),
        },
        runs_from_start=True,
        header=(
            *("job_name", "task_name", "inst_num", "status", "start_time", "end_time"),
            *("plan_cpu", "plan_mem", "plan_gpu", "gpu_type"),
        ),
    ),
    # Their column `duration` has the time in the queue, too, in the trace of Kalos: run times are end - start.
    _format(
        "Acme",
        (*_SLURM, "mem_mib"),
        {**_SLURM, "mem_mib": Column("mem_per_pod_GB", times=1e9, over=_MIB)},
        runs_from_start=True,
        memory_per_node=True,
    ),
    _format("Helios", tuple(_SLURM), _SLURM, runs_from_start=True),
)
"""The published formats; a text has the first one whose columns it has. Seren's file is read as Helios."""


def format_of(header: Sequence[str]) -> TraceFormat:
    """Return the format with these names of columns; topoplace's own format if no other has them."""
    names = set(header)
    return next((one for one in FORMATS if names.issuperset(one.needed_columns())), OWN)


def without_header(first: Sequence[str]) -> TraceFormat | None:
    """Return the format, published without a header, that the first row of a text has; None if there is none."""
    for one in FORMATS:
        if len(first) == len(one.header):
            row = TraceRow(one, 1, dict(zip(one.header, first, strict=True)))
            try:
                values = row.number("instances"), row.number("gpus_each"), row.time("submit_s")
            except ValueError:
                continue
            return None if values[:2] == (None, None) else one
    return None


def timestamp(text: str) -> float:
    """Return the seconds since 1970 of a date and time in ISO 8601; ValueError for other text.

    A time without a time zone is taken as UTC.
    """
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


class TraceRow:
    """A row of a trace, by field; every error names the line, the column and the value."""

    def __init__(self, of: TraceFormat, line: int, cells: Mapping[str, str]) -> None:
        self.of = of
        self.line = line
        self._cells = cells
        self.is_dated = False
        """True once a time was a date."""

    def name(self, field: str) -> str:
        """Return the name of a field's column."""
        column = self.of.columns.get(field)
        return column.name if column else field

    def has(self, field: str) -> bool:
        """Return True if the trace has a column of this field."""
        return self.name(field) in self._cells

    def text(self, field: str) -> str:
        """Return a cell without blanks around it; "" if it is empty, or if there is no such column."""
        column = self.of.columns.get(field)
        return self._cells.get(column.name, "").strip() if column else ""

    def number(self, field: str, low: float = 0.0, high: float = MAX_NUMBER) -> float | None:
        """Return a number in the unit of the field; None if the cell is empty. low, high: limits on the cell."""
        text = self.text(field)
        if not text:
            return None
        column = self.of.columns[field]
        return number(text, float, self.line, column.name, low, high) * column.times / column.over

    def whole(self, field: str, low: float = 0.0, high: float = MAX_NUMBER) -> int | None:
        """Return a whole number; None if the cell is empty."""
        value = self.number(field, low, high)
        if value is not None and not value.is_integer():
            raise self.error(field, "not a whole number")
        return None if value is None else int(value)

    def time(self, field: str) -> float | None:
        """Return a time in seconds; None if the cell is empty. A date without a time zone is taken as UTC."""
        text = self.text(field)
        if not text:
            return None
        if text[4:5] != "-" and "/" not in text and ":" not in text:  # no date in any notation
            return self.number(field)
        try:
            moment = timestamp(text)
        except ValueError:
            raise self.error(field, "neither seconds nor a time like 2020-06-09 18:41:01") from None
        self.is_dated = True
        return moment

    def error(self, field: str, why: str) -> ValueError:
        """Return an error that names the line, the column and the value of a cell."""
        return ValueError(f"line {self.line}: {self.name(field)} = {_checks.shown(self.text(field))}, {why}")
