"""Pack groups of tasks into a tree of domains, such as racks of machines, each group inside one domain.

`repack_groups` does so again after some tasks have lost their place, with the fewest moves.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.errors import SearchTimeoutError
from topoplace.kernels.arguments import INT32_MAX, integers, node_limit, seconds

Ints = NDArray[np.int32]
_OWN_LIMIT: Final = 1 << 16
"""Nodes of the search for a packing, `Fit::nodes_left_` in cpp/src/groups/fit.hpp."""


class GroupPacking(NamedTuple):
    """The result of `pack_groups`: the number of tasks of each group on each leaf."""

    shares: Ints
    """(s, 3): group, leaf and number of tasks, by group and then by leaf. Tasks of a group inside another one count
    for the inner group alone."""
    complete: bool
    """False if a limit ended the search before the shares were balanced."""
    fewest: bool
    """True if no packing uses fewer domains at the first depth, from the top, at which their numbers differ."""
    nodes: int
    """Number of nodes that the search visited."""


def pack_groups(
    parent: ArrayLike,
    room: ArrayLike,
    group_parent: ArrayLike,
    group_depth: ArrayLike,
    own_tasks: ArrayLike,
    *,
    balanced: int | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> GroupPacking | None:
    """Put the tasks of a job into a tree of domains, each group inside one domain; None if that is impossible.

    Domain 0 is the root; parents have smaller numbers, and all leaves have the same depth. Group 0 is the job, of depth
    0; parents have smaller numbers and smaller depths. Whether a packing exists is decided exactly within the search's
    own limit of 2^16 nodes, which no argument raises. A packing with `fewest` uses the fewest domains, from the top
    down; ties go to those with the least room. If the job has too many tasks and kinds of groups for the size of the
    tree, each domain instead uses few of its children.

    Args:
        parent: (d,) the parent of each domain, -1 for the root.
        room: (d,) the largest number of tasks of each domain; an inner one is also limited by its children.
        group_parent: (g,) the group around each group, -1 for the job.
        group_depth: (g,) the depth at which one domain must contain the whole group.
        own_tasks: (g,) the tasks of each group that are in no group inside it.
        balanced: Depth of domains that are used as evenly as possible, and in no larger number than without it; None
            for none. The largest share is minimal, then the number of domains that have it, and so on for the other
            shares. If groups differ, no single task can be moved for more even shares, but exchanges of groups are not
            all tried. The search for even shares ends after 2^18 nodes.

    Raises:
        SearchTimeoutError: `timeout`, `max_nodes` or the search's own limit ends the search before a packing is found.
        ValueError: An argument is out of range.
    """
    found, shares, complete, fewest, nodes = _core.pack_groups(
        *_problem(parent, room, group_parent, group_depth, own_tasks),
        _depth(balanced),
        seconds(timeout),
        node_limit(max_nodes),
    )
    if found:
        return GroupPacking(shares, complete, fewest, nodes)
    if not complete:
        own = f"the search's own limit of {_OWN_LIMIT} nodes"
        ended = " and ".join([*_limits(timeout, max_nodes), own])
        raise SearchTimeoutError(f"no packing found within {ended}, although one may exist", None)
    return None


class GroupRepacking(NamedTuple):
    """The result of `repack_groups`: the number of tasks of each group on each leaf, and how many of them move."""

    shares: Ints
    """(s, 3): group, leaf and number of tasks, as in `GroupPacking`."""
    moved: int
    """Number of tasks that are on another leaf than before, those without a place before included."""
    bound: int
    """No repacking moves fewer tasks."""
    nodes: int
    """Number of minimum-cost flows that the search solved."""

    @property
    def optimal(self) -> bool:
        """Return True if it is proven that no repacking moves fewer tasks."""
        return self.moved == self.bound


def repack_groups(
    parent: ArrayLike,
    room: ArrayLike,
    group_parent: ArrayLike,
    group_depth: ArrayLike,
    own_tasks: ArrayLike,
    kept: ArrayLike,
    *,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> GroupRepacking | None:
    """Give all tasks of a packed job a place again, and move as few as possible; None if that is impossible.

    Tasks that have a place may have to move as well: so that another one fits into its group's domain, or with their
    whole group. Of repackings with as few moves, one has few tasks on leaves without `kept` tasks. The search is branch
    and bound over minimum-cost flows. It is exact unless a limit ends it, and returns the best found then.

    Args:
        parent: (d,) the tree of domains, as for `pack_groups`.
        room: (d,) the largest number of the job's tasks on each domain, those that are there now included.
        group_parent: (g,) the group around each group, -1 for the job.
        group_depth: (g,) the depth at which one domain must contain the whole group.
        own_tasks: (g,) the tasks of each group that are in no group inside it.
        kept: (k, 3) group, leaf and number of the tasks that have a place, each group and leaf at most once. The other
            tasks have lost theirs.

    Raises:
        SearchTimeoutError: `timeout` or `max_nodes` ends the search before a packing is found.
        ValueError: An argument is out of range.
    """
    found, shares, complete, moved, bound, nodes = _core.repack_groups(
        *_problem(parent, room, group_parent, group_depth, own_tasks),
        _rows(kept, "kept"),
        seconds(timeout),
        node_limit(max_nodes),
    )
    if found:
        return GroupRepacking(shares, moved, bound, nodes)
    if not complete:
        ended = " and ".join(_limits(timeout, max_nodes))
        raise SearchTimeoutError(f"no repacking found within {ended}, although one may exist", None)
    return None


def verify_group_repacking(
    parent: ArrayLike,
    room: ArrayLike,
    group_parent: ArrayLike,
    group_depth: ArrayLike,
    own_tasks: ArrayLike,
    kept: ArrayLike,
    shares: ArrayLike,
    moved: int,
) -> bool:
    """Return True if `shares` (s, 3) packs all tasks as `verify_group_packing` says, and `moved` of them move.

    The check uses only the definition of `repack_groups` and shares no code with the search. It does not check that few
    tasks move.

    Raises:
        ValueError: An argument is out of range.
    """
    problem = _problem(parent, room, group_parent, group_depth, own_tasks)
    _checks.integer(moved, "moved", ValueError, low=0, high=INT32_MAX)
    return _core.verify_group_repacking(*problem, _rows(kept, "kept"), _rows(shares, "shares"), moved) is None


def verify_group_packing(
    parent: ArrayLike,
    room: ArrayLike,
    group_parent: ArrayLike,
    group_depth: ArrayLike,
    own_tasks: ArrayLike,
    shares: ArrayLike,
    *,
    balanced: int | None = None,
) -> bool:
    """Return True if `shares` (s, 3) places all tasks, each group in one domain, and no domain is over its room.

    The check uses only the definition of `pack_groups` and shares no code with the search. It does not check that few
    domains are used. With `balanced`, no single task may be movable for more even shares.

    Raises:
        ValueError: An argument is out of range.
    """
    problem = _problem(parent, room, group_parent, group_depth, own_tasks)
    return _core.verify_group_packing(*problem, _depth(balanced), _rows(shares, "shares")) is None


def _rows(shares: ArrayLike, name: str) -> Ints:
    rows = _checks.numbers_of(shares, name, ValueError)
    if not rows.size:
        return np.empty((0, 3), np.int32)
    if rows.ndim != 2 or rows.shape[1] != 3:
        raise ValueError(f"{name} has shape {rows.shape}; expected (s, 3)")
    return integers(rows, name, ndim=2)


def _problem(*arrays: ArrayLike) -> tuple[Ints, Ints, Ints, Ints, Ints]:
    names = ("parent", "room", "group_parent", "group_depth", "own_tasks")
    parent, room, group_parent, group_depth, own_tasks = (
        integers(array, name) for array, name in zip(arrays, names, strict=True)
    )
    return parent, room, group_parent, group_depth, own_tasks


def _depth(balanced: int | None) -> int:
    return (
        -1 if balanced is None else _checks.integer(balanced, "balanced", ValueError, low=0, high=INT32_MAX)
    )


def _limits(timeout: float | None, max_nodes: int | None) -> list[str]:
    given = {"timeout": timeout, "max_nodes": max_nodes}
    return [f"{name} = {value}" for name, value in given.items() if value is not None]
