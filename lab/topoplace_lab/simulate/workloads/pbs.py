"""Read accounting logs of PBS Professional, OpenPBS and Torque.

Each line is an event, `MM/DD/YYYY HH:MM:SS;record type;job id;key=value key=value …`. Records of type E describe
finished jobs.

The resources that a job requests on each node are read from `Resource_List.select` (PBS), or else from
`Resource_List.nodes` (Torque). Missing values come from `nodect`, `ncpus`, `ngpus` and `mem`, which are totals of the
job. In a request for different nodes, every node gets the largest value of each resource, as all processes of a job
graph are alike.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from topoplace import _checks
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.text_formats.csv_rows import MAX_NUMBER, Lines, number
from topoplace_lab.simulate.workloads.job_columns import Unsaid
from topoplace_lab.simulate.workloads.logged_jobs import (
    LARGEST,
    LogColumns,
    LoggedJob,
    add_jobs,
    lines,
    per_node,
    seconds,
)
from topoplace_lab.simulate.workloads.row_report import RowCounter

_LINE: Final = re.compile(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d;[^;]*;", re.ASCII)
_MEMORY: Final = re.compile(r"(\d{1,18})([kmgtp]?)([bw]?)", re.ASCII | re.IGNORECASE)
_WORD_BYTES: Final = 8
_NAMES: Final = {"ncpus": "cpus", "ppn": "cpus", "ngpus": "gpus", "gpus": "gpus", "mem": "mem"}
"""Name of a resource here (cpus, gpus, mem), by its name in PBS and Torque."""
_TIMES: Final = ("ctime", "qtime", "start", "end", "resources_used.walltime", "Resource_List.walltime")
_REQUESTS: Final = ("select", "nodes", "nodect", "ncpus", "ngpus", "mem")
_USED: Final = frozenset({"queue", *_TIMES, *(f"Resource_List.{name}" for name in _REQUESTS)})


class _Record(NamedTuple):
    """A record of type E (job ended): its line number, its job's id, and the values of the keys that are used here."""

    line: int
    job_id: str
    values: Mapping[str, str]


class _PbsNode(NamedTuple):
    """The resources that a job requests on one node."""

    cpus: int
    gpus: int
    memory_gb: float


def recognised(text: str) -> bool:
    """Return True if the text's first line looks like an event of a PBS accounting log."""
    return _LINE.match(text.lstrip()[:4000]) is not None


def read_pbs(
    text: Lines,
    queues: Collection[str] | None,
    unsaid: Unsaid,
    *,
    without_gpus: bool,
    skip_bad_rows: bool = False,
) -> LogColumns:
    """Read the jobs that ran from a PBS accounting log, as columns of a workload; see `Workload.from_pbs`.

    queues: names of the queues whose jobs are kept; None keeps all. unsaid: facts about jobs that no log states.
    """
    _checks.flag(without_gpus, "without_gpus", ValueError)
    of_queues = None if queues is None else frozenset(_names(queues))
    columns = LogColumns(unsaid, skip_bad_rows=skip_bad_rows)
    rows = _last_runs(text, of_queues, columns.counter)
    first = min((row.submit for row in rows.values()), default=0.0)
    since = (row._replace(submit=row.submit - first) for row in rows.values())
    return add_jobs(columns, since, without_gpus=without_gpus)


def _last_runs(text: Lines, queues: frozenset[str] | None, counter: RowCounter) -> dict[str, LoggedJob]:
    """Return the jobs of these queues that ran, by id; of a job that ran several times, the last run."""
    rows: dict[str, LoggedJob] = {}
    for record in _records(text, counter):
        with counter.guarded():
            if queues is not None and record.values.get("queue") not in queues:
                counter.skip("of other queues")
                continue
            job = _job(record)
            if job is None:
                counter.skip("that never ran")
            else:
                if job.job_id in rows:
                    counter.skip("of earlier runs of a job")
                rows[job.job_id] = job
    return rows


def _names(queues: object) -> Iterator[str]:
    for i, name in enumerate(_checks.sequence(queues, "queues", ValueError)):
        yield _checks.text(name, f"queues[{i}]", ValueError)


def _records(text: Lines, counter: RowCounter) -> Iterator[_Record]:
    """Yield the records of type E (job ended) in the order of the log; count other records as skipped.

    ValueError names a malformed line, unless `counter` skips bad rows.
    """
    for line, content in lines(text):
        found: list[_Record] = []
        with counter.row():
            if not _LINE.match(content) or content.count(";") < 3:
                raise ValueError(
                    f"line {line}: {_checks.shown(content)}, not MM/DD/YYYY HH:MM:SS;type;job;message"
                )
            _, kind, job_id, message = content.split(";", 3)
            if kind == "E":
                _checks.text(job_id.strip(), f"line {line}: job id", ValueError)
                found.append(_Record(line, job_id.strip(), _values(message, line, counter)))
            else:
                counter.skip(f"records of type {kind}")
        yield from found


def _values(message: str, line: int, counter: RowCounter) -> dict[str, str]:
    values: dict[str, str] = {}
    for word in message.split():
        key, equals, value = word.partition("=")
        if equals and key not in _USED:
            counter.ignore((key,))
        if equals and key in _USED and values.setdefault(key, value) != value:
            raise ValueError(
                f"line {line}: {key} = {_checks.shown(value)}, and {_checks.shown(values[key])} before"
            )
    return values


# ---- one job -----------------------------------------------------------------------------------------------


def _job(record: _Record) -> LoggedJob | None:
    """Return the job that a record describes; None if the job never ran."""
    line, _, values = record
    run_time = _run_time(values, line)
    if run_time is None:
        return None
    submit = _time(values, "ctime", line) or _time(values, "qtime", line)
    if not submit:
        raise ValueError(f"line {line}: has neither ctime nor qtime")
    limit = values.get("Resource_List.walltime")
    requested = math.nan if limit is None else seconds(limit, line, "Resource_List.walltime")
    count, node = _request(values, line)
    return LoggedJob(
        line, record.job_id, submit, run_time, requested, count, node.gpus, node.cpus, node.memory_gb
    )


def _run_time(values: Mapping[str, str], line: int) -> float | None:
    """Return a job's run time in seconds from the values of its record; None if the job never ran."""
    if used := values.get("resources_used.walltime"):
        return seconds(used, line, "resources_used.walltime")
    start, end = _time(values, "start", line), _time(values, "end", line)
    if not start or not end:
        return None
    if end < start:
        raise ValueError(f"line {line}: end = {end:.0f}, before start = {start:.0f}")
    return end - start


def _time(values: Mapping[str, str], key: str, line: int) -> float:
    """Return the time in the field `key`, in seconds since 1970; 0 if the record does not contain this field."""
    return number(values[key], float, line, key) if key in values else 0.0


def _request(values: Mapping[str, str], line: int) -> tuple[int, _PbsNode]:
    """Return the number of nodes that a job requests, and the resources that it requests on each node."""
    key = next((name for name in ("select", "nodes") if f"Resource_List.{name}" in values), "")
    count, named = _chunks(values.get(f"Resource_List.{key}", ""), line, f"Resource_List.{key}")
    count = count or _whole(values.get("Resource_List.nodect", "1"), line, "Resource_List.nodect", low=1)
    whole = {"cpus": "Resource_List.ncpus", "gpus": "Resource_List.ngpus"}
    for name, total in whole.items():
        if name not in named and total in values:
            named[name] = per_node(_whole(values[total], line, total), count)
    if "mem" not in named and "Resource_List.mem" in values:
        named["mem"] = memory_gb(values["Resource_List.mem"], line, "Resource_List.mem") / count
    return count, _PbsNode(int(named.get("cpus", 0)), int(named.get("gpus", 0)), named.get("mem", 0.0))


def _chunks(text: str, line: int, key: str) -> tuple[int, dict[str, float]]:
    """Parse a request for nodes like `2:ncpus=8:ngpus=3+1:ncpus=4`, whose chunks are separated by `+`.

    Returns the number of nodes of all chunks, and the largest request per node for each resource (cpus, gpus, mem). A
    chunk may also begin with the name of a node or property, and the text may end in `#excl` or `#shared`.
    """
    count, most = 0, dict[str, float]()
    for chunk in text.partition("#")[0].split("+") if text else ():
        words = chunk.split(":")
        count += _whole(words[0], line, key, low=1) if words[0].isdecimal() else 1
        for word in words:
            name, equals, value = word.partition("=")
            if equals and name in _NAMES:
                ours = _NAMES[name]
                most[ours] = max(most.get(ours, 0.0), _amount(ours, value, line, f"{key}: {name}"))
    if count > MAX_TASKS:
        raise ValueError(f"line {line}: {key} = {_checks.shown(text)}, more than {MAX_TASKS} nodes")
    return count, most


def _amount(name: str, value: str, line: int, what: str) -> float:
    return memory_gb(value, line, what) if name == "mem" else _whole(value, line, what)


def _whole(text: str, line: int, key: str, low: int = 0) -> int:
    return int(number(text, int, line, key, low=low, high=MAX_TASKS))


def memory_gb(text: str, line: int, key: str) -> float:
    """Return a memory size of PBS, such as `22gb`, in GB (1e9 bytes).

    PBS counts bytes, or words of 8 bytes, with prefixes that are powers of 1024. Raises ValueError that names `line`
    and `key` for any other text.
    """
    found = _MEMORY.fullmatch(text)
    size = MAX_NUMBER
    if found:
        digits, prefix, unit = found.groups()
        of_unit = _WORD_BYTES if unit.lower() == "w" else 1
        size = int(digits) * 1024.0 ** " kmgtp".index(prefix.lower() or " ") * of_unit / 1e9
    if size > LARGEST:
        raise ValueError(f"line {line}: {key} = {_checks.shown(text)}, not a size like 22gb")
    return size
