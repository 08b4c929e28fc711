"""Subgraph matching: find all embeddings of a pattern graph in a target graph, count them, or find the best one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.errors import SearchTimeoutError
from topoplace.kernels.arguments import INT64_MAX, node_limit, seconds
from topoplace.kernels.arguments import vertices as checked_vertices
from topoplace.kernels.graph import Graph, GraphLike
from topoplace.kernels.limits import WorkBudget

Distinct: TypeAlias = Literal["mappings", "images", "vertex_sets"]
Objective: TypeAlias = Literal["sum", "bottleneck", "bottleneck_sum"]
_DISTINCT = get_args(Distinct)
_OBJECTIVES = get_args(Objective)


class Embedding(NamedTuple):
    """The result of `best_subgraph`: the best embedding found, its score, and an upper bound on any score."""

    vertices: NDArray[np.int32]
    """(k,): the target vertex of each pattern vertex."""
    score: float
    """Value of the objective for this embedding, larger is better; for "bottleneck_sum" the sum."""
    bound: float
    """Upper bound on the score of any embedding."""
    optimal: bool
    """True if `score` is proven to be the best."""
    complete: bool
    """True if the search also broke all ties, so that the answer is the lexicographically smallest of the best."""
    nodes: int
    """Number of partial mappings that the search visited."""

    @property
    def within(self) -> float:
        """Return the share by which the best embedding may exceed `score`; 0 if `optimal`."""
        gap = self.bound - self.score
        return gap / abs(self.score) if self.score else (math.inf if gap else 0.0)


class Remainder(NamedTuple):
    """The result of `best_remainder`: the embedding with the largest total edge weight among unused free vertices."""

    vertices: NDArray[np.int32]
    """(k,): the target vertex of each pattern vertex."""
    remainder: float
    """Total weight of the edges among the remaining free vertices (MAPA, eq. 3)."""
    score: float
    """Sum of the weights of the target edges that the pattern uses; it breaks ties."""
    optimal: bool
    """True if `remainder` is proven to be maximal, and `score` to be maximal among embeddings with this remainder."""
    nodes: int
    """Number of partial solutions that the search visited."""


class LinkCountScore:
    """An objective of `best_subgraph` that depends only on the number of target edges of each class that the pattern
    uses.

    Searches refuse targets of more than 4,096 vertices.

    Args:
        link_class: (n, n) array of integers 0..7 with the class of each target edge; ValueError for any other array.
            Entries of pairs without an edge must be in this range too. K is the largest entry of the array plus 1.
        function: Maps an int64 array (v, K), whose rows are numbers of used edges by class, to v finite scores; larger
            is better. It is called once per target and number of pattern edges. Keep one object per topology, as it
            caches the tables of scores.
    """

    def __init__(
        self, link_class: ArrayLike, function: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> None:
        classes = _checks.array_of(link_class, "link_class", ValueError)
        if classes.ndim != 2 or classes.shape[0] != classes.shape[1]:
            raise ValueError(f"link_class has shape {classes.shape}; expected (n, n)")
        if classes.size and not (
            np.issubdtype(classes.dtype, np.integer) and 0 <= classes.min() <= classes.max() < 8
        ):
            raise ValueError("link_class contains a value outside 0..7")
        self.link_class = np.ascontiguousarray(classes, dtype=np.uint8)
        self.num_classes = int(self.link_class.max()) + 1 if self.link_class.size else 1
        if not callable(function):
            raise ValueError(f"function = {_checks.shown(function)} is not a function")
        self.function = function
        self._tables: dict[tuple[int, int], tuple[Graph, _core.LinkCountScore]] = {}

    def table(self, target: Graph, num_edges: int) -> _core.LinkCountScore:
        """Return the cached native table of scores for patterns with `num_edges` edges in `target`.

        It has a score for each way in which `num_edges` edges can be distributed over the link classes.

        Raises:
            ValueError: `function` returns another number of scores, or one that is not finite.
        """
        _checks.instance(target, Graph, "target", ValueError)
        num_edges = _checks.integer(num_edges, "num_edges", ValueError, low=0, high=65535)
        key = (id(target), num_edges)
        if key not in self._tables:  # the entry keeps the target alive, so that its id is not reused
            vectors = _core.count_vectors(num_edges, self.num_classes).astype(np.int64)
            scores = np.ascontiguousarray(self.function(vectors), dtype=np.float64)
            if scores.shape != (len(vectors),) or not np.isfinite(scores).all():
                raise ValueError(
                    f"function must return {len(vectors)} finite scores, one for each count vector"
                )
            table = _core.LinkCountScore(target, self.link_class, self.num_classes, num_edges, scores)
            self._tables[key] = (target, table)
        return self._tables[key][1]


def enumerate_subgraphs(
    pattern: GraphLike,
    target: GraphLike,
    *,
    distinct: Distinct = "mappings",
    induced: bool = False,
    candidates: ArrayLike | None = None,
    min_weight: float | None = None,
    limit: int | None = None,
    timeout: float | None = None,
) -> NDArray[np.int32]:
    """Return all embeddings of the pattern in the target as an int32 array (m, k), one embedding per row.

    In a row, entry i is the target vertex of pattern vertex i, called its image. An embedding is injective and maps
    every pattern edge to a target edge of weight at least `min_weight` (default: any weight). With `induced`, it also
    maps pairs without an edge to pairs without such an edge. Pattern weights are ignored. The order of rows is
    deterministic.

    Args:
        distinct: "mappings" returns every embedding. "images" returns one embedding per image subgraph, "vertex_sets"
            one per set of target vertices, in lexicographic order of the sets; both choose the lexicographically
            smallest mapping.
        candidates: Optional (k, n) array, nonzero if the image is allowed.
        limit: Maximum number of rows; None for all.

    Raises:
        SearchTimeoutError: `timeout` seconds are too short; `partial` of the error has the rows so far.
        ValueError: An argument is invalid.
    """
    checked = _enumeration(pattern, target, distinct, induced, min_weight, limit, candidates, timeout)
    rows, complete, _ = _core.enumerate_subgraphs(*checked)
    if not complete and (limit is None or len(rows) < limit):
        raise SearchTimeoutError(f"search not finished after {timeout} s: {len(rows)} matches so far", rows)
    return rows


def count_subgraphs(
    pattern: GraphLike,
    target: GraphLike,
    *,
    distinct: Distinct = "mappings",
    induced: bool = False,
    candidates: ArrayLike | None = None,
    min_weight: float | None = None,
    limit: int | None = None,
    timeout: float | None = None,
) -> int:
    """Return the number of rows that `enumerate_subgraphs` would return for the same arguments, without creating them.

    Raises:
        SearchTimeoutError: `timeout` seconds are too short; `partial` of the error has the count so far.
        OverflowError: There are more than 2**63 - 2 rows.
        ValueError: An argument is invalid.
    """
    checked = _enumeration(pattern, target, distinct, induced, min_weight, limit, candidates, timeout)
    count, complete, _ = _core.count_subgraphs(*checked)
    if not complete and (limit is None or count < limit):
        raise SearchTimeoutError(f"search not finished after {timeout} s: {count} matches so far", count)
    if count == INT64_MAX:
        raise OverflowError("more than 2**63 - 2 matches")
    return count


def _goal(objective: Objective | LinkCountScore, target: Graph, num_edges: int) -> Any:
    if isinstance(objective, LinkCountScore):
        return objective.table(target, num_edges)
    return _checks.one_of(objective, "objective", _OBJECTIVES, ValueError)


def best_subgraph(
    pattern: GraphLike,
    target_weights: GraphLike,
    *,
    objective: Objective | LinkCountScore = "sum",
    free: Iterable[int] | None = None,
    required: Iterable[int] = (),
    min_weight: float | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
    budget: WorkBudget | None = None,
    tolerance: float = 0.0,
) -> Embedding | None:
    """Return the embedding of the pattern in the target with the largest objective; None if there is no embedding.

    It is proven optimal unless a limit or `tolerance` ends the search. An embedding maps the pattern's vertices to
    distinct target vertices, and every pattern edge to a target edge of weight at least `min_weight` (default: any
    weight). Pattern weights are ignored.

    Sums are compared exactly, in 41-bit fixed point; weights that span more than eleven decades are refused. With a
    tolerance, ties are not broken. At any limit, the best embedding so far is returned with a valid `bound` and
    optimal=False. If edges of at least `min_weight` join all free vertices, any `timeout` gives an embedding.

    Args:
        objective: "sum" (of the weights of the target edges used), "bottleneck" (the smallest of these weights),
            "bottleneck_sum" (the bottleneck, ties broken by the sum), or a `LinkCountScore`.
        free: The target vertices that may be used, all by default.
        required: Target vertices that must be used.
        tolerance: Relative, such as 0.03. Above 0, the search ends with the first embedding proven to be within it of
            the best; `within` of the result states how near. For "bottleneck_sum", it applies to the sum.
        timeout: Limit in seconds.
        max_nodes: Limit on search tree nodes, at which the search stops at the same point on every computer.
        budget: A limit on the nodes of several searches together; this search takes its nodes from it.

    Raises:
        ValueError: An argument is invalid.
        SearchTimeoutError: A limit ends the search before any embedding is found.
    """
    p, t = Graph.of(pattern, "pattern"), Graph.of(target_weights, "target_weights")
    max_nodes = _node_limit(max_nodes, budget)
    used = checked_vertices(required, "required", t.num_vertices)
    if used and not p.num_vertices:
        return None
    vertices, score, bound, optimal, complete, nodes = _core.best_subgraph(
        p,
        t,
        _goal(objective, t, p.num_edges),
        None if free is None else checked_vertices(free, "free", t.num_vertices),
        used,
        _min_weight(min_weight),
        seconds(timeout),
        max_nodes,
        _checks.real(tolerance, "tolerance", ValueError),
    )
    if budget is not None:
        budget.charge(nodes)
    if vertices is None:
        _check_proven(optimal, timeout, max_nodes)
        return None
    return Embedding(vertices, score, bound, optimal, complete, nodes)


def best_remainder(
    pattern: GraphLike,
    target: GraphLike,
    *,
    free: Iterable[int] | None = None,
    kept: Iterable[int] = (),
    required: Iterable[int] = (),
    timeout: float | None = None,
    max_nodes: int | None = None,
    budget: WorkBudget | None = None,
) -> Remainder | None:
    """Return the embedding that leaves the largest total edge weight among the free target vertices it does not use.

    This weight is MAPA's preserved bandwidth (Ranganath et al., SC'21, eq. 3). Ties go to the largest sum of the
    weights of the target edges used, then to the lexicographically smallest sorted vertex list.

    Return None if there is no embedding. Other arguments, limits and errors are as for `best_subgraph`; more than 4,096
    target vertices raise ValueError.

    Args:
        kept: Target vertices, in `free` or not, that the pattern must not use but that count as free and unused.
    """
    p, t = Graph.of(pattern, "pattern"), Graph.of(target, "target")
    unused = set(checked_vertices(kept, "kept", t.num_vertices))
    usable = range(t.num_vertices) if free is None else checked_vertices(free, "free", t.num_vertices)
    used = checked_vertices(required, "required", t.num_vertices)
    if used and not p.num_vertices:
        return None
    max_nodes = _node_limit(max_nodes, budget)
    vertices, remainder, score, optimal, nodes = _core.best_remainder(
        p,
        t,
        [vertex for vertex in usable if vertex not in unused] if unused else usable,
        sorted(unused),
        used,
        seconds(timeout),
        max_nodes,
    )
    if budget is not None:
        budget.charge(nodes)
    if vertices is None:
        _check_proven(optimal, timeout, max_nodes)
        return None
    return Remainder(vertices, remainder, score, optimal, nodes)


def verify_embedding(
    pattern: GraphLike,
    target: GraphLike,
    vertices: Iterable[int],
    *,
    induced: bool = False,
    min_weight: float | None = None,
) -> bool:
    """Return True if mapping pattern vertex i to `vertices[i]` is an embedding of the pattern in the target.

    The check uses only the definition and shares no code with the searches. Invalid `vertices` give False; any other
    bad argument raises ValueError.

    Args:
        induced: As for `enumerate_subgraphs`.
        min_weight: As for `enumerate_subgraphs`.
    """
    p, t = Graph.of(pattern, "pattern"), Graph.of(target, "target")
    try:
        images = checked_vertices(vertices, "vertices", t.num_vertices, ordered=True)
    except ValueError:
        return False
    whole = _checks.flag(induced, "induced", ValueError)
    return _core.verify_embedding(p, t, images, whole, _min_weight(min_weight)) is None


def _node_limit(max_nodes: int | None, budget: WorkBudget | None) -> int | None:
    """Return the limit on the nodes of one search, after its argument and the budget; SearchTimeoutError if it is 0."""
    most = node_limit(max_nodes)
    if budget is None:
        return most
    _checks.instance(budget, WorkBudget, "budget", ValueError)
    if budget.spent:
        raise SearchTimeoutError("no embedding found; the budget of nodes is spent", None)
    return budget.limit(most)


def _check_proven(proven: bool, timeout: float | None, max_nodes: int | None) -> None:
    if not proven:
        raise SearchTimeoutError(f"no embedding found; timeout = {timeout} s, max_nodes = {max_nodes}", None)


def _enumeration(
    pattern: GraphLike,
    target: GraphLike,
    distinct: str,
    induced: bool,
    min_weight: float | None,
    limit: int | None,
    candidates: ArrayLike | None,
    timeout: float | None,
) -> tuple[Graph, Graph, str, bool, float, int, NDArray[np.uint8] | None, float | None]:
    """Check the arguments of an enumeration, and return them in the order of the native function's parameters.

    Calling the native function by position is half a microsecond faster than by name.
    """
    p, t = Graph.of(pattern, "pattern"), Graph.of(target, "target")
    if limit is not None:
        limit = _checks.integer(limit, "limit", ValueError, low=0, high=INT64_MAX)
    return (
        p,
        t,
        _checks.one_of(distinct, "distinct", _DISTINCT, ValueError),
        _checks.flag(induced, "induced", ValueError),
        _min_weight(min_weight),
        INT64_MAX if limit is None else limit,
        None if candidates is None else _candidates(candidates, p, t),
        seconds(timeout),
    )


def _candidates(candidates: ArrayLike, pattern: Graph, target: Graph) -> NDArray[np.uint8]:
    array = _checks.array_of(candidates, "candidates", ValueError)
    shape = (pattern.num_vertices, target.num_vertices)
    if array.shape != shape:
        raise ValueError(f"candidates has shape {array.shape}; expected {shape}")
    if array.size and array.dtype.kind not in "biuf":
        raise ValueError(f"candidates has dtype {array.dtype}; booleans or numbers are needed")
    for u, v in np.argwhere(array != array)[:1]:
        raise ValueError(f"candidates[{u}, {v}] is not a number")
    return np.ascontiguousarray(array != 0, dtype=np.uint8)


def _min_weight(value: float | None) -> float:
    return 0.0 if value is None else _checks.real(value, "min_weight", ValueError)
