"""Minimum-cost flow problems and solutions as text, in the format of the first DIMACS challenge (1991).

A line begins with a letter. `c` is a comment. `p min NODES ARCS` comes once, before those that follow: `n NODE SUPPLY`
says what a node sends (below zero: receives; 0 where no line says), `a TAIL HEAD LOWER CAPACITY COST` is an arc. Nodes
are numbered from 1; a capacity of -1 is none. A solution is `s COST` and, for each arc, `f TAIL HEAD FLOW`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["NetworkFile", "format_network", "format_solution", "parse"]

_MOST = 2**63 - 1  # also what stands for a capacity without limit: kernels.INFINITE
_MOST_NODES = 2**31 - 2
_MOST_ISOLATED = 10_000_000  # nodes without a line; more of them are a typing error that costs gigabytes

_NUMBER = re.compile(rb"[+-]?[0-9]{1,19}")
_FIELDS = {
    b"p": ("NODES", "ARCS"),
    b"n": ("NODE", "SUPPLY"),
    b"a": ("TAIL", "HEAD", "LOWER", "CAPACITY", "COST"),
}

Integers = NDArray[np.int64]


class NetworkFile(NamedTuple):
    """What a file holds, as `kernels.min_cost_flow` takes it: nodes are numbered from 0."""

    num_nodes: int
    tail: NDArray[np.int32]
    """(arcs,), like the next four."""
    head: NDArray[np.int32]
    lower: Integers
    capacity: Integers
    """`kernels.INFINITE` where the file has -1."""
    cost: Integers
    supply: Integers
    """(nodes,)"""


class _Problem(NamedTuple):
    line: int
    nodes: int
    arcs: int


def parse(data: bytes) -> NetworkFile:
    """The network that `data` describes; ValueError naming line and value for whatever the format does not allow."""
    problem: _Problem | None = None
    supplies: dict[int, int] = {}
    arcs: list[list[int]] = []
    for number, text in enumerate(data.split(b"\n"), 1):
        words = text.split()
        if not words or words[0].startswith(b"c"):
            continue
        values = _values(words, number)
        if words[0] == b"p":
            problem = _problem(values, problem, number)
        elif problem is None:
            raise ValueError(f"line {number}: {_shown(words[0])} before the line `p min NODES ARCS`")
        elif words[0] == b"a":
            arcs.append(_arc(values, problem, number))
        else:
            _add_supply(supplies, values, problem, number)
    if problem is None:
        raise ValueError("no line `p min NODES ARCS`")
    return _network(problem, supplies, arcs)


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
    """The text of a network given as `kernels.min_cost_flow` takes it; `parse` reads it back.

    Raises ValueError where arrays differ in length, and for a finite capacity below zero, which the text cannot tell.
    """
    ends = np.column_stack([np.asarray(tail, dtype=np.int64), np.asarray(head, dtype=np.int64)]) + 1
    capacities = np.asarray(capacity, dtype=np.int64)
    if (capacities < 0).any():
        at = int(np.argmax(capacities < 0))
        raise ValueError(f"capacity[{at}] = {capacities[at]} is below 0")
    lowers = np.zeros(len(ends), dtype=np.int64) if lower is None else np.asarray(lower, dtype=np.int64)
    limits = np.where(capacities == _MOST, -1, capacities)
    rows = np.column_stack([ends, lowers, limits, np.asarray(cost, dtype=np.int64)])
    supplies = np.asarray(supply, dtype=np.int64)
    if len(supplies) != num_nodes:
        raise ValueError(f"supply has {len(supplies)} values; expected {num_nodes}, one for each node")
    nodes = np.flatnonzero(supplies)
    lines = [f"p min {num_nodes} {len(rows)}"]
    lines += _lines("n", np.column_stack([nodes + 1, supplies[nodes]]))
    lines += _lines("a", rows)
    return "".join(f"{line}\n" for line in lines)


def format_solution(tail: ArrayLike, head: ArrayLike, flow: ArrayLike, cost: int) -> str:
    """The text of a solution: its cost, and what each arc carries."""
    columns = (np.asarray(tail, dtype=np.int64) + 1, np.asarray(head, dtype=np.int64) + 1, np.asarray(flow))
    return "".join(f"{line}\n" for line in (f"s {cost}", *_lines("f", np.column_stack(columns))))


def _lines(letter: str, rows: Integers) -> Iterable[str]:
    return (" ".join((letter, *map(str, row))) for row in rows.tolist())


# ---- lines -------------------------------------------------------------------------------------------------------


def _values(words: list[bytes], number: int) -> list[int]:
    """The numbers of a line of any kind."""
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
    if not _NUMBER.fullmatch(word) or abs(int(word)) > _MOST:
        raise ValueError(f"line {number}: {field} = {_shown(word)} is not a whole number of 64 bits")
    return int(word)


def _problem(values: list[int], before: _Problem | None, number: int) -> _Problem:
    if before is not None:
        raise ValueError(f"line {number}: a second problem; the first is in line {before.line}")
    for field, value, most in zip(_FIELDS[b"p"], values, (_MOST_NODES, _MOST_NODES), strict=True):
        if not 0 <= value <= most:
            raise ValueError(f"line {number}: {field} = {value} is not in 0..{most}")
    return _Problem(number, *values)


def _arc(values: list[int], problem: _Problem, number: int) -> list[int]:
    tail, head, lower, capacity, _ = values
    if capacity == -1:
        capacity = values[3] = _MOST
    if not (0 < tail <= problem.nodes and 0 < head <= problem.nodes):
        field, value = ("HEAD", head) if 0 < tail <= problem.nodes else ("TAIL", tail)
        raise ValueError(f"line {number}: {field} = {value} is not in 1..{problem.nodes}")
    if not 0 <= lower <= capacity:
        raise ValueError(f"line {number}: LOWER = {lower} is not in 0..CAPACITY = {capacity}")
    return values


def _add_supply(supplies: dict[int, int], values: list[int], problem: _Problem, number: int) -> None:
    node, supply = values
    if not 1 <= node <= problem.nodes:
        raise ValueError(f"line {number}: NODE = {node} is not in 1..{problem.nodes}")
    if node in supplies:
        raise ValueError(f"line {number}: NODE = {node} has a supply already, {supplies[node]}")
    supplies[node] = supply


def _network(problem: _Problem, supplies: dict[int, int], arcs: list[list[int]]) -> NetworkFile:
    if len(arcs) != problem.arcs:
        raise ValueError(f"line {problem.line} promises {problem.arcs} arcs; {len(arcs)} follow")
    if problem.nodes > _MOST_ISOLATED + 2 * len(arcs) + len(supplies):
        raise ValueError(
            f"line {problem.line}: of {problem.nodes} nodes more than {_MOST_ISOLATED} have no line"
        )
    tail, head, lower, capacity, cost = np.array(arcs, dtype=np.int64).reshape(-1, 5).T.copy()
    supply = np.zeros(problem.nodes, dtype=np.int64)
    supply[np.fromiter(supplies, dtype=np.int64, count=len(supplies)) - 1] = list(supplies.values())
    ends = (tail - 1).astype(np.int32), (head - 1).astype(np.int32)
    return NetworkFile(problem.nodes, *ends, lower, capacity, cost, supply)


def _shown(word: bytes) -> str:
    return repr(word[:40].decode("ascii", "backslashreplace"))
