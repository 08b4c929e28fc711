"""Minimum-cost flow: the network, the solver, and solutions with a proof."""

from __future__ import annotations

from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias, TypeGuard, cast, get_args

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

_ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
_AUTO: Final = "auto"

INFINITE = INT64_MAX
"""The capacity of an arc without limit. Floats of at least 2**63, including infinity, also mean no limit."""

_BEYOND_TOTALS = 2**1000  # totals have 128 bits; larger integers are never a total, but are not an error
_BEYOND = 2.0**63  # INFINITE as a float, which is rounded up


class Columns(NamedTuple):
    """A flow network as arrays for the kernel: one entry per arc (m,), or per node (n,) for `supply`.

    lower, capacity: limits on the units on each arc; lower is None if all are 0. cost: cost per unit. supply:
    negative for a demand.
    """

    num_nodes: int
    tail: Indices
    head: Indices
    lower: Units | None
    capacity: Units
    cost: Units
    supply: Units


class Origin(Protocol):
    """Protocol of an object that returns the network that a solution belongs to."""

    def columns(self) -> Columns:
        """Return the network in the state in which it was solved; ValueError if it has been changed since."""
        ...


class FlowSolution:
    """The answer of `min_cost_flow`, with its proof.

    An optimal `flow` is proven by `potential` through the reduced cost of each arc a, cost[a] + potential[tail[a]] -
    potential[head[a]]. It is at least 0 on every arc whose flow is below its capacity, and at most 0 on every arc whose
    flow is above its lower bound. If demands exceed supplies, a node with a demand also has a potential of at most 0,
    and exactly 0 if it receives less than its demand. `flow` and `potential` are empty unless `status` is "optimal".
    """

    __slots__ = ("_answer", "_network")

    def __init__(self, answer: _core.FlowAnswer, network: Origin | tuple[Any, ...]) -> None:
        """Store the answer, and the network: the arguments of the kernel as a tuple, or the object that returns them.

        A tuple is faster: Columns(...) takes a tenth of the time to solve a small network.
        """
        self._answer, self._network = answer, network

    @property
    def status(self) -> Status:
        """Return "optimal"; "infeasible", proven by `cut`; "unbounded", proven by `cycle`; or "timeout"."""
        return cast("Status", self._answer.status)

    @property
    def flow(self) -> Units:
        """Return the units on each arc, shape (m,)."""
        return self._answer.flow

    @property
    def potential(self) -> Units:
        """Return the dual price of each node, shape (n,).

        Adding a constant to all prices changes nothing, unless demands exceed supplies.
        """
        return self._answer.potential

    @property
    def cost(self) -> int:
        """Return the exact sum over arcs of cost times flow; 0 if there is no flow."""
        return self._answer.cost

    @property
    def cut(self) -> Indices:
        """Return the nodes that together supply more than can leave them, if infeasible; else an empty array.

        Their total supply exceeds the capacity of the arcs out of them, less the lower bounds of those into them.
        """
        return self._answer.cut

    @property
    def cycle(self) -> Indices:
        """Return arcs without limit that form a cycle of negative cost, if unbounded; else an empty array.

        An unbounded network also has a feasible flow.
        """
        return self._answer.cycle

    @property
    def algorithm(self) -> str:
        """Return the algorithm that ran; "auto" if a scheduling graph was recognised, or if no algorithm was needed."""
        return self._answer.algorithm

    @property
    def steps(self) -> int:
        """Return the number of pushes and relabels, of pivots, or of nodes searched, depending on the algorithm."""
        return self._answer.steps

    def __repr__(self) -> str:
        names = ("status", "flow", "potential", "cost", "cut", "cycle", "algorithm", "steps")
        return f"FlowSolution({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def verify(self) -> bool:
        """Return True if the proof of this answer holds, by one pass over nodes and arcs; False for a timeout.

        The proof is `potential` if the status is optimal, `cut` if infeasible, and `cycle` if unbounded; that an
        unbounded network has a feasible flow at all is not checked. Arrays that were passed to `min_cost_flow` without
        conversion are not copied, so the check reads their current values.

        Raises:
            ValueError: Arrays that were not copied no longer describe a network, or the solution is of a `FlowNetwork`
                that has changed since.
        """
        origin = self._network
        network = Columns(*origin) if isinstance(origin, tuple) else origin.columns()
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
    """Find a flow of least total cost that sends all supplies to the demands over arcs of limited capacity.

    Arc a leads from `tail`[a] to `head`[a] and carries `lower`[a] (0 by default) to `capacity`[a] units at `cost`[a]
    each; `INFINITE` means no limit. Node v sends `supply`[v] units more than it receives; a negative supply is a
    demand. All values are integers, and so is the flow. Parallel arcs, loops, negative costs and cycles are allowed.

    The sum of `supply` decides what a demand means. If it is 0, every demand is met exactly. If it is negative, demands
    exceed supplies: all supplies are sent, and each demand is only an upper limit. Its node may receive less, even if
    the arcs could bring it more, and may send its own units if negative costs pay for it. If the sum is positive, the
    network is infeasible.

    All methods find the same cost. If several flows are optimal, each method is deterministic, but methods may return
    different flows. At the limit `timeout` or `max_nodes`, the status is "timeout". Do not change the arrays meanwhile.

    Args:
        algorithm: "auto" chooses the method expected to be fastest. If `structure` is True and there is no usable
            `warm_start`, it first tries to solve the network as an assignment, as a scheduling graph allows. The other
            values select push-relabel cost scaling (Goldberg, J. Algorithms 22, 1997), the primal network simplex, or
            one of two textbook methods (Amaral's thesis, table 8).
        warm_start: A solution from which cost scaling starts; other methods ignore it. It is also ignored unless its
            status is "optimal". Its network must have the same nodes and arcs; capacities, costs and supplies may
            differ.
        timeout: Limit in seconds.
        max_nodes: Limit on steps, equal on every computer.

    Raises:
        ValueError: Names the invalid argument and, for a single value, its index.
    """
    plain = algorithm is _AUTO and structure is True and warm_start is None
    if plain and timeout is None and max_nodes is None:
        found = _core.solve_columns(num_nodes, tail, head, lower, capacity, cost, supply)
        if found is not None:
            return FlowSolution(found, (num_nodes, tail, head, lower, capacity, cost, supply))
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
    return FlowSolution(answer, network)


def algorithm_of(name: object) -> str:
    """Check the name of an algorithm and return it; ValueError if it is unknown."""
    return _checks.one_of(name, "algorithm", _ALGORITHMS, ValueError)


def limits(timeout: float | None, max_nodes: int | None) -> tuple[float | None, int | None]:
    """Check a timeout (seconds) and a limit on steps, None for no limit, and return both; ValueError if invalid."""
    return seconds(timeout), node_limit(max_nodes)


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
    """Return True if `flow` (m,) is feasible, `potential` (n,) proves it optimal, and `total` is its cost.

    The other arguments are as for `min_cost_flow`. The check uses only the definition, in one pass over nodes and arcs,
    and shares no code with the solvers.

    Raises:
        ValueError: An argument is invalid.
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
    """Convert the arguments of `min_cost_flow` to arrays for the kernel.

    Raise ValueError if a value is not an integer or an array has a wrong length.
    """
    # Small networks are solved in the time that the checks below take.
    if _core.are_columns(num_nodes, tail, head, lower, capacity, cost, supply):
        return Columns(num_nodes, tail, head, lower, capacity, cost, supply)  # type: ignore[arg-type]
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
    for column, name in zip(network[2:6], ("head", "lower", "capacity", "cost"), strict=True):
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
    """Return `capacity` as an array in which floats of at least 2**63, including infinity, became `INFINITE`."""
    if _is_ready(capacity, np.int64):
        return capacity
    array = _checks.array_of(capacity, "capacity", ValueError)
    if array.dtype.kind != "f" or array.ndim != 1 or not (array >= _BEYOND).any():
        return array
    whole = integers(np.where(array >= _BEYOND, 0, array), "capacity", np.int64)
    return np.where(array >= _BEYOND, INFINITE, whole)


def whole(value: object, name: str) -> int:
    """Convert an int, or a float without fraction, to an int; ValueError for other values and huge ints."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return _checks.integer(value, name, ValueError, low=-_BEYOND_TOTALS, high=_BEYOND_TOTALS)


def integers(values: ArrayLike, name: str, dtype: type[np.signedinteger[Any]]) -> NDArray[Any]:
    """Convert `values` to a contiguous one-dimensional array of `dtype`; an array of this form is not copied.

    Raise ValueError if `values` has another number of dimensions, or a value is not an integer in the range of `dtype`.
    """
    if _is_ready(values, dtype):
        return values
    array = _checks.array_of(values, name, ValueError)
    if array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; must have one dimension")
    if array.dtype != dtype and array.size:
        _check_integers(array, name, np.iinfo(dtype))
    return np.require(array.astype(dtype, copy=False), requirements=["C", "A"])


def _is_ready(values: ArrayLike, dtype: type[np.signedinteger[Any]]) -> TypeGuard[NDArray[Any]]:
    """Return True for an array that the kernel takes as it is; full checks last longer than small networks."""
    return (
        type(values) is np.ndarray
        and values.dtype.type is dtype
        and values.ndim == 1
        and values.dtype.isnative
        and values.flags.c_contiguous
        and values.flags.aligned
    )


def _check_integers(array: NDArray[Any], name: str, limits: Any) -> None:
    if array.dtype.kind not in "iuf":
        raise ValueError(f"{name} has dtype {array.dtype}; must be 64-bit integers")
    good = (array >= limits.min) & (array <= limits.max)
    if array.dtype.kind == "f":
        good &= (np.floor(array) == array) & (array < _BEYOND)
    for i in np.flatnonzero(~good)[:1]:
        raise ValueError(f"{name}[{i}] = {array[i]} is not an integer in {limits.min}..{limits.max}")
