"""Read job logs in the Standard Workload Format (version 2.2), the format of the Parallel Workloads Archive.

Each line is a job with 18 numeric fields; -1 means unknown. Comments `; Key: value` precede the jobs. Times are in
seconds, memory in KB per processor.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from topoplace import _checks
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import Lines, number
from topoplace_lab.simulate.workloads.job_columns import Unsaid
from topoplace_lab.simulate.workloads.logged_jobs import (
    LARGEST,
    LogColumns,
    LoggedJob,
    add_jobs,
    lines,
    per_node,
)
from topoplace_lab.simulate.workloads.row_report import RowCounter

FIELDS: Final = (
    *("job number", "submit time", "wait time", "run time", "allocated processors", "average CPU time"),
    *("used memory", "requested processors", "requested time", "requested memory", "status", "user", "group"),
    *("executable", "queue", "partition", "preceding job", "think time"),
)
STATUSES: Final = (-1, 0, 1, 5)
"""Statuses of whole jobs: unknown, failed, completed, cancelled. Lines of status 2 to 4 describe parts of a job."""
CANCELLED: Final = 5
_WHOLE: Final = {
    "job number": LARGEST,
    "allocated processors": MAX_TASKS,
    "requested processors": MAX_TASKS,
    "status": 5,
    "queue": LARGEST,
}
_REAL: Final = ("submit time", "run time", "requested time", "requested memory")
_UNUSED: Final = tuple(field for field in FIELDS if field not in (*_WHOLE, *_REAL))
_HEADER: Final = re.compile(r";\s*(MaxNodes|MaxProcs)\s*:\s*(\S+)", re.ASCII)


def recognised(text: str) -> bool:
    """Return True if the text's first line is a comment of this format, or has 18 fields with a number in the first."""
    first = text.lstrip()[:4000].split("\n", 1)[0]
    return first.startswith(";") or (len(fields := first.split()) == len(FIELDS) and fields[0].isdigit())


@dataclass(frozen=True, slots=True)
class _Nodes:
    """Options for reading a log in this format.

    gpus: GPUs of a job on each node. cpus: processors of a node; None if unknown. statuses, queues: jobs to keep; None
    keeps all queues.
    """

    gpus: int
    cpus: int | None
    statuses: frozenset[int]
    queues: frozenset[int] | None


def read_swf(
    text: Lines,
    gpus_per_node: int,
    cpus_per_node: int | None,
    statuses: Collection[int],
    queues: Collection[int] | None,
    unsaid: Unsaid,
    *,
    skip_bad_rows: bool = False,
) -> LogColumns:
    """Read the jobs that ran from a log, as columns of a workload; see `Workload.from_swf`.

    unsaid: facts about jobs that no log states.
    """
    gpus = _checks.integer(gpus_per_node, "gpus_per_node", ValueError, low=0, high=MAX_TASKS)
    if cpus_per_node is not None:
        _checks.integer(cpus_per_node, "cpus_per_node", ValueError, low=1, high=MAX_TASKS)
    kept = frozenset(_numbers(statuses, "statuses", low=-1, high=5))
    of_queues = None if queues is None else frozenset(_numbers(queues, "queues", low=-1, high=LARGEST))
    columns = LogColumns(unsaid, skip_bad_rows=skip_bad_rows)
    columns.counter.ignore(_UNUSED)
    rows = _rows(text, _Nodes(gpus, cpus_per_node, kept, of_queues), columns.counter)
    return add_jobs(columns, rows, without_gpus=not gpus)


def _numbers(values: object, what: str, low: int, high: int) -> Iterator[int]:
    for i, value in enumerate(_checks.sequence(values, what, ValueError)):
        yield _checks.integer(value, f"{what}[{i}]", ValueError, low=low, high=high)


def _rows(text: Lines, nodes: _Nodes, counter: RowCounter) -> Iterator[LoggedJob]:
    header: dict[str, int] = {}
    line_of: dict[str, int] = {}
    for line, content in lines(text):
        if content.lstrip().startswith(";"):
            _read_header(content, line, header)
            continue
        found: list[LoggedJob] = []
        with counter.row():
            values = _values(content, line)
            if reason := _why_skipped(values, nodes):
                counter.skip(reason)
            else:
                found.append(_job(values, line, nodes, header, line_of))
        yield from found


def _read_header(comment: str, line: int, header: dict[str, int]) -> None:
    """Store MaxNodes or MaxProcs in `header` if the comment states it; ignore any other comment."""
    if found := _HEADER.match(comment.lstrip()):
        key, value = found.groups()
        header[key] = int(number(value, int, line, key, low=-1, high=LARGEST))


def _values(content: str, line: int) -> dict[str, float]:
    """Return the values of those fields of a line that are used here, by field name; -1 means unknown."""
    texts = content.split()
    if len(texts) != len(FIELDS):
        raise ValueError(f"line {line}: {len(texts)} fields, {len(FIELDS)} needed")
    given = dict(zip(FIELDS, texts, strict=True))
    whole = {key: number(given[key], int, line, key, low=-1, high=high) for key, high in _WHOLE.items()}
    return whole | {key: _real(given[key], line, key) for key in _REAL}


def _real(text: str, line: int, field: str) -> float:
    value = number(text, float, line, field, low=-1)
    if -1 < value < 0:
        raise ValueError(f"line {line}: {field} = {_checks.shown(text)}: must be -1 or at least 0")
    return value


def _why_skipped(values: dict[str, float], nodes: _Nodes) -> str:
    """Return why a line with these fields is no job to keep; "" if it is one."""
    run_time, status = values["run time"], values["status"]
    if status not in nodes.statuses:
        return f"of status {status:g}"
    if nodes.queues is not None and values["queue"] not in nodes.queues:
        return "of other queues"
    return "that never ran" if run_time < 0 or (status == CANCELLED and not run_time) else ""


def _job(
    values: dict[str, float], line: int, nodes: _Nodes, header: dict[str, int], line_of: dict[str, int]
) -> LoggedJob:
    """Return the job of a line.

    values: the line's fields. header: MaxNodes and MaxProcs of the log, if stated. line_of: lines of earlier jobs.
    """
    processors = int(max(values["requested processors"], 0) or values["allocated processors"])
    for what, value in (("job number", values["job number"]), ("submit time", values["submit time"])):
        if value < 0:
            raise ValueError(f"line {line}: {what} = -1 (unknown) of a job that ran")
    if processors < 1:
        raise ValueError(f"line {line}: neither requested nor allocated processors are known")
    count = per_node(processors, nodes.cpus or _cpus_per_node(header))
    cpus = per_node(processors, count)
    memory_gb = max(values["requested memory"], 0.0) * cpus * 1024 / 1e9
    requested = values["requested time"] if values["requested time"] >= 0 else math.nan
    job_id = str(int(values["job number"]))
    if line_of.setdefault(job_id, line) != line:
        raise ValueError(f"line {line}: job number = {job_id}, already in line {line_of[job_id]}")
    run_time, submit = values["run time"], values["submit time"]
    return LoggedJob(line, job_id, submit, run_time, requested, count, nodes.gpus, cpus, memory_gb)


def _cpus_per_node(header: dict[str, int]) -> int:
    """Return the number of processors of a node: the header's MaxProcs / MaxNodes, rounded up, or 1 if unknown."""
    nodes, processors = header.get("MaxNodes", 0), header.get("MaxProcs", 0)
    return per_node(processors, nodes) if 0 < nodes <= processors else 1
