"""Mapping: tasks on distinct vertices of a target, so that what they exchange travels a short way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT64_MAX, node_limit, random_seed, seconds, vertices
from topoplace.kernels.graph import Graph, GraphLike

Method: TypeAlias = Literal["drb", "exact"]


class TargetDistance(_core.TargetDistance):
    """The distances between the vertices of a target, for `map_graph`; immutable.

    `distance` is an (n, n) symmetric matrix: finite, at least 0 and at most 1e100, 0 on the diagonal. Raises
    ValueError naming the first entry that is not. Keeps the tree of the target's halves: pass the same one again
    and again.
    """

    __slots__ = ()

    def __init__(self, distance: ArrayLike) -> None:
        matrix = _checks.numbers_of(distance, "target_distance", ValueError)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"target_distance has shape {matrix.shape}; an (n, n) matrix is needed")
        super().__init__(np.ascontiguousarray(matrix))

    def __repr__(self) -> str:
        return f"TargetDistance({self.num_vertices} vertices)"


class Mapping(NamedTuple):
    """Where the tasks of a source graph go, and what that costs."""

    target_of: NDArray[np.int32]
    """(k,): the target vertex of each source vertex."""
    cost: float
    """Source weights times target distances, plus the prices of the vertices used."""
    bound: float
    """No mapping costs less."""
    optimal: bool
    """None costs less than `target_of`: its cost is the bound."""
    complete: bool
    """False: the deadline ended the search early. With method="exact", True also says that ties were broken."""
    descents: int
    """Regions that the tasks were sent down the target's halves of."""
    exchanges: int
    """Moves and swaps made by refinement."""
    nodes: int
    """Partial mappings the proof visited; one of a large problem counts for several."""


def map_graph(
    source: GraphLike,
    target_distance: TargetDistance | ArrayLike,
    *,
    method: Method = "drb",
    target_cost: ArrayLike | None = None,
    free: Iterable[int] | None = None,
    regions: Iterable[Iterable[int]] = (),
    kicks: int = 30,
    proof_nodes: int = 100,
    seed: int = 0,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> Mapping | None:
    """Map the source's vertices (tasks) to distinct target vertices at little cost; None where there are too few.

    The cost is the sum over source edges of weight * distance between the vertices of its ends, plus `target_cost`
    (n,) of every vertex used; 0 by default. `target_distance` is a `TargetDistance`, or the matrix of one. Only
    vertices of `free` (all, by default) are used.

    "drb" is dual recursive bipartitioning (Amaral et al., SC'17, algorithms 2 and 3) over the whole target and over
    packed regions of it, refined by pairwise exchange, `proof_nodes` steps of branch and bound for up to 16 tasks,
    and `kicks` random perturbations drawn from `seed`; each only while the cost is above what is known to be
    possible. `regions` names more vertex sets to try. The same seed gives the same answer everywhere. "exact" goes
    on by branch and bound (Gilmore, J. SIAM 10, 1962; Lawler, Management Science 9, 1963) to a proof. Tasks are
    placed in a fixed order: the heaviest first, then always the one most tied to those before it, of equal ones
    the heavier and then the smaller number; of all mappings of least cost the one lexicographically smallest in
    this order is returned. Costs closer than 1e-12 of the dearest mapping's are equal.

    At `timeout` seconds, or after `max_nodes` steps of one search, the best so far is returned with a true `bound`
    and complete=False; preparing a target or a proof is not cut short, for which thousands of vertices take seconds.
    Raises ValueError on bad input.
    """
    s, t = Graph.of(source), _target(target_distance)
    n = t.num_vertices
    tried = _checks.sequence(regions, "regions", ValueError)
    found = _core.map_graph(
        s,
        t,
        method,
        None if target_cost is None else _prices(target_cost, t),
        None if free is None else vertices(free, "free", n),
        [vertices(region, f"regions[{i}]", n) for i, region in enumerate(tried)],
        _checks.integer(kicks, "kicks", ValueError, low=0, high=2**31 - 1),
        _checks.integer(proof_nodes, "proof_nodes", ValueError, low=0, high=INT64_MAX),
        random_seed(seed),
        seconds(timeout),
        node_limit(max_nodes),
    )
    return None if found is None else Mapping(*found)


def verify_task_mapping(
    source: GraphLike,
    target_distance: TargetDistance | ArrayLike,
    target_of: Iterable[int],
    cost: float,
    *,
    target_cost: ArrayLike | None = None,
    free: Iterable[int] | None = None,
) -> bool:
    """Return True if `target_of` (k,) maps as `map_graph` promises with these arguments, and `cost` is its cost.

    By the definition alone, to within 1e-9 of the dearest mapping's cost; shares no code with the searches. Raises
    ValueError on bad input.
    """
    s, t = Graph.of(source), _target(target_distance)
    prices = None if target_cost is None else _prices(target_cost, t)
    usable = None if free is None else vertices(free, "free", t.num_vertices)
    try:
        places = vertices(target_of, "target_of", t.num_vertices)
    except ValueError:
        return False
    claimed = _checks.real(cost, "cost", ValueError)
    return _core.verify_task_mapping(s, t, places, claimed, prices, usable) is None


def _target(target: TargetDistance | ArrayLike) -> TargetDistance:
    return target if isinstance(target, TargetDistance) else TargetDistance(target)


def _prices(values: ArrayLike, target: TargetDistance) -> NDArray[np.float64]:
    prices = _checks.numbers_of(values, "target_cost", ValueError)
    if prices.shape != (target.num_vertices,):
        raise ValueError(f"target_cost has shape {prices.shape}; expected ({target.num_vertices},)")
    return np.ascontiguousarray(prices)
