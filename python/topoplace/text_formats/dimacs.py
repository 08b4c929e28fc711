"""Minimum-cost flow problems and solutions as text, in the format of the first DIMACS challenge (1991).

The first letter of a line gives its meaning. `c` is a comment. `p min NODES ARCS` comes once, before the lines that
follow. `n NODE SUPPLY` gives what a node sends (below zero: receives); the default is 0. `a TAIL HEAD LOWER CAPACITY
COST` is an arc. Nodes are numbered from 1; a capacity of -1 means no limit. A solution is `s COST` and, for each arc,
`f TAIL HEAD FLOW`.
"""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks
from topoplace.kernels.min_cost_flow import integers, network_of, whole

__all__ = ["NetworkFile", "format_network", "format_solution", "parse"]

_INT64_MAX = 2**63 - 1  # also kernels.INFINITE, a capacity without limit
_MAX_NODES = 2**31 - 2
_MAX_ISOLATED = 10_000_000  # nodes without a line; more are probably a typing error, and cost gigabytes

_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
# Lines of arcs as programs write them are read in one go; all other lines are read one by one.
_ARCS = re.compile(rb"(?:a(?:[ \t]+-?[0-9]{1,18}){5}[ \t\r]*+\n)*+")
_FIELDS = {
    b"p": ("NODES", "ARCS"),
    b"n": ("NODE", "SUPPLY"),
    b"a": ("TAIL", "HEAD", "LOWER", "CAPACITY", "COST"),
}

Integers = NDArray[np.int64]


class NetworkFile(NamedTuple):
    """The content of a DIMACS file as arguments of `kernels.min_cost_flow`: nodes are numbered from 0."""

    num_nodes: int
    tail: NDArray[np.int32]
    """The tail node of each arc; the next four arrays also have one entry per arc."""
    head: NDArray[np.int32]
    lower: Integers
    capacity: Integers
    """`kernels.INFINITE` for -1 in the file."""
    cost: Integers
    supply: Integers
    """What each node sends; below zero, what it receives."""


class _Problem(NamedTuple):
    line: int
    nodes: int
    arcs: int


def parse(data: bytes) -> NetworkFile:
    """Read the network in `data`; ValueError names the line and the value that break the format."""
    _checks.instance(data, bytes, "data", ValueError)
    reader = _DimacsReader()
    at, number = len(BOM_UTF8) if data.startswith(BOM_UTF8) else 0, 1
    while at < len(data):
        plain = _ARCS.match(data, at) if reader.problem else None
        if plain and plain.end() > at:
            end, lines = plain.end(), reader.add_arcs(plain.group(), number)
        else:
            end, lines = data.find(b"\n", at) + 1 or len(data), 1
            reader.add_line(data[at:end].split(), number)
        at, number = end, number + lines
    return reader.network()


def format_network(
    num_nodes: int,
    tail: ArrayLike,
    head: ArrayLike,
    capacity: ArrayLike,
    cost: ArrayLike,
    supply: ArrayLike,
    *,
    lower: ArrayLike | None = None,
) -> str:
    """Write a network, given in the form of `kernels.min_cost_flow`, as text; `parse` reads it back.

    Raises ValueError naming argument, index and value that `min_cost_flow` refuses or the format cannot express.
    """
    network = network_of(num_nodes, tail, head, lower, capacity, cost, supply)
    _check_nodes(network.tail, "tail", network.num_nodes)
    _check_nodes(network.head, "head", network.num_nodes)
    least = np.zeros_like(network.cost) if network.lower is None else network.lower
    _refuse(network.capacity < 0, network.capacity, "capacity", "is below 0")
    _refuse(least < 0, least, "lower", "is below 0")
    _refuse(least > network.capacity, least, "lower", "is above the capacity")
    for name in ("cost", "supply"):
        _refuse(getattr(network, name) < -_INT64_MAX, getattr(network, name), name, "is below -2^63 + 1")
    limits = np.where(network.capacity == _INT64_MAX, -1, network.capacity)
    nodes = np.flatnonzero(network.supply)
    return "".join(
        [
            f"p min {network.num_nodes} {len(least)}\n",
            _lines("n", nodes + 1, network.supply[nodes]),
            _lines("a", *_numbered(network.tail, network.head), least, limits, network.cost),
        ]
    )


def format_solution(tail: ArrayLike, head: ArrayLike, flow: ArrayLike, cost: int) -> str:
    """Write a solution as text: its cost, and the flow of each arc; ValueError as in `format_network`."""
    units: Integers = integers(flow, "flow", np.int64)
    ends: list[NDArray[np.int32]] = []
    for name, values in (("tail", tail), ("head", head)):
        nodes: NDArray[np.int32] = integers(values, name, np.int32)
        if len(nodes) != len(units):
            raise ValueError(f"{name} has {len(nodes)} entries; flow has {len(units)}")
        _check_nodes(nodes, name, _MAX_NODES)
        ends.append(nodes)
    return f"s {whole(cost, 'cost')}\n{_lines('f', *_numbered(*ends), units)}"


def _check_nodes(nodes: NDArray[np.int32], name: str, count: int) -> None:
    _refuse((nodes < 0) | (nodes >= count), nodes, name, f"is not a node; nodes are 0..{count - 1}")


def _refuse(bad: NDArray[np.bool_], values: NDArray[Any], name: str, why: str) -> None:
    for i in np.flatnonzero(bad)[:1]:
        raise ValueError(f"{name}[{i}] = {values[i]} {why}")


def _numbered(*ends: NDArray[np.int32]) -> list[Integers]:
    """Return arrays of node numbers counted from 1, as in the text, for arrays counted from 0."""
    return [nodes.astype(np.int64) + 1 for nodes in ends]


def _lines(letter: str, *columns: Integers) -> str:
    rows = np.column_stack(columns)
    line = letter + " %d" * rows.shape[1] + "\n"
    text: str = line * len(rows) % tuple(rows.ravel().tolist())
    return text


# ---- lines -------------------------------------------------------------------------------------------------------


class _DimacsReader:
    """A reader that collects the content of the lines it has read."""

    def __init__(self) -> None:
        self.problem: _Problem | None = None
        self._supplies: dict[int, int] = {}
        self._arcs: list[Integers] = [np.zeros((0, 5), dtype=np.int64)]

    def add_line(self, words: list[bytes], number: int) -> None:
        """Read one line, given as its words; `number` is the line's number."""
        if not words or words[0].startswith(b"c"):
            return
        values = _values(words, number)
        if words[0] == b"p":
            self.problem = _problem(values, self.problem, number)
        elif self.problem is None:
            raise ValueError(f"line {number}: {_shown(words[0])} before the line `p min NODES ARCS`")
        elif words[0] == b"a":
            _check_arc(values, self.problem, number)
            self._arcs.append(np.array([values], dtype=np.int64))
        else:
            self._add_supply(values, self.problem, number)

    def add_arcs(self, text: bytes, number: int) -> int:
        """Read `text`, lines of arcs that match `_ARCS` and begin at line `number`; return the number of lines."""
        assert self.problem is not None
        words = text.replace(b"a", b" ").decode("ascii")
        rows = np.fromstring(words, dtype=np.int64, sep=" ").reshape(-1, 5)
        ends, lower, capacity = rows[:, :2], rows[:, 2], _without_limit(rows[:, 3])
        bad = (ends < 1).any(axis=1) | (ends > self.problem.nodes).any(axis=1)
        bad |= (lower < 0) | (lower > capacity)
        if bad.any():
            first = int(np.argmax(bad))
            _check_arc(rows[first].tolist(), self.problem, number + first)
        self._arcs.append(rows)
        return len(rows)

    def network(self) -> NetworkFile:
        """Return the network that the lines describe; ValueError if it is incomplete."""
        if self.problem is None:
            raise ValueError("no line `p min NODES ARCS`")
        line, nodes, arcs = self.problem
        rows, supplies = np.concatenate(self._arcs), self._supplies
        if len(rows) != arcs:
            raise ValueError(f"line {line} promises {arcs} arcs; {len(rows)} follow")
        if nodes > _MAX_ISOLATED + 2 * len(rows) + len(supplies):
            raise ValueError(f"line {line}: of {nodes} nodes more than {_MAX_ISOLATED} have no line")
        tail, head, lower, capacity, cost = rows.T.copy()
        supply = np.zeros(nodes, dtype=np.int64)
        supply[np.fromiter(supplies, dtype=np.int64, count=len(supplies)) - 1] = list(supplies.values())
        ends = (tail - 1).astype(np.int32), (head - 1).astype(np.int32)
        return NetworkFile(nodes, *ends, lower, _without_limit(capacity), cost, supply)

    def _add_supply(self, values: list[int], problem: _Problem, number: int) -> None:
        node, supply = values
        if not 1 <= node <= problem.nodes:
            raise ValueError(f"line {number}: NODE = {node} is not in 1..{problem.nodes}")
        if node in self._supplies:
            raise ValueError(f"line {number}: NODE = {node} has a supply already, {self._supplies[node]}")
        self._supplies[node] = supply


def _values(words: list[bytes], number: int) -> list[int]:
    """Return the numbers of a line, after checking its first letter and the count of numbers."""
    fields = _FIELDS.get(words[0])
    if fields is None:
        raise ValueError(f"line {number}: {_shown(words[0])} is none of c, p, n, a")
    if words[0] == b"p":
        if words[1:2] != [b"min"]:
            raise ValueError(f"line {number}: {_shown(b' '.join(words[1:2]))} is not the problem `min`")
        del words[1]
    if len(words) != len(fields) + 1:
        letter = words[0].decode()
        raise ValueError(
            f"line {number}: {len(words) - 1} values after {letter}; expected {' '.join(fields)}"
        )
    return [_value(word, field, number) for word, field in zip(words[1:], fields, strict=True)]


def _value(word: bytes, field: str, number: int) -> int:
    if not _NUMBER.fullmatch(word) or abs(int(word)) > _INT64_MAX:
        raise ValueError(f"line {number}: {field} = {_shown(word)} is not a whole number of 64 bits")
    return int(word)


def _problem(values: list[int], before: _Problem | None, number: int) -> _Problem:
    if before is not None:
        raise ValueError(f"line {number}: a second problem; the first is in line {before.line}")
    for field, value in zip(_FIELDS[b"p"], values, strict=True):
        if not 0 <= value <= _MAX_NODES:
            raise ValueError(f"line {number}: {field} = {value} is not in 0..{_MAX_NODES}")
    return _Problem(number, *values)


def _check_arc(values: list[int], problem: _Problem, number: int) -> None:
    for field, value in zip(("TAIL", "HEAD"), values, strict=False):
        if not 1 <= value <= problem.nodes:
            raise ValueError(f"line {number}: {field} = {value} is not in 1..{problem.nodes}")
    lower, capacity = values[2:4]
    if not 0 <= lower <= (_INT64_MAX if capacity == -1 else capacity):
        raise ValueError(f"line {number}: LOWER = {lower} is not in 0..CAPACITY = {capacity}")


def _without_limit(capacity: Integers) -> Integers:
    return np.where(capacity == -1, _INT64_MAX, capacity)


def _shown(word: bytes) -> str:
    return repr(word[:40].decode("ascii", "backslashreplace"))
