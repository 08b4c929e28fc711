"""Cuts between terminals of a directed graph: upper bounds on the rates of a broadcast and of an all-gather."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import NamedTuple

from topoplace import _checks, _core
from topoplace.kernels.arguments import seconds, vertices

_MAX_VERTICES = 1 << 20
_MAX_TERMINALS = 1 << 12
_MAX_CAPACITY = 1 << 40


class TerminalGraph(_core.TerminalGraph):
    """An immutable directed graph with capacities; some vertices are terminals, and the others only forward."""

    num_terminals: int
    """Number of terminals, which are the vertices 0..num_terminals - 1."""

    def __init__(self, num_vertices: int, num_terminals: int, arcs: Iterable[Sequence[int]]) -> None:
        """Build the graph from `arcs`, each (tail, head, capacity); ValueError names an argument that is out of range.

        Capacities are integers of at least 0, and at most 2**40 together.
        """
        n = _checks.integer(num_vertices, "num_vertices", ValueError, low=0, high=_MAX_VERTICES)
        self.num_terminals = _checks.integer(
            num_terminals, "num_terminals", ValueError, low=0, high=min(n, _MAX_TERMINALS)
        )
        super().__init__(n, self.num_terminals, [_arc(arc, i, n) for i, arc in enumerate(arcs)])


class LeastFlow(NamedTuple):
    """The result of `least_max_flow`."""

    value: int
    """The smallest maximum flow from one chosen terminal to another."""
    side: list[int]
    """The vertices before a cut of this capacity between two chosen terminals, ascending."""
    complete: bool
    """False if the deadline ended the search early; `value` is then an upper bound."""
    flows: int
    """Number of maximum flows computed."""


class ThroughputBound(NamedTuple):
    """The result of `throughput_bound`: the worst cut, with `terminals` chosen ones before it."""

    terminals: int
    capacity: int
    """The capacity of the cut; 0 if a terminal cannot be reached from another."""
    side: list[int]
    """The vertices before the cut, ascending; at least one chosen terminal is not among them."""
    complete: bool
    """False if the deadline ended the search early; the cut may then not be the worst."""
    flows: int
    """Number of maximum flows computed."""

    def throughput(self, num_chosen: int) -> Fraction:
        """Return the rate of an all-gather of `num_chosen` equal parts: all data divided by the least time."""
        return Fraction(num_chosen * self.capacity, self.terminals)


def least_max_flow(
    graph: TerminalGraph, chosen: Iterable[int], *, relay_others: bool = False, timeout: float | None = None
) -> LeastFlow:
    """Return the smallest maximum flow from one of the `chosen` terminals to another.

    No set of rings through all of them, and no broadcast from one of them, has a higher rate.

    At `timeout` seconds, the smallest flow so far is returned with complete=False.

    Args:
        relay_others: True if terminals that are not chosen also forward.

    Raises:
        ValueError: An argument is invalid, or there are fewer than two terminals.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    return LeastFlow(*_core.least_max_flow(graph, members, relay_others, seconds(timeout)))


def throughput_bound(
    graph: TerminalGraph, chosen: Iterable[int], *, relay_others: bool = False, timeout: float | None = None
) -> ThroughputBound:
    """Return the cut that limits an all-gather among the `chosen` terminals most.

    The data of the chosen terminals before a cut must cross it. A cut of capacity b after c terminals therefore limits
    n terminals to a throughput of n * b / c. Schedules of trees reach the least of these limits (Zhao et al.,
    ForestColl, arXiv 2402.06787). Arguments and errors are those of `least_max_flow`.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    return ThroughputBound(*_core.throughput_bound(graph, members, relay_others, seconds(timeout)))


def verify_least_flow(
    graph: TerminalGraph, chosen: Iterable[int], found: LeastFlow, *, relay_others: bool = False
) -> bool:
    """Return True if the side of `found` is a cut between chosen terminals of the capacity `found.value`.

    The check uses only the definition. It does not check that no cut has less capacity.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    return _core.verify_least_flow(graph, members, relay_others, found.value, found.side) is None


def verify_throughput(
    graph: TerminalGraph, chosen: Iterable[int], found: ThroughputBound, *, relay_others: bool = False
) -> bool:
    """Return True if the side of `found` is a cut with these terminals before it and this capacity.

    The check uses only the definition. It does not check that no cut is worse.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    cut = (found.terminals, found.capacity, found.side)
    return _core.verify_throughput(graph, members, relay_others, *cut) is None


def _arc(arc: Sequence[int], i: int, n: int) -> tuple[int, int, int]:
    entry = _checks.ordered(arc, f"arcs[{i}]", ValueError)
    if len(entry) != 3:
        raise ValueError(f"arcs[{i}] = {_checks.shown(entry)} is not (tail, head, capacity)")
    tail, head = (_checks.integer(v, f"arcs[{i}]", ValueError, low=0, high=n - 1) for v in entry[:2])
    return tail, head, _checks.integer(entry[2], f"arcs[{i}][2]", ValueError, low=0, high=_MAX_CAPACITY)
