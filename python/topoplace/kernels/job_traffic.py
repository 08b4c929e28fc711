"""The traffic of a job's collectives through a network of ports, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import integers, reals
from topoplace.kernels.port_network import FlowCounts, Flows, PhaseTime, PortNetwork
from topoplace.kernels.ring_packing import MAX_LEVEL, ChannelRules, RingNetwork

Ints = NDArray[np.int32]
Reals = NDArray[np.float64]

KINDS: Final = ("reduce", "ring", "chain", "pairs", "sends")
"""The ways in which the tasks of a collective exchange data.

In a ring, each task sends to the next one, and the last to the first; "reduce" is a ring in whose place switches may
reduce. A chain has no way back. In "pairs", each task exchanges with every other task, and in "sends" with the next
one, half of the GB each way.
"""


class RingRates(_core.RingRates):
    """The rates of rings among any terminals of a network; each set is searched once.

    Args:
        class_of: (n,) the class of each terminal; the lowest class in a set selects the rules.
        rules: The rules of the search for channels, for each class.
        slower: The rules, for each class, that are used if no channel of `rules` fits.
        per_unit: GB/s that a unit of rate carries, by the level of the farthest route, 0..15.

    Raises:
        ValueError: A class does not exist, or the number of levels is wrong.
    """

    def __init__(
        self,
        network: RingNetwork,
        class_of: Sequence[int],
        rules: Sequence[ChannelRules],
        slower: Sequence[ChannelRules],
        per_unit: Sequence[float] = (1.0,) * (MAX_LEVEL + 1),
    ) -> None:
        super().__init__(network, list(class_of), list(rules), list(slower), list(per_unit))


class Places(NamedTuple):
    """The location of each vertex, as (n,) integers."""

    machine: Ints
    local: Ints
    """Number of the vertex on its machine, a terminal of the machine's rates."""
    domain: Ints
    """Number of the domain inside which the library plans rings: a machine, or the machines of an NVLink domain."""
    adapter: Ints
    """Number of the network adapter; -1 without one."""
    rail: Ints
    """The rail of the adapter."""
    near: Ints
    """Position in an order in which near vertices of a machine follow each other."""
    switches: Ints
    """Vertices with the same number share switches; -1 without any."""


class SwitchRates(NamedTuple):
    """The rates through the switches of each vertex, as (n,) GB/s."""

    rings: Reals
    """GB/s of rings among any vertices that share the switches; 0 if the rates of the machine count instead."""
    reducing: Reals
    """GB/s at which the switches reduce the data of a vertex; 0 if they do not reduce."""
    most_reduced: Reals
    """Limit on the bus bandwidth of such reductions, GB/s."""


class Rings(NamedTuple):
    """The slowest rings inside a domain."""

    seconds: float
    collective: int
    """The number of the collective, over all phases; -1 for none."""
    vertex: int
    """A vertex of the collective in that domain."""
    by_switches: bool
    """True if switches reduce, and no ring runs."""


class TrafficTime(NamedTuple):
    """The time of a phase of a job's collectives: the larger of its ports' and its rings' times."""

    ports: PhaseTime
    rings: Rings

    @property
    def seconds(self) -> float:
        """Return seconds of the phase."""
        return max(self.ports.seconds, self.rings.seconds)


def reduced_bandwidth(size: int, gb_per_s: float, most: float) -> float:
    """Return bus GB/s of an all-reduce among `size` vertices by reducing switches.

    Each vertex sends and gets 1 + 1 / size of its buffer.

    Args:
        gb_per_s: GB/s at which the switches reduce the data of a vertex.
        most: Limit in bus GB/s.
    """
    return min(most, 2 * (size - 1) / (size + 1) * gb_per_s)


Batch = tuple[int, NDArray[np.int64], Reals, Reals | None]
"""Collectives of one kind and number of tasks.

The number of the kind in `KINDS`, (c, n) the tasks of each, (c,) GB between neighbours, and (c, n) the GB that each
task gets from each other one if that differs.
"""


class JobCollectives:
    """The collectives of a job by phase; those of a phase run at the same time.

    Args:
        phase_ends: For each phase, the total number of collectives of this phase and those before it.
        kinds: (c,) the number of each collective's kind in `KINDS`.
        ends: (c,) the total number of tasks of each collective and those before it.
        tasks: (t,) the tasks of the collectives, one after the other.
        gigabytes: (c,) GB between two neighbours, both directions together.
        received: (t,) the GB that a task gets from each other task of its collective, if tasks get different amounts;
            -1 if not. Empty if no collective has different amounts.
        batch_ends: The total number of collectives of each run of one kind and number of tasks, and those before it.
            Empty if each collective counts as one.

    Raises:
        ValueError: An array has the wrong shape or type; numbers out of range are found when the object is used.
    """

    def __init__(
        self,
        phase_ends: ArrayLike,
        kinds: ArrayLike,
        ends: ArrayLike,
        tasks: ArrayLike,
        gigabytes: ArrayLike,
        received: ArrayLike = (),
        batch_ends: ArrayLike = (),
    ) -> None:
        phases, of_kind = integers(phase_ends, "phase_ends"), integers(kinds, "kinds")
        for i in np.flatnonzero((of_kind < 0) | (of_kind >= len(KINDS)))[:1]:
            raise ValueError(f"kinds[{i}] = {of_kind[i]} is not in 0..{len(KINDS) - 1}")
        self.native = _core.JobCollectives(
            phases.astype(np.int64),
            of_kind.astype(np.uint8),
            integers(ends, "ends").astype(np.int64),
            integers(tasks, "tasks"),
            reals(gigabytes, "gigabytes"),
            reals(received, "received"),
            integers(batch_ends, "batch_ends").astype(np.int64),
        )

    @classmethod
    def of_batches(cls, phases: Sequence[Sequence[Batch]]) -> Self:
        """Return the collectives of these batches, whose numbers are in range; each list of batches is a phase."""
        made = cls.__new__(cls)
        made.native = _core.JobCollectives.of_batches(phases)
        return made

    @classmethod
    def of_sends(cls, edges: tuple[tuple[int, int, float], ...]) -> Self:
        """Return sends (a, b, GB) that all run in one phase, between tasks that are in range."""
        made = cls.__new__(cls)
        made.native = _core.JobCollectives.of_sends(edges)
        return made


class CollectiveNetwork:
    """A network of ports, with the rules by which collectives run among its vertices.

    Inside a domain, rings have their planned rate. Between domains, a ring runs in channels over adapters. The number
    of channels is that of the distinct adapters of its vertices, in the domain with the fewest.

    Args:
        has_links: (n,) True for a vertex with a direct link to another one.
        rates: The rates of rings among the vertices of each machine, by their local numbers; None if unknown.

    Raises:
        ValueError: Names an argument of the wrong shape, or a number that is out of range.
    """

    def __init__(
        self,
        network: PortNetwork,
        places: Places,
        switched: SwitchRates,
        has_links: ArrayLike,
        rates: Sequence[RingRates | None],
    ) -> None:
        _checks.instance(network, PortNetwork, "network", ValueError)
        distinct = list(dict.fromkeys(one for one in rates if one is not None))
        number = {id(one): i for i, one in enumerate(distinct)}
        self.network, self.switched = network, switched
        self.reduces = bool(np.any(switched.reducing))  # switches reduce what some vertex sends
        self._kept = distinct
        self.native = _core.CollectiveNetwork(
            network.native,
            [integers(one, name) for name, one in zip(Places._fields, places, strict=True)],
            [_speeds(one, name) for name, one in zip(SwitchRates._fields, switched, strict=True)],
            np.asarray(has_links, np.uint8),
            np.array([-1 if one is None else number[id(one)] for one in rates], np.int32),
            distinct,
        )

    def times(
        self,
        job: JobCollectives,
        vertex_of: ArrayLike,
        *,
        planned: bool = True,
        others: FlowCounts | None = None,
    ) -> list[TrafficTime]:
        """Return the time of each phase of a job.

        Args:
            vertex_of: (n,) the vertex of each task.
            planned: False ignores planned rings inside domains, and channels: rings pass ports in the order of their
                tasks.
            others: Flows of other jobs, as in `PortNetwork.phase_times`; None for none.

        Raises:
            ValueError: Names an argument out of range, or `others` of another network.
        """
        beside = None if others is None else self._native_of(others)
        rows = _core.traffic_times(self.native, job.native, integers(vertex_of, "vertex_of"), planned, beside)
        return [TrafficTime(PhaseTime(*row[:3]), Rings(*row[3])) for row in rows]

    def seconds(
        self, job: JobCollectives, vertex_of: NDArray[np.integer], others: FlowCounts | None = None
    ) -> tuple[float, float]:
        """Return the seconds of all phases of a job, alone and next to `others`; arguments are those of `times`."""
        beside = None if others is None else self._native_of(others)
        return _core.seconds_of(self.native, job.native, vertex_of.astype(np.int32, copy=False), beside)

    def _native_of(self, others: FlowCounts) -> _core.FlowCounts:
        _checks.instance(others, FlowCounts, "others", ValueError)
        if others.network is not self.network:
            raise ValueError("others are flows of another network")
        return others.native

    def flows(
        self, job: JobCollectives, vertex_of: ArrayLike, *, planned: bool = True
    ) -> tuple[Flows, list[Rings]]:
        """Return the flows of a job by phase, and the slowest rings of each phase; arguments are those of `times`."""
        placed = integers(vertex_of, "vertex_of")
        found = _core.flows_of(self.native, job.native, placed, planned)
        return Flows(*found[:5]), [Rings(*one) for one in found[5]]


def _speeds(values: ArrayLike, name: str) -> Reals:
    speeds = reals(values, name)
    for i in np.flatnonzero(~(speeds >= 0))[:1]:
        raise ValueError(f"{name}[{i}] = {speeds[i]:g} is below 0, or not a number")
    return speeds
