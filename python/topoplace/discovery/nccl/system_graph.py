"""The graph of the system that NCCL and RCCL print into a debug log, and the machines that it shows.

The graph is one tree per CPU. A line begins at the column of the device above it, and states the link to its device and
the GB/s that NCCL expects: "+ PCI[24.0] - GPU/0-1B000 (3)". Links other than PCI end at a device without lines of its
own. In a name, what precedes the hyphen is the host, which old logs leave out; what follows it is a bus id for GPUs,
switches and adapters, a NUMA node for CPUs, and a number for networks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from topoplace.discovery.nccl import pci_tree
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu, Nic
from topoplace.topology.links.link_kinds import (
    PCIE3_X16_GB_PER_S,
    SPEEDS,
    Link,
    LinkKind,
    LinkSpeed,
    nvlink_of,
)
from topoplace.topology.topology import Topology

_NAME = r"([A-Z]{3})/(?:([0-9a-fA-F]{1,8})-)?([0-9a-fA-F]{1,16})(?: \(([^()]{0,120})\))?"
_CPU = re.compile(_NAME)
_BRANCH = re.compile(rf"( *)\+ ([A-Z0-9]{{3,4}})\[([0-9.]{{1,12}})\] - {_NAME}")
# The numbers that NCCL gives to architectures, makers and, of Intel, generations of CPUs.
_SOCKETS_OF_MAKER = {("1", "2"): "socket-amd"}
_SOCKETS_OF_ARCH = {"2": "socket-power9", "3": "socket-arm"}
_SOCKETS_OF_INTEL = {
    "1": "socket-broadwell",
    "2": "socket-skylake",
    "3": "socket-sapphire-rapids",
    "4": "socket-emerald-rapids",
}
_INTEL = ("1", "1")
_IDLE_GB_PER_S = 3.0
"""Largest GB/s that NCCL expects of PCIe 1, to which idle links and virtual machines fall back."""
_DIRECT = {"NVL": LinkKind.NVLINK, "XGMI": LinkKind.XGMI, "XGM": LinkKind.XGMI}
_MAX_DEVICES = 4096
_FEW = 0.01


@dataclass(frozen=True, slots=True)
class _GraphDevice:
    """A device, with the lines of the log that describe it."""

    kind: str
    key: str
    """What names it on its host, in lower case."""
    cpu: int
    above: tuple[str, ...]
    gb_per_s: float
    """GB/s of the link above it; 0 for a CPU."""
    remark: str


@dataclass(slots=True)
class Host:
    """The devices and links of one host in a graph."""

    cpus: list[_GraphDevice] = field(default_factory=list[_GraphDevice])
    gpus: list[_GraphDevice] = field(default_factory=list[_GraphDevice])
    switches: dict[str, _GraphDevice] = field(default_factory=dict[str, _GraphDevice])
    adapters: dict[str, _GraphDevice] = field(default_factory=dict[str, _GraphDevice])
    ends: list[tuple[_GraphDevice, str, float, str, str, str]] = field(
        default_factory=list[tuple[_GraphDevice, str, float, str, str, str]]
    )
    """(device, type of link, GB/s, kind, key, remark) of each link to a device without its own lines."""

    @property
    def bus_ids(self) -> frozenset[str]:
        """Return the bus ids of the GPUs."""
        return frozenset(bus_id(gpu.key) for gpu in self.gpus)


@dataclass(slots=True)
class SystemGraph:
    """The hosts of one graph by their number in it, and notes on facts that its text does not state."""

    hosts: dict[str, Host] = field(default_factory=dict[str, Host])
    notes: list[str] = field(default_factory=list[str])

    @property
    def bus_ids(self) -> frozenset[tuple[str, str]]:
        """Return the GPUs, each as host and bus id."""
        return frozenset((name, one) for name, host in self.hosts.items() for one in host.bus_ids)


def bus_id(number: str) -> str:
    """Return a bus id that NCCL prints as one hexadecimal number, such as "1b000", with its colons."""
    value = int(number, 16)
    return f"{value >> 20:04x}:{value >> 12 & 0xFF:02x}:{value >> 4 & 0xFF:02x}.{value & 0xF:x}"


# ---- lines -----------------------------------------------------------------------------------------------------


def read(lines: Iterable[tuple[int, str]]) -> SystemGraph:
    """Return the graph in `lines`, each with its number in the log; lines that do not fit become a note."""
    graph = SystemGraph()
    open_: list[tuple[int, str, _GraphDevice]] = []
    odd: list[int] = []
    for count, (number, line) in enumerate(lines, 1):
        if count > _MAX_DEVICES:
            raise TopologyError(f"line {number}: the graph has more than {_MAX_DEVICES} lines")
        if cpu := _CPU.fullmatch(line.rstrip()):
            open_ = _root(graph, cpu)
        elif not ((branch := _BRANCH.fullmatch(line.rstrip())) and _grow(graph, open_, branch)):
            odd.append(number)
    if odd:
        graph.notes.append(
            f"{len(odd)} lines of NCCL's graph are not read, the first of them line {odd[0]}: "
            "they are cut, or of a device that is no CPU, GPU, switch or adapter."
        )
    return graph


def _root(graph: SystemGraph, found: re.Match[str]) -> list[tuple[int, str, _GraphDevice]]:
    """Begin the tree of a CPU."""
    kind, host_name, key, remark = found[1], found[2] or "0", found[3].lower(), found[4] or ""
    if kind != "CPU":
        return []
    host = graph.hosts.setdefault(host_name, Host())
    if any(cpu.key == key for cpu in host.cpus):
        return []
    cpu = _GraphDevice("CPU", key, len(host.cpus), (), 0.0, remark)
    host.cpus.append(cpu)
    return [(0, host_name, cpu)]


def _grow(graph: SystemGraph, open_: list[tuple[int, str, _GraphDevice]], found: re.Match[str]) -> bool:
    """Add the device of a branch; return False if its column is that of no device above, or its kind is unknown."""
    while open_ and open_[-1][0] > len(found[1]):
        open_.pop()
    if not open_ or open_[-1][0] != len(found[1]):
        return False
    _, host_name, parent = open_[-1]
    link, gb_per_s, kind, key, remark = found[2], float(found[3]), found[4], found[6].lower(), found[7] or ""
    host = graph.hosts[host_name]
    if link != "PCI":
        host.ends.append((parent, link, gb_per_s, kind, key, remark))
        return link in ("NVL", "XGMI", "XGM", "C2C", "SYS", "QPI", "NET")
    above = (*parent.above, parent.key) if parent.kind == "PCI" else parent.above
    device = _GraphDevice(kind, key, parent.cpu, above, gb_per_s, remark)
    if kind == "GPU" and all(gpu.key != key for gpu in host.gpus):
        host.gpus.append(device)
    elif kind == "PCI":
        host.switches.setdefault(key, device)
    elif kind == "NIC":
        host.adapters.setdefault(key, device)
    else:
        return False
    open_.append((found.start(4), host_name, device))
    return True


# ---- machines --------------------------------------------------------------------------------------------------


def machine(
    host: Host,
    number_of: Mapping[str, int],
    adapter_names: Mapping[str, str],
    gpu_model: str | None,
    name: str,
    label: str,
) -> Topology:
    """Return the machine of a host of the graph, with the speeds that NCCL expects.

    number_of: numbers of GPUs by bus id, as the driver counts. adapter_names: names of networks by number.
    """
    notes: list[str] = []
    gpus = sorted(host.gpus, key=lambda gpu: bus_id(gpu.key))
    at = _vertices(host, gpus)
    named = [number_of.get(bus_id(gpu.key)) for gpu in gpus]
    complete = None not in named and len(set(named)) == len(named)
    return Topology(
        tuple(
            Gpu(
                i,
                f"GPU{number if complete else i}",
                gpu_model,
                label,
                gpu.cpu,
                bus_id=bus_id(gpu.key),
                numa_node=_numa_node(host.cpus[gpu.cpu]),
            )
            for i, (gpu, number) in enumerate(zip(gpus, named, strict=True))
        ),
        tuple(_direct(host, gpus, gpu_model)),
        default=PCIE3_X16_GB_PER_S,
        name=name,
        nics=tuple(_nics(host, gpus, adapter_names)),
        components=tuple(_components(host)),
        component_links=tuple(_component_links(host, gpus, at, gpu_model, notes)),
        notes=(*notes, *_numbering(complete)),
    )


def _numbering(complete: bool) -> Iterator[str]:
    yield "Only the GPUs of NCCL's job are in the log; speeds are those that NCCL expects."
    if not complete:
        yield "The log does not state the numbers of the GPUs: they are numbered by bus id."


def _vertices(host: Host, gpus: list[_GraphDevice]) -> dict[tuple[str, str], int]:
    """Return the vertex of each device by kind and key: GPUs, then the components in the order of `_components`."""
    switches = dict.fromkeys(key for _, _, _, kind, key, _ in host.ends if kind == "NVS")
    keys = [("GPU", gpu.key) for gpu in gpus]
    keys += [("CPU", cpu.key) for cpu in host.cpus]
    keys += [("PCI", key) for key in host.switches]
    keys += [("NVS", key) for key in switches]
    return {key: i for i, key in enumerate(keys)}


def _components(host: Host) -> Iterator[Component]:
    for cpu in host.cpus:
        yield Component(ComponentKind.NUMA_NODE, f"NUMA {_numa_node(cpu)}", _make_of(cpu))
    for key in host.switches:
        yield Component(ComponentKind.PCIE_SWITCH, bus_id(key))
    for key in dict.fromkeys(key for _, _, _, kind, key, _ in host.ends if kind == "NVS"):
        yield Component(ComponentKind.NVSWITCH, f"NVSwitch {key}")


def _numa_node(cpu: _GraphDevice) -> int | None:
    """Return the number of a CPU's NUMA node; None for -1, which virtual machines report."""
    number = int(cpu.key, 16)
    return number if number < 1 << 16 else None


def _make_of(cpu: _GraphDevice) -> str | None:
    """Return the make of a CPU as a key of `SPEEDS`, from its architecture, maker and generation; None if unknown."""
    arch, maker, generation, *_ = (*cpu.remark.split("/"), "", "", "")
    if (arch, maker) == _INTEL:
        return _SOCKETS_OF_INTEL.get(generation)
    return _SOCKETS_OF_MAKER.get((arch, maker)) or _SOCKETS_OF_ARCH.get(arch)


def _component_links(
    host: Host,
    gpus: list[_GraphDevice],
    at: Mapping[tuple[str, str], int],
    gpu_model: str | None,
    notes: list[str],
) -> Iterator[tuple[int, int, Link]]:
    awake = max((gpu.gb_per_s for gpu in gpus), default=0.0)
    asleep: list[float] = []
    for device in (*gpus, *host.switches.values()):
        up = ("PCI", device.above[-1]) if device.above else ("CPU", host.cpus[device.cpu].key)
        gb_per_s = device.gb_per_s
        if device.kind == "PCI" and gb_per_s <= _IDLE_GB_PER_S < awake:
            asleep.append(gb_per_s)
            gb_per_s = awake
        yield at[device.kind, device.key], at[up], Link(LinkKind.PCIE, 1, gb_per_s or PCIE3_X16_GB_PER_S)
    if asleep:
        notes.append(
            f"{len(asleep)} PCIe switches show {min(asleep):g} GB/s or so, as idle ones and virtual machines do, and "
            f"GPUs {awake:g} GB/s: that of the switches is not believed."
        )
    yield from _other_links(host, at, gpu_model)


def _other_links(
    host: Host, at: Mapping[tuple[str, str], int], gpu_model: str | None
) -> Iterator[tuple[int, int, Link]]:
    """Yield the links of GPUs to NVSwitches and CPUs, and of CPUs to each other, each once."""
    seen: set[tuple[int, int, str]] = set()
    for device, link, gb_per_s, kind, key, _ in host.ends:
        a, b = at.get((device.kind, device.key)), at.get((kind, key))
        if a is None or b is None or a == b or kind == device.kind == "GPU" or not gb_per_s:
            continue
        low, high = min(a, b), max(a, b)
        if (low, high, link) in seen:
            continue
        seen.add((low, high, link))
        if link in ("SYS", "QPI"):
            yield low, high, Link(LinkKind.SYSTEM, 1, gb_per_s)
        elif link == "C2C":
            yield low, high, Link(LinkKind.C2C, 1, gb_per_s)
        elif link in _DIRECT:
            found = _bundle(link, gb_per_s, gpu_model)
            yield low, high, Link(LinkKind.NVSWITCH, found.lanes, gb_per_s) if kind == "NVS" else found


def _direct(host: Host, gpus: list[_GraphDevice], gpu_model: str | None) -> Iterator[tuple[int, int, Link]]:
    """Yield the links of pairs of GPUs; both ends list them."""
    index = {gpu.key: i for i, gpu in enumerate(gpus)}
    found: dict[tuple[int, int], Link] = {}
    for device, link, gb_per_s, kind, key, _ in host.ends:
        if kind != "GPU" or device.kind != "GPU" or link not in _DIRECT or key not in index or not gb_per_s:
            continue
        u, v = sorted((index[device.key], index[key]))
        if u != v:
            found[u, v] = _bundle(link, gb_per_s, gpu_model)
    for (u, v), link_found in found.items():
        yield u, v, link_found


def _bundle(link: str, gb_per_s: float, gpu_model: str | None) -> Link:
    """Return parallel links by their GB/s together; kind and number where one generation alone has such a multiple."""
    if link != "NVL":
        return Link(_DIRECT[link], 1, gb_per_s)
    known = nvlink_of(gpu_model or "")
    candidates = [known] if known else [speed for key, speed in SPEEDS.items() if key.startswith("nvlink")]
    fitting = [(speed, lanes) for speed in candidates if (lanes := _lanes(speed, gb_per_s))]
    if len(fitting) != 1:
        return Link(LinkKind.NVLINK, 1, gb_per_s)
    speed, lanes = fitting[0]
    return Link(speed.kind, lanes, gb_per_s)


def _lanes(speed: LinkSpeed, gb_per_s: float) -> int:
    """Return how many links of a generation have `gb_per_s` together, as NCCL expects; 0 if no number does."""
    one = speed.achievable_gb_per_s or speed.gb_per_s
    lanes = round(gb_per_s / one)
    return lanes if 1 <= lanes <= speed.most_links and abs(lanes * one - gb_per_s) < _FEW * one * lanes else 0


def _nics(host: Host, gpus: list[_GraphDevice], adapter_names: Mapping[str, str]) -> Iterator[Nic]:
    """Yield one adapter for each network of a NIC; its number is its rail, as in NCCL's files."""
    listed: set[str] = set()
    with_network: set[str] = set()
    for device, link, gb_per_s, _, key, remark in host.ends:
        if link != "NET" or device.kind != "NIC" or key in listed:
            continue
        listed.add(key)
        with_network.add(device.key)
        found = re.search(r"/([0-9.]{1,16})$", remark)
        port = float(found[1]) if found else gb_per_s
        number = int(key, 16)
        paths = tuple(pci_tree.path_class(gpu, device) for gpu in gpus)
        rail = number if number < 1 << 16 else None
        yield Nic(adapter_names.get(str(number), f"NET{number}"), paths, port or None, rail)
    for key, device in host.adapters.items():
        if key not in with_network:
            yield Nic(bus_id(key), tuple(pci_tree.path_class(gpu, device) for gpu in gpus))
