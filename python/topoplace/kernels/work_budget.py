"""A limit on the work of several searches together."""

from __future__ import annotations

from topoplace import _checks
from topoplace.kernels.arguments import INT64_MAX, node_limit


class WorkBudget:
    """Search tree nodes that several searches may visit together: at least 0, or None for no limit."""

    __slots__ = ("_left",)

    def __init__(self, nodes: int | None = None) -> None:
        self._left = (
            None if nodes is None else _checks.integer(nodes, "nodes", ValueError, low=0, high=INT64_MAX)
        )

    @property
    def left(self) -> int | None:
        """Return the number of nodes left; None if there is no limit."""
        return self._left

    @property
    def spent(self) -> bool:
        """Return True if no node is left."""
        return self._left == 0

    def limit(self, max_nodes: int | None) -> int | None:
        """Return the node limit of the next search: the smaller of `max_nodes` and the remaining nodes."""
        max_nodes = node_limit(max_nodes)
        if self._left is None or max_nodes is None:
            return max_nodes if self._left is None else self._left
        return min(max_nodes, self._left)

    def charge(self, nodes: int) -> None:
        """Subtract the nodes that a search visited."""
        nodes = _checks.integer(nodes, "nodes", ValueError, low=0, high=INT64_MAX)
        if self._left is not None:
            self._left = max(0, self._left - nodes)
