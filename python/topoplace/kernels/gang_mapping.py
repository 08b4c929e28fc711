"""Map the tasks of a gang to the vertices of a collective network, such as the free GPUs of machines in racks."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT64_MAX, integers
from topoplace.kernels.arguments import seconds as checked_seconds
from topoplace.kernels.job_traffic import CollectiveNetwork, JobCollectives
from topoplace.kernels.port_network import FlowCounts
from topoplace.kernels.tree_mapping import MOVES, Exchanges, PortTree, items_of, tree_of

Ints = NDArray[np.int32]
Reals = NDArray[np.float64]
WORK = 1 << 22
"""Hops that a search loads by default: about 0.1 s of work."""


@dataclass(frozen=True, slots=True)
class GangPlaces:
    """The tasks of each item, and the vertices of each leaf."""

    tasks: ArrayLike
    """(items, t) the tasks of each item, which are on one leaf."""
    leaf_ends: ArrayLike
    """(l,) for each leaf, the total number of places of this leaf and those before it; a leaf has enough places for its
    room.
    """
    places: ArrayLike
    """(p,) the vertices of the leaves, leaf after leaf."""


class GangMapping(NamedTuple):
    """The result of `map_gang`."""

    vertex_of: Ints
    """(n,) the vertex of each task."""
    seconds: float
    """Seconds of all phases, next to `others`; infinity if two tasks have no path. Seconds and port-seconds are both
    infinite if the timeout ended the search before they were known.
    """
    port_seconds: float
    """GB / (GB/s), summed over the hops of all uplinks."""
    complete: bool
    """False if the timeout ended the search."""
    work: int
    """Number of hops that were loaded."""


def map_gang(
    network: CollectiveNetwork,
    job: JobCollectives,
    tree: PortTree,
    exchanges: Exchanges,
    places: GangPlaces,
    *,
    start: ArrayLike = (),
    confined: ArrayLike = (),
    others: FlowCounts | None = None,
    least_seconds: float = 0.0,
    seed: int = 0,
    work: int = WORK,
    moves: int = MOVES,
    others_of_tree: ArrayLike = (),
    timeout: float | None = None,
) -> GangMapping | None:
    """Map each task to a vertex for the least communication time, then for few port-seconds.

    Return None if there is not enough room. For few tasks and places, all assignments are compared; otherwise, the
    search is a heuristic. The same arguments give the same answer.

    Args:
        tree: The domains of the leaves; its speeds only decide where searches start.
        exchanges: The exchanges of items, which also only decide where searches start.
        start: (items,) a leaf for each item from which to search; by default many starts are tried.
        confined: (items,) the depth of the domain of `start` that each item may not leave.
        others: Flows of other jobs in the same network; None for none. On a hop that the job uses, each of them counts
            up to the GB of the job's own largest flow there.
        least_seconds: A lower bound on the seconds of any mapping; the search ends if it reaches this bound.
        seed: Seed of random steps.
        work: Number of hops to load.
        moves: Number of moves to try in the tree alone (`map_to_tree`), if some tasks exchange in pairs.
        others_of_tree: (phases, d) as `others` of `map_to_tree`.
        timeout: Limit in seconds; the best mapping so far is returned, at least a first one.

    Raises:
        ValueError: An argument is out of range.
    """
    begin, limit = perf_counter(), checked_seconds(timeout)
    arguments = (
        *_arguments(network, job, tree, exchanges, places, (start, confined, others_of_tree), others),
        _checks.real(least_seconds, "least_seconds", ValueError, low=0.0),
        _checks.integer(seed, "seed", ValueError, low=0, high=INT64_MAX),
        _checks.integer(work, "work", ValueError, low=0, high=INT64_MAX),
        _checks.integer(moves, "moves", ValueError, low=0, high=INT64_MAX),
    )
    # To read millions of edges takes time too.
    left = None if limit is None else max(0.0, limit + begin - perf_counter())
    found = _core.map_gang(*arguments, left)
    return GangMapping(*found[1:]) if found[0] else None


def verify_gang_mapping(
    network: CollectiveNetwork,
    job: JobCollectives,
    tree: PortTree,
    exchanges: Exchanges,
    places: GangPlaces,
    mapping: GangMapping,
    *,
    start: ArrayLike = (),
    confined: ArrayLike = (),
    others: FlowCounts | None = None,
) -> bool:
    """Return True if the mapping respects the rooms, the items and the domains of `confined`, and its times are true.

    The check uses only the definition and shares only the checks of arguments with the search. A mapping whose seconds
    and port-seconds are both infinite makes no claim about its time.

    Raises:
        ValueError: An argument is out of range.
    """
    vertex_of = integers(mapping.vertex_of, "vertex_of")
    arguments = _arguments(network, job, tree, exchanges, places, (start, confined, ()), others)
    return _core.verify_gang(*arguments, vertex_of, mapping.seconds, mapping.port_seconds) is None


_Items = tuple[int, NDArray[np.int64], Ints, Ints, Reals, Ints, Ints, Reals]
_Tree = tuple[Ints, Ints, Reals, Ints, Reals]
_Arguments = tuple[
    _core.CollectiveNetwork,
    _core.JobCollectives,
    _Tree,
    _Items,
    tuple[Ints, NDArray[np.int64], Ints],
    _core.FlowCounts | None,
]


def _arguments(
    network: CollectiveNetwork,
    job: JobCollectives,
    tree: PortTree,
    exchanges: Exchanges,
    places: GangPlaces,
    items: tuple[ArrayLike, ArrayLike, ArrayLike],
    others: FlowCounts | None,
) -> _Arguments:
    """Return what both functions of the extension take; ValueError for what has the wrong type or shape.

    items: start, confined and others, as `map_to_tree` takes them.
    """
    _checks.instance(network, CollectiveNetwork, "network", ValueError)
    _checks.instance(job, JobCollectives, "job", ValueError)
    _checks.instance(places, GangPlaces, "places", ValueError)
    if others is not None:
        _checks.instance(others, FlowCounts, "others", ValueError)
        if others.network is not network.network:
            raise ValueError("others are flows of another network")
    return (
        network.native,
        job.native,
        tree_of(tree),
        items_of(exchanges, *items),
        (
            integers(places.tasks, "tasks", ndim=2).reshape(-1),
            integers(places.leaf_ends, "leaf_ends").astype(np.int64),
            integers(places.places, "places"),
        ),
        None if others is None else others.native,
    )
