"""Graphs as text in the format of METIS, Chaco, Walshaw's archive, KaHIP and Scotch's `gcv`, and bipartitions.

The first line that is not a comment holds the numbers of vertices and edges. An optional code of three digits follows:
1?? means that vertices have sizes, ?1? that they have weights, ??1 that edges have weights. Last is the number of
weights per vertex, which must be 1. Each further line is a vertex: its size, its weight, and its neighbours, numbered
from 1, each followed by the weight of the edge. Without sizes or weights these numbers are left out. A line that begins
with % is a comment. Both ends of an edge name it (METIS 5.1 manual, 4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace.kernels import Graph

__all__ = ["GraphFile", "format_sides", "parse"]

_MAX_DIGITS = 15  # keeps every number, and sums of thousands of them, exact as a float
_MAX_VERTICES = 2**31 - 1

Integers = NDArray[np.int64]


class GraphFile(NamedTuple):
    """The content of a METIS file. Vertex sizes are ignored: they only matter for the volume of messages."""

    graph: Graph
    edges: NDArray[np.float64]
    """(m, 3): the two ends of each edge, the lower first, and its weight."""
    vertex_weights: Integers | None
    """(n,), or None if all weigh 1."""


class _Header(NamedTuple):
    line: int
    vertices: int
    edges: int
    sizes: bool
    vertex_weights: bool
    edge_weights: bool

    @property
    def before_neighbours(self) -> int:
        """Return how many numbers precede the neighbours in a vertex's line."""
        return self.sizes + self.vertex_weights


class _Numbers(NamedTuple):
    """The numbers in a text, grouped by line; comment lines are left out."""

    value: Integers
    first: Integers
    """(lines + 1,): the index of each line's first number."""
    line: Integers
    """(lines,): each line's number in the text, from 1."""


def parse(data: bytes) -> GraphFile:
    """Read the graph in `data`; ValueError names the line that breaks the format."""
    numbers, header = _vertex_lines(_split(data))
    count = np.diff(numbers.first)
    _refuse_line(count < header.before_neighbours, numbers, "lacks the vertex's size or weight")
    rest = count - header.before_neighbours
    if header.edge_weights:
        _refuse_line(rest % 2 != 0, numbers, "has a neighbour without the weight of its edge")
    weights = None
    if header.vertex_weights:
        weights = numbers.value[numbers.first[:-1] + header.sizes]
    edges = _edges_of_lines(numbers, header, rest)
    return GraphFile(Graph.from_edges(header.vertices, edges), edges, weights)


def format_sides(side: ArrayLike) -> str:
    """Return a bipartition as text: one line per vertex with its side (0 or 1), as METIS writes `FILE.part.2`."""
    return "".join(f"{value}\n" for value in np.asarray(side).tolist())


# ---- from bytes to numbers by line -------------------------------------------------------------------------------


def _split(data: bytes) -> _Numbers:
    text = np.frombuffer(data, dtype=np.uint8).copy()
    ends = np.flatnonzero(text == ord("\n"))
    if not len(ends) or ends[-1] != len(text) - 1:
        ends = np.append(ends, len(text))
    starts = np.append(0, ends[:-1] + 1)
    comments = _blank_comments(text, starts, ends)
    begin, value = _values(text, ends)
    lines = np.flatnonzero(~comments)
    first = np.append(np.searchsorted(begin, starts[lines]), len(begin))
    return _Numbers(value, first, lines + 1)


def _blank_comments(text: NDArray[np.uint8], starts: Integers, ends: Integers) -> NDArray[np.bool_]:
    """Overwrite lines that begin with % with blanks; return a mask of these lines."""
    comments = np.zeros(len(starts), dtype=bool)
    marks = np.flatnonzero(text == ord("%"))
    lines, first = np.unique(np.searchsorted(ends, marks), return_index=True)
    for line, at in zip(lines.tolist(), marks[first].tolist(), strict=True):
        if not text[starts[line] : at].tobytes().strip():
            comments[line] = True
            text[at : ends[line]] = ord(" ")
    return comments


def _values(text: NDArray[np.uint8], ends: Integers) -> tuple[Integers, Integers]:
    """Return the position in `text` at which each number begins, and each number's value."""
    blank = (text == ord(" ")) | ((text >= 9) & (text <= 13))
    bad = ~blank & ((text < ord("0")) | (text > ord("9")))
    if bad.any():
        at = int(np.argmax(bad))
        word = _word(text, at)
        raise ValueError(f"line {_line(at, ends)}: {word!r} is not a whole number of at least 0")
    edges = np.diff(np.concatenate([[True], blank, [True]]).astype(np.int8))
    begin, end = np.flatnonzero(edges < 0), np.flatnonzero(edges > 0)
    long = end - begin > _MAX_DIGITS
    if long.any():
        at = int(begin[np.argmax(long)])
        raise ValueError(f"line {_line(at, ends)}: {_word(text, at)!r} has more than {_MAX_DIGITS} digits")
    value = np.zeros(len(begin), dtype=np.int64)
    for digit in range(int((end - begin).max(initial=0))):
        there = np.flatnonzero(end - begin > digit)
        value[there] = 10 * value[there] + (text[begin[there] + digit] - ord("0"))
    return begin, value


def _word(text: NDArray[np.uint8], at: int) -> str:
    before = text[max(0, at - 20) : at].tobytes().split(None)
    glued = before[-1] if before and not text[at - 1 : at].tobytes().isspace() else b""
    after = text[at : at + 20].tobytes().split(None, 1)
    return (glued + after[0]).decode("ascii", "backslashreplace")


def _line(at: int, ends: Integers) -> int:
    return int(np.searchsorted(ends, at)) + 1


# ---- from numbers to a graph -------------------------------------------------------------------------------------


def _vertex_lines(numbers: _Numbers) -> tuple[_Numbers, _Header]:
    count = np.diff(numbers.first)
    if not count.any():
        raise ValueError("no line with the numbers of vertices and edges")
    at = int(np.argmax(count > 0))
    header = _header(numbers.value[numbers.first[at] : numbers.first[at + 1]].tolist(), int(numbers.line[at]))
    first, line = numbers.first[at + 1 :], numbers.line[at + 1 :]
    if len(line) < header.vertices:
        raise ValueError(
            f"line {header.line} promises {header.vertices} vertices; {len(line)} lines follow it"
        )
    beyond = np.flatnonzero(np.diff(first)[header.vertices :])
    if len(beyond):
        where = line[header.vertices + beyond[0]]
        raise ValueError(
            f"line {where}: beyond the {header.vertices} vertices that line {header.line} promises"
        )
    return _Numbers(numbers.value, first[: header.vertices + 1], line[: header.vertices]), header


def _header(words: list[int], line: int) -> _Header:
    where = f"line {line}"
    if not 2 <= len(words) <= 4:
        raise ValueError(
            f"{where}: {len(words)} numbers; expected vertices, edges and optionally a code and a number of weights"
        )
    vertices, edges = words[:2]
    code = words[2] if len(words) > 2 else 0
    constraints = words[3] if len(words) > 3 else 1
    if vertices > _MAX_VERTICES:
        raise ValueError(f"{where}: {vertices} vertices are more than {_MAX_VERTICES}")
    if code not in (0, 1, 10, 11, 100, 101, 110, 111):
        raise ValueError(f"{where}: the code {code} is not three digits, each 0 or 1")
    sizes, vertex_weights, edge_weights = (bool(code // unit % 10) for unit in (100, 10, 1))
    if constraints != 1:
        raise ValueError(f"{where}: {constraints} weights for each vertex; sides are balanced by one")
    return _Header(line, vertices, edges, sizes, vertex_weights, edge_weights)


def _edges_of_lines(numbers: _Numbers, header: _Header, rest: Integers) -> NDArray[np.float64]:
    stride = 1 + header.edge_weights
    degree = rest // stride
    owner = np.repeat(np.arange(header.vertices), degree)
    within = np.arange(len(owner)) - np.repeat(np.cumsum(degree) - degree, degree)
    at = np.repeat(numbers.first[:-1] + header.before_neighbours, degree) + stride * within
    other = numbers.value[at] - 1
    weight = numbers.value[at + 1] if header.edge_weights else np.ones(len(owner), dtype=np.int64)
    _check_arcs(owner, other, weight, numbers.line, header.vertices)
    return _edges(owner, other, weight, numbers.line, header)


def _check_arcs(owner: Integers, other: Integers, weight: Integers, line: Integers, vertices: int) -> None:
    def refuse(bad: NDArray[np.bool_], why: str) -> None:
        if bad.any():
            i = int(np.argmax(bad))
            raise ValueError(f"line {line[owner[i]]}: neighbour {other[i] + 1} {why}")

    refuse((other < 0) | (other >= vertices), f"is not in 1..{vertices}")
    refuse(other == owner, "is the vertex itself")
    refuse(weight < 1, "is joined by an edge of weight 0")


def _edges(
    owner: Integers, other: Integers, weight: Integers, line: Integers, header: _Header
) -> NDArray[np.float64]:
    """Return (m, 3) each edge once: lower end, higher end, weight.

    ValueError unless both ends name the edge exactly once and with the same weight.
    """
    up = _sorted_by_ends(owner, other, weight, owner < other, header.vertices)
    down = _sorted_by_ends(other, owner, weight, owner > other, header.vertices)
    for low_first, (key, _) in ((True, up), (False, down)):
        twice = np.flatnonzero(np.diff(key) == 0)
        if len(twice):
            u, v = _ends(int(key[twice[0]]), header.vertices, low_first=low_first)
            raise ValueError(f"line {line[u]}: neighbour {v + 1} is named twice")
    if not (np.array_equal(up[0], down[0]) and np.array_equal(up[1], down[1])):
        raise ValueError(_one_sided(up, down, line, header.vertices))
    if len(up[0]) != header.edges:
        raise ValueError(f"line {header.line} promises {header.edges} edges; {len(up[0])} follow")
    low, high = np.divmod(up[0], max(1, header.vertices))
    return np.column_stack([low, high, up[1]]).astype(np.float64)


def _sorted_by_ends(
    low: Integers, high: Integers, weight: Integers, chosen: NDArray[np.bool_], vertices: int
) -> tuple[Integers, Integers]:
    key = low[chosen] * vertices + high[chosen]
    order = np.argsort(key, kind="stable")
    return key[order], weight[chosen][order]


def _one_sided(
    up: tuple[Integers, Integers], down: tuple[Integers, Integers], line: Integers, vertices: int
) -> str:
    """Return a message about the first edge that only one end names, or that its ends name with different weights."""
    for low_first, key, other in ((True, up[0], down[0]), (False, down[0], up[0])):
        lonely = key[~np.isin(key, other)]
        if len(lonely):
            u, v = _ends(int(lonely[0]), vertices, low_first=low_first)
            return f"line {line[u]}: neighbour {v + 1} does not name {u + 1} (line {line[v]})"
    at = int(np.argmax(up[1] != down[1]))
    u, v = _ends(int(up[0][at]), vertices, low_first=True)
    return (
        f"line {line[u]}: the edge to {v + 1} has weight {up[1][at]}; line {line[v]} gives it {down[1][at]}"
    )


def _ends(key: int, vertices: int, *, low_first: bool) -> tuple[int, int]:
    low, high = divmod(key, vertices)
    return (low, high) if low_first else (high, low)


def _refuse_line(bad: NDArray[np.bool_], numbers: _Numbers, why: str) -> None:
    if bad.any():
        raise ValueError(f"line {numbers.line[int(np.argmax(bad))]} {why}")
