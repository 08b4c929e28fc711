"""The histories of moved and pre-empted jobs as JSON, and back; for results in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.placement import HostShare, Placement
from topoplace.simulate.interruptions import History, Stay

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_NUMBERS = ("num_moves", "num_preemptions", "since", "left", "work", "run_time", "waited")


def text_of(history: History | None, graphs: dict[JobGraph, int]) -> str | None:
    """Return a history as JSON, None for none; job graphs get numbers in `graphs`."""
    if history is None:
        return None
    numbers = {name: getattr(history, name) for name in _NUMBERS}
    return json.dumps({**numbers, "stays": [_stay_as_dict(stay, graphs) for stay in history.stays]})


def history_of(text: str | None, topology: Topology, graphs: Sequence[JobGraph]) -> History | None:
    """Return the history in a text of `text_of`; ValueError, TypeError, KeyError or IndexError for another text."""
    if text is None:
        return None
    known: dict[str, Any] = json.loads(text)
    stays = [_stay_of(stay, topology, graphs) for stay in known.pop("stays")]
    return History(stays, **{name: known[name] for name in _NUMBERS})


def _stay_as_dict(stay: Stay, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    placement = stay.placement
    return {
        "start": stay.start,
        "end": stay.end,
        "gpus": placement.gpus,
        "scores": dict(placement.scores),
        "optimal": placement.optimal,
        "graph": None if placement.job is None else graphs.setdefault(placement.job, len(graphs)),
        "hosts": [[one.machine, one.cpus, one.memory_gb] for one in placement.hosts],
        "remote": placement.remote,
        "drives": placement.drives,
    }


def _stay_of(known: dict[str, Any], topology: Topology, graphs: Sequence[JobGraph]) -> Stay:
    number: int | None = known["graph"]
    placement = Placement(
        tuple(known["gpus"]),
        topology=topology,
        scores=known["scores"],
        optimal=known["optimal"],
        job=None if number is None else graphs[number],
        hosts=tuple(HostShare(*one) for one in known["hosts"]),
        remote=tuple(known["remote"]),
        drives=tuple(known["drives"]),
    )
    return Stay(placement, float(known["start"]), float(known["end"]))
