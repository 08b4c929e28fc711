"""The edges of communication patterns as arrays, and their conversion to the tuples that a job graph stores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]

_CHUNK = 1 << 16
"""Edges converted at a time; Ctrl-C acts between two chunks."""

Edges = tuple[tuple[int, int, float], ...]
"""(a, b, weight) of each edge."""


def edges_of(pattern: str, sizes: Sequence[int]) -> Edges:
    """Return the edges of a pattern, each of weight 1, sorted, with a < b.

    sizes: the number of tasks, or the length of each axis of a mesh or torus.
    """
    return edge_tuples(*PATTERN_EDGES[pattern](*sizes))


def edge_tuples(a: Ints, b: Ints, weights: NDArray[np.float64] | None = None) -> Edges:
    """Return the edges from a[i] to b[i] as tuples, in this order; their weight is 1 if `weights` is None."""
    numbers = np.arange(int(b.max(initial=0)) + 1).astype(object)  # equal numbers share one object
    edges: list[tuple[int, int, float]] = []
    for first in range(0, len(a), _CHUNK):
        chunk = np.s_[first : first + _CHUNK]
        ends = numbers[a[chunk]].tolist(), numbers[b[chunk]].tolist()
        edges += zip(*ends, repeat(1.0) if weights is None else weights[chunk].tolist(), strict=False)
    return tuple(edges)


def edge_array(edges: Edges) -> NDArray[np.float64]:
    """Return the edges as an array (m, 3)."""
    chunks = [np.array(edges[first : first + _CHUNK], float) for first in range(0, len(edges), _CHUNK)]
    return np.concatenate(chunks) if chunks else np.empty((0, 3))


# ---- one function a pattern: (a, b) with a < b, sorted -------------------------------------------------------


def _chain(k: int) -> tuple[Ints, Ints]:
    return np.arange(k - 1), np.arange(1, k)


def _ring(k: int) -> tuple[Ints, Ints]:
    return _grid(k, closed=True)


def _star(k: int) -> tuple[Ints, Ints]:
    return np.zeros(k - 1, int), np.arange(1, k)


def _tree(k: int) -> tuple[Ints, Ints]:
    children = np.arange(1, k)
    return (children - 1) // 2, children


def _clique(k: int) -> tuple[Ints, Ints]:
    tasks = np.arange(k)
    first = tasks * (2 * k - tasks - 1) // 2  # the number of edges before those from each task
    a = np.repeat(tasks, tasks[::-1])
    return a, np.arange(len(a)) - (first - tasks - 1)[a]


def _allreduce(k: int) -> tuple[Ints, Ints]:
    both = zip(_ring(k), _tree(k), strict=True)
    a, b = (np.concatenate(ends) for ends in both)
    a, b = np.divmod(np.unique(a * k + b), k)
    return a, b


def _independent(_k: int) -> tuple[Ints, Ints]:
    return np.empty(0, int), np.empty(0, int)


def _mesh(*sizes: int) -> tuple[Ints, Ints]:
    return _grid(*sizes, closed=False)


def _torus(*sizes: int) -> tuple[Ints, Ints]:
    return _grid(*sizes, closed=True)


def _grid(*sizes: int, closed: bool) -> tuple[Ints, Ints]:
    """Return the edges of a grid of tasks in row-major order. closed: whether the lines along each axis are rings.

    Each task has a column for each step to a larger neighbour, by ascending step; so the rows list the edges in order.
    """
    tasks = np.arange(math.prod(sizes))
    steps: list[int] = []
    there: list[NDArray[np.bool_]] = []
    stride = 1
    for size in reversed(sizes):
        position = tasks // stride % size
        steps.append(stride)
        there.append(position < size - 1)
        if closed and size > 2:
            steps.append((size - 1) * stride)
            there.append(position == 0)
        stride *= size
    a, step = np.nonzero(np.stack(there, axis=1))
    return a, a + np.array(steps)[step]


PATTERN_EDGES: dict[str, Callable[..., tuple[Ints, Ints]]] = {
    "ring": _ring,
    "chain": _chain,
    "star": _star,
    "tree": _tree,
    "clique": _clique,
    "allreduce": _allreduce,
    "independent": _independent,
    "mesh": _mesh,
    "torus": _torus,
}
"""The edges of each pattern, by its name; arguments are `sizes` of `edges_of`."""
