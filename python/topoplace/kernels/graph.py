"""The graph class that all kernels accept as an argument."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.errors import SearchTimeoutError
from topoplace.kernels.arguments import seconds

GraphLike: TypeAlias = Any  # Graph | ArrayLike | networkx.Graph; networkx is not a dependency


class Graph(_core.Graph):
    """An undirected, simple, weighted graph. Immutable.

    Args:
        weights: (n, n) symmetric matrix, 0 on the diagonal and for pairs without an edge, else positive and finite.

    Raises:
        ValueError: Names an invalid entry.
    """

    __slots__ = ()

    def __init__(self, weights: ArrayLike) -> None:
        matrix = _checks.numbers_of(weights, "weights", ValueError)
        _build(self, matrix, "weights")

    @classmethod
    def from_edges(cls, num_vertices: int, edges: ArrayLike | Iterable[Sequence[float]]) -> Self:
        """Build a graph of `num_vertices` vertices from rows (u, v), which have weight 1, or (u, v, weight).

        Raises:
            ValueError: Names an edge that is out of range, is a loop, occurs twice, or has a weight that is not
                positive and finite.
        """
        listed = edges if hasattr(edges, "dtype") else _checks.sequence(edges, "edges", ValueError)
        count = _checks.integer(num_vertices, "num_vertices", ValueError, low=0, high=2**31 - 1)
        return cls._from_rows(count, _checks.numbers_of(listed, "edges", ValueError), "edges")

    @classmethod
    def _from_rows(cls, num_vertices: int, rows: NDArray[np.float64], what: str) -> Self:
        if rows.size == 0:
            rows = rows.reshape(0, 2)
        if rows.ndim != 2 or rows.shape[1] not in (2, 3):
            raise ValueError(f"{what} has shape {rows.shape}; expected (m, 2) or (m, 3)")
        ends = rows[:, :2]
        bad = np.argwhere((ends != np.floor(ends)) | (np.abs(ends) > 2**31 - 1))
        if len(bad):
            i, j = bad[0]
            raise ValueError(f"{what}[{i}, {j}] = {ends[i, j]} is not a vertex")
        weights = rows[:, 2] if rows.shape[1] == 3 else np.ones(len(rows))
        graph = cls.__new__(cls)
        try:
            _core.Graph.__init__(
                graph, num_vertices, np.ascontiguousarray(ends, dtype=np.int32), np.ascontiguousarray(weights)
            )
        except ValueError as error:  # which calls every array `edges`
            raise ValueError(str(error) if what == "edges" else f"{what}: {error}") from None
        return graph

    @classmethod
    def of(cls, graph: GraphLike, what: str = "graph") -> Graph:
        """Return any graph argument of a kernel as a `Graph`. what: the argument's name in messages.

        A non-empty (m, 2) or (m, 3) array has one edge per row, and one vertex more than its largest vertex number. As
        an exception, a square one with a zero diagonal is a weight matrix and must be symmetric; for edges of this form
        call `from_edges`. Every other array must be a weight matrix. The nodes of a networkx graph are numbered in the
        order in which it lists them; edges without the attribute `weight` have weight 1.

        Raises:
            ValueError: The argument has another form.
        """
        if isinstance(graph, Graph):
            return graph
        if hasattr(graph, "nodes") and hasattr(graph, "edges"):
            return cls._from_networkx(graph, what)
        array = _checks.numbers_of(graph, what, ValueError)
        square = array.ndim == 2 and array.shape[0] == array.shape[1]
        edges = array.ndim == 2 and array.shape[1] in (2, 3) and array.size > 0
        if edges and not (square and _may_be_weights(array, what)):
            if not np.isfinite(array[:, :2]).all():
                raise ValueError(
                    f"{what}[{int(np.argwhere(~np.isfinite(array[:, :2]))[0][0])}] is not finite"
                )
            return cls._from_rows(int(array[:, :2].max()) + 1, array, what)
        matrix_graph = cls.__new__(cls)
        _build(matrix_graph, array, what)
        return matrix_graph

    @classmethod
    def _from_networkx(cls, graph: Any, what: str) -> Graph:
        _checks.simple_graph(graph, what, ValueError)
        number = {node: i for i, node in enumerate(graph.nodes)}
        edges = [
            (number[u], number[v], _checks.real(weight, f"weight of edge ({u!r}, {v!r})", ValueError))
            for u, v, weight in graph.edges(data="weight", default=1.0)
        ]
        return cls.from_edges(len(number), edges)

    def count_automorphisms(self, timeout: float | None = None) -> float:
        """Return the number of permutations of the vertices that keep every edge, whatever its weight; exact up to
        2**53.

        Raises:
            SearchTimeoutError: `timeout` seconds are too short.
            ValueError: There are more than 4,096 vertices.
        """
        count = self.automorphisms_within(seconds(timeout))
        if count is None:
            raise SearchTimeoutError(f"automorphisms not counted after {timeout} s", None)
        return count

    def __repr__(self) -> str:
        return f"Graph({self.num_vertices} vertices, {self.num_edges} edges)"


def _build(graph: Graph, matrix: NDArray[np.float64], what: str) -> None:
    """Initialise a graph from its weight matrix; ValueError names the first entry that none may have."""
    try:
        _core.Graph.__init__(graph, np.ascontiguousarray(matrix))
    except ValueError:  # which names no entry
        _checks.symmetric_matrix(matrix, what, ValueError)
        raise


def _may_be_weights(square: NDArray[np.float64], what: str) -> bool:
    """Return False if a square array cannot be a weight matrix; ValueError if it could be one or a list of edges."""
    if np.diagonal(square).any():
        return False
    for u, v in np.argwhere(square != square.T)[:1]:
        raise ValueError(
            f"{what} has a zero diagonal, but {what}[{u}, {v}] = {square[u, v]:g} and {what}[{v}, {u}] = "
            f"{square[v, u]:g}: a weight matrix is symmetric; for a list of edges call Graph.from_edges"
        )
    return True
