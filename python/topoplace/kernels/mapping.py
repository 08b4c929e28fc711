"""Map the tasks of a source graph to distinct vertices of a target such that communication costs little."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT64_MAX, node_limit, random_seed, seconds, vertices
from topoplace.kernels.graph import Graph, GraphLike

Method: TypeAlias = Literal["drb", "exact"]


class TargetDistance(_core.TargetDistance):
    """The distances between the vertices of a target, as an argument of `map_graph`. Immutable.

    Args:
        distance: (n, n) symmetric matrix of values in 0..1e100, 0 on the diagonal. The object caches the recursive
            bisection of the target, so pass the same object to all calls.

    Raises:
        ValueError: Names the first invalid entry.
    """

    __slots__ = ()

    def __init__(self, distance: ArrayLike) -> None:
        matrix = _checks.numbers_of(distance, "target_distance", ValueError)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"target_distance has shape {matrix.shape}; expected (n, n)")
        super().__init__(np.ascontiguousarray(matrix))

    def __repr__(self) -> str:
        return f"TargetDistance({self.num_vertices} vertices)"


class Mapping(NamedTuple):
    """The result of `map_graph`: the target vertex of each task, the cost, and a lower bound on it."""

    target_of: NDArray[np.int32]
    """(k,): the target vertex of each source vertex (task)."""
    cost: float
    """Sum over source edges of weight times target distance, plus `target_cost` of the vertices used."""
    bound: float
    """Lower bound on the cost of any mapping."""
    optimal: bool
    """True if it is proven that no mapping costs less: `cost` equals `bound`."""
    complete: bool
    """False if a limit ended the search early. With method="exact", True also means that ties were broken."""
    descents: int
    """Number of target regions that were bisected together with the tasks."""
    exchanges: int
    """Number of moves and swaps that the refinement made."""
    nodes: int
    """Number of partial mappings that branch and bound visited; in large problems, each counts several times."""


def map_graph(
    source: GraphLike,
    target_distance: TargetDistance | ArrayLike,
    *,
    method: Method = "drb",
    target_cost: ArrayLike | None = None,
    free: Iterable[int] | None = None,
    regions: Iterable[Iterable[int]] = (),
    start: Iterable[int] | None = None,
    kicks: int = 30,
    proof_nodes: int = 100,
    seed: int = 0,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> Mapping | None:
    """Map the source's vertices (tasks) to distinct target vertices at low cost; None if too few may be used.

    Each source edge costs its weight times the distance between the target vertices of its ends. Each target vertex
    used costs its entry of `target_cost` (n,), 0..1e100 and by default 0. method="drb" is dual recursive bipartitioning
    (Amaral et al., SC'17, algorithms 2 and 3). It runs on the whole target and on compact regions of it; `regions` adds
    more sets of target vertices. The result is refined by pairwise exchange, by `proof_nodes` steps of branch and bound
    for up to 16 tasks, and by `kicks` random perturbations from `seed`. Each step runs only while the cost is above the
    lower bound. The same seed gives the same answer everywhere, unless `timeout` ends the search.

    method="exact" continues by branch and bound (Gilmore, J. SIAM 10, 1962; Lawler, Management Science 9, 1963) until
    the result is proven. Tasks are placed in a fixed order: first the task with the largest total edge weight, then
    always the task with the largest weight to tasks already placed. Ties go to the larger total weight, then to the
    smaller number. Among all mappings of least cost, the lexicographically smallest in this order is returned. Costs
    that differ by less than 1e-12 of the largest mapping cost count as equal.

    At `timeout` seconds, or after `max_nodes` steps of one search, the best mapping so far is returned with a valid
    `bound` and complete=False. Preparation of a target or a proof on first use also counts.

    Args:
        target_distance: A `TargetDistance` or its matrix.
        free: The target vertices that may be used, each listed once; all by default.
        start: The target vertex of each task; this mapping is refined, in place of bipartitioning.

    Raises:
        ValueError: An argument is invalid.
    """
    s, t = Graph.of(source, "source"), _target(target_distance)
    n = t.num_vertices
    tried = _checks.sequence(regions, "regions", ValueError)
    found = _core.map_graph(
        s,
        t,
        _checks.one_of(method, "method", get_args(Method), ValueError),
        None if target_cost is None else _prices(target_cost, t),
        None if free is None else vertices(free, "free", n),
        [vertices(region, f"regions[{i}]", n) for i, region in enumerate(tried)],
        [] if start is None else vertices(start, "start", n, ordered=True),
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
    """Return True if `target_of` (k,) maps the tasks to distinct usable vertices, and `cost` is the mapping's cost.

    Arguments are as for `map_graph`. The check uses only the definition, shares no code with the searches, and is
    accurate to 1e-9 of the largest mapping cost. It does not check that the cost is minimal. An invalid `target_of`
    gives False; any other bad argument raises ValueError.
    """
    s, t = Graph.of(source, "source"), _target(target_distance)
    prices = None if target_cost is None else _prices(target_cost, t)
    usable = None if free is None else vertices(free, "free", t.num_vertices)
    try:
        places = vertices(target_of, "target_of", t.num_vertices, ordered=True)
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
