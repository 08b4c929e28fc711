"""Reader of the topology files of NCCL and RCCL (`NCCL_TOPO_DUMP_FILE`, `NCCL_TOPO_FILE`).

Below one `cpu` per NUMA node, such a file nests the PCI devices as they are connected. A GPU is a `pci` element; the
`gpu` element inside it lists its links. `nvlink` and `xgmi` have the bus id of their target (another GPU, an NVSwitch,
or a CPU) and their number; `c2c` leads to the GPU's own CPU. Files written by hand or by a cloud are often skeletons:
they have PCI devices, but no `gpu` and so no NVLinks. Graph files (`NCCL_GRAPH_DUMP_FILE`) hold the rings and trees
NCCL chose, not a topology, and are refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.nccl import nccl_links, pci_tree
from topoplace.discovery.nccl.nccl_links import Lanes, PlacedGpu, Wires
from topoplace.discovery.nccl.pci_tree import PciDevice, PciTree
from topoplace.discovery.text import decode, xml_tree
from topoplace.discovery.text.cpu_list import list_of_mask
from topoplace.discovery.text.xml_tree import Element
from topoplace.errors import TopologyError
from topoplace.topology.devices import Component, ComponentKind, Gpu, Nic
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.links.link_kinds import (
    PATH_KINDS,
    PCIE3_X16_GB_PER_S,
    SPEEDS,
    Link,
    LinkKind,
    is_idle_pcie,
)
from topoplace.topology.links.link_kinds import pcie_gb_per_s as speed_of_pcie
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

_SPEED = re.compile(r"([0-9]{1,2}(?:\.[0-9])?) GT/s(?: PCIe)?")
_UNKNOWN_SPEEDS = ("", "Unknown", "Unknown speed")
_WIDTH = re.compile(r"[0-9]{0,3}")
_UNKNOWN_WIDTHS = (0, 255)  # the kernel writes these for an unknown width
_MASK = re.compile(r"[0-9a-fA-F]{1,8}(,[0-9a-fA-F]{8}){0,255}")

# Sockets by maker, and for Intel by the first model of a generation (of family 6), newest first.
_SOCKETS_OF_VENDOR = {"AuthenticAMD": "socket-amd"}
_SOCKETS_OF_ARCH = {"ppc64": "socket-power9", "arm64": "socket-arm", "aarch64": "socket-arm"}
_INTEL_MODELS = (
    (207, "socket-emerald-rapids"),
    (143, "socket-sapphire-rapids"),
    (85, "socket-skylake"),
    (0, "socket-broadwell"),
)
_MAX_BELIEVED_MBITS = 10_000_000  # 10 Tb/s; some plug-ins report a thousand times their speed
_MAX_NUMBER = 1 << 16


def recognised(text: str) -> bool:
    """Return True if `text` looks like a topology file of NCCL or RCCL, or a file of its graphs, which is refused."""
    start = text[:65536]
    return "<graphs" in start or ("<system" in start and "<cpu" in start)


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    lane_gb_per_s: float | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    assume_no_nvlink: bool = False,
    gpu_bus_ids: Collection[str] = (),
    name: str = "nccl",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from `data`, a system file of NCCL or RCCL; speeds are nominal.

    Several hosts in one file, such as jobs over multi-node NVLink write, become a cluster with one NVLink domain. GPUs
    are numbered as in the file, or by bus id in a skeleton. NUMA nodes, PCIe switches and NVSwitches are components. A
    link from a GPU to itself has no known target: it is not counted, and reported in `notes`.

    gpu_model: the model of every GPU; it sets the speed of an NVLink or xGMI link. If it is None, the compute
    capability or AMD architecture in the file sets the speed. lane_gb_per_s: GB/s of one such link in one direction,
    instead of the model's. pcie_gb_per_s: GB/s assumed for a PCIe link, or between two CPUs, without a speed in the
    file; `notes` states this. assume_no_nvlink: only for a file that does not list NVLinks, and for GPUs with links to
    themselves. If False, a pair of them has a link of kind `LinkKind.UNKNOWN` with the speed of its PCIe path; if True,
    it has only the PCIe path. gpu_bus_ids: the PCI devices without a class that are GPUs; all other devices without a
    class are network adapters. Raise TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    assume_no_nvlink = _checks.flag(assume_no_nvlink, "assume_no_nvlink", TopologyError)
    lanes = _lanes(gpu_model, lane_gb_per_s)
    given = _checks.sequence(gpu_bus_ids, "gpu_bus_ids", TopologyError)
    gpus_given = frozenset(pci_tree.checked_bus_id(word, "gpu_bus_ids") for word in given)
    trees = pci_tree.read(decode.decoded(data, pci_tree.WHAT), gpus_given)

    def host(tree: PciTree, machine: str) -> Topology:
        return _host(tree, lanes, gpu_model, pcie_gb_per_s, assume_no_nvlink, name, machine)

    if len(trees) == 1:
        return host(trees[0], machine)
    hosts = {
        label: host(tree, label) for label, tree in zip(numbered("host", len(trees)), trees, strict=True)
    }
    return _joined_hosts(hosts, name)


def _joined_hosts(hosts: Mapping[str, Topology], name: str) -> Topology:
    """Return the hosts of one file as a cluster with one NVLink domain; NCCL writes several only if they share one."""
    domains = tuple(
        name if any(part.kind is ComponentKind.NVSWITCH for part in host.components) else None
        for host in hosts.values()
    )
    shared = Level("nvlink_domain", domains, kind=LinkKind.NVSWITCH)
    note = "Hosts in one file of NCCL are taken to be in one NVLink domain; their network is not given."
    fabric = Fabric(tuple(hosts), (shared,), notes=(note,))
    return Topology.cluster(hosts, fabric=fabric, name=name)


def _host(
    tree: PciTree,
    lanes: Lanes,
    gpu_model: str | None,
    pcie_gb_per_s: float,
    assume_no_nvlink: bool,
    name: str,
    machine: str,
) -> Topology:
    gpus = _chosen_gpus(tree)
    wires = nccl_links.read(gpus, lanes)
    topology = Topology(
        _described_gpus(gpus, tree, gpu_model, machine),
        tuple(wires.pairs),
        default=pcie_gb_per_s,
        name=name,
        nics=_nics(gpus, tree),
        components=_components(tree, wires),
        component_links=_component_links(gpus, tree, wires, pcie_gb_per_s),
    )
    unknown = () if assume_no_nvlink else tuple(_unknown_pairs(topology, gpus, wires))
    notes = (*wires.notes, *tree.notes, *_unknown_notes(unknown))
    return replace(topology, links=(*topology.links, *unknown), notes=notes)


def _lanes(gpu_model: str | None, lane_gb_per_s: float | None) -> Lanes:
    if gpu_model is not None:
        gpu_model = _checks.text(gpu_model, "gpu_model", TopologyError)
    if lane_gb_per_s is not None:
        lane_gb_per_s = _checks.positive(lane_gb_per_s, "lane_gb_per_s", TopologyError)
    return Lanes(gpu_model, lane_gb_per_s)


def _unknown_pairs(
    topology: Topology, gpus: Sequence[PlacedGpu], wires: Wires
) -> Iterator[tuple[int, int, Link]]:
    """Yield (u, v, link) for each pair that may have NVLinks missing from the file.

    The link is of kind UNKNOWN, with the speed of the path between u and v that the file does describe. Across sockets
    it is that path, so that policies do not take such a pair as near.
    """
    unlisted = [i for i, gpu in enumerate(gpus) if gpu.element is None] or sorted(wires.loops)
    for u, v in combinations(unlisted, 2):
        link = topology.link(u, v)
        if link.kind is LinkKind.SYSTEM:
            yield u, v, link
        elif link.kind in PATH_KINDS:
            yield u, v, Link(LinkKind.UNKNOWN, 1, link.gb_per_s)


def _unknown_notes(unknown: Sequence[tuple[int, int, Link]]) -> Iterator[str]:
    across = sum(link.kind is LinkKind.SYSTEM for _, _, link in unknown)
    if unknown:
        yield (
            "The file does not state which NVLinks there are. Pairs of kind UNKNOWN at the speed of their PCIe path: "
            f"{len(unknown) - across}; pairs across sockets, taken as SYS: {across}; assume_no_nvlink=True takes the "
            "path to be all there is."
        )


# ---- GPUs ------------------------------------------------------------------------------------------------------


def _chosen_gpus(tree: PciTree) -> list[PlacedGpu]:
    """Return the GPUs in the order of their numbers; in a skeleton, which has no numbers, of their bus ids."""
    listed = _listed_gpus(tree)
    classified = [device for device in tree.gpus if not any(device.element.children_of("gpu"))]
    if listed:
        for device in classified:
            tree.notes.append(f"The PCI device {device.name} has the class of a GPU and no gpu: not counted.")
        return [listed[number] for number in sorted(listed)]
    if not classified:
        raise TopologyError(
            "no GPU: no pci has a gpu in it or the class of one; give the file that NCCL_TOPO_DUMP_FILE wrote"
        )
    in_order = sorted(
        classified, key=lambda device: [int(part, 16) for part in re.split("[:.]", device.name)]
    )
    return [PlacedGpu(device, f"GPU{i}", None) for i, device in enumerate(in_order)]


def _listed_gpus(tree: PciTree) -> dict[int, PlacedGpu]:
    """Return, by number, the GPUs that have an XML element `gpu`."""
    listed: dict[int, PlacedGpu] = {}
    for device in tree.gpus:
        elements = list(device.element.children_of("gpu"))
        for element in elements:
            number = xml_tree.integer(element, "dev", high=_MAX_NUMBER)
            if number in listed or len(elements) > 1:
                raise TopologyError(
                    f"line {element.line}: GPU {number} of pci {device.name} is not the only one"
                )
            listed[number] = PlacedGpu(device, f"GPU{number}", element)
    return listed


def _described_gpus(
    gpus: Sequence[PlacedGpu], tree: PciTree, model: str | None, machine: str
) -> tuple[Gpu, ...]:
    cpus = dict.fromkeys(gpu.device.cpu for gpu in gpus)
    socket_of = {cpu: i for i, cpu in enumerate(cpus)}
    lists = {cpu: _cpus(tree.cpus[cpu]) for cpu in cpus}
    if len({len(cpu.get("affinity")) for cpu in tree.cpus}) > 1:
        tree.notes.append("The affinity masks differ in length; each is read as the number it shows.")
    rails = _rails(gpus, tree)
    return tuple(
        Gpu(
            i,
            gpu.name,
            model,
            machine,
            socket_of[gpu.device.cpu],
            bus_id=gpu.device.name,
            numa_node=_numa_node(tree.cpus[gpu.device.cpu]),
            cpus=lists[gpu.device.cpu],
            rail=rails[i],
            capability=_capability(gpu.element),
            maker=_maker(gpu.element),
        )
        for i, gpu in enumerate(gpus)
    )


def _maker(gpu: Element | None) -> str | None:
    """Return AMD for a GPU with the architecture that RCCL writes; None for one of NCCL."""
    return Maker.AMD.value if gpu is not None and gpu.get("gcn") else None


def _capability(gpu: Element | None) -> int | None:
    """Return the CUDA compute capability of a GPU, times ten, or None if the file does not give it."""
    if gpu is None or not gpu.get("sm"):
        return None
    return xml_tree.integer(gpu, "sm", high=_MAX_NUMBER)


def _numa_node(cpu: Element) -> int | None:
    """Return the number of the NUMA node; None if it is missing or -1, which virtual machines report."""
    return None if cpu.get("numaid") in ("", "-1") else xml_tree.integer(cpu, "numaid", high=_MAX_NUMBER)


def _cpus(cpu: Element) -> str | None:
    """Return the CPUs in the affinity mask of `cpu` as a list such as "0-23,48-71"; None if the mask is empty.

    The mask is written in 32-bit words, the highest first.
    """
    mask = cpu.get("affinity")
    if not mask:
        return None
    if not _MASK.fullmatch(mask):
        raise TopologyError(
            f"line {cpu.line}: affinity = {_checks.shown(mask)} is not a mask of CPUs; write it in hexadecimal words, "
            "such as 00000000,0000ffff"
        )
    return list_of_mask(int(mask.replace(",", ""), 16))


# ---- components ------------------------------------------------------------------------------------------------


def _components(tree: PciTree, wires: Wires) -> tuple[Component, ...]:
    return (
        *(
            Component(ComponentKind.NUMA_NODE, f"NUMA {cpu.get('numaid', '-1')}", _make_of(cpu))
            for cpu in tree.cpus
        ),
        *(Component(ComponentKind.PCIE_SWITCH, name) for name in tree.switches),
        *(Component(ComponentKind.NVSWITCH, f"NVSwitch {target}") for target in wires.switches),
    )


def _component_links(
    gpus: Sequence[PlacedGpu], tree: PciTree, wires: Wires, assumed_gb_per_s: float
) -> tuple[tuple[int, int, Link], ...]:
    """Return all links from or to components.

    Vertices are the GPUs, then NUMA nodes, PCIe switches and NVSwitches, in the order of `_components`.
    """
    first_cpu = len(gpus)
    first_nvswitch = first_cpu + len(tree.cpus) + len(tree.switches)
    links = list(_pcie_links(gpus, tree, assumed_gb_per_s))
    links += [((gpu, first_cpu + gpus[gpu].device.cpu), link) for gpu, link in wires.cpus.items()]
    for i, ends in enumerate(wires.switches.values()):
        links += [((gpu, first_nvswitch + i), link) for gpu, link in ends.items()]
    links += _between_cpus(tree, first_cpu, assumed_gb_per_s)
    return tuple((a, b, link) for (a, b), link in links)


def _pcie_links(
    gpus: Sequence[PlacedGpu], tree: PciTree, assumed_gb_per_s: float
) -> Iterator[tuple[tuple[int, int], Link]]:
    """Yield ((vertex, vertex above), link) for the PCIe link from each GPU and each PCIe switch upwards.

    The vertex above is a PCIe switch or a NUMA node.
    """
    first_switch = len(gpus) + len(tree.cpus)
    vertex = {name: first_switch + i for i, name in enumerate(tree.switches)}
    devices = [(i, gpu.device) for i, gpu in enumerate(gpus)]
    devices += ((vertex[name], device) for name, device in tree.switches.items())
    assumed = 0
    awake = _awake(gpus, tree)
    for at, device in devices:
        up = vertex[device.above[-1]] if device.above else len(gpus) + device.cpu
        gb_per_s = awake.get(device.name) or _pcie_gb_per_s(device.element)
        assumed += gb_per_s is None
        yield (at, up), Link(LinkKind.PCIE, 1, gb_per_s or assumed_gb_per_s)
    if assumed:
        tree.notes.append(
            f"No speed is given for {assumed} of {len(devices)} PCIe links: {assumed_gb_per_s:g} GB/s is assumed."
        )


def _awake(gpus: Sequence[PlacedGpu], tree: PciTree) -> dict[str, float]:
    """Return GB/s, those of the fastest GPU, by name of each switch that shows a speed of PCIe 1, and note them."""
    fastest = max((_pcie_gb_per_s(gpu.device.element) or 0.0 for gpu in gpus), default=0.0)
    if not fastest or is_idle_pcie(fastest):
        return {}
    shown = {name: _pcie_gb_per_s(switch.element) or 0.0 for name, switch in tree.switches.items()}
    idle = {
        name: fastest for name, gb_per_s in shown.items() if is_idle_pcie(gb_per_s) and gb_per_s < fastest
    }
    if idle:
        tree.notes.append(
            f"{len(idle)} PCIe switches show a speed of PCIe 1, as idle ones do, and GPUs {fastest:g} GB/s: "
            "that of the switches is not believed."
        )
    return idle


def _pcie_gb_per_s(pci: Element) -> float | None:
    """Return GB/s of the link above a device, or None if the file does not give it."""
    speed, lanes = pci.get("link_speed"), _pcie_lanes(pci)
    match = _SPEED.fullmatch(speed)
    gb_per_s = speed_of_pcie(float(match[1]), 16) if match else None
    if gb_per_s is None and speed not in _UNKNOWN_SPEEDS:
        raise TopologyError(f"line {pci.line}: link_speed = {_checks.shown(speed)} is not a speed of PCIe")
    return gb_per_s * lanes / 16 if gb_per_s and lanes else None


def _pcie_lanes(pci: Element) -> int:
    """Return the number of PCIe lanes above a device, 0 if the file does not give it."""
    width = pci.get("link_width")
    lanes = int(width or "0") if _WIDTH.fullmatch(width) else -1
    if lanes in _UNKNOWN_WIDTHS:
        return 0
    if not 1 <= lanes <= 32:
        raise TopologyError(f"line {pci.line}: link_width = {_checks.shown(width)} is not in 1..32")
    return lanes


def _between_cpus(
    tree: PciTree, first_cpu: int, assumed_gb_per_s: float
) -> Iterator[tuple[tuple[int, int], Link]]:
    speeds = [_socket_gb_per_s(cpu) for cpu in tree.cpus]
    if len(speeds) > 2:
        tree.notes.append("Sockets are not given: any two NUMA nodes are taken to be of two sockets.")
    if len(speeds) > 1 and None in speeds:
        tree.notes.append(
            f"The CPUs are not given: {assumed_gb_per_s:g} GB/s between two of them is assumed."
        )
    for a, b in combinations(range(len(speeds)), 2):
        gb_per_s = min(speeds[a] or assumed_gb_per_s, speeds[b] or assumed_gb_per_s)
        yield (first_cpu + a, first_cpu + b), Link(LinkKind.SYSTEM, 1, gb_per_s)


def _socket_gb_per_s(cpu: Element) -> float | None:
    """Return GB/s between two sockets with CPUs like `cpu`, or None if the maker is unknown."""
    known = _make_of(cpu)
    return SPEEDS[known].gb_per_s if known else None


def _make_of(cpu: Element) -> str | None:
    """Return the make of a CPU as a key of `SPEEDS`, or None if it is unknown."""
    known = _SOCKETS_OF_VENDOR.get(cpu.get("vendor")) or _SOCKETS_OF_ARCH.get(cpu.get("arch"))
    if known is None and cpu.get("vendor") == "GenuineIntel":
        model = xml_tree.integer(cpu, "modelid", high=_MAX_NUMBER)
        known = next(name for first, name in _INTEL_MODELS if model >= first)
    return known


# ---- network adapters ------------------------------------------------------------------------------------------


def _nics(gpus: Sequence[PlacedGpu], tree: PciTree) -> tuple[Nic, ...]:
    """Return one adapter for each XML element `net`, and one, named by its bus id, for a device without `net`."""
    nics: dict[str, Nic] = {}
    for device in tree.nics:
        paths = tuple(pci_tree.path_class(gpu.device, device) for gpu in gpus)
        nets = _nets(device)
        if not nets and device.name:
            nics[device.name] = Nic(device.name, paths)
        for net in nets:
            name = _checks.text(net.get("name"), f"line {net.line}: net name", TopologyError)
            if name in nics:
                raise TopologyError(f"line {net.line}: net {_checks.shown(name)} appears twice")
            nics[name] = Nic(name, paths, _net_gb_per_s(net, tree), _rail_of(net))
    return tuple(nics.values())


def _nets(device: PciDevice) -> list[Element]:
    nics = device.element.children_of("nic") if device.element.tag == "pci" else (device.element,)
    return [net for nic in nics for net in nic.children_of("net")]


def _net_gb_per_s(net: Element, tree: PciTree) -> float | None:
    """Return GB/s of a network port, which the file gives in Mb/s; None if the speed is missing or impossibly high."""
    if net.get("speed", "0") in ("0", "-1"):
        return None
    mbits = xml_tree.integer(net, "speed")
    if mbits <= _MAX_BELIEVED_MBITS:
        return mbits / 8000
    tree.notes.append(f"The speed of {net.get('name')}, {mbits} Mb/s, is not believed.")
    return None


def _rail_of(net: Element) -> int | None:
    """Return the adapter's number: NCCL puts adapters of equal number on different machines on one rail."""
    return xml_tree.integer(net, "dev", high=_MAX_NUMBER) if "dev" in net.attributes else None


def _rails(gpus: Sequence[PlacedGpu], tree: PciTree) -> list[int | None]:
    """Return the rail of every GPU, that of its nearest network port; all None if a GPU has no single nearest port."""
    rails = [_rail(gpu.device, tree) for gpu in gpus]
    return [None] * len(rails) if None in rails else rails


def _rail(gpu: PciDevice, tree: PciTree) -> int | None:
    """Return the rail of the network port that shares the most PCIe switches with the GPU.

    None if no port shares a switch, or if several ports share the most.
    """
    most = max((pci_tree.shared_switches(gpu, nic) for nic in tree.nics), default=0)
    nets = [net for nic in tree.nics if pci_tree.shared_switches(gpu, nic) == most > 0 for net in _nets(nic)]
    return _rail_of(nets[0]) if len(nets) == 1 else None
