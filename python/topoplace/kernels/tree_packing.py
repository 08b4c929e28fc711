"""Pack spanning trees into a directed graph with capacities, so that an all-gather reaches its bound."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

from topoplace import _core
from topoplace.kernels.arguments import seconds, vertices
from topoplace.kernels.terminal_cuts import TerminalGraph

Ways = list[tuple[list[int], int]]
"""(vertices from the start of a hop to its end, number of trees on this path)."""
PackedTree = tuple[int, int, list[tuple[int, int, Ways]]]
"""(root, number of such trees, hops: (start, end, ways) with each start reached before)."""


class TreePacking(NamedTuple):
    """The result of `pack_trees`."""

    trees: list[PackedTree]
    per_root: int
    """Number of trees with each chosen terminal as root; 0 if a terminal cannot be reached."""
    rate_numerator: int
    rate_denominator: int
    complete: bool
    """False if the deadline ended the search early; there are then no trees."""
    flows: int
    """Number of maximum flows computed."""

    @property
    def rate(self) -> Fraction:
        """Return the rate of each tree."""
        return Fraction(self.rate_numerator, self.rate_denominator)


def pack_trees(
    graph: TerminalGraph, chosen: Iterable[int], *, relay_others: bool = False, timeout: float | None = None
) -> TreePacking:
    """Return trees of one rate that together carry the throughput of `throughput_bound`.

    Each chosen terminal is the root of the same number of trees, and each tree reaches all chosen terminals. Vertices
    that only forward need equal capacities in and out; at most 512 vertices may take part. Arguments and errors are
    those of `throughput_bound`; at `timeout` seconds there are no trees and complete=False.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    return TreePacking(*_core.pack_trees(graph, members, relay_others, seconds(timeout)))


def verify_trees(
    graph: TerminalGraph, chosen: Iterable[int], found: TreePacking, *, relay_others: bool = False
) -> bool:
    """Return True if the trees of `found` reach all `chosen` terminals from each, hop by hop, and fit the capacities.

    The check uses only the definition. It does not check that no schedule is faster.
    """
    members = vertices(chosen, "chosen", graph.num_terminals)
    rate = (found.rate_numerator, found.rate_denominator)
    return _core.verify_trees(graph, members, relay_others, found.trees, found.per_root, *rate) is None
