"""The work that a ranking of candidates may take."""

from __future__ import annotations

from collections.abc import Callable

from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget

_LEAST_NODES = 500
"""Least nodes that a search for another candidate counts as: for the call of `best` and the scores of its placement."""
_LEAST_SHARE = 1 << 15
"""Nodes that each search for another candidate may visit, whatever the number of such searches."""


class Effort:
    """The work that a ranking may take: for its first candidate, and for the others.

    num_nodes: search tree nodes that all searches for other candidates may visit together. num_shares: each of these
    searches may visit the remaining nodes divided by this number, but at least 32768 of them.
    """

    def __init__(self, decision: WorkBudget, num_nodes: int = 0, num_shares: int = 1) -> None:
        self.decision = decision
        self.complete = True
        self._left = num_nodes
        self._num_shares = num_shares

    def extend(self, search: Callable[[WorkBudget], None]) -> None:
        """Run a search for further candidates; if no nodes are left, set `complete` to False instead."""
        if self._left <= 0:
            self.complete = False
            return
        share = min(self._left, max(_LEAST_SHARE, self._left // self._num_shares))
        budget = WorkBudget(share)
        try:
            search(budget)
        except SearchTimeoutError:
            self.complete = False
        self.complete = self.complete and not budget.spent
        self._left -= max(_LEAST_NODES, share - (budget.left or 0))
