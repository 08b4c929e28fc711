"""Placements as plain values, and back; for results in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topoplace import _checks
from topoplace.placement import HostShare, Placement

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology


def as_dict(placement: Placement, graphs: dict[JobGraph, int]) -> dict[str, Any]:
    """Return a placement, without its topology, as values that JSON has; its job graph gets a number in `graphs`."""
    return {
        "gpus": list(placement.gpus),
        "scores": dict(placement.scores),
        "optimal": placement.optimal,
        "graph": None if placement.job is None else graphs.setdefault(placement.job, len(graphs)),
        "hosts": [[one.machine, one.cpus, one.memory_gb] for one in placement.hosts],
        "remote": list(placement.remote),
        "drives": list(placement.drives),
    }


def placement_of(known: Mapping[str, Any], topology: Topology, graphs: Sequence[JobGraph]) -> Placement:
    """Return the placement of which `as_dict` made `known`.

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
    )


def graph_of(number: object, graphs: Sequence[JobGraph]) -> JobGraph:
    """Return the job graph of a number; ValueError if there is none."""
    return graphs[_checks.integer(number, "number of a job graph", ValueError, low=0, high=len(graphs) - 1)]
