"""A minimum-cost flow network that can be changed and solved again incrementally."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from topoplace import _core
from topoplace.kernels.cost_scaling import (
    Algorithm,
    Columns,
    FlowSolution,
    Indices,
    algorithm_of,
    integers,
    limits,
    whole_limits,
)


class FlowNetwork:
    """A minimum-cost flow network that can be changed; `solve` starts from the last optimal flow and potentials.

    Nodes and arcs keep their numbers until they are removed; numbers of removed ones are reused. The numbers index the
    columns of `columns()` and the arrays that `solve` returns. Lower bounds are not supported. All methods that change
    the network take arrays.

    With algorithm="auto", scheduling graphs are solved incrementally as assignments (cf. Gog et al., "Firmament", OSDI
    2016). After the following changes, the work of `solve` depends only on how much of the flow changes:
    - A task (supply 1, no entering arc) is added or removed, or changes its costs; its supply changes to 0 or back.
    - The unscheduled node of a job is added or removed.
    - A machine changes its capacity or its cost to the sink.

    After other changes to nodes and arcs between tasks and sink, a scheduling graph is solved from scratch. Any other
    network is solved from the last optimal flow and potentials if `algorithm` is "auto" or "cost_scaling". The first
    solve, and the other algorithms, start from scratch.

    A `FlowNetwork` cannot be copied or pickled. Use it from one thread at a time; RuntimeError if a second thread calls
    it during a solve.

    Raises:
        ValueError: Names the invalid argument, index and value; the network is then unchanged.
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
        """Add k nodes and return their numbers (k,). supply: (k,) supply of each node, negative for a demand."""
        return self._kept.add_nodes(integers(supply, "supply", np.int64))

    def add_arcs(self, tail: ArrayLike, head: ArrayLike, capacity: ArrayLike, cost: ArrayLike) -> Indices:
        """Add k arcs and return their numbers (k,).

        All arguments have shape (k,).

        Args:
            tail: The node that each arc leaves.
            head: The node that each arc enters.
            cost: Cost per unit of flow.
        """
        return self._kept.add_arcs(
            integers(tail, "tail", np.int32),
            integers(head, "head", np.int32),
            integers(whole_limits(capacity), "capacity", np.int64),
            integers(cost, "cost", np.int64),
        )

    def remove_nodes(self, nodes: ArrayLike) -> None:
        """Remove the nodes with these numbers, and all arcs that leave or enter them."""
        self._kept.remove_nodes(integers(nodes, "nodes", np.int32))

    def remove_arcs(self, arcs: ArrayLike) -> None:
        """Remove the arcs with these numbers."""
        self._kept.remove_arcs(integers(arcs, "arcs", np.int32))

    def set_supply(self, nodes: ArrayLike, supply: ArrayLike) -> None:
        """Set the supply of each of `nodes`; both arrays have shape (k,)."""
        self._kept.set_supply(integers(nodes, "nodes", np.int32), integers(supply, "supply", np.int64))

    def set_capacity(self, arcs: ArrayLike, capacity: ArrayLike) -> None:
        """Set the capacity of each of `arcs`; both arrays have shape (k,)."""
        limit = integers(whole_limits(capacity), "capacity", np.int64)
        self._kept.set_capacity(integers(arcs, "arcs", np.int32), limit)

    def set_cost(self, arcs: ArrayLike, cost: ArrayLike) -> None:
        """Set the cost per unit of flow of each of `arcs`; both arrays have shape (k,)."""
        self._kept.set_cost(integers(arcs, "arcs", np.int32), integers(cost, "cost", np.int64))

    def columns(self) -> Columns:
        """Return a copy of the network as arrays that are indexed by node and arc number.

        Removed nodes have supply 0, and removed arcs have capacity 0.
        """
        tail, head, capacity, cost, supply = self._kept.columns()
        return Columns(len(supply), tail, head, None, capacity, cost, supply)

    def solve(
        self, *, algorithm: Algorithm = "auto", timeout: float | None = None, max_nodes: int | None = None
    ) -> FlowSolution:
        """Solve the network like `min_cost_flow`; return flow by arc number and potential by node number.

        At `timeout` seconds, or after `max_nodes` steps, the status is "timeout". On a scheduling graph, the next call
        continues the search; on any other network, it starts again from the last optimal flow. Method `verify` of
        the solution can be called until the network changes.
        """
        answer = self._kept.solve(algorithm_of(algorithm), *limits(timeout, max_nodes))
        return FlowSolution(answer, _CurrentState(self._kept))


class _CurrentState:
    """The network of a solution, read from a `FlowNetwork` on demand; ValueError once that network has changed."""

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
    """The network of a solution whose `FlowNetwork` has changed since; reading it is a ValueError."""

    def columns(self) -> Columns:
        raise ValueError("the network has been changed since it was solved")
