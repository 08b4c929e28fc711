"""Write and read job graphs as canonical, versioned JSON."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.job_graph import JobGraph

FORMAT: Final = "topoplace.jobgraph"
VERSION: Final = 1
_KEY_OF = {"single_machine": "single_node"}
"""JSON key of each `JobGraph` field whose key in version 1 of the format differs from the field name."""


def written(job: JobGraph) -> str:
    """Return `job` as canonical JSON: ASCII, no blanks between values, keys sorted, default values left out."""
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for field in fields(job):
        if (value := getattr(job, field.name)) != field.default:
            record[_KEY_OF.get(field.name, field.name)] = value
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def parsed(text: str | bytes) -> JobGraph:
    """Read the job graph that `text` describes; JobGraphError states what is wrong with the text."""
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise JobGraphError(f"not JSON: {error}") from None
    _checks.instance(data, dict, "the text", JobGraphError)
    record = dict(cast("dict[str, Any]", data))
    found = record.pop("format", None), record.pop("version", None)
    if found != (FORMAT, VERSION) or isinstance(found[1], bool):
        raise JobGraphError(f"format and version = {_checks.shown(found)}, not {(FORMAT, VERSION)}")
    unknown = sorted(record.keys() - {_KEY_OF.get(field.name, field.name) for field in fields(JobGraph)})
    if unknown or "num_tasks" not in record:
        raise JobGraphError(
            f"the text has {f'the unknown key {unknown[0]!r}' if unknown else 'no num_tasks'}"
        )
    record["edges"] = _checks.sequence(record.get("edges", ()), "edges", JobGraphError)
    for name, key in _KEY_OF.items():
        if key in record:
            record[name] = record.pop(key)
    return JobGraph(**record)
