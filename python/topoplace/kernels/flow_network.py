"""Minimum-cost flow on a network that changes between solutions."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from topoplace import _core
from topoplace.kernels.min_cost_flow import (
    Algorithm,
    Columns,
    FlowSolution,
    Indices,
    algorithm_of,
    integers,
    limits,
    solution,
    whole_limits,
)


class FlowNetwork:
    """Minimum-cost flow on a network that changes: each `solve` starts from the flow and prices of the last.

    Nodes and arcs have numbers that stay theirs until they are removed, and are then given out again; they index the
    columns of `columns()` and what `solve` returns. There are no lower bounds. All changes take arrays, raise
    ValueError naming argument, index and value that are refused, and have then changed nothing.

    Scheduling graphs stay assignments: tasks (supply 1, no arc enters) that come, go or change their costs, jobs'
    unscheduled nodes that come and go, and machines whose capacity or cost to the sink changes, each take a search as
    long as the change travels (cf. Gog et al., "Firmament", OSDI 2016, on incremental solving). Other changes to
    what lies behind the tasks are solved from scratch. Any other network is solved by cost scaling from the last flow
    and potentials. One thread at a time: RuntimeError where a second one comes while the first solves.
    """

    def __init__(self) -> None:
        self._kept = _core.FlowNetwork()

    def __reduce__(self) -> NoReturn:  # copy, deepcopy and pickle all ask this
        raise TypeError("a FlowNetwork is kept by one owner; build another from its columns()")

    @property
    def num_nodes(self) -> int:
        """The number of nodes now."""
        return self._kept.num_nodes

    @property
    def num_arcs(self) -> int:
        """The number of arcs now."""
        return self._kept.num_arcs

    def add_nodes(self, supply: ArrayLike) -> Indices:
        """Add nodes with this supply (k,), negative for a demand, and return their numbers (k,)."""
        return self._kept.add_nodes(integers(supply, "supply", np.int64))

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike) -> Indices:
        """Add arcs from `tail` to `head` (k,) with limits and unit costs (k,), and return their numbers (k,)."""
        return self._kept.add_arcs(
            integers(tail, "tail", np.int32),
            integers(head, "head", np.int32),
            integers(whole_limits(capacity), "capacity", np.int64),
            integers(cost, "cost", np.int64),
        )

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Remove nodes (k,) and all arcs at them."""
        self._kept.remove_nodes(integers(nodes, "nodes", np.int32))

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Remove arcs (k,)."""
        self._kept.remove_arcs(integers(arcs, "arcs", np.int32))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Set the supplies (k,) of nodes (k,)."""
        self._kept.set_supply(integers(nodes, "nodes", np.int32), integers(supply, "supply", np.int64))

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the limits (k,) of arcs (k,)."""
        limit = integers(whole_limits(capacity), "capacity", np.int64)
        self._kept.set_capacity(integers(arcs, "arcs", np.int32), limit)

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Set the unit costs (k,) of arcs (k,)."""
        self._kept.set_cost(integers(arcs, "arcs", np.int32), integers(cost, "cost", np.int64))

    def columns(self) -> Columns:
        """Return a copy of the network by number; a removed node has no supply, a removed arc no capacity."""
        tail, head, capacity, cost, supply = self._kept.columns()
        return Columns(len(supply), tail, head, None, capacity, cost, supply)

    def solve(
        self, *, algorithm: Algorithm = "auto", timeout: float | None = None, max_nodes: int | None = None
    ) -> FlowSolution:
        """Return the optimum as `min_cost_flow` does, with flow by arc number and potential by node number.

        At `timeout` seconds, or after `max_nodes` steps, its status is "timeout"; the next call goes on from there.
        `verify` of the solution needs the network as it was.
        """
        answer = self._kept.solve(algorithm_of(algorithm), *limits(timeout, max_nodes))
        return solution(answer, _Moment(self._kept))


class _Moment:
    """A network as it is now, valid until it changes."""

    def __init__(self, kept: _core.FlowNetwork) -> None:
        self._kept, self._version = kept, kept.version

    def __reduce__(self) -> tuple[Any, ...]:
        unchanged = self._kept.version == self._version
        return (Columns, tuple(self.columns())) if unchanged else (_Changed, ())

    def columns(self) -> Columns:
        if self._kept.version != self._version:
            return _Changed().columns()
        tail, head, capacity, cost, supply = self._kept.columns()
        return Columns(len(supply), tail, head, None, capacity, cost, supply)


class _Changed:
    """A network that has changed since."""

    def columns(self) -> Columns:
        raise ValueError("the network has been changed since it was solved")
