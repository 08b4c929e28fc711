"""Minimum-cost flow: the network, its solution and the proof."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import INT64_MAX, node_limit, seconds

Algorithm: TypeAlias = Literal[
    "auto", "cost_scaling", "network_simplex", "successive_shortest_path", "cycle_canceling"
]
Status: TypeAlias = Literal["optimal", "infeasible", "unbounded", "timeout"]
Units: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.int32]

INFINITE = INT64_MAX
"""The capacity of an arc without limit, for which floats of 2**63 and more, infinity among them, stand too."""

_BEYOND_TOTALS = 2**1000  # totals have 128 bits; what is larger is none, but an integer still
_BEYOND = 2.0**63  # as a float, INFINITE is rounded up to it


class Columns(NamedTuple):
    """A network as the kernel takes it."""

    num_nodes: int
    tail: Indices
    head: Indices
    lower: Units | None
    capacity: Units
    cost: Units
    supply: Units

    def columns(self) -> Columns:
        """Return the network itself."""
        return self


class Origin(Protocol):
    """A source of the network that a solution belongs to."""

    def columns(self) -> Columns:
        """Return the network as it was solved."""
        ...


@dataclass(frozen=True, eq=False, slots=True)
class FlowSolution:
    """The answer of `min_cost_flow`, with its proof.

    `flow` and `potential` prove each other: with the reduced cost cost[a] + potential[tail[a]] - potential[head[a]],
    an arc below its capacity has none below zero, an arc above its lower bound none above zero. They are empty where
    `status` is not "optimal".
    """

    status: Status
    """"optimal"; "infeasible", proven by `cut`; "unbounded", proven by `cycle`; "timeout": nothing is known."""
    flow: Units
    """(m,): units on each arc."""
    potential: Units
    """(n,): the price of each node, up to a constant; absolute where demands exceed supplies."""
    cost: int
    """Sum of cost times flow, exact; 0 where there is no flow."""
    cut: Indices
    """Infeasible: nodes that together supply more than their outgoing arcs, less what must come in, can take."""
    cycle: Indices
    """Unbounded: arcs of infinite capacity that close a cycle of negative cost; some feasible flow exists."""
    algorithm: str
    """The algorithm that ran; "auto" for a recognised structure."""
    steps: int
    """Pushes and relabels, pivots, or nodes searched."""
    _network: Origin = field(repr=False)

    def verify(self) -> bool:
        """Return True if the answer is proven, in one pass over nodes and arcs, by the definition alone.

        Checks the arguments as they are now: arrays that needed no conversion were not copied. False for a timeout.
        Raises ValueError for a solution of a `FlowNetwork` that has changed since.
        """
        network = self._network.columns()
        if self.status == "optimal":
            return _core.verify_flow(*network, self.flow, self.potential, self.cost)
        if self.status == "infeasible":
            return _core.verify_infeasible(*network, self.cut)
        return self.status == "unbounded" and _core.verify_unbounded(*network, self.cycle)


def min_cost_flow(
    num_nodes: int,
    tail: ArrayLike,
    head: ArrayLike,
    capacity: ArrayLike,
    cost: ArrayLike,
    supply: ArrayLike,
    *,
    lower: ArrayLike | None = None,
    algorithm: Algorithm = "auto",
    structure: bool = True,
    warm_start: FlowSolution | None = None,
    timeout: float | None = None,
    max_nodes: int | None = None,
) -> FlowSolution:
    """Send every supply to the demands over arcs of limited capacity, at the least total cost.

    Arc a leads from `tail`[a] to `head`[a] and carries `lower`[a] (0 by default) to `capacity`[a] units at `cost`[a]
    each; `INFINITE` is no limit. Node v sends `supply`[v] units more than it receives; a negative supply is a demand.
    Where demands exceed supplies, a demand is the most its node may take, and all supplies still have to be sent.
    All are integers; parallel arcs, loops, negative costs and cycles are allowed. The flow is integral.

    `algorithm`: "auto" takes what is fastest for networks that look like this one, and solves scheduling graphs as the
    assignments they are unless `structure` is False; the others are push-relabel cost scaling (Goldberg, J. Algorithms
    22, 1997), the primal network simplex, and two textbook methods (Amaral's thesis, table 8). All agree on the cost;
    of several optimal flows each returns its own, the same every time.

    `warm_start` is the solution of a network with the same arcs and nodes, whose capacities, costs and supplies may
    have been others; cost scaling starts from there. At `timeout` seconds, or after `max_nodes` steps, the same on
    every machine, `status` is "timeout". Arrays must not be changed while this runs. Raises ValueError naming argument,
    index and value that are refused.
    """
    network = network_of(num_nodes, tail, head, lower, capacity, cost, supply)
    start_flow, start_potential = _start(warm_start)
    answer = _core.min_cost_flow(
        *network,
        algorithm_of(algorithm),
        _checks.flag(structure, "structure", ValueError),
        start_flow,
        start_potential,
        *limits(timeout, max_nodes),
    )
    return solution(answer, network)


def algorithm_of(name: object) -> str:
    """Return the name of an algorithm; ValueError for an unknown one."""
    if not isinstance(name, str) or name not in get_args(Algorithm):
        known = ", ".join(get_args(Algorithm))
        raise ValueError(f"algorithm = {_checks.shown(name)} is not one of {known}")
    return name


def limits(timeout: float | None, max_nodes: int | None) -> tuple[float | None, int | None]:
    """Return both limits; ValueError for one that is refused."""
    return seconds(timeout), node_limit(max_nodes)


def solution(answer: _core.FlowAnswer, network: Origin) -> FlowSolution:
    """Return the extension's answer as a `FlowSolution`."""
    return FlowSolution(
        cast("Status", answer.status),
        answer.flow,
        answer.potential,
        answer.cost,
        answer.cut,
        answer.cycle,
        answer.algorithm,
        answer.steps,
        network,
    )


def verify_flow(
    num_nodes: int,
    tail: ArrayLike,
    head: ArrayLike,
    capacity: ArrayLike,
    cost: ArrayLike,
    supply: ArrayLike,
    flow: ArrayLike,
    potential: ArrayLike,
    total: int,
    *,
    lower: ArrayLike | None = None,
) -> bool:
    """Return True if `flow` (m,) flows through this network, `potential` (n,) proves it optimal, `total` is its cost.

    By the definition alone, in one pass over nodes and arcs; shares no code with the solvers. Raises ValueError on
    bad input.
    """
    network = network_of(num_nodes, tail, head, lower, capacity, cost, supply)
    units = integers(flow, "flow", np.int64)
    return _core.verify_flow(
        *network, units, integers(potential, "potential", np.int64), whole(total, "total")
    )


def network_of(
    num_nodes: int,
    tail: ArrayLike,
    head: ArrayLike,
    lower: ArrayLike | None,
    capacity: ArrayLike,
    cost: ArrayLike,
    supply: ArrayLike,
) -> Columns:
    """Return the network as the kernel takes it; ValueError for a value that is no integer, or a wrong length."""
    network = Columns(
        _checks.integer(num_nodes, "num_nodes", ValueError, low=0, high=2**31 - 2),
        integers(tail, "tail", np.int32),
        integers(head, "head", np.int32),
        None if lower is None else integers(lower, "lower", np.int64),
        integers(whole_limits(capacity), "capacity", np.int64),
        integers(cost, "cost", np.int64),
        integers(supply, "supply", np.int64),
    )
    arcs = len(network.tail)
    for name in ("head", "lower", "capacity", "cost"):
        column = getattr(network, name)
        if column is not None and len(column) != arcs:
            raise ValueError(f"{name} has {len(column)} entries; the network has {arcs} arcs")
    if len(network.supply) != network.num_nodes:
        raise ValueError(
            f"supply has {len(network.supply)} entries; the network has {network.num_nodes} nodes"
        )
    return network


def _start(warm_start: FlowSolution | None) -> tuple[Units | None, Units | None]:
    if warm_start is None:
        return None, None
    _checks.instance(warm_start, FlowSolution, "warm_start", ValueError)
    return (warm_start.flow, warm_start.potential) if warm_start.status == "optimal" else (None, None)


def whole_limits(capacity: ArrayLike) -> ArrayLike:
    """Return capacities with `INFINITE` for every float that no integer of 64 bits reaches, infinity among them."""
    array = np.asarray(capacity)
    if array.dtype.kind != "f" or array.ndim != 1 or not (array >= _BEYOND).any():
        return array
    whole = integers(np.where(array >= _BEYOND, 0, array), "capacity", np.int64)
    return np.where(array >= _BEYOND, INFINITE, whole)


def whole(value: object, name: str) -> int:
    """Return an integer of any size; ValueError for what is not a whole number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _checks.integer(value, name, ValueError, low=-_BEYOND_TOTALS, high=_BEYOND_TOTALS)


def integers(values: ArrayLike, name: str, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    """Return a row of integers: the array itself where it is one already."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; one dimension is needed")
    if array.dtype != dtype and array.size:
        _check_integers(array, name, np.iinfo(dtype))
    return np.require(array.astype(dtype, copy=False), requirements=["C", "A"])


def _check_integers(array: NDArray[Any], name: str, limits: Any) -> None:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; integers of 64 bits are needed")
    good = (array >= limits.min) & (array <= limits.max)
    if array.dtype.kind == "f":
        good &= (np.floor(array) == array) & (array < _BEYOND)
    for i in np.flatnonzero(~good)[:1]:
        raise ValueError(f"{name}[{i}] = {array[i]} is not an integer in {limits.min}..{limits.max}")
