"""A machine as the graph that a collective library sees: GPUs, PCIe switches, CPUs and one NVSwitch, with rates.

If the topology has components, they are the graph. Otherwise the host is assumed: each socket is a CPU to which its
GPUs are attached; pairs with a PCIe path share a switch, or have switches below one. The CPUs are those usual with the
generation of PCIe. If pairs contradict sockets, pairs decide: a pair that is SYS is on two CPUs. So is a pair of
unknown connection, as nothing shows that it is nearer.

The rate of a link is that of a preset if the link has the catalogue's speed. Another speed is measured or given, and is
not replaced.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from topoplace.errors import TopologyError
from topoplace.topology.devices import ComponentKind
from topoplace.topology.links import link_kinds
from topoplace.topology.links.link_kinds import NVLINKS, PATH_KINDS, SPEEDS, Link, LinkKind, nvlink_of
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.topology import Topology

UNITS_PER_GB = 1_000_000
"""Capacities are integers, in kB/s."""
MAX_GPUS = 64


class Vertex(enum.Enum):
    """The kind of a vertex."""

    GPU = "gpu"
    SWITCH = "switch"
    CPU = "cpu"
    NVSWITCH = "nvswitch"


class Wire(enum.Enum):
    """The kind of a connection between two vertices."""

    NVLINK = "nvlink"
    C2C = "c2c"
    PCIE = "pcie"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class GraphConnection:
    """A connection of two vertices, with the same rate in both directions."""

    a: int
    b: int
    wire: Wire
    rate: int
    """Rate in kB/s."""


@dataclass(frozen=True, slots=True)
class MachineGraph:
    """Vertices and connections of a machine; the first vertices are its GPUs."""

    vertices: tuple[Vertex, ...]
    connections: tuple[GraphConnection, ...]
    cpus: Mapping[int, str | None]
    """The make of each vertex that is a CPU, as in `Component.cpu`."""
    assumed: bool
    """True if the topology does not state its PCIe switches and CPUs, which are then assumed."""
    most: Mapping[tuple[int, int], float] = field(default_factory=dict[tuple[int, int], float])
    """GB/s that the topology states for pairs (u, v), u < v, through an assumed host: no route carries more."""

    @property
    def num_gpus(self) -> int:
        """Return the number of GPUs."""
        return self.vertices.count(Vertex.GPU)


def machine_graph(topology: Topology, rates: Rates) -> MachineGraph:
    """Return the graph of a topology of one machine; TopologyError for more than 64 GPUs or several machines."""
    if topology.num_machines > 1 or topology.num_gpus > MAX_GPUS:
        raise TopologyError(
            f"{topology.name} has {topology.num_machines} machines and {topology.num_gpus} GPUs; "
            f"collectives are rated on one machine of at most {MAX_GPUS} GPUs"
        )
    given = any(part.kind is not ComponentKind.NVSWITCH for part in topology.components)
    parts = (
        _given_host(topology, rates) if given and topology.component_links else _assumed_host(topology, rates)
    )
    parts.add_gpu_links(topology, rates, given=given)
    merged: dict[tuple[int, int, Wire], int] = {}
    for one in parts.connections:
        key = (min(one.a, one.b), max(one.a, one.b), one.wire)
        merged[key] = merged.get(key, 0) + one.rate
    connections = tuple(GraphConnection(*key, rate) for key, rate in merged.items() if rate > 0)
    most = {} if given else dict(_limits(topology))
    return MachineGraph(tuple(parts.vertices), connections, parts.cpus, not given, most)


class _Parts:
    """A machine's graph while it grows."""

    def __init__(self, num_gpus: int) -> None:
        self.vertices = [Vertex.GPU] * num_gpus
        self.connections: list[GraphConnection] = []
        self.cpus: dict[int, str | None] = {}
        self._nvswitch: int | None = None

    def add(self, kind: Vertex, cpu: str | None = None) -> int:
        """Add a vertex and return its number."""
        self.vertices.append(kind)
        if kind is Vertex.CPU:
            self.cpus[len(self.vertices) - 1] = cpu
        return len(self.vertices) - 1

    def connect(self, a: int, b: int, wire: Wire, gb_per_s: float) -> None:
        """Add a connection."""
        self.connections.append(GraphConnection(a, b, wire, round(gb_per_s * UNITS_PER_GB)))

    def nvswitch(self) -> int:
        """Return the vertex of all NVSwitches, which work as one."""
        if self._nvswitch is None:
            self._nvswitch = self.add(Vertex.NVSWITCH)
        return self._nvswitch

    def add_gpu_links(self, topology: Topology, rates: Rates, *, given: bool) -> None:
        """Add the direct links between GPUs, and the links of GPUs into NVSwitches that are given by pairs.

        All such pairs of a GPU share its port; where the port is given, too, they are measurements of it.
        """
        through_switch: dict[int, float] = {}
        for u, v, link in topology.links:
            if not link.gb_per_s:
                continue
            if link.kind is LinkKind.NVSWITCH:
                rate = nvlink_rate(link, rates, topology.gpus[u].model)
                through_switch.update({gpu: max(rate, through_switch.get(gpu, 0.0)) for gpu in (u, v)})
            elif link.kind not in _NOT_WIRED and not _is_unknown_path(topology, link, given=given):
                self.connect(u, v, Wire.NVLINK, nvlink_rate(link, rates, topology.gpus[u].model))
        for gpu, rate in through_switch.items():
            switch = self.nvswitch()
            port = [one for one in self.connections if (one.a, one.b, one.wire) == (gpu, switch, Wire.NVLINK)]
            self.connections = [one for one in self.connections if one not in port]
            told_gb_per_s = sum(one.rate for one in port) / UNITS_PER_GB
            self.connect(gpu, switch, Wire.NVLINK, min(rate, told_gb_per_s or rate))


_HOST_KINDS = (*PATH_KINDS, LinkKind.NETWORK, LinkKind.NONE)
_NOT_WIRED = (*_HOST_KINDS, LinkKind.XGMI_RELAYED)
"""The kinds of links that are paths over other vertices of the graph."""


def _is_unknown_path(topology: Topology, link: Link, *, given: bool) -> bool:
    """Return True if a link of an unknown kind is taken for a path through the host.

    It is one where the host is given, and where it is no faster than what every pair has: then its speed is assumed.
    """
    return link.kind is LinkKind.UNKNOWN and (given or link.gb_per_s <= topology.default)


_VERTEX_OF = {
    ComponentKind.SOCKET: Vertex.CPU,
    ComponentKind.NUMA_NODE: Vertex.CPU,
    ComponentKind.PCIE_SWITCH: Vertex.SWITCH,
}


# ---- a host that is given ---------------------------------------------------------------------------------------


def _given_host(topology: Topology, rates: Rates) -> _Parts:
    parts = _Parts(topology.num_gpus)
    vertex = list(range(topology.num_gpus))
    for part in topology.components:
        switch = part.kind is ComponentKind.NVSWITCH
        vertex.append(parts.nvswitch() if switch else parts.add(_VERTEX_OF[part.kind], part.cpu))
    for a, b, link in topology.component_links:
        _connect_told(parts, topology, rates, (vertex[a], vertex[b]), link)
    return parts


def _connect_told(parts: _Parts, topology: Topology, rates: Rates, ends: tuple[int, int], link: Link) -> None:
    a, b = ends
    if a == b:
        return  # between two NVSwitches
    kinds = {parts.vertices[a], parts.vertices[b]}
    model = topology.gpus[a].model if a < topology.num_gpus else None
    if kinds == {Vertex.CPU}:
        cpus = (parts.cpus[a], parts.cpus[b])
        parts.connect(a, b, Wire.SYSTEM, socket_rate(link.gb_per_s, cpus, rates))
    elif link.kind is LinkKind.C2C:
        parts.connect(a, b, Wire.C2C, link.gb_per_s)
    elif Vertex.NVSWITCH in kinds or link.kind not in _HOST_KINDS:
        parts.connect(a, b, Wire.NVLINK, nvlink_rate(link, rates, model))
    else:
        parts.connect(a, b, Wire.PCIE, pcie_rate(link.gb_per_s, rates))


# ---- a host that is assumed ------------------------------------------------------------------------------------

_USUAL_CPUS = (
    (12.0, "socket-broadwell"),
    (24.0, "socket-amd"),
    (48.0, "socket-sapphire-rapids"),
)
"""CPUs usual with a generation of PCIe, by the largest GB/s of its sixteen lanes."""


def _assumed_host(topology: Topology, rates: Rates) -> _Parts:
    parts = _Parts(topology.num_gpus)
    pcie = pcie_rate(topology.default, rates)
    cpu_make = next((make for most, make in _USUAL_CPUS if pcie <= most), _USUAL_CPUS[-1][1])
    cpu_of = _assumed_cpus(parts, topology, cpu_make, rate_between(cpu_make, rates))
    if pcie:
        for group in _switch_groups(
            topology, range(topology.num_gpus), (LinkKind.PCIE, LinkKind.PCIE_BRIDGES)
        ):
            _attach(parts, topology, group, cpu_of[group[0]], pcie)
    vertex = [parts.nvswitch() if part.kind is ComponentKind.NVSWITCH else -1 for part in topology.components]
    for a, b, link in topology.component_links:
        if a < topology.num_gpus and vertex:
            rate = nvlink_rate(link, rates, topology.gpus[a].model)
            parts.connect(a, vertex[b - topology.num_gpus], Wire.NVLINK, rate)
    return parts


def _assumed_cpus(parts: _Parts, topology: Topology, make: str, gb_per_s: float) -> dict[int, int]:
    """Add CPUs and what joins them, at `gb_per_s`; return the CPU of each GPU.

    Sockets are joined in pairs. Where GPUs of one socket are on several CPUs, or connections are unknown, one more in
    the middle joins them all: what is between them is not known, and counts once.
    """
    groups = list(_groups(range(topology.num_gpus), lambda u, v: _share_cpu(topology, u, v)))
    cpus = [parts.add(Vertex.CPU, make) for _ in groups]
    if len(groups) > len({gpu.socket for gpu in topology.gpus}) or _has_unknown_paths(topology):
        middle = parts.add(Vertex.CPU, make)
        pairs = [(middle, cpu) for cpu in cpus]
    else:
        pairs = list(combinations(cpus, 2))
    for a, b in pairs:
        parts.connect(a, b, Wire.SYSTEM, gb_per_s)
    return {gpu: cpu for group, cpu in zip(groups, cpus, strict=True) for gpu in group}


def _has_unknown_paths(topology: Topology) -> bool:
    return any(_is_unknown_path(topology, link, given=False) for _, _, link in topology.links)


def _share_cpu(topology: Topology, u: int, v: int) -> bool:
    link = topology.link(u, v)
    if link.kind in PATH_KINDS or _is_unknown_path(topology, link, given=False):
        return link.kind not in (LinkKind.SYSTEM, LinkKind.UNKNOWN)
    return topology.gpus[u].socket == topology.gpus[v].socket


def _limits(topology: Topology) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the pairs with a path through the host, and GB/s of it; one of an unknown kind is at most SYS."""
    farthest = link_kinds.path(LinkKind.SYSTEM, topology.default).gb_per_s
    for u, v in combinations(range(topology.num_gpus), 2):
        link = topology.link(u, v)
        if link.kind in PATH_KINDS:
            yield (u, v), link.gb_per_s
        elif _is_unknown_path(topology, link, given=False):
            yield (u, v), min(link.gb_per_s, farthest)


def _attach(parts: _Parts, topology: Topology, group: Sequence[int], cpu: int, pcie: float) -> None:
    """Attach GPUs to their CPU: alone, by one switch, or by a switch over switches if some pairs pass several."""
    inner = list(_switch_groups(topology, group, (LinkKind.PCIE,)))
    top = cpu
    if len(inner) > 1:
        top = parts.add(Vertex.SWITCH)
        parts.connect(top, cpu, Wire.PCIE, pcie)
    for gpus in inner:
        above = top
        if len(group) > 1:
            above = parts.add(Vertex.SWITCH)
            parts.connect(above, top, Wire.PCIE, pcie)
        for gpu in gpus:
            parts.connect(gpu, above, Wire.PCIE, pcie)


def _switch_groups(
    topology: Topology, gpus: Sequence[int], kinds: Collection[LinkKind]
) -> Iterator[list[int]]:
    """Yield `gpus` in groups whose pairs have a path of one of `kinds`, below the host bridge; most are alone."""
    return _groups(gpus, lambda u, v: topology.link(u, v).kind in kinds)


def _groups(gpus: Sequence[int], are_near: Callable[[int, int], bool]) -> Iterator[list[int]]:
    """Yield `gpus` in groups that pairs which are near join, also by way of others; most of them are alone."""
    left = list(gpus)
    while left:
        group, border = [left[0]], [left[0]]
        left = left[1:]
        while border:
            near = [gpu for gpu in left if are_near(border[0], gpu)]
            left = [gpu for gpu in left if gpu not in near]
            group, border = group + near, border[1:] + near
        yield sorted(group)


_WIDTHS = (16, 8, 4, 2, 1, 32)
_PCIE = tuple(name for name in SPEEDS if name.startswith("pcie"))


def nvlink_rate(link: Link, rates: Rates, model: str | None) -> float:
    """Return GB/s of a direct link of GPUs, or of NVLinks into a switch, all lanes together."""
    if link.kind not in NVLINKS and link.kind is not LinkKind.NVSWITCH:
        return link.gb_per_s
    known = nvlink_of(model) if model else None
    for name, speed in SPEEDS.items():
        suits = speed.kind in NVLINKS and (link.kind is speed.kind or link.kind not in NVLINKS)
        if suits and (known is None or known is speed) and _at_speed_of(name, link.gb_per_s / link.lanes):
            rate = rates.of(name)
            return link.gb_per_s if rate is None else link.lanes * rate
    return link.gb_per_s


def pcie_rate(gb_per_s: float, rates: Rates) -> float:
    """Return the rate, in GB/s, of a PCIe link whose speed the topology states."""
    for width in _WIDTHS:
        for name in _PCIE:
            rate = rates.of(name)
            if rate is not None and _at_speed_of(name, gb_per_s * 16 / width):
                return rate * width / 16
    return gb_per_s


def rate_between(cpu: str, rates: Rates) -> float:
    """Return the rate, in GB/s, between two CPUs of a make; that of the catalogue if `rates` has none."""
    return rates.of(cpu) or SPEEDS[cpu].gb_per_s


def socket_rate(gb_per_s: float, cpus: tuple[str | None, str | None], rates: Rates) -> float:
    """Return the rate, in GB/s, between two CPUs of these makes, if the topology states the speed `gb_per_s`."""
    known = [(SPEEDS[cpu].gb_per_s, rates.of(cpu)) for cpu in cpus if cpu]
    if len(known) == 2 and math.isclose(gb_per_s, min(speed for speed, _ in known)):
        return min(speed if rate is None else rate for speed, rate in known)
    return gb_per_s


def _at_speed_of(name: str, gb_per_s: float) -> bool:
    speed = SPEEDS[name]
    figures = (speed.nominal_gb_per_s, speed.achievable_gb_per_s)
    return any(figure is not None and math.isclose(figure, gb_per_s, rel_tol=1e-6) for figure in figures)
