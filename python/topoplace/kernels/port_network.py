"""Networks of ports: the route of each flow, and the time that the flows of a phase take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import _checks, _core
from topoplace.kernels.arguments import integers, node_limit, reals, seconds

Ints = NDArray[np.int32]
Reals = NDArray[np.float64]


class PhaseTime(NamedTuple):
    """The time of the flows of a phase."""

    seconds: float
    """Seconds of the phase; infinity if two vertices have no path."""
    slowest: int
    """The hop that takes longest: 2 x port, or 2 x port + 1 for incoming traffic; -1 for none."""
    port_seconds: float
    """GB / (GB/s), summed over the hops of all uplinks."""


class Flows(NamedTuple):
    """Flows by phase; those of a phase run at the same time. A flow of 0 GB needs no path."""

    phase_ends: Sequence[int]
    """For each phase, the total number of flows of this phase and those before it."""
    start: Ints
    """(f,) the vertex at the start of each flow."""
    end: Ints
    """(f,) the vertex at the end of each flow."""
    there: Reals
    """(f,) the GB of each flow, from start to end."""
    back: Reals
    """(f,) the GB of each flow in the other direction."""


class MaxMinTimes(NamedTuple):
    """The times of a job's phases next to other jobs."""

    phases: list[PhaseTime]
    """The time of each phase, from its beginning to the end of its last flow; the slowest hop is the one that limits
    this flow.
    """
    complete: bool
    """False if a limit ended the search; phases that had not ended have their seconds so far."""
    nodes: int
    """The work: one node for each time at which rates change, and more for many flows."""


class Orders(NamedTuple):
    """Orders of vertices, one for each set, with the times of the flows."""

    vertices: Ints
    """(s, k) the vertex of each task."""
    seconds: Reals
    """(s,) seconds, summed over the phases."""
    port_seconds: Reals
    """(s,) GB / (GB/s), summed over the hops of all ports and phases."""


class PortNetwork:
    """Vertices that communicate through ports, each with a speed in both directions.

    Two vertices with a direct link use it. Other vertices meet at the first level at which they share a domain. Their
    traffic passes the ports by which they enter the segment of that level, and the uplinks of their domains at the
    segment's lower levels. Levels of one segment follow each other.

    With groups and lanes, vertices have relays. This concerns traffic through the last segment to a vertex of another
    group and lane. It first goes through an earlier segment to the lowest vertex of the sender's group on that lane, if
    there is one.

    Args:
        gb_per_s: (p,) GB/s of each port in one direction; 0 blocks the port.
        entry: (s, n) the port by which each vertex enters each segment; -1 for none.
        segment_of: (l,) the segment of each level, ascending.
        domain: (l, n) the domain of each vertex at each level; -1 for none.
        uplink: (l, n) the port through which traffic leaves that domain; -1 for none.
        links: (k, 3) two vertices, the lower first, and the port between them; sorted by vertices.
        is_slower: (k,) True if traffic passes the link in addition to the usual route.
        access: (n,) the port between each vertex and its entry into the last segment; -1 for none. Empty if no vertex
            has one.
        group: (n,) the group of each vertex; -1 for none. Empty without relays.
        lane: (n,) the lane of each vertex. Empty without relays.

    Raises:
        ValueError: Names an argument of the wrong shape, or a number that is out of range.
    """

    def __init__(
        self,
        gb_per_s: ArrayLike,
        entry: ArrayLike,
        segment_of: ArrayLike,
        domain: ArrayLike,
        uplink: ArrayLike,
        links: ArrayLike = (),
        is_slower: ArrayLike = (),
        access: ArrayLike = (),
        group: ArrayLike = (),
        lane: ArrayLike = (),
    ) -> None:
        entries = integers(entry, "entry", ndim=2)
        n = entries.shape[1]
        self.num_vertices = n
        self.native = _core.PortNetwork(
            n,
            reals(gb_per_s, "gb_per_s"),
            entries.reshape(-1),
            integers(segment_of, "segment_of"),
            _rows(domain, "domain", n).reshape(-1),
            _rows(uplink, "uplink", n).reshape(-1),
            _rows(links, "links", 3).reshape(-1) if np.size(links) else np.empty(0, np.int32),
            _flags(is_slower, "is_slower"),
            *(integers(one, name) for one, name in ((access, "access"), (group, "group"), (lane, "lane"))),
        )

    def route(self, start: int, end: int) -> tuple[int, ...] | None:
        """Return the hops of traffic from one vertex to another; None without a path."""
        high = self.num_vertices - 1
        ends = [
            _checks.integer(one, name, ValueError, low=0, high=high)
            for one, name in ((start, "start"), (end, "end"))
        ]
        hops = tuple(self.native.route(*ends))
        return None if hops == (-1,) else hops

    def phase_times(self, flows: Flows, others: FlowCounts | None = None) -> list[PhaseTime]:
        """Return the time of each phase of flows between vertices.

        Args:
            others: Constant flows of other jobs in the same network; None for none. On a hop that the flows of a phase
                use, each of them counts up to the GB of the phase's largest flow there. They are not part of
                port-seconds.

        Raises:
            ValueError: Arrays have different lengths, a vertex does not exist, GB are negative or not finite, or
                `others` are of another network.
        """
        if others is None:
            found = self.native.phase_times(*_checked(flows))
        else:
            _checks.instance(others, FlowCounts, "others", ValueError)
            if others.network is not self:
                raise ValueError("others are flows of another network")
            found = self.native.phase_times_beside(*_checked(flows), others.native)
        return [PhaseTime(*one) for one in found]

    def max_min_times(
        self,
        jobs: Sequence[Flows],
        at_least: Sequence[ArrayLike] | None = None,
        *,
        timeout: float | None = None,
        max_nodes: int | None = None,
    ) -> MaxMinTimes:
        """Return the times of the first job's phases if all flows have max-min fair rates at all times.

        All jobs begin at the same time. Each runs its phases one after the other: a phase begins when the flows of the
        previous one have ended. A flow without a path takes for ever, and its job continues without it. Jobs that share
        no port with the first one, directly or through other jobs, are ignored.

        Args:
            jobs: The flows of each job.
            at_least: For each job, (phases,) minimum seconds of its phases; None for no minimum.

        Raises:
            ValueError: There is no job, flows are invalid as in `phase_times`, or `at_least` has another shape or a
                number that is negative or not finite.
        """
        least = [()] * len(jobs) if at_least is None else at_least
        if len(least) != len(jobs):
            raise ValueError(f"at_least has {len(least)} rows for {len(jobs)} jobs")
        given = [
            (*_checked(flows, f"jobs[{i}]"), reals(one, f"at_least[{i}]"))
            for i, (flows, one) in enumerate(zip(jobs, least, strict=True))
        ]
        phases, complete, nodes = self.native.max_min_times(given, seconds(timeout), node_limit(max_nodes))
        return MaxMinTimes([PhaseTime(*one) for one in phases], complete, nodes)

    def best_orders(self, flows: Flows, sets: ArrayLike) -> Orders:
        """Return an order of the vertices of each set in which the flows between tasks take little time.

        For up to four vertices, the order is the best. For more, the given order is improved by swaps of two tasks,
        which may miss the best.

        Args:
            flows: Flows between tasks; task i gets the i-th vertex.
            sets: (s, k) vertices, in an order to start from.

        Raises:
            ValueError: Flows are invalid as in `phase_times`, or a set has a vertex that does not exist.
        """
        return Orders(*self.native.best_orders(*_checked(flows), integers(sets, "sets", ndim=2)))


class FlowCounts:
    """Flows of running jobs, as the number of flows of each size on each hop of a network."""

    def __init__(self, network: PortNetwork) -> None:
        """Start without flows.

        Raises:
            ValueError: `network` is not a `PortNetwork`.
        """
        _checks.instance(network, PortNetwork, "network", ValueError)
        self.network = network
        self.native = _core.FlowCounts(network.native)

    def add(self, flows: Flows) -> None:
        """Add the flows of all phases; flows without a path are ignored.

        Raises:
            ValueError: Flows are invalid as in `PortNetwork.phase_times`.
        """
        self.native.add(*_checked(flows)[1:])

    def remove(self, flows: Flows) -> None:
        """Remove flows that were added.

        Raises:
            ValueError: Flows are invalid as in `PortNetwork.phase_times`, or were not added; earlier ones are removed.
        """
        self.native.remove(*_checked(flows)[1:])

    def counted(self, hops: ArrayLike, most: float) -> Reals:
        """Return the GB of the flows on each hop; each flow counts up to `most` GB.

        Raises:
            ValueError: A hop does not exist, or `most` is below 0.
        """
        limit = _checks.real(most, "most", ValueError, low=0.0)
        found: Reals = self.native.counted(integers(hops, "hops"), limit)
        return found


def _rows(values: ArrayLike, name: str, width: int) -> Ints:
    rows = integers(values, name, ndim=2)
    if rows.shape[1] != width:
        raise ValueError(f"{name} has shape {rows.shape}; expected rows of {width} numbers")
    return rows


def _flags(values: ArrayLike, name: str) -> NDArray[np.uint8]:
    given = np.asarray(values)
    flags = given.astype(np.int32) if given.dtype == np.bool_ else integers(values, name)
    for i in np.flatnonzero((flags != 0) & (flags != 1))[:1]:
        raise ValueError(f"{name}[{i}] = {flags[i]} is not 0 or 1")
    return flags.astype(np.uint8)


def _checked(flows: Flows, name: str = "flows") -> tuple[list[int], Ints, Ints, Reals, Reals]:
    _checks.instance(flows, Flows, name, ValueError)
    phase_ends, start, end, there, back = flows
    return (
        integers(phase_ends, "phase_ends").tolist(),
        integers(start, "start"),
        integers(end, "end"),
        reals(there, "there"),
        reals(back, "back"),
    )
