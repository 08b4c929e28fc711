"""Read and write job manifests: job lists in the JSON format of SC'17's prototype.

We add the field `job` for job graphs that the original fields cannot express.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.jobs.requirements import MAX_TASKS
from topoplace_lab.simulate.workloads.job_columns import job_of
from topoplace_lab.simulate.workloads.trace_rows import TraceColumns

if TYPE_CHECKING:
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

_USED: Final = frozenset(
    (
        *("id", "gpus", "arrival", "type", "size", "minimal_utility", "mem", "tasks", "time", "color"),
        "job",
    )
)
_COLOR: Final = "#000000"
"""Placeholder; the prototype requires a colour to plot the job."""


def read_manifests(
    text: str | bytes,
    profile: PerformanceProfile | None,
    weights: Mapping[str, float],
    *,
    skip_bad_rows: bool = False,
) -> TraceColumns:
    """Read the jobs of a JSON text of manifests, sorted by the field `arrival`, then by the field `color`.

    profile: measured run times; None takes each job's field `time`, in seconds. weights: the weight of a job graph's
    edges by the field `size`, the batch size; 1 for other sizes. skip_bad_rows: count bad manifests instead of raising
    ValueError. ValueError also if the text is not JSON. See `Workload.from_manifests`.
    """
    try:
        return _read(text, profile, weights, skip_bad_rows)
    except RecursionError:
        raise ValueError("the text is nested too deeply") from None


def _read(
    text: str | bytes,
    profile: PerformanceProfile | None,
    weights: Mapping[str, float],
    skip_bad_rows: bool,
) -> TraceColumns:
    columns = TraceColumns(skip_bad_rows=skip_bad_rows)
    counter = columns.counter
    rows: list[tuple[str, dict[str, Any]]] = []
    for where, record in _records(text):
        with counter.row():
            fields = _fields(record, where)
            counter.ignore(fields.keys() - _USED)
            rows.append((where, fields))
    for where, fields in sorted(rows, key=lambda row: (row[1]["arrival"], str(row[1].get("color", "")))):
        with counter.guarded():
            try:
                job = _job(fields, weights)
                base = _base_time(job, fields, profile)
            except ValueError as error:
                raise ValueError(f"{where}: {error}") from None
            columns.add(job, fields["arrival"], base, fields["id"])
    return columns


def write_manifests(jobs: Iterator[SubmittedJob]) -> str:
    """Return the jobs as JSON text: an object with one manifest per job id.

    A job that the prototype's fields cannot express also has its job graph in the field `job`.
    """
    records: dict[str, dict[str, Any]] = {}
    for row in jobs:
        job = row.job
        kind, _, size = (job.profile or "").rpartition("/")
        record: dict[str, Any] = {
            "id": int(row.job_id) if _is_plain(row.job_id) else row.job_id,
            "type": kind or job.profile or "",
            "size": size if kind else "",
            "gpus": job.num_tasks,
            "mem": job.memory_gb or 0,
            "tasks": job.cpus or 0,
            "minimal_utility": job.min_utility,
            "arrival": row.submit_time,
            "time": row.base_time,
            "color": _COLOR,
        }
        if _job(record, {}) != job:
            record["job"] = json.loads(job.to_json())
        records[row.job_id] = record
    return json.dumps(records, indent=2)


def _is_plain(job_id: str) -> bool:
    return job_id.isascii() and job_id.isdecimal() and str(int(job_id[:18])) == job_id


def _records(text: str | bytes) -> Iterator[tuple[str, object]]:
    """Yield (position, manifest) for each job in the JSON text; the position, such as `jobs[3]`, is for messages."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if isinstance(data, dict):
        for key, record in cast("dict[str, object]", data).items():
            keyed = {"id": key, **cast("dict[str, object]", record)} if isinstance(record, dict) else record
            yield f"job {_checks.shown(key)}", keyed
    else:
        for i, record in enumerate(_checks.sequence(data, "the text", ValueError)):
            yield f"jobs[{i}]", record


def _fields(record: object, where: str) -> dict[str, Any]:
    """Return the fields of one job's manifest (a JSON object); raise ValueError if a required field is missing.

    where: position of the manifest, for messages.
    """
    _checks.instance(record, dict, where, ValueError)
    fields = dict(cast("dict[str, Any]", record))
    missing = [key for key in ("id", "gpus", "arrival") if key not in fields]
    if missing:
        raise ValueError(f"{where}: no {missing[0]!r}")
    fields["arrival"] = _checks.real(fields["arrival"], f"{where}: arrival", ValueError)
    fields |= {key: _word(fields.get(key, ""), f"{where}: {key}") for key in ("id", "type", "size")}
    return fields


def _word(value: object, what: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError(f"{what} = {_checks.shown(value)} is not a string or a whole number")
    return str(value)


def _job(fields: Mapping[str, Any], weights: Mapping[str, float]) -> JobGraph:
    if "job" in fields:
        return JobGraph.from_json(json.dumps(fields["job"]))
    kind, size = fields["type"], fields["size"]
    num_gpus = _checks.integer(fields["gpus"], "gpus", ValueError, low=1, high=MAX_TASKS)
    profile = f"{kind}/{size}" if kind and size else kind or None
    return job_of("clique", num_gpus, True, profile, weights.get(size, 1.0)).with_(
        min_utility=fields.get("minimal_utility", 0.0),
        memory_gb=fields.get("mem") or None,
        cpus=fields.get("tasks") or None,
        single_machine=True,
    )


def _base_time(job: JobGraph, fields: Mapping[str, Any], profile: PerformanceProfile | None) -> float:
    if profile is None:
        if "time" not in fields:
            raise ValueError(f"job {_checks.shown(fields['id'])} has no 'time': add it, or give a profile")
        return _checks.real(fields["time"], "time", ValueError)
    ideal = profile.ideal_time(job.profile or "", job.num_tasks)
    if ideal is None:
        raise ValueError(f"{_checks.shown(job.profile)} on {job.num_tasks} GPUs is not in the profile")
    return ideal
