"""Bandwidth of collective operations over several machines: network ports, rails and levels of the fabric count."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace import kernels
from topoplace.collective.machine_graph import UNITS_PER_GB, Vertex
from topoplace.collective.networks import collective_network
from topoplace.collective.nvlink_domains import domain_ring_rate
from topoplace.collective.prepared import prepared
from topoplace.jobs.groups import MACHINE
from topoplace.kernels import TerminalGraph
from topoplace.kernels.job_traffic import KINDS
from topoplace.topology.fabric import Level
from topoplace.topology.links.link_kinds import LinkKind
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.ports import Ports, gb_per_s_into
from topoplace.topology.topology import Topology

_DIGITS = 9
"""Significant digits of GB/s that are computed from seconds."""


@dataclass(frozen=True)
class MachinePart:
    """The chosen GPUs of one machine."""

    machine: int
    topology: Topology
    """The machine as its own topology."""
    gpus: tuple[int, ...]
    """The numbers of the GPUs in the whole topology."""
    local: tuple[int, ...]
    """The numbers of the GPUs in the machine's own topology."""


def parts_of(topology: Topology, gpus: Sequence[int]) -> list[MachinePart]:
    """Return the GPUs by machine; machines that are near in the network are next to each other."""
    by_machine: dict[int, list[int]] = {}
    for gpu in sorted(gpus):
        by_machine.setdefault(int(topology.machine_of[gpu]), []).append(gpu)
    machines = np.array(list(by_machine))
    order = np.lexsort((machines, *(level.codes[machines] for level in topology.levels)))
    parts: list[MachinePart] = []
    ordered: list[int] = machines[order].tolist()
    for machine in ordered:
        chosen = tuple(by_machine[machine])
        local = tuple(topology.local_index[gpu] for gpu in chosen)
        parts.append(MachinePart(machine, topology.template(machine), chosen, local))
    return parts


def bandwidth_over(topology: Topology, gpus: Sequence[int], rates: Rates | str, kind: str) -> float:
    """Return bus GB/s of a ring collective among GPUs of several machines, in channels over their adapters.

    Rings visit machines in the order in which `gpus` first names them. kind: a kind of `kernels.JobCollectives`.
    """
    ring = kernels.JobCollectives([1], [KINDS.index(kind)], [len(gpus)], range(len(gpus)), [1.0])
    (time,) = collective_network(topology, rates).times(ring, np.array(gpus, np.int32))
    return round(1.0 / time.seconds, _DIGITS) if time.seconds < math.inf else 0.0


# ---- the optimum -------------------------------------------------------------------------------------------------


def graph_over(topology: Topology, gpus: Sequence[int], rates: Rates | str, *, others: bool) -> ClusterGraph:
    """Return the graph of machines and network for an all-gather among `gpus`, which are its first terminals.

    others: True adds the other GPUs of these machines, as vertices that forward.
    """
    parts = parts_of(topology, gpus)
    graph = ClusterGraph(topology, list(_levels_joining(topology, [part.machine for part in parts])))
    for gpu in gpus:
        graph.terminal(gpu)
    for part in parts:
        graph.add_machine(part, rates, others=others)
        graph.add_adapters(part)
    return graph


def _levels_joining(topology: Topology, machines: Sequence[int]) -> Iterator[Level | None]:
    """Yield the levels up to the first of the network that joins all machines, innermost first.

    None stands for the network outside all levels.
    """
    for level in topology.levels:
        yield level
        domains = {int(level.codes[machine]) for machine in machines}
        is_last = level.kind is LinkKind.NETWORK and not level.rail
        if is_last and len(domains) == 1 and domains != {-1}:
            return
    yield None


class ClusterGraph:
    """A builder of the graph of several machines: vertices by name, and connections with kB/s in both directions."""

    def __init__(self, topology: Topology, levels: Sequence[Level | None]) -> None:
        self._topology = topology
        self._ports = topology.derived(Ports)
        self._levels = levels
        self._number: dict[tuple[object, ...], int] = {}
        self._connections: dict[tuple[int, int], int] = {}
        self._terminals = 0

    def terminal(self, gpu: int) -> None:
        """Add a chosen GPU."""
        self._vertex("gpu", gpu)
        self._terminals += 1

    def add_machine(self, part: MachinePart, rates: Rates | str, *, others: bool) -> None:
        """Add the vertices inside a machine; if a level joins machines by NVSwitches, the machine's NVSwitches are the
        level's.
        """
        graph = prepared(part.topology, rates).graph
        first = part.gpus[0] - part.local[0]
        chosen = set(part.local)
        common = self._nvlink_domain(part.machine)
        names: list[int | None] = []
        for i, kind in enumerate(graph.vertices):
            if kind is Vertex.GPU:
                names.append(self._vertex("gpu", first + i) if others or i in chosen else None)
            elif kind is Vertex.NVSWITCH and common:
                names.append(self._vertex(*common))
            else:
                names.append(self._vertex("part", part.machine, kind.value, i))
        for one in graph.connections:
            a, b = names[one.a], names[one.b]
            if a is not None and b is not None:
                self._join(a, b, one.rate)
        if common:
            self._join_domain(part, self._vertex(*common), rates)

    def _join_domain(self, part: MachinePart, switches: int, rates: Rates | str) -> None:
        """Join the chosen GPUs whose machines alone have no NVSwitches to those of their NVLink domain."""
        for gpu in part.gpus:
            if (self._vertex("gpu", gpu), switches) not in self._connections:
                rate = domain_ring_rate(self._topology, [gpu], rates)
                self._join(self._vertex("gpu", gpu), switches, _rate(rate))

    def add_adapters(self, part: MachinePart) -> None:
        """Add the adapters of the chosen GPUs, and their paths through the levels of the network (`Ports`)."""
        ports = self._ports
        for gpu in part.gpus:
            adapter = int(ports.adapters[gpu])
            if adapter < 0:
                continue
            inner, outer = (self._vertex("port", part.machine, adapter, side) for side in ("gpus", "network"))
            self._join(self._vertex("gpu", gpu), inner, _rate(ports.ways_out[gpu]))
            self._widen(inner, outer, _rate(ports.gb_per_s[adapter]))
            self._add_way(part.machine, gpu, outer, _rate(ports.gb_per_s[adapter]))

    def _add_way(self, machine: int, gpu: int, at: int, rate: int) -> None:
        """Join a vertex to a switch of each level, one after the other, at the rate of the port below it."""
        at, rate = self._through_uplink(MACHINE, gpu, at, rate)
        for level in self._levels:
            where = self._switch(level, machine, gpu)
            if where:
                self._widen(at, switch := self._vertex(*where), rate)
                at = switch
            if level is not None:
                at, rate = self._through_uplink(level.name, gpu, at, rate)

    def _switch(self, level: Level | None, machine: int, gpu: int) -> tuple[object, ...] | None:
        """Return the name of the switch of a level at which a GPU's way meets others; None if it meets none."""
        if level is None:
            return ("network",) if self._topology.network > 0 else None
        domain = level.domains[machine]
        is_network = level.kind is LinkKind.NETWORK and gb_per_s_into(self._topology, level) > 0
        if domain is None or not is_network:
            return None
        return ("level", level.name, domain, int(self._ports.rails[gpu]) if level.rail else None)

    def _through_uplink(self, level: str, gpu: int, at: int, rate: int) -> tuple[int, int]:
        """Return the vertex after the uplink of a GPU's domain, and its rate; those given if there is none."""
        uplink = self._ports.uplink(level, gpu)
        if uplink is None:
            return at, rate
        above = self._vertex("uplink", uplink)
        self._widen(at, above, rate := _rate(self._ports.gb_per_s[uplink]))
        return above, rate

    def terminals(self) -> TerminalGraph:
        """Return the graph for kernels; rates are divided by `unit`."""
        arcs = [
            arc
            for (a, b), rate in self._connections.items()
            for arc in ((a, b, rate // self.unit), (b, a, rate // self.unit))
        ]
        return TerminalGraph(len(self._number), self._terminals, arcs)

    def names(self) -> list[str]:
        """Return the name of each vertex, such as "gpu 9", "machine1 switch 8", "machine1 port mlx5_0" or "leaf 2"."""
        return [self._text(*name) for name in self._number]

    @property
    def unit(self) -> int:
        """Return the largest number of kB/s that divides all rates."""
        return int(np.gcd.reduce(list(self._connections.values()) or [1]))

    def _nvlink_domain(self, machine: int) -> tuple[object, ...] | None:
        for level in self._topology.levels:
            if level.kind is LinkKind.NVSWITCH and level.codes[machine] >= 0:
                return ("level", level.name, level.domains[machine], None)
        return None

    def _text(self, kind: object, *more: Any) -> str:
        if kind == "part":
            machine, part, number = more
            return f"{self._topology.machine_names[machine]} {part} {number}"
        if kind == "port":
            machine, adapter, _ = more
            port = self._ports.port(adapter)
            name = port.what.removeprefix("adapter").strip() or self._topology.local_index[port.gpus[0]]
            return f"{self._topology.machine_names[machine]} port {name}"
        if kind == "uplink":
            return self._ports.port(more[0]).what
        if kind == "level":
            level, domain, rail = more
            return f"{level} {domain}" if rail is None else f"{level} {domain} rail {rail}"
        return " ".join(str(word) for word in (kind, *more))

    def _vertex(self, *name: object) -> int:
        return self._number.setdefault(name, len(self._number))

    def _join(self, a: int, b: int, rate: int) -> None:
        if rate:
            key = (min(a, b), max(a, b))
            self._connections[key] = self._connections.get(key, 0) + rate

    def _widen(self, a: int, b: int, rate: int) -> None:
        """Join two vertices once, however often it is asked for."""
        if rate:
            self._connections[min(a, b), max(a, b)] = rate


def _rate(gb_per_s: float) -> int:
    """Return kB/s."""
    return round(UNITS_PER_GB * gb_per_s)
