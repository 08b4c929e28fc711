"""What collective operations carry over several machines: network ports count, rails and levels of the fabric."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from topoplace import kernels
from topoplace.collective.machine_graph import UNITS_PER_GB, Vertex
from topoplace.collective.networks import collective_network
from topoplace.collective.prepared import prepared
from topoplace.collective.rates import Rates
from topoplace.kernels import TerminalGraph
from topoplace.kernels.job_traffic import KINDS
from topoplace.topology.fabric import Level
from topoplace.topology.links.link import LinkKind
from topoplace.topology.nearest_adapters import nearest_adapters
from topoplace.topology.topology import Topology

_DIGITS = 9
"""Of GB/s that are computed from seconds."""


@dataclass(frozen=True)
class MachinePart:
    """The chosen GPUs of one machine."""

    machine: int
    topology: Topology
    """The machine alone."""
    gpus: tuple[int, ...]
    """By their numbers in the whole topology."""
    local: tuple[int, ...]
    """The same on the machine alone."""

    def rail(self, local: int) -> int:
        """Return the rail of a GPU, given by its number on the machine."""
        rail = self.topology.gpus[local].rail
        return local if rail is None else rail

    @property
    def ports(self) -> Sequence[frozenset[str | int]]:
        """Return the nearest network adapters of each GPU; an own one where the machine does not tell adapters."""
        nearest = self.topology.derived(_ports_of_gpus)
        return [nearest[local] for local in self.local]


def _ports_of_gpus(machine: Topology) -> Sequence[frozenset[str | int]]:
    """Return the nearest network adapters of each GPU of a machine; the GPU's number where it tells no adapters."""
    nearest = machine.derived(nearest_adapters)
    return [frozenset(names) if names else frozenset([gpu]) for gpu, names in enumerate(nearest)]


def parts_of(topology: Topology, gpus: Sequence[int]) -> list[MachinePart]:
    """Return the GPUs by machine, machines that are near in the network together."""
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

    Machines follow each other in the order in which `gpus` first names them. kind: of `kernels.JobCollectives`.
    """
    ring = kernels.JobCollectives([1], [KINDS.index(kind)], [len(gpus)], range(len(gpus)), [1.0])
    (time,) = collective_network(topology, rates).times(ring, np.array(gpus, np.int32))
    return round(1.0 / time.seconds, _DIGITS) if time.seconds < math.inf else 0.0


# ---- the optimum -------------------------------------------------------------------------------------------------


def graph_over(topology: Topology, gpus: Sequence[int], rates: Rates | str, *, others: bool) -> ClusterGraph:
    """Return the graph of machines and network for an all-gather among `gpus`, which are its first terminals.

    others: whether the other GPUs of these machines are there, as vertices that forward.
    """
    parts = parts_of(topology, gpus)
    graph = ClusterGraph(topology, list(_levels_joining(topology, [part.machine for part in parts])))
    for gpu in gpus:
        graph.terminal(gpu)
    for part in parts:
        graph.add_machine(part, rates, others=others)
        graph.add_ports(part)
    return graph


def _levels_joining(topology: Topology, machines: Sequence[int]) -> Iterator[Level | None]:
    """Yield the levels of the network up to the first that joins all machines, innermost first.

    None stands for the network outside all levels.
    """
    for level in topology.levels:
        if level.kind is LinkKind.NETWORK:
            yield level
            domains = {int(level.codes[machine]) for machine in machines}
            if len(domains) == 1 and domains != {-1} and not level.rail:
                return
    yield None


class ClusterGraph:
    """The graph of several machines while it grows: vertices by name, and connections with kB/s both ways."""

    def __init__(self, topology: Topology, levels: Sequence[Level | None]) -> None:
        self._topology = topology
        self._levels = levels
        self._number: dict[tuple[object, ...], int] = {}
        self._connections: dict[tuple[int, int], int] = {}
        self._terminals = 0

    def terminal(self, gpu: int) -> None:
        """Add a chosen GPU."""
        self._vertex("gpu", gpu)
        self._terminals += 1

    def add_machine(self, part: MachinePart, rates: Rates | str, *, others: bool) -> None:
        """Add what is inside a machine; its NVSwitches are those of a level that joins several machines by them."""
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

    def add_ports(self, part: MachinePart) -> None:
        """Add the network ports of the chosen GPUs, and their connections to each level of the network."""
        for gpu, local, port in zip(part.gpus, part.local, part.ports, strict=True):
            inner, outer = (self._vertex("port", part.machine, port, side) for side in ("gpus", "network"))
            fastest = round(UNITS_PER_GB * max(self._gb_per_s(level) for level in self._levels))
            self._join(self._vertex("gpu", gpu), inner, fastest)
            self._widen(inner, outer, fastest)
            for level in self._levels:
                where: tuple[object, ...] = ("network",)
                shared = self._gb_per_s(level)
                if level is not None:
                    domain = level.domains[part.machine]
                    if domain is None:
                        continue
                    where = ("level", level.name, domain, part.rail(local) if level.rail else None)
                    shared /= level.oversubscription
                self._widen(outer, self._vertex(*where), round(UNITS_PER_GB * shared))

    def terminals(self) -> TerminalGraph:
        """Return the graph for kernels; rates are divided by `unit`."""
        arcs = [
            arc
            for (a, b), rate in self._connections.items()
            for arc in ((a, b, rate // self.unit), (b, a, rate // self.unit))
        ]
        return TerminalGraph(len(self._number), self._terminals, arcs)

    def names(self) -> list[str]:
        """Return what each vertex is called, such as "gpu 9", "machine1 switch 8", "machine1 port mlx5_0", "leaf 2"."""
        return [self._text(*name) for name in self._number]

    @property
    def unit(self) -> int:
        """Return the largest number of kB/s that divides all rates."""
        return int(np.gcd.reduce(list(self._connections.values()) or [1]))

    def _gb_per_s(self, level: Level | None) -> float:
        """Return GB/s of one port into a level."""
        return (level.gb_per_s if level else None) or self._topology.network

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
            machine, adapters, _ = more
            return f"{self._topology.machine_names[machine]} port {'/'.join(sorted(map(str, adapters)))}"
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
