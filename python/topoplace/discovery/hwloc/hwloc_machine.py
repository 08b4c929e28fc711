"""Conversion of hwloc's object tree, read from hwloc's XML or from lstopo's console text, to a Topology.

hwloc's objects form a tree: packages (sockets) with NUMA nodes and processing units, and below them the bridges, PCI
devices and OS devices that are near. An accelerator is a PCI device of one of three types: one that a driver offers as
a co-processor, a display device of NVIDIA or AMD, or a processing accelerator for machine learning, such as Gaudi.
Other devices of these classes, such as FPGAs, are noted. The small display chips that boards have for their console do
not count.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations, pairwise
from types import MappingProxyType

from topoplace import _checks
from topoplace.discovery.text import cpu_list
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu, Nic
from topoplace.topology.links.link_kinds import SPEEDS, Link, LinkKind, is_idle_pcie, nvlink_of, xgmi_of
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

MAX_GPUS = 256
MAX_PACKAGES = 64
"""Limit on the packages of one machine; machines with more, or with more than MAX_GPUS GPUs, are refused."""
_MAX_LANES = 1024
MAX_PORTS = 256
_MOST_KINDS = 8

GPU_MEMORY = "GPUMemory"
"""The subtype of a NUMA node that is the memory of a GPU, the one at the node's PCIBusID."""

NVIDIA, AMD, CRAY = 0x10DE, 0x1002, 0x17DB
_MAKER_OF_VENDOR = {
    NVIDIA: Maker.NVIDIA,
    AMD: Maker.AMD,
    0x8086: Maker.INTEL,
    0x1DA3: Maker.GAUDI,
    0x19E5: Maker.ASCEND,
    0x1D0F: Maker.NEURON,
    0x1AE0: Maker.GOOGLE,
    0x1ED5: Maker.MOORE_THREADS,
    0xCABC: Maker.CAMBRICON,
    0x1D94: Maker.HYGON,
}
_FAST_NETWORKS = (0x0207, 0x0208)
"""The PCI classes of InfiniBand and of other fabrics, such as Omni-Path."""
_FAST_INTERFACE = re.compile(r"(?:hsn|ib)[0-9]{1,3}")
_MAKERS = {"NVIDIA": NVIDIA, "AMD": AMD, "Advanced Micro Devices": AMD}
_FIXED_XGMI_MBPS = 100_000
"""The value hwloc writes for a pair of AMD GPUs if ROCm SMI reports xGMI between them, directly or not."""
VGA, CONTROLLER_3D, DISPLAY, ACCELERATOR = 0x0300, 0x0302, 0x0380, 0x1200
_DISPLAYS = (VGA, CONTROLLER_3D, DISPLAY, ACCELERATOR)
_WITHOUT_SCREEN = (CONTROLLER_3D, DISPLAY, ACCELERATOR)
"""The PCI classes that no display chip of a board has."""
_OTHER_MAKERS = (0x1DA3, 0x19E5, 0xCABC, 0x1D94)  # Habana (Gaudi), Huawei (Ascend), Cambricon, Hygon
# AMD's display chips on server boards, by PCI device id: ES1000 (two), Rage XL, Radeon 7000.
_BOARD_CHIPS = (0x515E, 0x5969, 0x4752, 0x5159)

# Keys to the speed between sockets: words of the processor's model, or CPUVendor and CPUModelNumber.
_SOCKETS_OF_MODEL = {"POWER9": "socket-power9", "AMD": "socket-amd", "EPYC": "socket-amd"}
_SOCKETS_OF_NUMBER = {
    ("GenuineIntel", "79"): "socket-broadwell",
    ("GenuineIntel", "85"): "socket-skylake",
    (
        "GenuineIntel",
        "106",
    ): "socket-skylake",  # Ice Lake: NCCL treats all later ones like Skylake, except the next two
    ("GenuineIntel", "143"): "socket-sapphire-rapids",
    ("GenuineIntel", "207"): "socket-emerald-rapids",
}
_SLOWEST_SOCKETS = SPEEDS["socket-broadwell"]


_PORTS_OF_A_SWITCH = 2
"""Largest number of ports of one switch on the way to a bridge (accelerator, lower port); more mean another switch."""
_NO_INFOS: Mapping[str, str] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Thing:
    """One object of hwloc's tree; fields that do not apply to its type stay empty."""

    type: str
    """Type as hwloc names it: Package, NUMANode, PU, Bridge, PCIDev, OSDev, ..."""
    parent: Thing | None = None
    line: int = 0
    """Number of its line in the text, from 1."""
    os_index: int | None = None
    gp_index: int | None = None
    name: str = ""
    subtype: str = ""
    infos: Mapping[str, str] = field(default_factory=lambda: _NO_INFOS)
    children: list[Thing] = field(default_factory=list["Thing"])
    cpus: int = 0
    """The set of CPUs below it, as bits."""
    nodes: int = 0
    """The set of NUMA nodes near it, as bits."""
    bus_id: str | None = None
    """PCI address; None without one."""
    is_port: bool = False
    """True for a bridge from PCI to PCI: a root port, or a port of a switch."""
    pci_class: int = 0
    vendor: int | None = None
    """PCI vendor; 0 if the system hides it, None if the text omits it."""
    device: int = 0
    gb_per_s: float = 0.0
    """Speed of the PCIe link in one direction, 0 if unknown."""
    is_coprocessor: bool = False
    is_fabric: bool = False
    """True for an OS device that is a port of an RDMA network."""
    is_network: bool = False
    """True for an OS device that is a network interface of the system, such as eth0, ib0 or hsn0."""
    memory_bytes: float = 0.0
    """Memory of a NUMA node, 0 if unknown."""

    def walk(self) -> Iterator[Thing]:
        """Yield this object and all objects below it, parents before children."""
        left: list[Thing] = [self]
        while left:
            thing = left.pop()
            yield thing
            left.extend(reversed(thing.children))

    def ancestors(self) -> Iterator[Thing]:
        """Yield the objects above this object, nearest first."""
        thing = self.parent
        while thing is not None:
            yield thing
            thing = thing.parent


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """A matrix of the bandwidths of direct links, in MB/s."""

    name: str
    line: int
    things: Sequence[Thing]
    values: Sequence[int]
    """(n * n) row by row."""

    def pairs(self) -> Iterator[tuple[Thing, Thing, int]]:
        """Yield (a, b, MB/s) for every pair with a link; MB/s is that of the slower direction."""
        n = len(self.things)
        for i in range(n):
            for j in range(i + 1, n):
                if mbps := min(self.values[i * n + j], self.values[j * n + i]):
                    yield self.things[i], self.things[j], mbps


@dataclass(frozen=True, slots=True)
class Assumed:
    """Speeds assumed for links for which hwloc states no speed."""

    pcie_gb_per_s: float
    socket_gb_per_s: float | None
    """GB/s between sockets; None means the speed of the processor's model."""

    def __post_init__(self) -> None:
        _checks.positive(self.pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
        if self.socket_gb_per_s is not None:
            _checks.positive(self.socket_gb_per_s, "socket_gb_per_s", TopologyError)


def topology(
    root: Thing,
    matrices: Sequence[Bandwidths],
    assumed: Assumed,
    *,
    name: str,
    machine: str,
    notes: Sequence[str],
) -> Topology:
    """Return the topology of the machine below `root`; TopologyError if it has no accelerator."""
    return _Builder(root, assumed, machine).built(matrices, name, notes)


class _Builder:
    """A builder that collects vertices (accelerators, then components) and the links between them."""

    def __init__(self, root: Thing, assumed: Assumed, machine: str) -> None:
        self._assumed = assumed
        self._machine = machine
        parts: dict[str, list[Thing]] = {part: [] for part in _PARTS}
        for thing in root.walk():
            if part := _part(thing):
                parts[part].append(thing)
        self._packages, self._nodes = parts["package"], parts["node"]
        self._switches, self._ports = parts["switch"], parts["port"]
        self._memory_of = {thing.infos.get("PCIBusID", ""): thing.memory_bytes for thing in parts["memory"]}
        self._memory_nodes = {thing.os_index for thing in parts["memory"]}
        self._gpus = self._accelerators(parts["device"])
        self._left_out = _left_out(parts["device"], self._gpus)
        self._any_model = next(filter(None, map(_model, self._gpus)), "")
        self._meetings = _meetings(self._gpus)
        things = [*self._gpus, *self._packages, *self._nodes, *self._meetings, *self._switches]
        self._place = {id(thing): i for i, thing in enumerate(things)}
        self._first_switch = len(things) - len(self._switches)
        self._links: dict[tuple[int, int], Link] = {}
        self._silent = self._idle = 0
        self._fastest = max((gpu.gb_per_s for gpu in self._gpus), default=0.0)

    def _accelerators(self, devices: Sequence[Thing]) -> list[Thing]:
        """Return the PCI devices in `devices` that are accelerators, in the order of their PCI addresses."""
        found = [thing for thing in devices if is_accelerator(thing) or thing.bus_id in self._memory_of]
        if not found:
            raise TopologyError(_why_none(devices))
        for what, things, limit in (
            ("accelerators", found, MAX_GPUS),
            ("packages", self._packages, MAX_PACKAGES),
            ("RDMA ports", self._ports, MAX_PORTS),
        ):
            if len(things) > limit:
                raise TopologyError(f"{len(things)} {what} are more than {limit}")
        return sorted(found, key=_address)

    def built(self, matrices: Sequence[Bandwidths], name: str, notes: Sequence[str]) -> Topology:
        """Return the topology, with the direct links of `matrices` and the given notes."""
        for thing in (*self._gpus, *self._meetings):
            self._climb(thing)
        more = [*notes, *self._join_sockets()]
        for matrix in matrices:
            self._add(matrix)
        more += [*self._join_switches(), *self._silence(matrices), *self._fixed(matrices)]
        n = len(self._gpus)
        topology = Topology(
            tuple(self._gpu(i, thing) for i, thing in enumerate(self._gpus)),
            tuple((u, v, link) for (u, v), link in self._links.items() if v < n),
            default=self._assumed.pcie_gb_per_s,
            name=name,
            nics=tuple(self._nics()),
            components=tuple(self._components()),
            component_links=tuple((u, v, link) for (u, v), link in self._links.items() if v >= n),
            notes=tuple(more),
        )
        return replace(topology, links=(*topology.links, *self._between_bridges(topology)))

    def _between_bridges(self, topology: Topology) -> Iterator[tuple[int, int, Link]]:
        """Yield (u, v, link) for the path of two accelerators of a package that meet at none of its host bridges."""
        for u, v in combinations(range(len(self._gpus)), 2):
            link = topology.link(u, v)
            if link.kind is LinkKind.HOST and _path(self._gpus[u], self._gpus[v]) != "PHB":
                yield u, v, replace(link, kind=LinkKind.HOST_BRIDGES)

    # ---- links -------------------------------------------------------------------------------------------------

    def _link(self, a: Thing, b: Thing, link: Link) -> None:
        """Add `link` between two vertices, unless a faster link joins them already."""
        u, v = sorted((self._place[id(a)], self._place[id(b)]))
        known = self._links.get((u, v))
        if known is None or known.gb_per_s < link.gb_per_s:
            self._links[u, v] = link

    def _climb(self, thing: Thing) -> None:
        """Add the PCIe link from `thing` to the next meeting bridge above it, or else to its socket.

        A meeting bridge is one at which the ways up from several accelerators meet. `thing` is an accelerator or such a
        bridge.
        """
        way: list[Thing] = [thing]
        target: Thing | None = None
        for above in thing.ancestors():
            if not above.is_port or id(above) in self._place:
                target = above if above.is_port else self._package(thing)
                break
            way.append(above)
        if target is not None:
            given = [gb_per_s for gb_per_s in _speeds(way) if gb_per_s > 0.0]
            device = self._fastest if thing.is_port else thing.gb_per_s
            known = [gb_per_s if not _is_idle(gb_per_s, device) else device for gb_per_s in given]
            self._idle += sum(_is_idle(gb_per_s, device) for gb_per_s in given)
            self._silent += not known
            gb_per_s = min(known, default=self._assumed.pcie_gb_per_s)
            below_a_port = target.is_port and len(way) > _PORTS_OF_A_SWITCH
            self._link(
                thing, target, Link(LinkKind.PCIE_BRIDGES if below_a_port else LinkKind.PCIE, 1, gb_per_s)
            )

    def _package(self, thing: Thing) -> Thing | None:
        """Return the package (socket) that `thing` is near; None if the tree does not show which."""
        for above in thing.ancestors():
            if above.type == "Package":
                return above
            if above.cpus:
                inside = [package for package in self._packages if above.cpus & ~package.cpus == 0]
                if inside:
                    return inside[0]
        return self._packages[0] if len(self._packages) == 1 else None

    def _join_sockets(self) -> Iterator[str]:
        if len(self._packages) < 2:
            return
        gb_per_s = self._assumed.socket_gb_per_s or _socket_gb_per_s(self._packages[0])
        if gb_per_s is None:
            gb_per_s = _SLOWEST_SOCKETS.gb_per_s
            yield f"The speed between sockets is not given: {gb_per_s:g} GB/s is assumed; see socket_gb_per_s."
        link = Link(LinkKind.SYSTEM, 1, gb_per_s)
        for a, b in combinations(self._packages, 2):
            self._link(a, b, link)

    def _add(self, matrix: Bandwidths) -> None:
        for a, b, mbps in matrix.pairs():
            ends = [self._vertex(thing) for thing in (a, b)]
            if ends[0] is None or ends[1] is None:
                what = (a, b)[ends[1] is None and ends[0] is not None]
                raise TopologyError(
                    f"line {matrix.line}: {matrix.name} has a link of {what.type} {what.name or what.gp_index}, "
                    "which is not an accelerator, package or NVSwitch"
                )
            if ends[0] is not ends[1]:
                model = _model(ends[0]) or _model(ends[1]) or self._any_model
                self._link(ends[0], ends[1], _direct(matrix.name, model, mbps / 1000))

    def _vertex(self, thing: Thing) -> Thing | None:
        """Return the vertex for an object of a matrix: itself, or the PCI device of an OS device; None without one."""
        for candidate in (thing, *thing.ancestors()):
            if id(candidate) in self._place:
                return candidate
            if candidate.type != "OSDev":
                return None
        return None

    def _join_switches(self) -> Iterator[str]:
        """Add links between groups of NVSwitches that share no accelerator, and yield a note if there are any.

        These links are assumed, because hwloc never lists links between switches.
        """
        attached: dict[int, dict[int, Link]] = {}
        for (u, v), link in self._links.items():
            if v >= self._first_switch and u < len(self._gpus):
                attached.setdefault(v, {})[u] = link
        groups = _groups(attached)
        for before, group in pairwise(groups):
            for i in range(max(len(before), len(group))):
                pair = sorted((before[i % len(before)], group[i % len(group)]))
                self._links[pair[0], pair[1]] = _trunk([attached[switch] for switch in pair])
        if len(groups) > 1:
            yield (
                f"The NVSwitches are in {len(groups)} groups, and links between those are not given: "
                "they are taken as wide enough for all GPUs."
            )

    def _fixed(self, matrices: Sequence[Bandwidths]) -> Iterator[str]:
        """Yield a note about an xGMI matrix with the constant 100 GB/s, which shows neither speeds nor direct links."""
        for matrix in matrices:
            speeds = {mbps for a, b, mbps in matrix.pairs() if a is not b}
            if matrix.name == "XGMIBandwidth" and speeds == {_FIXED_XGMI_MBPS}:
                yield "XGMIBandwidth is 100 GB/s or none: so hwloc with ROCm SMI writes any xGMI, direct or not."

    def _silence(self, matrices: Sequence[Bandwidths]) -> Iterator[str]:
        if self._silent:
            speed = self._assumed.pcie_gb_per_s
            yield f"The speed of {self._silent} PCIe links is not given: {speed:g} GB/s is assumed."
        if self._idle:
            yield (
                f"{self._idle} PCIe bridges show a speed of PCIe 1, as idle ones do, and accelerators a faster one: "
                "that of the bridges is not believed."
            )
        if nameless := sum(is_nameless(gpu) and gpu.bus_id not in self._memory_of for gpu in self._gpus):
            yield f"{nameless} display devices of no known vendor are taken as GPUs."
        if self._left_out:
            yield f"Devices of the PCI classes of accelerators, which no driver offers, are left out: {self._left_out}."
        if not matrices:
            yield "Neither NVLinkBandwidth nor XGMIBandwidth is there: such links, if any, are not given."

    # ---- vertices ----------------------------------------------------------------------------------------------

    def _gpu(self, index: int, thing: Thing) -> Gpu:
        package = self._package(thing)
        near = next((above for above in thing.ancestors() if above.cpus or above.nodes), Thing(""))
        nodes = [node for node in cpu_list.bits_of(near.nodes) if node not in self._memory_nodes]
        memory = self._memory_of.get(thing.bus_id or "", 0.0)
        return Gpu(
            index,
            f"GPU{index}",
            _model(thing),
            self._machine,
            None if package is None else self._packages.index(package),
            _memory_gb(thing, memory),
            uuid=_info(thing, "NVIDIAUUID", "AMDUUID", "LevelZeroUUID"),
            bus_id=thing.bus_id,
            numa_node=nodes[0] if len(nodes) == 1 else None,
            cpus=cpu_list.list_of_mask(near.cpus),
            maker=_maker(thing),
        )

    def _components(self) -> Iterator[Component]:
        for i, _ in enumerate(self._packages):
            yield Component(ComponentKind.SOCKET, f"socket{i}")
        for i, node in enumerate(self._nodes):
            yield Component(ComponentKind.NUMA_NODE, f"NUMA{i if node.os_index is None else node.os_index}")
        for i, bridge in enumerate(self._meetings):
            yield Component(ComponentKind.PCIE_SWITCH, f"PCIe {bridge.bus_id or i}")
        for switch in self._switches:
            yield Component(ComponentKind.NVSWITCH, f"NVSwitch {switch.bus_id}")

    def _nics(self) -> Iterator[Nic]:
        for port in self._ports:
            device = next((above for above in port.ancestors() if above.type == "PCIDev"), None)
            if device is not None:
                yield Nic(port.name, tuple(_path(device, gpu) for gpu in self._gpus))


# ---- kinds of objects ------------------------------------------------------------------------------------------

_PARTS = ("package", "node", "memory", "switch", "device", "port")


def _part(thing: Thing) -> str:
    """Return the role of `thing`, one of `_PARTS`: package, node, memory, switch, device or port; "" if it has none."""
    if thing.is_fabric or _is_lone_port(thing):
        return "port"
    if thing.type == "NUMANode":
        return "memory" if thing.subtype == GPU_MEMORY else "node"
    if thing.type == "PCIDev":
        return "switch" if thing.subtype == "NVSwitch" else "device"
    return "package" if thing.type == "Package" else ""


def _is_lone_port(thing: Thing) -> bool:
    """Return True if an interface is the only sign of a fast network's port, as those of Slingshot's adapters are.

    They have no RDMA device of OpenFabrics, and the class of Ethernet: maker or name tells them from common Ethernet.
    """
    device = thing.parent
    if not thing.is_network or device is None or any(child.is_fabric for child in device.children):
        return False
    is_fast = device.vendor == CRAY or device.pci_class in _FAST_NETWORKS
    return is_fast or _FAST_INTERFACE.fullmatch(thing.name) is not None


def is_needed(type_name: str) -> bool:
    """Return True if objects of this hwloc type are needed, and not only the objects below them."""
    return type_name in ("Package", "NUMANode", "Bridge", "PCIDev", "OSDev")


def is_accelerator(thing: Thing) -> bool:
    """Return True if a PCI device is an accelerator: a co-processor of a driver, or a GPU by class and vendor."""
    of_amd = thing.vendor == AMD and thing.device not in _BOARD_CHIPS
    is_gpu = of_amd or thing.vendor == NVIDIA or is_nameless(thing)
    is_of_another = thing.vendor in _OTHER_MAKERS and thing.pci_class in _WITHOUT_SCREEN
    return _is_offered(thing) or (is_gpu and thing.pci_class in _DISPLAYS) or is_of_another


def is_nameless(thing: Thing) -> bool:
    """Return True if only the PCI class shows that a device is a GPU: a display device of an unknown vendor.

    If the text omits vendors, only a 3D controller (a display device without a screen) counts.
    """
    known = thing.vendor if thing.vendor is not None or thing.pci_class != CONTROLLER_3D else 0
    return thing.pci_class in _DISPLAYS and known == 0 and not _is_offered(thing)


def _is_offered(thing: Thing) -> bool:
    """Return True if a driver offers a PCI device as a co-processor of the device's own maker.

    Virtual machines show co-processors below devices of another maker, such as a VGA.
    """
    return any(child.is_coprocessor and not _is_of_another(child, thing) for child in thing.children)


def _is_of_another(child: Thing, device: Thing) -> bool:
    maker = next((known for word, known in _MAKERS.items() if word in child.infos.get("GPUVendor", "")), None)
    return maker is not None and device.vendor not in (None, 0, maker)


@lru_cache(maxsize=64)
def _direct(name: str, model: str, gb_per_s: float) -> Link:
    """Return the direct link that matrix `name` shows as `gb_per_s`.

    Its generation and number of lanes follow from the GPU model, if known; otherwise it has one lane.
    """
    is_xgmi = name == "XGMIBandwidth"
    speed = xgmi_of(model) if is_xgmi else nvlink_of(model)
    kind = LinkKind.XGMI if is_xgmi else speed.kind if speed else LinkKind.NVLINK
    lanes = gb_per_s / speed.gb_per_s if speed else 1.0
    return Link(kind, int(lanes) if lanes.is_integer() and 1 <= lanes <= _MAX_LANES else 1, gb_per_s)


def _why_none(devices: Sequence[Thing]) -> str:
    shown = [f"{thing.bus_id}{_kind(thing)}" for thing in devices if thing.pci_class == VGA]
    what = f"; display devices of the board: {', '.join(shown[:4])}" if shown else ""
    if left := _left_out(devices, ()):
        what += f"; devices of the PCI classes of accelerators, which no driver offers: {left}"
    return f"no accelerator: none of the {len(devices)} PCI devices is a GPU or a co-processor{what}"


def _left_out(devices: Sequence[Thing], gpus: Sequence[Thing]) -> str:
    """Return number and kind of the `devices` that are none of the `gpus`, but have the PCI class of accelerators."""
    taken = set(map(id, gpus))
    kinds = Counter(
        f"class {thing.pci_class:04x}{_kind(thing)}"
        for thing in devices
        if thing.pci_class in _WITHOUT_SCREEN and id(thing) not in taken
    )
    more = [f"{len(kinds) - _MOST_KINDS} more kinds"] if len(kinds) > _MOST_KINDS else []
    return ", ".join([*(f"{count} x {kind}" for kind, count in kinds.most_common(_MOST_KINDS)), *more])


def _kind(thing: Thing) -> str:
    return "" if thing.vendor is None else f" [{thing.vendor:04x}:{thing.device:04x}]"


def _address(thing: Thing) -> tuple[int, ...]:
    return tuple(int(part, 16) for part in re.split("[:.]", thing.bus_id or "0"))


def _speeds(way: Sequence[Thing]) -> list[float]:
    """Return GB/s of each PCIe link on `way`, a list of objects from an accelerator or bridge upwards.

    hwloc writes a link's speed at both ends. The value at the lower end is used: at accelerators and the upper ports of
    switches. Root ports and the lower ports of switches, which are every second bridge, only repeat it.
    """
    first = way[0]
    begins_with_root = first.is_port and (first.parent is None or not first.parent.is_port)
    return [thing.gb_per_s for thing in way[begins_with_root::2]]


def _is_idle(gb_per_s: float, device: float) -> bool:
    """Return True if a bridge shows what it has only while nothing uses it, and its device more: an idle link."""
    return is_idle_pcie(gb_per_s) and gb_per_s < device and not is_idle_pcie(device)


def _meetings(gpus: Sequence[Thing]) -> list[Thing]:
    """Return the bridges at which the ways up the tree from several accelerators meet."""
    below: dict[int, Thing] = {}
    found: dict[int, Thing] = {}
    for gpu in gpus:
        child = gpu
        for above in gpu.ancestors():
            if not above.is_port:
                break
            if id(above) in below:  # the way above it is already known
                if below[id(above)] is not child:
                    found[id(above)] = above
                break
            below[id(above)] = child
            child = above
    return list(found.values())


def _groups(attached: Mapping[int, Mapping[int, Link]]) -> list[list[int]]:
    """Return groups of switches that are connected by shared accelerators; groups and members are ascending.

    attached: for each switch, its link to each accelerator.
    """
    groups: list[tuple[list[int], set[int]]] = []
    for switch in sorted(attached):
        joined: tuple[list[int], set[int]] = ([switch], set(attached[switch]))
        apart: list[tuple[list[int], set[int]]] = []
        for group in groups:
            if group[1] & joined[1]:
                joined = ([*group[0], *joined[0]], group[1] | joined[1])
            else:
                apart.append(group)
        groups = [*apart, joined]
    return sorted(sorted(group) for group, _ in groups)


def _trunk(attached: Sequence[Mapping[int, Link]]) -> Link:
    """Return a link between two switches, as wide as the accelerator links of the switch with fewer of them."""
    ports = list(min(attached, key=len).values())
    lanes = min(sum(link.lanes for link in ports), _MAX_LANES)
    return Link(ports[0].kind, lanes, sum(link.gb_per_s for link in ports))


def _info(thing: Thing, *names: str) -> str | None:
    """Return the value of the first info in `names` that an OS device below `thing` has, or None."""
    return next((child.infos[key] for key in names for child in thing.children if child.infos.get(key)), None)


def _model(thing: Thing) -> str | None:
    return _info(thing, "GPUModel") or thing.infos.get("PCIDevice") or None


def _maker(thing: Thing) -> str | None:
    maker = _MAKER_OF_VENDOR.get(thing.vendor or 0)
    return None if maker is None else maker.value


def _memory_gb(thing: Thing, otherwise: float) -> float | None:
    """Return an accelerator's memory in GB, None if unknown; hwloc writes KiB, with the unit since its version 3.

    otherwise: bytes to use if hwloc gives no memory; 0 for unknown.
    """
    text = _info(thing, "CUDAGlobalMemorySize", "RSMIVRAMSize", "OpenCLGlobalMemorySize") or ""
    match = re.fullmatch(r"([0-9]{1,15})(?:KiB)?", text)
    return (int(match[1]) * 1024 if match else otherwise) / 1e9 or None


def _socket_gb_per_s(package: Thing) -> float | None:
    """Return GB/s between sockets of the processor in `package`; None for an unknown processor."""
    infos = package.infos
    key = _SOCKETS_OF_NUMBER.get((infos.get("CPUVendor", ""), infos.get("CPUModelNumber", "")))
    words = {*re.split(r"[^A-Z0-9]+", infos.get("CPUModel", "").upper())}
    key = key or next((known for word, known in _SOCKETS_OF_MODEL.items() if word in words), None)
    if key is None and "CPUImplementer" in infos:
        key = "socket-arm"
    return SPEEDS[key].gb_per_s if key else None


def _path(nic: Thing, gpu: Thing) -> str:
    """Return the path class (PIX, PXB, PHB, NODE, SYS) from a network adapter, or another device, to an accelerator.

    It depends on the lowest object of hwloc's tree that is above both.
    """
    height = {id(above): i for i, above in enumerate(nic.ancestors())}
    for i, above in enumerate(gpu.ancestors()):
        if id(above) in height:
            if above.is_port:
                return "PIX" if max(i, height[id(above)]) <= 1 else "PXB"
            if above.type == "Bridge":
                return "PHB"
            return "NODE" if above.nodes.bit_count() == 1 or above.type == "NUMANode" else "SYS"
    return "SYS"
