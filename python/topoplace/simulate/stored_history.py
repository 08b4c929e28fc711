"""The histories of moved and pre-empted jobs as JSON, and back; for results in files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from topoplace.simulate.interruptions import History, Stay
from topoplace.simulate.stored_placements import as_dict, placement_of

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
    """Return the history in a text of `text_of`; ValueError, TypeError or KeyError for another text."""
    if text is None:
        return None
    known: dict[str, Any] = json.loads(text)
    stays = [_stay_of(stay, topology, graphs) for stay in known.pop("stays")]
    return History(stays, **{name: known[name] for name in _NUMBERS})


def _stay_as_dict(stay: Stay, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    return {"start": stay.start, "end": stay.end, **as_dict(stay.placement, graphs)}


def _stay_of(known: dict[str, Any], topology: Topology, graphs: Sequence[JobGraph]) -> Stay:
    return Stay(placement_of(known, topology, graphs), float(known["start"]), float(known["end"]))
