"""Distribute the tasks of a source graph among blocks of limited room, such as machines, at low cost."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import node_limit, random_seed, seconds
from topoplace.kernels.graph import Graph, GraphLike

_MAX_ROOM = 2**31 - 1


class Distribution(NamedTuple):
    """The result of `distribute`: the block of each task, the cost, and a lower bound on it."""

    block_of: NDArray[np.int32]
    """(k,): the block of each source vertex (task)."""
    cost: float
    """Sum over source edges of weight times the distance between the blocks of its ends."""
    bound: float
    """Lower bound on the cost of any distribution."""
    optimal: bool
    """True if it is proven that no distribution costs less: `cost` equals `bound`."""
    complete: bool
    """False if a limit ended the search early."""
    exchanges: int
    """Number of moves and swaps that the refinement made."""


def distribute(
    source: GraphLike,
    room: ArrayLike,
    distance: ArrayLike,
    *,
    starts: int = 4,
    seed: int = 0,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> Distribution | None:
    """Divide the source's vertices (tasks) among blocks at low cost; None if the blocks have too little room.

    Each source edge costs its weight times the distance between the blocks of its ends.

    Tasks start in the blocks by number, block after block. If that costs more than the lower bound, tasks and blocks
    are bisected together, `starts` times with different seeds from `seed` on, and each result is refined by exchanges.
    The search ends when the cost reaches the bound. Refinement takes 8 bytes for each task and block. The same seed
    gives the same answer everywhere, unless `timeout` ends the search. At `timeout` seconds, or after `max_nodes`
    steps, the best distribution so far is returned with a valid `bound` and complete=False.

    Args:
        room: (b,) the largest number of tasks that each block may have.
        distance: (b, b) symmetric, 0..1e100; the diagonal has the distance between tasks of one block. Blocks that are
            near each other should have near numbers.

    Raises:
        ValueError: An argument is invalid.
    """
    found = _core.distribute(
        Graph.of(source, "source"),
        _rooms(room),
        _distances(distance),
        _checks.integer(starts, "starts", ValueError, low=0, high=2**31 - 1),
        random_seed(seed),
        seconds(timeout),
        node_limit(max_nodes),
    )
    return None if found is None else Distribution(*found)


def verify_distribution(
    source: GraphLike, room: ArrayLike, distance: ArrayLike, block_of: ArrayLike, cost: float
) -> bool:
    """Return True if `block_of` (k,) overfills no block and `cost` is its cost, as `distribute` defines it.

    The check uses only the definition, shares no code with the search, and is accurate to 1e-9 of the largest cost. It
    does not check that the cost is minimal. A `block_of` that is not (k,) integers gives False; any other bad argument
    raises ValueError.
    """
    blocks = _checks.array_of(block_of, "block_of", ValueError)
    if blocks.ndim != 1 or not np.issubdtype(blocks.dtype, np.integer):
        return False
    claimed = _checks.real(cost, "cost", ValueError)
    listed: list[int] = np.clip(blocks, -1, _MAX_ROOM).tolist()
    fault = _core.verify_distribution(
        Graph.of(source, "source"), _rooms(room), _distances(distance), listed, claimed
    )
    return fault is None


def _rooms(room: ArrayLike) -> NDArray[np.int32]:
    rooms = _checks.numbers_of(room, "room", ValueError)
    if rooms.ndim != 1:
        raise ValueError(f"room has shape {rooms.shape}; expected (b,)")
    for i in np.flatnonzero(~((rooms >= 0) & (rooms <= _MAX_ROOM) & (rooms == np.floor(rooms))))[:1]:
        raise ValueError(f"room[{i}] = {rooms[i]:g} is not an integer in 0..{_MAX_ROOM}")
    return rooms.astype(np.int32)


def _distances(distance: ArrayLike) -> NDArray[np.float64]:
    matrix = _checks.numbers_of(distance, "distance", ValueError)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"distance has shape {matrix.shape}; expected (b, b)")
    return np.ascontiguousarray(matrix)
