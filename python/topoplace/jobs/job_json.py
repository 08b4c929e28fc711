"""Write and read job graphs as canonical, versioned JSON; texts that people write may name a pattern, not edges."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, fields
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import JobGraphError
from topoplace.jobs import groups
from topoplace.jobs.collectives import Collective, summed_edges
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.jobs.parallel import Degrees
from topoplace.jobs.parallel_traffic import VOLUMES, Traffic
from topoplace.jobs.requirements import FIELDS

FORMAT: Final = "topoplace.jobgraph"
VERSION: Final = 1
_FIELDS = {field.name: field.default for field in fields(JobGraph)}
"""Name and default of each field. The name is the JSON key; only the key of `_STATED` is "collectives"."""
_STATED: Final = "stated_collectives"
_COLLECTIVE = {field.name: field.default for field in fields(Collective)}
"""Name, which is the JSON key, and default of each field of a collective."""

_GRIDS: Final[Mapping[str, Callable[[Any], JobGraph]]] = {"mesh": JobGraph.mesh, "torus": JobGraph.torus}


def written(job: JobGraph) -> str:
    """Return `job` as canonical JSON: ASCII, no blanks between values, keys sorted, default values left out.

    Edges that the stated collectives imply, and collectives that `degrees` imply, are also left out.
    """
    record: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for name, default in _FIELDS.items():
        if (value := getattr(job, name)) != default:
            record[name] = value
    if job.groups:
        record["groups"] = groups.written(job.groups)
    stated = record.pop(_STATED, ())
    if job.degrees is not None:
        record["degrees"] = _written_degrees(job.degrees)
        record.pop("edges", None)
    elif stated:
        record["collectives"] = [_written_collective(one) for one in stated]
        if job.edges == summed_edges(stated):
            record.pop("edges", None)
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def _written_degrees(degrees: Degrees) -> dict[str, Any]:
    record = _different(degrees)
    if degrees.traffic is not None:
        traffic = _different(degrees.traffic)
        volumes = {name: dict(traffic[name]) for name in VOLUMES if name in traffic}
        record["traffic"] = traffic | volumes
    return record


def _different(one: Degrees | Traffic) -> dict[str, Any]:
    """Return the fields that are not as by default."""
    stated = ((field, getattr(one, field.name)) for field in fields(one))
    return {field.name: value for field, value in stated if value != field.default}


def _written_collective(one: Collective) -> dict[str, Any]:
    record = asdict(one)
    if not one.shares:
        del record["shares"]
    return record


def parsed(text: str | bytes) -> JobGraph:
    """Read the job graph that `text` describes; JobGraphError states what is wrong with the text.

    A text that names a `pattern` has `num_tasks` (`dims` for a mesh or torus) and no edges. People write such texts:
    they may leave out format and version, and keys are the names of the fields.
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
    _refuse_unknown(record, {*_FIELDS, "collectives"} - {_STATED}, "num_tasks")
    record[_STATED] = tuple(_collectives(record.pop("collectives", ())))
    record["edges"] = _checks.sequence(record.get("edges", ()), "edges", JobGraphError)
    if record.get("degrees") is not None:
        record["degrees"] = _degrees(record["degrees"])
    return JobGraph(**record)


def _degrees(stated: Any) -> Degrees:
    given = _keyed(stated, Degrees, "degrees")
    try:
        if given.get("traffic") is not None:
            given["traffic"] = Traffic(**_keyed(given["traffic"], Traffic, "traffic"))
        return Degrees(**given)
    except JobGraphError as error:
        raise JobGraphError(f"degrees: {error}") from None


def _keyed(stated: Any, kind: type[Degrees | Traffic], what: str) -> dict[str, Any]:
    """Return a mapping whose keys are fields of `kind`; JobGraphError names another key."""
    _checks.instance(stated, dict, what, JobGraphError)
    known = {field.name for field in fields(kind)}
    if unknown := sorted(stated.keys() - known):
        raise JobGraphError(f"{what} has the unknown key {_checks.shown(unknown[0])}")
    return dict(stated)


def _collectives(listed: Any) -> Iterator[Collective]:
    for i, entry in enumerate(_checks.sequence(listed, "collectives", JobGraphError)):
        place = f"collectives[{i}]"
        _checks.instance(entry, dict, place, JobGraphError)
        for key in entry:
            if key not in _COLLECTIVE:
                raise JobGraphError(f"{place} has the unknown key {_checks.shown(key)}")
        for key in ("kind", "tasks", "gigabytes"):
            if key not in entry:
                raise JobGraphError(f"{place} has no {key}")
        try:
            yield Collective(**entry)
        except JobGraphError as error:
            raise JobGraphError(f"{place}: {error}") from None


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
