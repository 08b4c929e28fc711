"""Write and read job graphs as canonical, versioned JSON; texts that people write may name a pattern, not edges."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.jobs.requirements import FIELDS

FORMAT: Final = "topoplace.jobgraph"
VERSION: Final = 1
_FIELDS = {field.name: field.default for field in fields(JobGraph)}
"""Name, which is the JSON key, and default of each field."""

_GRIDS: Final[Mapping[str, Callable[[Any], JobGraph]]] = {"mesh": JobGraph.mesh, "torus": JobGraph.torus}


def written(job: JobGraph) -> str:
    """Return `job` as canonical JSON: ASCII, no blanks between values, keys sorted, default values left out."""
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for name, default in _FIELDS.items():
        if (value := getattr(job, name)) != default:
            record[name] = value
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def parsed(text: str | bytes) -> JobGraph:
    """Read the job graph that `text` describes; JobGraphError states what is wrong with the text.

    A text that names a `pattern` has `num_tasks`, or for a mesh or torus `dims`, and no edges. People write it, so it
    may leave out format and version, and its keys are the names of the fields.
    """
    _checks.refuse_path(text, "text", JobGraphError)
    try:
        data = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise JobGraphError(f"not JSON: {error}") from None
    _checks.instance(data, dict, "the text", JobGraphError)
    record = dict(cast("dict[str, Any]", data))
    found = record.pop("format", None), record.pop("version", None)
    stated = found != (None, None) or "pattern" not in record
    if stated and (found != (FORMAT, VERSION) or isinstance(found[1], bool)):
        raise JobGraphError(f"format and version = {_checks.shown(found)}, not {(FORMAT, VERSION)}")
    return _with_pattern(record) if "pattern" in record else _with_edges(record)


def _with_edges(record: dict[str, Any]) -> JobGraph:
    _refuse_unknown(record, _FIELDS, "num_tasks")
    record["edges"] = _checks.sequence(record.get("edges", ()), "edges", JobGraphError)
    return JobGraph(**record)


def _with_pattern(record: dict[str, Any]) -> JobGraph:
    pattern = _checks.one_of(record.pop("pattern"), "pattern", (*PATTERNS, *_GRIDS), JobGraphError)
    make, size = (_GRIDS[pattern], "dims") if pattern in _GRIDS else (PATTERNS[pattern], "num_tasks")
    _refuse_unknown(record, {*FIELDS, size}, size)
    return make(record.pop(size)).with_(**record)


def _refuse_unknown(record: dict[str, Any], known: Collection[str], needed: str) -> None:
    unknown = sorted(record.keys() - known)
    if unknown or needed not in record:
        raise JobGraphError(
            f"the text has {f'the unknown key {unknown[0]!r}' if unknown else f'no {needed}'}"
        )
