"""The work that a ranking of candidates may take."""

from __future__ import annotations

from collections.abc import Callable

from topoplace.errors import SearchTimeoutError
from topoplace.kernels import WorkBudget

_LEAST_NODES = 500
"""What a search for another candidate counts at least: the call of `best` and the scores of its placement."""
_LEAST_SHARE = 1 << 15
"""Nodes that a search for another candidate may visit, however many such searches there are."""


class Effort:
    """The work that a ranking may take: for its first candidate, and for the others.

    num_nodes: search tree nodes that all searches for other candidates may visit together. num_shares: each of these
    searches may visit the nodes that are left divided by this number, but at least 32768 if as many are left.
    """

    def __init__(self, decision: WorkBudget, num_nodes: int = 0, num_shares: int = 1) -> None:
        self.decision = decision
        self.complete = True
        self._left = num_nodes
        self._num_shares = num_shares

    def extend(self, search: Callable[[WorkBudget], None]) -> None:
        """Run a search for further candidates, unless their nodes are spent."""
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
