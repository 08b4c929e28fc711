"""Solvers for minimum-cost flow behind one interface: ours, OR-tools, and LEMON's network simplex from `pylmcf`.

`pip install --group peers` installs the others. Their networks are built from numpy in bulk beforehand, and
only solving is timed. Ours gets numpy arrays, so its time includes reading and checking them.
"""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from instances.flow_instances import Instance
from topoplace import kernels

Call = Callable[[], Any]


class Prepared(NamedTuple):
    solve: Call
    """The call that is timed."""
    cost: Callable[[Any], int]
    """A function that returns the optimal cost from the result of `solve`."""


def ours(algorithm: str, instance: Instance, *, structure: bool = True) -> Prepared:
    arrays = instance.tail, instance.head, instance.capacity, instance.cost, instance.supply
    solve = partial(
        kernels.min_cost_flow, instance.num_nodes, *arrays, algorithm=algorithm, structure=structure
    )
    return Prepared(solve, lambda solution: solution.cost)


def or_tools(instance: Instance) -> Prepared:
    solver = importlib.import_module("ortools.graph.python.min_cost_flow").SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        instance.tail, instance.head, instance.capacity, instance.cost
    )
    solver.set_nodes_supplies(np.arange(instance.num_nodes, dtype=np.int32), instance.supply)
    return Prepared(solver.solve, lambda _: solver.optimal_cost())


def lemon(instance: Instance) -> Prepared:
    order = np.lexsort((instance.head, instance.tail))  # the order that pylmcf requires
    graph = importlib.import_module("pylmcf").Graph(
        instance.num_nodes, instance.tail[order], instance.head[order]
    )
    graph.set_edge_capacities(instance.capacity[order])
    graph.set_edge_costs(instance.cost[order])
    graph.set_node_supply(instance.supply)
    return Prepared(graph.solve, lambda _: graph.total_cost())


class Library(NamedTuple):
    prepare: Callable[[Instance], Prepared]
    module: str
    """Name of the module that must be installed."""

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


PEERS = {"OR-tools": Library(or_tools, "ortools"), "LEMON": Library(lemon, "pylmcf")}
OURS = {
    "auto": Library(partial(ours, "auto"), "topoplace"),
    "general": Library(partial(ours, "auto", structure=False), "topoplace"),
    **{name: Library(partial(ours, name), "topoplace") for name in ("network_simplex", "cost_scaling")},
}
"""The solvers by name; `general` is auto without the recognition of scheduling graphs."""
LIBRARIES = OURS | PEERS


def installed() -> list[str]:
    return [name for name in PEERS if PEERS[name].installed]


class Measured(NamedTuple):
    milliseconds: float
    """Minimum CPU time of this thread."""
    cost: int


def measure(library: Library, instance: Instance, *, rounds: int = 5, seconds: float = 1.0) -> Measured:
    """Solve a newly built network `rounds` times, or fewer if they take more than `seconds` together."""
    times: list[float] = []
    while len(times) < rounds and sum(times) < seconds:
        prepared = library.prepare(instance)
        before = time.thread_time()
        answer = prepared.solve()
        times.append(time.thread_time() - before)
    return Measured(1e3 * min(times), prepared.cost(answer))
