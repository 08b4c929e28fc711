"""Subgraph matching: all places of a pattern in a target, their number, the best one, the best remainder."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.errors import SearchTimeoutError
from topoplace.kernels.arguments import INT64_MAX, node_limit, seconds
from topoplace.kernels.arguments import vertices as checked_vertices
from topoplace.kernels.graph import Graph, GraphLike

Distinct: TypeAlias = Literal["mappings", "images", "vertex_sets"]
Objective: TypeAlias = Literal["sum", "bottleneck", "bottleneck_sum"]


class Embedding(NamedTuple):
    """The best embedding of a pattern, with its proof."""

    vertices: NDArray[np.int32]
    """(k,): the target vertex of each pattern vertex."""
    score: float
    """Of `vertices`; for "bottleneck_sum" the sum."""
    bound: float
    """No embedding scores more."""
    optimal: bool
    """`score` is proven to be the best there is."""
    complete: bool
    """And ties were broken to the end: the answer is the canonical one."""
    nodes: int
    """Partial mappings the search visited."""


class Remainder(NamedTuple):
    """An embedding chosen for what it leaves to others."""

    vertices: NDArray[np.int32]
    """(k,): the target vertex of each pattern vertex."""
    remainder: float
    """Total weight of the edges among the free vertices that are left (MAPA, eq. 3)."""
    score: float
    """Sum of the weights of the target edges the pattern uses."""
    optimal: bool
    """Both are proven to be the best there is, in this order."""
    nodes: int
    """Partial solutions the search visited."""


class LinkCountScore:
    """An objective that depends only on how many target edges of each class the pattern's edges fall on.

    `link_class` is an (n, n) array of classes 0 .. K-1 (K <= 8), read where the target has an edge. `function`
    maps an int64 array (v, K) of count vectors to v finite scores, larger is better. It is called once for
    each number of pattern edges and each target; keep one object per topology, it holds those tables.
    """

    def __init__(
        self, link_class: ArrayLike, function: Callable[[NDArray[np.int64]], NDArray[np.float64]]
    ) -> None:
        classes = np.asarray(link_class)
        if classes.ndim != 2 or classes.shape[0] != classes.shape[1]:
            raise ValueError(f"link_class has shape {classes.shape}; expected (n, n)")
        if classes.size and not (
            np.issubdtype(classes.dtype, np.integer) and 0 <= classes.min() <= classes.max() < 8
        ):
            raise ValueError("link_class holds a value outside 0..7")
        self.link_class = np.ascontiguousarray(classes, dtype=np.uint8)
        self.num_classes = int(self.link_class.max()) + 1 if self.link_class.size else 1
        self.function = function
        self._tables: dict[tuple[int, int], tuple[Graph, _core.LinkCountScore]] = {}

    def table(self, target: Graph, num_edges: int) -> _core.LinkCountScore:
        """Return the scores of all count vectors of `num_edges` edges, ranked for the search."""
        key = (id(target), num_edges)
        if key not in self._tables:  # the target is kept with its table, so that its id stays its own
            vectors = _core.count_vectors(num_edges, self.num_classes).astype(np.int64)
            scores = np.ascontiguousarray(self.function(vectors), dtype=np.float64)
            if scores.shape != (len(vectors),) or not np.isfinite(scores).all():
                raise ValueError(
                    f"function must give {len(vectors)} finite scores, one for each count vector"
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
    """Return all places where the pattern fits into the target, as an int32 array (m, k): row[i] is vertex i's image.

    A mapping is injective and takes every pattern edge to a target edge of weight at least `min_weight`; with
    `induced`, non-edges to non-edges too. `distinct` says what counts as different: "mappings" (all
    monomorphisms), "images" (one mapping for each image subgraph), "vertex_sets" (one for each set of target
    vertices, in lexicographic order); the last two give the lexicographically smallest mapping of each.
    `candidates` is an optional (k, n) boolean array of allowed images. Rows come in the same order every time.

    Raises SearchTimeoutError (with the rows so far) when `timeout` seconds do not suffice, ValueError on bad input.
    """
    checked = _enumeration(pattern, target, distinct, induced, min_weight, limit, candidates, timeout)
    rows, complete, _ = _core.enumerate_subgraphs(*checked)
    if not complete and (limit is None or len(rows) < limit):
        raise SearchTimeoutError(f"{len(rows)} matches after {timeout} s, and not done", rows)
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
    """Count the rows that `enumerate_subgraphs` would return, without making them.

    Raises SearchTimeoutError (with the count so far) when `timeout` seconds do not suffice, OverflowError above
    2**63 - 2, ValueError on bad input.
    """
    checked = _enumeration(pattern, target, distinct, induced, min_weight, limit, candidates, timeout)
    count, complete, _ = _core.count_subgraphs(*checked)
    if not complete and (limit is None or count < limit):
        raise SearchTimeoutError(f"{count} matches after {timeout} s, and not done", count)
    if count == INT64_MAX:
        raise OverflowError("more than 2**63 - 2 matches")
    return count


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
) -> Embedding | None:
    """Return the best place for the pattern, proven; None where it fits nowhere.

    `objective`: "sum" of the weights of the target edges used; "bottleneck", the lightest of them;
    "bottleneck_sum", the bottleneck first and then the sum; or a `LinkCountScore`. Only vertices of `free`
    (all, by default) are used, and all of `required` are. Sums are compared exactly, in 41-bit fixed point
    relative to the largest weight; weights that span more than eleven decades are refused.

    `timeout` is in seconds; `max_nodes` limits the work instead, at the same place on every machine. At either
    limit the best embedding found so far is returned with a true `bound` and optimal=False; where
    none was found by then, raises SearchTimeoutError. Raises ValueError on bad input.
    """
    p, t = Graph.of(pattern), Graph.of(target_weights)
    if isinstance(objective, LinkCountScore):
        goal: Any = objective.table(t, p.num_edges)
    else:
        goal = objective
    vertices, score, bound, optimal, complete, nodes = _core.best_subgraph(
        p,
        t,
        goal,
        None if free is None else checked_vertices(free, "free", t.num_vertices),
        checked_vertices(required, "required", t.num_vertices),
        _min_weight(min_weight),
        seconds(timeout),
        node_limit(max_nodes),
    )
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
) -> Remainder | None:
    """Place the pattern so that the free vertices it leaves keep the largest total weight among themselves.

    The preserved bandwidth of MAPA (Ranganath et al., SC'21, eq. 3); ties go to the largest sum over the
    pattern's edges, then to the usual order. Vertices of `kept` are not used but count as left: free vertices the
    pattern may not have. Other arguments, deadline and errors as for `best_subgraph`.
    """
    p, t = Graph.of(pattern), Graph.of(target)
    vertices, remainder, score, optimal, nodes = _core.best_remainder(
        p,
        t,
        None if free is None else checked_vertices(free, "free", t.num_vertices),
        checked_vertices(kept, "kept", t.num_vertices),
        checked_vertices(required, "required", t.num_vertices),
        seconds(timeout),
        node_limit(max_nodes),
    )
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
    """Return True if `vertices` (k,) embeds the pattern in the target, by the definition alone.

    Shares no code with the searches, so that their answers can be checked with it.
    """
    p, t = Graph.of(pattern), Graph.of(target)
    try:
        images = checked_vertices(vertices, "vertices", t.num_vertices)
    except ValueError:
        return False
    return _core.verify_embedding(p, t, images, induced, _min_weight(min_weight)) is None


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
    """Return the arguments as the border takes them, by position: half a microsecond less than by name."""
    p, t = Graph.of(pattern), Graph.of(target)
    if limit is not None:
        limit = _checks.integer(limit, "limit", ValueError, low=0, high=INT64_MAX)
    return (
        p,
        t,
        distinct,
        induced,
        _min_weight(min_weight),
        INT64_MAX if limit is None else limit,
        None if candidates is None else _candidates(candidates, p, t),
        seconds(timeout),
    )


def _candidates(candidates: ArrayLike, pattern: Graph, target: Graph) -> NDArray[np.uint8]:
    array = np.asarray(candidates)
    shape = (pattern.num_vertices, target.num_vertices)
    if array.shape != shape:
        raise ValueError(f"candidates has shape {array.shape}; expected {shape}")
    return np.ascontiguousarray(array != 0, dtype=np.uint8)


def _min_weight(value: float | None) -> float:
    return 0.0 if value is None else _checks.real(value, "min_weight", ValueError)
