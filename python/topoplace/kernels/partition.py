"""Partition the vertices of a graph into two balanced sides with little edge weight between them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.errors import InfeasibleError, SearchTimeoutError
from topoplace.kernels.arguments import random_seed, seconds
from topoplace.kernels.graph import Graph, GraphLike

MAX_EXACT_VERTICES = 24
"""Largest number of vertices for which `bipartition` proves its answer."""


class Bipartition(NamedTuple):
    """The result of `bipartition`: the side of each vertex, the cut weight, and work counters."""

    side: NDArray[np.int8]
    """(n,): 0 or 1 for each vertex."""
    cut: float
    """Total weight of the edges between the sides."""
    optimal: bool
    """True if proven: no balanced bipartition cuts less, and `side` is the lexicographically smallest with this cut."""
    complete: bool
    """False if the deadline ended the search early."""
    start_cut: float
    """Cut of the initial solution that led to the answer; infinite if unbalanced, or if a proof gave the answer."""
    passes: int
    """Number of passes of the heuristic, over all starts and levels."""
    moves: int
    """Number of moves of a vertex to the other side."""
    rollbacks: int
    """Number of moves that were undone."""
    nodes: int
    """Number of partial assignments of vertices to sides that branch and bound visited."""


def bipartition(
    graph: GraphLike,
    *,
    fraction: float = 0.5,
    imbalance: float = 0.0,
    vertex_weights: ArrayLike | None = None,
    fixed: ArrayLike | None = None,
    starts: int = 16,
    cycles: int = 1,
    seed: int = 0,
    exact_up_to: int = MAX_EXACT_VERTICES,
    timeout: float | None = None,
) -> Bipartition:
    """Split the vertices into two balanced sides with little edge weight between them.

    Side 0 should get the share `fraction` (0..1) of the total vertex weight W. It gets at most (1 + `imbalance`) *
    ceil(fraction * W), and side 1 at most (1 + `imbalance`) * ceil((1 - fraction) * W). vertex_weights: (n,) integers
    of at least 0 that sum to at most 2**53; 1 each by default. fixed: (n,) the given side of each vertex, -1 for none.

    For at most `exact_up_to` vertices (limit 24) branch and bound proves the minimum, and the lexicographically
    smallest of the best side vectors is returned. `starts`, `cycles` and `seed` apply only to larger graphs, which are
    solved in three steps:
    1. Coarsen the graph to about 60 vertices (Karypis and Kumar, SIAM J. Sci. Comput. 20, 1998).
    2. Divide the coarse graph from `starts` random starts. The best four solutions continue while levels are small.
    3. Refine the boundary on every level by passes of single moves (Fiduccia and Mattheyses, "A linear-time heuristic
       for improving network partitions", DAC 1982). Coarsen and refine each level of up to a sixth of the vertices
       `cycles` more times without merging across sides (Walshaw, Annals of Operations Research 131, 2004). More cycles
       give smaller cuts.

    Time is nearly linear in the number of edges. The same seed gives the same answer everywhere, unless `timeout` ends
    the search: after `timeout` seconds the best bipartition so far is returned with complete=False. Raise
    InfeasibleError if no balanced bipartition exists or was found, SearchTimeoutError if none was found in time, and
    ValueError for invalid arguments.
    """
    g = Graph.of(graph)
    share = _checks.real(fraction, "fraction", ValueError, high=1.0)
    tolerance = _checks.real(imbalance, "imbalance", ValueError)
    found = _core.bipartition(
        g,
        share,
        tolerance,
        _vertex_weights(vertex_weights, g),
        _fixed(fixed, g),
        _checks.integer(starts, "starts", ValueError, low=1, high=2**31 - 1),
        _checks.integer(cycles, "cycles", ValueError, low=0, high=2**31 - 1),
        random_seed(seed),
        _checks.integer(exact_up_to, "exact_up_to", ValueError, low=0, high=MAX_EXACT_VERTICES),
        seconds(timeout),
    )
    if found.status in ("optimal", "feasible"):
        return _answer(found)
    if found.status == "not_found" and not found.complete:
        raise SearchTimeoutError(f"timeout = {timeout} s: no balanced bipartition found", None)
    verb = "exists" if found.status == "infeasible" else "was found"
    raise InfeasibleError(
        f"no bipartition {verb} with fraction = {share:g} and imbalance = {tolerance:g} for these vertex weights"
        " and fixed vertices; a larger imbalance may allow one"
    )


def verify_bipartition(
    graph: GraphLike,
    side: ArrayLike,
    cut: float,
    *,
    fraction: float = 0.5,
    imbalance: float = 0.0,
    vertex_weights: ArrayLike | None = None,
    fixed: ArrayLike | None = None,
) -> bool:
    """Return True if `side` (n,) is a balanced bipartition that respects `fixed`, and `cut` is its cut weight.

    Arguments are as for `bipartition`. The check uses only the definition, shares no code with the solver, and is
    accurate to 1e-9 of the graph's total weight. It does not check that the cut is minimal. A `side` of another shape,
    or with other values than 0 and 1, gives False; any other bad argument raises ValueError.
    """
    g = Graph.of(graph)
    values = _checks.array_of(side, "side", ValueError)
    if values.shape != (g.num_vertices,) or not np.isin(values, (0, 1)).all():
        return False
    fault = _core.verify_bipartition(
        g,
        np.ascontiguousarray(values, dtype=np.int8),
        _checks.real(cut, "cut", ValueError),
        _checks.real(fraction, "fraction", ValueError, high=1.0),
        _checks.real(imbalance, "imbalance", ValueError),
        _vertex_weights(vertex_weights, g),
        _fixed(fixed, g),
    )
    return fault is None


def _answer(found: _core.BipartitionAnswer) -> Bipartition:
    return Bipartition(
        found.side,
        found.cut,
        found.optimal,
        found.complete,
        found.start_cut,
        found.passes,
        found.moves,
        found.rollbacks,
        found.nodes,
    )


def _vertex_weights(values: ArrayLike | None, graph: Graph) -> NDArray[np.int64] | None:
    if values is None:
        return None
    weights = _integers(values, "vertex_weights", graph, 0, 2**53)
    if sum(weights.tolist()) > 2**53:
        raise ValueError(f"vertex_weights sum to {sum(weights.tolist())}, more than 2**53")
    return weights


def _fixed(values: ArrayLike | None, graph: Graph) -> NDArray[np.int8] | None:
    return None if values is None else _integers(values, "fixed", graph, -1, 1).astype(np.int8)


def _integers(values: ArrayLike, name: str, graph: Graph, low: int, high: int) -> NDArray[np.int64]:
    """Convert `values` to an array with one integer in low..high per vertex; ValueError names the first bad entry."""
    numbers = _checks.numbers_of(values, name, ValueError)
    if numbers.shape != (graph.num_vertices,):
        raise ValueError(f"{name} has shape {numbers.shape}; expected ({graph.num_vertices},)")
    for i in np.flatnonzero(~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers))))[:1]:
        raise ValueError(f"{name}[{i}] = {numbers[i]:g} is not an integer in {low}..{high}")
    return numbers.astype(np.int64)
