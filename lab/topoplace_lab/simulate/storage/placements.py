"""Convert placements, and histories of jobs that did not run in one go, to JSON and back, for results in files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.mig import MigSlice
from topoplace.placement import HostShare, Placement
from topoplace_lab.simulate.failures import Failure
from topoplace_lab.simulate.interruptions import History, Stay

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_NUMBERS = ("num_moves", "num_preemptions", "since", "left", "work", "run_time", "waited")
_OF_FAILURES = ("pause", "paused", "lost", "wasted")
"""Numbers that files from before there were failures do not have."""


def as_dict(placement: Placement, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    """Return a placement, without its topology, as values for JSON; its job graph gets a number in `graphs`."""
    return {
        "gpus": list(placement.gpus),
        "scores": dict(placement.scores),
        "optimal": placement.optimal,
        "graph": None if placement.job is None else graphs.setdefault(placement.job, len(graphs)),
        "hosts": [[one.machine, one.cpus, one.memory_gb] for one in placement.hosts],
        "remote": list(placement.remote),
        "drives": list(placement.drives),
        "slices": [list(one) for one in placement.slices],
        "resliced": list(placement.resliced),
    }


def placement_of(known: Mapping[str, Any], topology: Topology, graphs: Sequence[JobGraph]) -> Placement:
    """Return the placement from which `as_dict` made `known`.

    ValueError, TypeError or KeyError for other values.
    """
    return Placement(
        tuple(known["gpus"]),
        topology=topology,
        scores=known["scores"],
        optimal=known["optimal"],
        job=None if known["graph"] is None else graph_of(known["graph"], graphs),
        hosts=tuple(HostShare(*one) for one in known["hosts"]),
        remote=tuple(known["remote"]),
        drives=tuple(known["drives"]),
        slices=tuple(MigSlice(*one) for one in known["slices"] or ()),
        resliced=tuple(known["resliced"] or ()),
    )


def graph_of(number: object, graphs: Sequence[JobGraph]) -> JobGraph:
    """Return the job graph with this number; ValueError if there is none."""
    return graphs[_checks.integer(number, "number of a job graph", ValueError, low=0, high=len(graphs) - 1)]


def text_of(history: History | None, graphs: dict[JobGraph, int]) -> str | None:
    """Return a history as JSON, None for None; job graphs get numbers in `graphs`."""
    if history is None:
        return None
    known: dict[str, Any] = {name: getattr(history, name) for name in (*_NUMBERS, *_OF_FAILURES)}
    known["failures"] = [list(failure) for failure in history.failures]
    return json.dumps({**known, "stays": [_stay_as_dict(stay, graphs) for stay in history.stays]})


def history_of(text: str | None, topology: Topology, graphs: Sequence[JobGraph]) -> History | None:
    """Return the history in a text from `text_of`; ValueError, TypeError or KeyError for another text."""
    if text is None:
        return None
    known: dict[str, Any] = json.loads(text)
    stays = [_stay_of(stay, topology, graphs) for stay in known.pop("stays")]
    numbers = {name: known[name] for name in _NUMBERS}
    numbers |= {name: known[name] for name in _OF_FAILURES if name in known}
    return History(stays, **numbers, failures=[Failure(*one) for one in known.get("failures", ())])


def _stay_as_dict(stay: Stay, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    return {"start": stay.start, "end": stay.end, **as_dict(stay.placement, graphs)}


def _stay_of(known: dict[str, Any], topology: Topology, graphs: Sequence[JobGraph]) -> Stay:
    return Stay(placement_of(known, topology, graphs), float(known["start"]), float(known["end"]))
