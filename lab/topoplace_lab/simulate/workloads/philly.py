"""Read `cluster_job_log`, the jobs of Microsoft's Philly clusters (ATC'19): a JSON array with an object per job.

A job has attempts, because the scheduler runs it again after failures. An attempt lists its GPUs by machine. The README
of `msr-fiddle/philly-traces` describes the fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from topoplace import _checks
from topoplace_lab.simulate.workloads import json_rows
from topoplace_lab.simulate.workloads.job_columns import Unsaid
from topoplace_lab.simulate.workloads.trace_formats import timestamp
from topoplace_lab.simulate.workloads.trace_rows import TraceColumns

_USED: Final = frozenset(("jobid", "submitted_time", "attempts"))


def recognised(head: str) -> bool:
    """Return True if the start of a text looks like Philly's jobs."""
    return head.lstrip()[:1] == "[" and '"attempts"' in head


def read_philly(chunks: Iterable[str], unsaid: Unsaid, *, skip_bad_rows: bool = False) -> TraceColumns:
    """Read the jobs of a text that comes in these pieces; see `Workload.from_philly`.

    unsaid: facts about jobs that their rows do not state.
    """
    found = TraceColumns(skip_bad_rows=skip_bad_rows)
    found.unsaid = unsaid
    known: dict[str, int] = {}
    for number, record in enumerate(json_rows.items(chunks)):
        with found.counter.row():
            try:
                _add(found, record, known)
            except ValueError as error:
                raise ValueError(f"jobs[{number}]: {error}") from None
            known.setdefault(record["jobid"], number)
    if found.submit:
        found.count_from_first()
    return found


def _add(found: TraceColumns, record: object, known: Mapping[str, int]) -> None:
    """Add the job that a record describes, or count why there is none."""
    job = _object(record, "the job")
    found.counter.ignore(job.keys() - _USED)
    job_id = _checks.text(job.get("jobid"), "jobid", ValueError)
    if job_id in known:
        raise ValueError(f"jobid = {_checks.shown(job_id)}, already in jobs[{known[job_id]}]")
    attempts = [_object(one, "an attempt") for one in _list(job.get("attempts"), "attempts")]
    sizes = [_num_gpus(one) for one in attempts]
    if not any(sizes):
        found.counter.skip("that never ran")
        return
    submit, seconds = _time(job, "submitted_time"), _run_time(attempts)
    if submit is None:
        raise ValueError("submitted_time is unknown")
    if seconds is None and found.unsaid.duration is None:
        found.counter.skip("whose end is unknown")
        return
    size = next(size for size in reversed(sizes) if size)
    graph = found.unsaid.job(size, None)
    found.add(graph, submit, found.unsaid.base_time(graph, seconds, "end_time"), job_id)


def _run_time(attempts: list[Mapping[str, Any]]) -> float | None:
    """Return the seconds of all attempts together; None if the last one has no end, as that of a running job."""
    total, last = 0.0, None
    for one in attempts:
        start, end = _time(one, "start_time"), _time(one, "end_time")
        last = end
        if start is None or end is None:
            continue
        if end < start:
            raise ValueError(f"end_time = {_checks.shown(one['end_time'])} is before the start")
        total += end - start
    return None if last is None else total


def _num_gpus(attempt: Mapping[str, Any]) -> int:
    machines = (_object(one, "an entry of detail") for one in _list(attempt.get("detail"), "detail"))
    return sum(len(_list(one.get("gpus"), "gpus")) for one in machines)


def _time(record: Mapping[str, Any], key: str) -> float | None:
    """Return a time in seconds; None if it is unknown, for which the trace has null or the text "None"."""
    text = record.get(key)
    if text in (None, "", "None"):
        return None
    try:
        return timestamp(cast("str", text))
    except (ValueError, TypeError):
        raise ValueError(f"{key} = {_checks.shown(text)}, not a time like 2017-10-07 01:12:09") from None


def _object(value: object, what: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} = {_checks.shown(value)} is not an object")
    return cast("Mapping[str, Any]", value)


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{what} = {_checks.shown(value)} is not a list")
    return value  # pyright: ignore[reportUnknownVariableType]
