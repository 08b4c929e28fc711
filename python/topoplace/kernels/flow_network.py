"""Solve minimum-cost flow again and again on a network that changes between solutions."""

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
    """A minimum-cost flow network that changes. Each `solve` starts from the flow and prices of the last one.

    Nodes and arcs keep their numbers until they are removed; numbers of removed ones are reused. The numbers index the
    columns of `columns()` and the arrays that `solve` returns. Lower bounds are not supported. All changes take arrays.
    ValueError names the refused argument, index and value; the network is then unchanged.

    Scheduling graphs are solved incrementally as assignments (cf. Gog et al., "Firmament", OSDI 2016). The following
    changes take only a search as long as the effect of the change:
    - A task (supply 1, no entering arc) is added or removed, or changes its costs.
    - The unscheduled node of a job is added or removed.
    - A machine changes its capacity or its cost to the sink.

    Other changes behind the tasks are solved from scratch. Any other network is solved by cost scaling from the last
    flow and potentials. Use it from one thread at a time; RuntimeError if a second thread calls it during a solve.
    """

    def __init__(self) -> None:
        self._kept = _core.FlowNetwork()

    def __reduce__(self) -> NoReturn:  # copy, deepcopy and pickle all call this
        raise TypeError("a FlowNetwork cannot be copied or pickled; build another from its columns()")

    @property
    def num_nodes(self) -> int:
        """Return the current number of nodes."""
        return self._kept.num_nodes

    @property
    def num_arcs(self) -> int:
        """Return the current number of arcs."""
        return self._kept.num_arcs

    def add_nodes(self, supply: ArrayLike) -> Indices:
        """Add nodes with these supplies (k,), negative for demands, and return their numbers (k,)."""
        return self._kept.add_nodes(integers(supply, "supply", np.int64))

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike) -> Indices:
        """Add arcs from `tail` to `head` (k,) with capacities and unit costs (k,), and return their numbers (k,)."""
        return self._kept.add_arcs(
            integers(tail, "tail", np.int32),
            integers(head, "head", np.int32),
            integers(whole_limits(capacity), "capacity", np.int64),
            integers(cost, "cost", np.int64),
        )

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Remove nodes (k,) and all their arcs."""
        self._kept.remove_nodes(integers(nodes, "nodes", np.int32))

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Remove arcs (k,)."""
        self._kept.remove_arcs(integers(arcs, "arcs", np.int32))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Set the supplies (k,) of nodes (k,)."""
        self._kept.set_supply(integers(nodes, "nodes", np.int32), integers(supply, "supply", np.int64))

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacities (k,) of arcs (k,)."""
        limit = integers(whole_limits(capacity), "capacity", np.int64)
        self._kept.set_capacity(integers(arcs, "arcs", np.int32), limit)

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Set the unit costs (k,) of arcs (k,)."""
        self._kept.set_cost(integers(arcs, "arcs", np.int32), integers(cost, "cost", np.int64))

    def columns(self) -> Columns:
        """Return a copy of the network, indexed by number; removed nodes have supply 0, removed arcs capacity 0."""
        tail, head, capacity, cost, supply = self._kept.columns()
        return Columns(len(supply), tail, head, None, capacity, cost, supply)

    def solve(
        self, *, algorithm: Algorithm = "auto", timeout: float | None = None, max_nodes: int | None = None
    ) -> FlowSolution:
        """Solve like `min_cost_flow`, and return flow by arc number and potential by node number.

        At `timeout` seconds, or after `max_nodes` steps, the status is "timeout", and the next call continues from
        there. `verify` of the solution works until the network changes.
        """
        answer = self._kept.solve(algorithm_of(algorithm), *limits(timeout, max_nodes))
        return solution(answer, _CurrentState(self._kept))


class _CurrentState:
    """The current state of a network, valid until it changes."""

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
    """The state of a network that has changed since it was solved."""

    def columns(self) -> Columns:
        raise ValueError("the network has been changed since it was solved")
