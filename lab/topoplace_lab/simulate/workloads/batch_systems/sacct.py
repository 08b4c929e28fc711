"""Read the output of Slurm's `sacct --parsable2`: a heading, and a line for each job, with fields between bars.

A dump for this reader, of all jobs of a time:

    sacct -a -X -P -S 2026-01-01 \\
        --format=JobIDRaw,Partition,Submit,Start,End,ElapsedRaw,TimelimitRaw,NNodes,AllocTRES,ReqTRES

Fields may come in any order, and others are ignored. Times are as sacct prints them, or seconds since 1970 after
SLURM_TIME_FORMAT=%s. GPUs are `gres/gpu` of AllocTRES, or else of ReqTRES, for all nodes together.
"""

from __future__ import annotations

import calendar
import math
import re
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

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
    seconds,
)
from topoplace_lab.simulate.workloads.row_report import RowCounter

_ID: Final = ("JobIDRaw", "JobID")
_TRES: Final = ("AllocTRES", "ReqTRES")
_USED: Final = frozenset(
    (*_ID, *_TRES, "Partition", "Submit", "Start", "End", "ElapsedRaw", "Elapsed", "TimelimitRaw", "NNodes")
)
_UNKNOWN: Final = ("", "Unknown", "None", "N/A")
_GPUS: Final = re.compile(r"gres/gpu(:[^=,]*)?=([0-9]{1,9})(?:,|$)")
_SLICE: Final = re.compile(r":\S*\b(?:[1-7]c\.)?[1-7]g\.[0-9]+gb|:\S*[_-][1-7]g\.[0-9]+gb", re.IGNORECASE)
_TRES_LIST: Final = re.compile(r"(?:^|,)(?:billing|cpu|mem|node|gres/gpu)=[0-9]")
_STATES: Final = frozenset(
    ("COMPLETED", "FAILED", "TIMEOUT", "REQUEUED", "RUNNING", "NODE_FAIL", "OUT_OF_MEMORY")
)
_USE: Final = (
    "use sacct -a -X -P "
    "--format=JobIDRaw,Partition,Submit,Start,End,ElapsedRaw,TimelimitRaw,NNodes,AllocTRES,ReqTRES"
)
_CPUS: Final = re.compile(r"(?:^|,)cpu=([0-9]{1,9})(?:,|$)")
_MEMORY: Final = re.compile(r"(?:^|,)mem=([0-9]{1,12}(?:\.[0-9]{1,6})?)([KMGTP]?)(?:,|$)")
_GB: Final = {
    "": 2**20 / 1e9,
    "K": 2**10 / 1e9,
    "M": 2**20 / 1e9,
    "G": 2**30 / 1e9,
    "T": 2**40 / 1e9,
    "P": 2**50 / 1e9,
}


def recognised(text: str) -> bool:
    """Return True if the text begins with a heading of sacct that names jobs, their times and their TRES."""
    names = set(text.lstrip().split("\n", 1)[0].rstrip("\r").split("|"))
    return bool(names.intersection(_ID) and names.intersection(_TRES)) and {"Submit", "NNodes"} <= names


def refuse_other_forms(head: str) -> None:
    """Raise ValueError if the text is in another format of sacct; the message says which options to use."""
    first, second = [*head.lstrip().split("\n", 2), "", ""][:2]
    names = first.rstrip("\r").split("|")
    if len(names) > 1 and set(names) & {*_ID, *_TRES}:
        lacking = [name for name in ("Submit", "NNodes") if name not in names]
        lacking += [] if set(names) & set(_TRES) else ["AllocTRES"]
        lacking += [] if set(names) & set(_ID) else ["JobIDRaw"]
        if lacking:
            raise ValueError(f"line 1: a dump of sacct without {', '.join(lacking)}; {_USE}")
    elif len(names) > 3 and any(_TRES_LIST.search(name) or name in _STATES for name in names):
        raise ValueError(f"line 1: a dump of sacct without its heading; leave out -n and --noheader: {_USE}")
    elif "JobID" in first.split() and second.strip() and set(second) <= set("- \r"):
        raise ValueError(f"line 1: a table of sacct in aligned columns, which cuts fields; {_USE}")


def read_sacct(
    text: Lines,
    partitions: Collection[str] | None,
    unsaid: Unsaid,
    *,
    without_gpus: bool,
    skip_bad_rows: bool = False,
) -> LogColumns:
    """Read the finished jobs from a dump of sacct, as columns of a workload; see `Workload.from_sacct`.

    partitions: names of the partitions whose jobs are kept; None keeps all. unsaid: facts about jobs that no log
    states.
    """
    _checks.flag(without_gpus, "without_gpus", ValueError)
    kept = None if partitions is None else frozenset(_names(partitions))
    columns = LogColumns(unsaid, skip_bad_rows=skip_bad_rows)
    rows = _last_runs(text, kept, columns.counter)
    first = min((row.submit for row in rows.values()), default=0.0)
    since = (row._replace(submit=row.submit - first) for row in rows.values())
    return add_jobs(columns, since, without_gpus=without_gpus)


class Recorded(NamedTuple):
    """Slurm's own results for the jobs with GPUs in a dump that ran."""

    jobs: int
    mean_wait: float
    """Seconds from submission to start."""
    makespan: float
    """Seconds from the first submission to the last end."""


def recorded(text: Lines) -> Recorded:
    """Return Slurm's own results in the dump; ValueError if no job with GPUs ran, or naming a malformed line."""
    waits: list[float] = []
    submits: list[float] = []
    ends: list[float] = []
    for line, values in _records(text, RowCounter(skip_bad_rows=False)):
        tres = next((values[name] for name in _TRES if values.get(name)), "")
        submit, start, end = (_time(values, name, line) for name in ("Submit", "Start", "End"))
        if (
            _gpus(tres, line)
            and not _has_slices(values)
            and not math.isnan(submit + start + end)
            and "." not in _job_id(values)
        ):
            waits.append(start - submit)
            submits.append(submit)
            ends.append(end)
    if not waits:
        raise ValueError("no job with GPUs ran")
    return Recorded(len(waits), sum(waits) / len(waits), max(ends) - min(submits))


def _job_id(values: Mapping[str, str]) -> str:
    return next(values[name] for name in _ID if name in values)


def _names(partitions: object) -> Iterator[str]:
    for i, name in enumerate(_checks.sequence(partitions, "partitions", ValueError)):
        yield _checks.text(name, f"partitions[{i}]", ValueError)


def _last_runs(text: Lines, kept: frozenset[str] | None, counter: RowCounter) -> dict[str, LoggedJob]:
    """Return the jobs of these partitions that ran, by id; of a job that was requeued, the last run."""
    rows: dict[str, LoggedJob] = {}
    for line, values in _records(text, counter):
        with counter.guarded():
            job_id = _job_id(values)
            if "." in job_id:
                counter.skip("of steps")
            elif kept is not None and values.get("Partition") not in kept:
                counter.skip("of other partitions")
            elif _has_slices(values):
                counter.skip("with MIG slices, which are no whole GPUs")
            elif (job := _job(job_id, values, line)) is None:
                counter.skip("that never ran, or still run")
            else:
                if job_id in rows:
                    counter.skip("of earlier runs of a job")
                rows[job_id] = job
    return rows


def _records(text: Lines, counter: RowCounter) -> Iterator[tuple[int, Mapping[str, str]]]:
    """Yield the line number and the fields of each job; ValueError names a malformed line, unless it is skipped."""
    names: list[str] | None = None
    for line, content in lines(text):
        fields = content.rstrip("\r").split("|")
        if names is None:
            names = fields
            if not recognised(content):
                raise ValueError(f"line {line}: {_checks.shown(content)} is no heading of sacct --parsable2")
            counter.ignore(tuple(name for name in names if name and name not in _USED))
            continue
        found: list[Mapping[str, str]] = []
        with counter.row():
            if len(fields) != len(names):
                raise ValueError(f"line {line}: {len(fields)} fields, and {len(names)} in the heading")
            found.append(dict(zip(names, fields, strict=True)))
        yield from ((line, one) for one in found)


# ---- one job -----------------------------------------------------------------------------------------------


def _job(job_id: str, values: Mapping[str, str], line: int) -> LoggedJob | None:
    """Return the job of a line; None if it never ran, or still runs."""
    _checks.text(job_id, f"line {line}: job id", ValueError)
    start, end = _time(values, "Start", line), _time(values, "End", line)
    if math.isnan(start) or math.isnan(end):
        return None
    submit = _time(values, "Submit", line)
    if math.isnan(submit):
        raise ValueError(f"line {line}: Submit = {_checks.shown(values['Submit'])} is not a time")
    nodes = int(number(values["NNodes"], int, line, "NNodes", low=0, high=MAX_TASKS)) or 1
    tres = next((values[name] for name in _TRES if values.get(name)), "")
    cpus, memory = _CPUS.search(tres), _MEMORY.search(tres)
    memory_gb = float(memory[1]) * _GB[memory[2]] / nodes if memory else 0.0
    limit = values.get("TimelimitRaw", "")
    requested = 60.0 * float(limit) if limit.isascii() and limit.isdigit() and len(limit) < 10 else math.nan
    run_time = _run_time(values, start, end, line)
    gpus = per_node(_gpus(tres, line), nodes)
    node_cpus = per_node(int(cpus[1]), nodes) if cpus else 0
    return LoggedJob(
        line, job_id, submit, run_time, requested, nodes, gpus, node_cpus, min(memory_gb, float(LARGEST))
    )


def _has_slices(values: Mapping[str, str]) -> bool:
    """Return True if one of the types of GPUs that a job has is that of a MIG slice, such as h100_1g.10gb."""
    tres = next((values[name] for name in _TRES if values.get(name)), "")
    return any(int(count) and _SLICE.search(kind) for kind, count in _GPUS.findall(tres))


def _gpus(tres: str, line: int) -> int:
    """Return the GPUs of all nodes: those of any type, or else the sum over types."""
    found = [(kind, int(count)) for kind, count in _GPUS.findall(tres)]
    plain = [count for kind, count in found if not kind]
    total = plain[0] if plain else sum(count for _, count in found)
    if total > MAX_TASKS:
        raise ValueError(f"line {line}: gres/gpu = {total}, more than {MAX_TASKS}")
    return total


def _run_time(values: Mapping[str, str], start: float, end: float, line: int) -> float:
    if raw := values.get("ElapsedRaw"):
        return float(number(raw, float, line, "ElapsedRaw"))
    if elapsed := values.get("Elapsed"):
        return seconds(elapsed.replace("-", ":", 1), line, "Elapsed")
    if end < start:
        raise ValueError(f"line {line}: End is before Start")
    return end - start


def _time(values: Mapping[str, str], name: str, line: int) -> float:
    """Return a time in seconds since 1970, as if it were in UTC; NaN if it is missing or not known."""
    text = values.get(name, "")
    if text in _UNKNOWN:
        return math.nan
    if text.isascii() and text.isdigit():
        return float(number(text, float, line, name))
    try:
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%S")))
    except ValueError:
        raise ValueError(
            f"line {line}: {name} = {_checks.shown(text)}, not a time like 2026-01-31T12:00:00"
        ) from None
