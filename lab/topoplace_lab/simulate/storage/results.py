"""Convert results of simulations to columns with a row per job, and back.

The columns are those of `Result.jobs`, a column `score.NAME` for each score, and others that `load` needs. The
topology, the policy's name, the seed, the options and the different job graphs are JSON next to them. Nothing is lost:
`load` returns an equal result.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement
from topoplace.topology.topology import Topology
from topoplace_lab.simulate.metrics import JobRecord, Result
from topoplace_lab.simulate.performance.transfers import Transfers
from topoplace_lab.simulate.storage import tables
from topoplace_lab.simulate.storage.placements import as_dict, graph_of, history_of, placement_of, text_of
from topoplace_lab.simulate.storage.tables import FLAG, FLOAT, INT, INTS, TEXT, Kind
from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

FORMAT: Final = "topoplace.result"
VERSION: Final = 1
_SCORE: Final = "score."


_COLUMNS: Final[Mapping[str, Kind]] = {
    **{"job": TEXT, "submit": FLOAT, "start": FLOAT, "end": FLOAT, "wait": FLOAT, "run_time": FLOAT},
    **{"slowdown": FLOAT, "slowdown_with_wait": FLOAT, "min_utility": FLOAT, "num_gpus": INT},
    **{"gpu_fraction": FLOAT, "bandwidth_sensitive": FLAG, "profile": TEXT, "gpus": INTS},
    **{"postponed": INT, "rejected": TEXT, "moves": INT, "preemptions": INT},
    **{"failures": INT, "resizes": INT, "tasks_moved": INT, "lost": FLOAT, "gpu_seconds": FLOAT},
    # In addition to the columns of `Result.jobs`:
    **{"base_time": FLOAT, "requested_time": FLOAT, "transfers": TEXT, "graph": INT},
    **{
        "placed": FLAG,
        "placed_graph": INT,
        "optimal": FLAG,
        "hosts": TEXT,
        "remote": INTS,
        "drives": INTS,
        "slices": TEXT,
        "resliced": INTS,
        "history": TEXT,
    },
}
"""The columns but those of scores. graph, placed_graph: the job graph of the job, and of its placement, by number."""

_NOT_READ: Final = frozenset(("failures", "resizes", "tasks_moved", "lost", "gpu_seconds"))
"""Columns that older files lack; the history says the same."""


def save(result: Result, path: str | os.PathLike[str]) -> None:
    """Write `result` to `path`, see `Result.save`."""
    form = tables.form_of(Path(path))
    kinds, columns, about = _table(result)
    with tables.replacing(Path(path)) as file:
        form.write(file, kinds, columns, json.dumps(about, separators=(",", ":")))


def load(path: str | os.PathLike[str]) -> Result:
    """Read the result in `path`, see `Result.load`."""
    about, columns = tables.form_of(Path(path)).read(Path(path), _kind_of)
    described, graphs = _about(about)
    missing = [name for name in _COLUMNS if name not in columns and name not in _NOT_READ]
    if missing:
        raise ValueError(f"the file has no column {missing[0]!r}")
    scores = [name for name in columns if name.startswith(_SCORE)]
    records: list[JobRecord] = []
    for number, values in enumerate(zip(*columns.values(), strict=True)):
        row = dict(zip(columns, values, strict=True))
        try:
            records.append(_record(number, row, scores, described.topology, graphs))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise ValueError(f"row {number + 1}: {error}") from None
    return replace(described, records=tuple(records))


def _kind_of(name: str) -> Kind:
    """Return the kind of a column; columns that are not ours are text."""
    return FLOAT if name.startswith(_SCORE) else _COLUMNS.get(name, TEXT)


# ---- a result as columns -------------------------------------------------------------------------------------


def _table(result: Result) -> tuple[dict[str, Kind], dict[str, list[Any]], dict[str, Any]]:
    """Return the kinds of the columns, their values, and what is not in rows."""
    graphs: dict[JobGraph, int] = {}
    jobs = result.jobs
    shown = [name for name in jobs.dtype.names or () if name != "scores"]
    columns: dict[str, list[Any]] = {
        name: [_or_none(value) for value in jobs[name].tolist()] for name in shown
    }
    further = [_further(record, graphs) for record in result.records]
    columns |= {name: [row[name] for row in further] for name in _COLUMNS if name not in shown}
    columns |= _score_columns(result)
    kinds = {name: _kind_of(name) for name in (*_COLUMNS, *columns)}
    about = {
        "format": FORMAT,
        "version": VERSION,
        "policy": result.policy,
        "seed": None if result.seed is None else int(result.seed),
        "options": None if result.options is None else dict(result.options),
        "topology": json.loads(result.topology.to_json()),
        "graphs": [json.loads(graph.to_json()) for graph in graphs],
    }
    return kinds, {name: columns[name] for name in kinds}, about


def _further(record: JobRecord, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    """Return what a record has in addition to its row in `Result.jobs`; job graphs get numbers in `graphs`."""
    submitted, placement = record.submitted, record.placement
    transfers = submitted.transfers
    row: dict[str, Any] = {
        "base_time": submitted.base_time,
        "requested_time": _or_none(submitted.requested_time),
        "transfers": None if transfers is None else json.dumps(asdict(transfers)),
        "graph": graphs.setdefault(submitted.job, len(graphs)),
        "placed": placement is not None,
        "history": text_of(record.history, graphs),
        **dict.fromkeys(("placed_graph", "optimal", "hosts", "remote", "drives", "slices", "resliced")),
    }
    if placement is not None:
        known = as_dict(placement, graphs)
        row |= {name: known[name] for name in ("optimal", "remote", "drives", "resliced")}
        row["slices"] = json.dumps(known["slices"]) if known["slices"] else None
        row["placed_graph"], row["hosts"] = known["graph"], json.dumps(known["hosts"])
    return row


def _score_columns(result: Result) -> dict[str, list[float | None]]:
    scores = [_scores(record) for record in result.records]
    names = dict.fromkeys(name for of_one in scores for name in of_one)
    return {_SCORE + name: [of_one.get(name) for of_one in scores] for name in names}


def _scores(record: JobRecord) -> Mapping[str, float]:
    return record.placement.scores if record.placement else {}


def _or_none(value: Any) -> Any:
    """Return a value without NaN, which stands for a time that is unknown."""
    return None if isinstance(value, float) and math.isnan(value) else value


# ---- columns as a result -------------------------------------------------------------------------------------


def _about(text: str) -> tuple[Result, list[JobGraph]]:
    """Return a result without records, and the job graphs; ValueError if the text is not that of a result."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not a result of topoplace: {error}") from None
    _checks.instance(about, dict, "the header", ValueError)
    about = cast("dict[str, Any]", about)
    found = about.get("format"), about.get("version")
    if found != (FORMAT, VERSION):
        raise ValueError(f"format and version = {_checks.shown(found)}, not {(FORMAT, VERSION)}")
    graphs = _checks.sequence(about.get("graphs"), "graphs", ValueError)
    topology = Topology.from_json(json.dumps(about.get("topology")))
    policy = _checks.text(about.get("policy"), "policy", ValueError)
    seed, options = about.get("seed"), about.get("options")
    if seed is not None:
        _checks.integer(seed, "seed", ValueError, low=0, high=1 << 64)
    if options is not None:
        _checks.instance(options, dict, "options", ValueError)
        for name, value in cast("dict[str, Any]", options).items():
            _checks.text(value, f"options[{name!r}]", ValueError)
    described = Result(topology, policy, (), seed, options)
    return described, [JobGraph.from_json(json.dumps(graph)) for graph in graphs]


def _record(
    number: int, row: Mapping[str, Any], scores: Sequence[str], topology: Topology, graphs: Sequence[JobGraph]
) -> JobRecord:
    transfers = row["transfers"]
    submitted = SubmittedJob(
        number,
        _checks.text(row["job"], "job", ValueError),
        graph_of(row["graph"], graphs),
        _time(row, "submit"),
        _time(row, "base_time"),
        None if transfers is None else Transfers(**json.loads(transfers)),
        _time(row, "requested_time"),
    )
    return JobRecord(
        submitted,
        _placement(row, scores, topology, graphs) if row["placed"] else None,
        _time(row, "start"),
        _time(row, "end"),
        _time(row, "run_time"),
        _checks.integer(row["postponed"], "postponed", ValueError, low=0, high=1 << 62),
        row["rejected"] or "",
        history_of(row["history"], topology, graphs),
    )


def _placement(
    row: Mapping[str, Any], scores: Sequence[str], topology: Topology, graphs: Sequence[JobGraph]
) -> Placement:
    known = {
        **{name: row.get(name) or () for name in ("gpus", "remote", "drives", "resliced")},
        "slices": json.loads(row.get("slices") or "[]"),
        "scores": {name[len(_SCORE) :]: row[name] for name in scores if row[name] is not None},
        "optimal": row["optimal"],
        "graph": row["placed_graph"],
        "hosts": json.loads(row["hosts"]),
    }
    return placement_of(known, topology, graphs)


def _time(row: Mapping[str, Any], name: str) -> float:
    return math.nan if row[name] is None else _checks.real(row[name], name, ValueError, low=-math.inf)
