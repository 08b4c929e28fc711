"""Map items that exchange data to the leaves of a tree of domains, such as groups of tasks to machines in racks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT32_MAX, INT64_MAX, integers, reals
from topoplace.kernels.arguments import seconds as checked_seconds

Ints = NDArray[np.int32]
Reals = NDArray[np.float64]
MOVES = 1 << 17
"""Moves that a search tries by default: about 0.1 s of work."""


@dataclass(frozen=True, slots=True)
class PortTree:
    """A tree of domains and the speeds of its ports.

    Domain 0 is the root, parents have smaller numbers, and all leaves have the same depth; leaves count from 0 in the
    order of their domains. Speeds are in 1e-18..1e18 GB/s, and leaves at most 64 deep.
    """

    parent: ArrayLike
    """(d,) the parent of each domain, -1 for the root."""
    room: ArrayLike
    """(l,) the largest number of items of each leaf."""
    uplink: ArrayLike
    """(d,) GB/s of each domain's uplink in one direction; 0 for no limit."""
    own_class: ArrayLike
    """(depth of leaves,) for each depth, the class of the own ports that items use if they meet there."""
    own: ArrayLike
    """(c, l) GB/s of an item's own port of each class on each leaf."""


@dataclass(frozen=True, slots=True)
class Exchanges:
    """The exchanges between items in each phase."""

    num_items: int
    phase_ends: Sequence[int]
    """For each phase, the total number of edges of this phase and those before it."""
    start: ArrayLike
    """(e,) one item of each edge."""
    end: ArrayLike
    """(e,) the other item of each edge."""
    gigabytes: ArrayLike
    """(e,) GB of both directions together."""


class TreeMapping(NamedTuple):
    """The result of `map_to_tree`."""

    leaf_of: Ints
    """(n,) the leaf of each item."""
    seconds: float
    """The sum over the phases of the time of the slowest port."""
    port_seconds: float
    """GB / (GB/s), summed over all uplinks, in one direction."""
    bound: float
    """Lower bound on the seconds of any mapping."""
    complete: bool
    """False if the timeout ended the search."""
    moves: int
    """Number of moves that were tried, divisions of items included."""

    @property
    def optimal(self) -> bool:
        """Return True if it is proven that no mapping takes less time."""
        return self.seconds <= self.bound * (1 + 1e-9)


def map_to_tree(
    tree: PortTree,
    exchanges: Exchanges,
    *,
    start: ArrayLike = (),
    confined: ArrayLike = (),
    others: ArrayLike = (),
    seed: int = 0,
    moves: int = MOVES,
    timeout: float | None = None,
) -> TreeMapping | None:
    """Map each item to a leaf for the least time of the ports, then for few port-seconds, then for few leaves.

    In a phase, all edges are used at the same time, half of the GB each way. The exchange of two items on different
    leaves passes the own port of both, and the uplinks of the domains that it leaves. Return None if there is not
    enough room. The search is a heuristic; `bound` limits how far from the best it may be. The same arguments give the
    same answer.

    Args:
        tree: The domains.
        exchanges: The items and their exchanges.
        start: (n,) a leaf for each item from which to search; by default many starts are tried.
        confined: (n,) the depth of the domain of `start` that each item may not leave.
        others: (phases, d) GB that other jobs send through the uplink of each domain, in one direction. They count in a
            phase if an edge with GB passes the uplink. They are not part of port-seconds, and `bound` may ignore them.
        seed: Seed of random moves.
        moves: Number of moves to try. Divisions of the items count as up to a quarter of them.
        timeout: Limit in seconds; the best mapping so far is returned, at least a first one.

    Raises:
        ValueError: An argument is out of range, or `start` exceeds a leaf's room.
    """
    begin, limit = perf_counter(), checked_seconds(timeout)
    arguments = (
        tree_of(tree),
        items_of(exchanges, start, confined, others),
        _checks.integer(seed, "seed", ValueError, low=0, high=INT64_MAX),
        _checks.integer(moves, "moves", ValueError, low=0, high=INT64_MAX),
    )
    # To read millions of edges takes time too.
    found = _core.map_to_tree(*arguments, None if limit is None else max(0.0, limit + begin - perf_counter()))
    return TreeMapping(*found[1:]) if found[0] else None


class TreeBound(NamedTuple):
    """The result of `tree_bound`."""

    seconds: float
    """Lower bound on the seconds of any mapping."""
    phases: Reals
    """(phases,) lower bound on the seconds of each phase; not all may be reached together."""


def tree_bound(tree: PortTree, exchanges: Exchanges) -> TreeBound:
    """Return the bound of `map_to_tree` without a mapping; zeros if there is not enough room.

    Raises:
        ValueError: An argument is out of range.
    """
    return TreeBound(*_core.tree_bound(tree_of(tree), items_of(exchanges, (), (), ())))


def verify_tree_mapping(
    tree: PortTree,
    exchanges: Exchanges,
    mapping: TreeMapping,
    *,
    start: ArrayLike = (),
    confined: ArrayLike = (),
    others: ArrayLike = (),
) -> bool:
    """Return True if the mapping respects the rooms and the domains of `confined`, and its times are true.

    The check uses only the definition and shares only the checks of arguments with the search.

    Raises:
        ValueError: An argument is out of range.
    """
    leaf_of = integers(mapping.leaf_of, "leaf_of")
    items = items_of(exchanges, start, confined, others)
    fault = _core.verify_tree_mapping(tree_of(tree), items, leaf_of, mapping.seconds, mapping.port_seconds)
    return fault is None


def tree_of(tree: PortTree) -> tuple[Ints, Ints, Reals, Ints, Reals]:
    """Return a tree as arguments of the extension; ValueError for an array of the wrong shape."""
    _checks.instance(tree, PortTree, "tree", ValueError)
    room = integers(tree.room, "room")
    own = reals(tree.own, "own", ndim=2) if np.size(tree.own) else np.empty((0, len(room)))
    if own.shape[1] != len(room):
        raise ValueError(f"own has shape {own.shape}; expected (classes, {len(room)})")
    return (
        integers(tree.parent, "parent"),
        room,
        reals(tree.uplink, "uplink"),
        integers(tree.own_class, "own_class"),
        own.reshape(-1),
    )


def items_of(
    given: Exchanges, start: ArrayLike, confined: ArrayLike, others: ArrayLike
) -> tuple[int, NDArray[np.int64], Ints, Ints, Reals, Ints, Ints, Reals]:
    """Return items as arguments of the extension; ValueError for an array of the wrong shape."""
    _checks.instance(given, Exchanges, "exchanges", ValueError)
    return (
        _checks.integer(given.num_items, "num_items", ValueError, low=0, high=INT32_MAX),
        integers(given.phase_ends, "phase_ends").astype(np.int64),
        integers(given.start, "start of exchanges"),
        integers(given.end, "end of exchanges"),
        reals(given.gigabytes, "gigabytes"),
        integers(start, "start"),
        integers(confined, "confined"),
        _others(others, len(given.phase_ends)),
    )


def _others(given: ArrayLike, phases: int) -> Reals:
    if not np.size(given):
        return np.empty(0)
    rows = reals(given, "others", ndim=2)
    if len(rows) != phases:
        raise ValueError(f"others has shape {rows.shape}; expected ({phases}, domains)")
    return rows.reshape(-1)
