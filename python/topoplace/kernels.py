"""The kernels: graph algorithms that know nothing of GPUs. numpy in, numpy out.

Every kernel releases the GIL, honours a deadline in seconds, answers Ctrl-C, and is deterministic: of equal
embeddings the one with the lexicographically smallest sorted vertex list is returned, then the one with the
lexicographically smallest mapping; of equal proven bipartitions the lexicographically smallest side vector.

A graph argument is a `Graph`, an (n, n) weight matrix, an (m, 2) or (m, 3) edge array, or a networkx graph.
A `Graph` keeps what searches prepare (plans, automorphisms, weight levels): pass the same one again and again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace._flow import INFINITE, FlowSolution, min_cost_flow, verify_flow
from topoplace._flow_network import FlowNetwork
from topoplace.errors import InfeasibleError, SearchTimeoutError

__all__ = [
    "INFINITE",
    "MAX_EXACT_VERTICES",
    "Bipartition",
    "Embedding",
    "FlowNetwork",
    "FlowSolution",
    "Graph",
    "LinkCountScore",
    "Mapping",
    "Remainder",
    "TargetDistance",
    "best_remainder",
    "best_subgraph",
    "bipartition",
    "count_subgraphs",
    "enumerate_subgraphs",
    "map_graph",
    "min_cost_flow",
    "verify_bipartition",
    "verify_flow",
    "verify_map",
    "verify_mapping",
]

GraphLike: TypeAlias = Any  # Graph | ArrayLike | networkx.Graph; networkx is not a dependency
Distinct: TypeAlias = Literal["mappings", "images", "vertex_sets"]
Objective: TypeAlias = Literal["sum", "bottleneck", "bottleneck_sum"]
Method: TypeAlias = Literal["drb", "exact"]

MAX_EXACT_VERTICES = 24
"""The most vertices for which `bipartition` proves its answer."""

_INT64_MAX = 2**63 - 1


class Graph(_core.Graph):
    """An undirected, simple, weighted graph; immutable.

    `weights` is an (n, n) symmetric matrix: 0 where there is no edge and on the diagonal, positive and finite
    elsewhere. Raises ValueError naming the first entry that is not.
    """

    __slots__ = ()

    def __init__(self, weights: ArrayLike) -> None:
        matrix = _checks.symmetric_matrix(_counted(weights), "weights", ValueError)
        u, v = np.nonzero(np.triu(matrix, 1))
        super().__init__(len(matrix), np.stack([u, v], axis=1).astype(np.int32), matrix[u, v])

    @classmethod
    def from_edges(cls, num_vertices: int, edges: ArrayLike | Iterable[Sequence[float]]) -> Self:
        """A graph of `num_vertices` vertices from (u, v) or (u, v, weight) rows, each edge once.

        The weight is 1.0 where it is not given. Raises ValueError naming the edge that is out of range, a loop,
        repeated, or whose weight is not positive and finite.
        """
        listed = edges if hasattr(edges, "dtype") else _checks.sequence(edges, "edges", ValueError)
        rows = _checks.numbers_of(listed, "edges", ValueError)
        if rows.size == 0:
            rows = rows.reshape(0, 2)
        if rows.ndim != 2 or rows.shape[1] not in (2, 3):
            raise ValueError(f"edges has shape {rows.shape}; expected (m, 2) or (m, 3)")
        ends = rows[:, :2]
        bad = np.argwhere((ends != np.floor(ends)) | (np.abs(ends) > 2**31 - 1))
        if len(bad):
            i, j = bad[0]
            raise ValueError(f"edges[{i}, {j}] = {ends[i, j]} is not a vertex")
        weights = rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
        graph = cls.__new__(cls)
        _core.Graph.__init__(
            graph, num_vertices, np.ascontiguousarray(ends, dtype=np.int32), np.ascontiguousarray(weights)
        )
        return graph

    @classmethod
    def of(cls, graph: GraphLike) -> Graph:
        """Whatever a kernel takes as a graph, as a `Graph`.

        A square array is a weight matrix where it is symmetric with a zero diagonal, else an edge array; an edge
        array has as many vertices as its largest index asks for. A networkx graph's nodes are numbered in
        their own order; edges without `weight` weigh 1.
        """
        if isinstance(graph, Graph):
            return graph
        if hasattr(graph, "nodes") and hasattr(graph, "edges"):
            return cls._from_networkx(graph)
        array = _checks.numbers_of(_counted(graph), "graph", ValueError)
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        edges = array.ndim == 2 and array.shape[1] in (2, 3) and array.size > 0
        if edges and not (square and _is_adjacency(array)):
            if not np.isfinite(array[:, :2]).all():
                raise ValueError(f"edges[{int(np.argwhere(~np.isfinite(array[:, :2]))[0][0])}] is not finite")
            return cls.from_edges(int(array[:, :2].max()) + 1, array)
        return cls(array)

    @classmethod
    def _from_networkx(cls, graph: Any) -> Graph:
        _checks.simple_graph(graph, "graph", ValueError)
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [
            (number[u], number[v], _checks.real(weight, f"weight of edge ({u!r}, {v!r})", ValueError))
            for u, v, weight in graph.edges(data="weight", default=1.0)
        ]
        return cls.from_edges(len(number), edges)

    def __repr__(self) -> str:
        return f"Graph({self.num_vertices} vertices, {self.num_edges} edges)"


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


class Bipartition(NamedTuple):
    """Two sides of a graph, and what lies between them."""

    side: NDArray[np.int8]
    """(n,): 0 or 1 for each vertex."""
    cut: float
    """Total weight of the edges between the sides."""
    optimal: bool
    """No balanced bipartition cuts less, and of those that cut as little `side` is lexicographically first."""
    complete: bool
    """False: the deadline ended the search early."""
    start_cut: float
    """The cut of the balanced start the answer grew from; infinite where there was none, or a proof instead."""
    passes: int
    """Passes of the heuristic, over all starts and levels."""
    moves: int
    """Vertices it moved."""
    rollbacks: int
    """Moves it took back."""
    nodes: int
    """Partial side vectors the proof visited."""


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
        """The scores of all count vectors of `num_edges` edges, ranked for the search."""
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
    """All places where the pattern fits into the target, as an int32 array (m, k): row[i] is vertex i's image.

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
    """How many rows `enumerate_subgraphs` would return, without making them.

    Raises SearchTimeoutError (with the count so far) when `timeout` seconds do not suffice, OverflowError above
    2**63 - 2, ValueError on bad input.
    """
    checked = _enumeration(pattern, target, distinct, induced, min_weight, limit, candidates, timeout)
    count, complete, _ = _core.count_subgraphs(*checked)
    if not complete and (limit is None or count < limit):
        raise SearchTimeoutError(f"{count} matches after {timeout} s, and not done", count)
    if count == _INT64_MAX:
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
    """The best place for the pattern, proven; None where it fits nowhere.

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
        None if free is None else _vertices(free, "free", t),
        _vertices(required, "required", t),
        _min_weight(min_weight),
        _timeout(timeout),
        _max_nodes(max_nodes),
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
    """Places the pattern so that the free vertices it leaves keep the largest total weight among themselves.

    The preserved bandwidth of MAPA (Ranganath et al., SC'21, eq. 3); ties go to the largest sum over the
    pattern's edges, then to the usual order. Vertices of `kept` are not used but count as left: free vertices the
    pattern may not have. Other arguments, deadline and errors as for `best_subgraph`.
    """
    p, t = Graph.of(pattern), Graph.of(target)
    vertices, remainder, score, optimal, nodes = _core.best_remainder(
        p,
        t,
        None if free is None else _vertices(free, "free", t),
        _vertices(kept, "kept", t),
        _vertices(required, "required", t),
        _timeout(timeout),
        _max_nodes(max_nodes),
    )
    if vertices is None:
        _check_proven(optimal, timeout, max_nodes)
        return None
    return Remainder(vertices, remainder, score, optimal, nodes)


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
    """Splits the vertices into two balanced sides with little edge weight between them.

    Side 0 is to hold the share `fraction` (0..1) of the vertex weight W: at most (1 + `imbalance`) *
    ceil(fraction * W), and side 1 at most (1 + `imbalance`) * ceil((1 - fraction) * W). `vertex_weights` is (n,),
    integers of at least 0 that sum to at most 2**53; 1 each by default. `fixed` is (n,): -1 where a vertex is free,
    0 or 1 where its side is given.

    Up to `exact_up_to` vertices (at most 24) the minimum is proven by branch and bound, and the lexicographically
    smallest of the best side vectors is returned; what is told below means nothing there. Larger graphs are
    coarsened to about 60 vertices (Karypis and Kumar, SIAM J. Sci. Comput. 20, 1998), divided there from `starts`
    random starts, and refined at the boundary on every level by passes of single moves (Fiduccia and Mattheyses,
    "A linear-time heuristic for improving network partitions", DAC 1982). The best four are carried on while levels
    are small, and each level of up to a sixth of the vertices is coarsened anew `cycles` times, keeping the sides
    apart, to refine again (Walshaw, Annals of Operations Research 131, 2004): more cycles, smaller cuts. Time is
    nearly linear in the edges. The same seed gives the same answer everywhere.

    At `timeout` seconds the best found so far is returned with complete=False. Raises InfeasibleError where
    no balanced bipartition exists or none was found, SearchTimeoutError where none was found in time,
    ValueError on bad input.
    """
    g = Graph.of(graph)
    share = _checks.real(fraction, "fraction", ValueError, high=1.0)
    tolerance = _checks.real(imbalance, "imbalance", ValueError)
    status, found = _core.bipartition(
        g,
        share,
        tolerance,
        _vertex_weights(vertex_weights, g),
        _fixed(fixed, g),
        _checks.integer(starts, "starts", ValueError, low=1, high=2**31 - 1),
        _checks.integer(cycles, "cycles", ValueError, low=0, high=2**31 - 1),
        _checks.integer(seed, "seed", ValueError, low=0, high=2**64 - 1),
        _checks.integer(exact_up_to, "exact_up_to", ValueError, low=0, high=MAX_EXACT_VERTICES),
        _timeout(timeout),
    )
    answer = Bipartition._make(found)
    if status in ("optimal", "feasible"):
        return answer
    if status == "not_found" and not answer.complete:
        raise SearchTimeoutError(f"no balanced bipartition found; timeout = {timeout} s", None)
    verb = "exists" if status == "infeasible" else "was found"
    raise InfeasibleError(
        f"no bipartition {verb} with fraction = {share:g} and imbalance = {tolerance:g} for these vertex weights"
        " and fixed vertices; a larger imbalance may allow one"
    )


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
    """Maps the source's vertices (tasks) to distinct target vertices at little cost; None where there are too few.

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
    tried = _checks.sequence(regions, "regions", ValueError)
    mapped = _core.map_graph(
        s,
        t,
        method,
        None if target_cost is None else _prices(target_cost, t),
        None if free is None else _vertices(free, "free", t),
        [_vertices(region, f"regions[{i}]", t) for i, region in enumerate(tried)],
        _checks.integer(kicks, "kicks", ValueError, low=0, high=2**31 - 1),
        _checks.integer(proof_nodes, "proof_nodes", ValueError, low=0, high=_INT64_MAX),
        _checks.integer(seed, "seed", ValueError, low=0, high=2**64 - 1),
        _timeout(timeout),
        _max_nodes(max_nodes),
    )
    return None if mapped is None else Mapping(*mapped)


def verify_map(
    source: GraphLike,
    target_distance: TargetDistance | ArrayLike,
    target_of: Iterable[int],
    cost: float,
    *,
    target_cost: ArrayLike | None = None,
    free: Iterable[int] | None = None,
) -> bool:
    """Whether `target_of` (k,) maps as `map_graph` promises with these arguments, and `cost` is its cost.

    By the definition alone, to within 1e-9 of the dearest mapping's cost; shares no code with the searches. Raises
    ValueError on bad input.
    """
    s, t = Graph.of(source), _target(target_distance)
    prices = None if target_cost is None else _prices(target_cost, t)
    usable = None if free is None else _vertices(free, "free", t)
    try:
        places = _vertices(target_of, "target_of", t)
    except ValueError:
        return False
    return _core.verify_map(s, t, places, _checks.real(cost, "cost", ValueError), prices, usable)


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
    """Whether `side` (n,) is a bipartition as `bipartition` promises with these arguments, and `cut` its cut.

    By the definition alone, to within 1e-9 of the graph's total weight; shares no code with the solver. Raises
    ValueError on bad input.
    """
    g = Graph.of(graph)
    values = np.asarray(side)
    if values.shape != (g.num_vertices,) or not np.isin(values, (0, 1)).all():
        return False
    return _core.verify_bipartition(
        g,
        np.ascontiguousarray(values, dtype=np.int8),
        _checks.real(cut, "cut", ValueError),
        _checks.real(fraction, "fraction", ValueError, high=1.0),
        _checks.real(imbalance, "imbalance", ValueError),
        _vertex_weights(vertex_weights, g),
        _fixed(fixed, g),
    )


def verify_mapping(
    pattern: GraphLike,
    target: GraphLike,
    vertices: Iterable[int],
    *,
    induced: bool = False,
    min_weight: float | None = None,
) -> bool:
    """Whether `vertices` (k,) maps the pattern into the target, by the definition alone.

    Shares no code with the searches, so that their answers can be checked with it.
    """
    p, t = Graph.of(pattern), Graph.of(target)
    try:
        images = _vertices(vertices, "vertices", t)
    except ValueError:
        return False
    return _core.verify_mapping(p, t, images, induced, _min_weight(min_weight))


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
    """The arguments as the border takes them, by position: half a microsecond less than by name."""
    p, t = Graph.of(pattern), Graph.of(target)
    if limit is not None:
        limit = _checks.integer(limit, "limit", ValueError, low=0, high=_INT64_MAX)
    return (
        p,
        t,
        distinct,
        induced,
        _min_weight(min_weight),
        _INT64_MAX if limit is None else limit,
        None if candidates is None else _candidates(candidates, p, t),
        _timeout(timeout),
    )


def _candidates(candidates: ArrayLike, pattern: Graph, target: Graph) -> NDArray[np.uint8]:
    array = np.asarray(candidates)
    shape = (pattern.num_vertices, target.num_vertices)
    if array.shape != shape:
        raise ValueError(f"candidates has shape {array.shape}; expected {shape}")
    return np.ascontiguousarray(array != 0, dtype=np.uint8)


def _target(target: TargetDistance | ArrayLike) -> TargetDistance:
    return target if isinstance(target, TargetDistance) else TargetDistance(target)


def _prices(values: ArrayLike, target: TargetDistance) -> NDArray[np.float64]:
    prices = _checks.numbers_of(values, "target_cost", ValueError)
    if prices.shape != (target.num_vertices,):
        raise ValueError(f"target_cost has shape {prices.shape}; expected ({target.num_vertices},)")
    return np.ascontiguousarray(prices)


def _vertices(values: Any, name: str, graph: Graph | TargetDistance) -> list[int]:
    listed: Any = values.tolist() if hasattr(values, "tolist") else values
    chosen: list[Any] = list(_checks.sequence(listed, name, ValueError))
    n = graph.num_vertices
    for i, v in enumerate(chosen):
        if type(v) is not int or not 0 <= v < n:
            chosen[i] = _checks.integer(v, f"{name}[{i}]", ValueError, low=0, high=n - 1)
    return chosen


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
    """One integer within low..high for each vertex."""
    numbers = _checks.numbers_of(values, name, ValueError)
    if numbers.shape != (graph.num_vertices,):
        raise ValueError(f"{name} has shape {numbers.shape}; expected ({graph.num_vertices},)")
    for i in np.flatnonzero(~((numbers >= low) & (numbers <= high) & (numbers == np.floor(numbers))))[:1]:
        raise ValueError(f"{name}[{i}] = {numbers[i]:g} is not an integer in {low}..{high}")
    return numbers.astype(np.int64)


def _min_weight(value: float | None) -> float:
    return 0.0 if value is None else _checks.real(value, "min_weight", ValueError)


def _timeout(value: float | None) -> float | None:
    return None if value is None else _checks.real(value, "timeout", ValueError)


def _max_nodes(value: int | None) -> int | None:
    return None if value is None else _checks.integer(value, "max_nodes", ValueError, low=1, high=_INT64_MAX)


def _counted(array: Any) -> Any:
    """A boolean adjacency matrix as one of zeros and ones."""
    return array.astype(np.uint8) if getattr(array, "dtype", None) == np.bool_ else array


def _is_adjacency(array: NDArray[np.float64]) -> bool:
    return bool(np.array_equal(array, array.T) and not np.diagonal(array).any())
