"""Reader of the PCI tree of a NCCL or RCCL topology file: devices, their roles, and the switches above them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from topoplace import _checks
from topoplace.discovery.text import xml_tree
from topoplace.discovery.text.xml_tree import Element
from topoplace.errors import TopologyError

MAX_HOSTS = 128
WHAT = "a NCCL topology"

_BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
# PCI classes by their beginning: network; display and 3D controllers, processing accelerators.
_NIC_CLASS = "0x02"
_GPU_CLASSES = ("0x03", "0x12")
_VGA_CLASS = "0x0300"
_GPU_VENDORS = (
    "",
    "0x10de",
    "0x1002",
    "0xffff",
)  # any other maker's VGA controller is a console, not an accelerator

_MAX_GPUS = 128
_MAX_NICS = 256
_MAX_PCI = 4096
_MAX_CPUS = 64


@dataclass(frozen=True, slots=True)
class PciDevice:
    """A PCI device, or a network adapter whose PCI device is unknown."""

    element: Element
    """Its XML element: `pci`, or `nic` if there is no `pci`."""
    name: str
    """Its bus id, followed by a number if several switches have the same; "" for a `nic` alone."""
    cpu: int
    """The index of its NUMA node in the file."""
    above: tuple[str, ...]
    """The PCIe switches above it, from the host bridge down."""


class PciPlace(Protocol):
    """Protocol of a device's position in the tree."""

    @property
    def cpu(self) -> int:
        """Return the index of its NUMA node."""
        ...

    @property
    def above(self) -> tuple[str, ...]:
        """Return the PCIe switches above it, from the host bridge down."""
        ...


def shared_switches(gpu: PciPlace, nic: PciPlace) -> int:
    """Return the number of PCIe switches above both devices; -1 if their NUMA nodes differ."""
    if gpu.cpu != nic.cpu:
        return -1
    return sum(1 for a, b in zip(gpu.above, nic.above, strict=False) if a == b)


def path_class(gpu: PciPlace, nic: PciPlace) -> str:
    """Return the class of the path between a GPU and an adapter, in NCCL's terms: PIX, PXB, PHB or SYS."""
    shared = shared_switches(gpu, nic)
    if shared <= 0:
        return "PHB" if shared == 0 else "SYS"
    return "PIX" if len(gpu.above) == len(nic.above) == shared else "PXB"


@dataclass(slots=True)
class PciTree:
    """The devices of one host in a file, in the order of the file."""

    given: frozenset[str]
    """The bus ids of devices that are GPUs although they have no class."""
    cpus: list[Element] = field(default_factory=list[Element])
    gpus: list[PciDevice] = field(default_factory=list[PciDevice])
    nics: list[PciDevice] = field(default_factory=list[PciDevice])
    switches: dict[str, PciDevice] = field(default_factory=dict[str, PciDevice])
    lines: dict[str, int] = field(default_factory=dict[str, int])
    """The line of every PCI device by its name."""
    notes: list[str] = field(default_factory=list[str])


_Left = list[tuple[Element, tuple[str, ...]]]


def read(text: str, given: frozenset[str]) -> list[PciTree]:
    """Return the PCI tree of each host in `text`; TopologyError names the line of any fault.

    given: the bus ids of GPUs whose PCI device has no class in the file.
    """
    root = _root(text)
    ignored = Counter(child.tag for child in root.children if child.tag != "cpu")
    hosts: dict[str, list[Element]] = {}
    for cpu in root.children_of("cpu"):
        hosts.setdefault(cpu.get("host_hash"), []).append(cpu)
    if len(hosts) > MAX_HOSTS:
        raise TopologyError(f"line {root.line}: {len(hosts)} hosts are more than {MAX_HOSTS}")
    return [_tree(cpus, given, ignored) for cpus in hosts.values() or [[]]]


def _tree(cpus: Sequence[Element], given: frozenset[str], ignored: Counter[str]) -> PciTree:
    """Return the tree of one host; `ignored` counts, by tag, unread elements outside all hosts."""
    tree = PciTree(given)
    lines: dict[str, int] = {}
    ignored = ignored.copy()
    for cpu in cpus:
        _check_cpu(cpu, lines)
        tree.cpus.append(cpu)
        left: _Left = [(child, ()) for child in reversed(cpu.children)]
        while left:
            _visit(tree, left, ignored)
    tree.notes += unread(ignored)
    return tree


def unread(tags: Counter[str]) -> list[str]:
    """Return a note for each tag in `tags`, which counts the XML elements that were not read, by tag."""
    return [f"Elements that were not read: {_checks.shown(tag)}, {tags[tag]} times." for tag in sorted(tags)]


def _root(text: str) -> Element:
    root = xml_tree.read(text, WHAT)
    where = f"line {root.line}"
    if root.tag == "graphs":
        raise TopologyError(
            f"{where}: a NCCL graph (the rings and trees NCCL chose), not a topology; "
            "NCCL_TOPO_DUMP_FILE writes a topology"
        )
    if root.tag != "system":
        raise TopologyError(f"{where}: {WHAT} begins with system, not {_checks.shown(root.tag)}")
    if root.get("version") not in ("1", "2"):
        raise TopologyError(f"{where}: version {_checks.shown(root.get('version'))} is not 1 or 2")
    return root


def _check_cpu(cpu: Element, lines: dict[str, int]) -> None:
    number = cpu.get("numaid")
    if number in lines:
        raise TopologyError(
            f"line {cpu.line}: numaid {_checks.shown(number)} is that of line {lines[number]}"
        )
    lines[number] = cpu.line
    if number not in ("", "-1"):
        xml_tree.integer(cpu, "numaid", high=1 << 16)
    if len(lines) > _MAX_CPUS:
        raise TopologyError(f"line {cpu.line}: more than {_MAX_CPUS} CPUs")


def _visit(tree: PciTree, left: _Left, ignored: Counter[str]) -> None:
    """Remove the last element of `left` and add its device to `tree`; add the children of a PCIe switch to `left`."""
    element, above = left.pop()
    cpu = len(tree.cpus) - 1
    if element.tag == "nic":
        tree.nics.append(PciDevice(element, "", cpu, above))
    elif element.tag != "pci":
        ignored[element.tag] += 1
    else:
        bus_id = checked_bus_id(element.get("busid"), f"line {element.line}: pci busid")
        role = _role(element, bus_id, tree.given)
        device = PciDevice(element, _name(tree, element, bus_id, is_switch=role == "switch"), cpu, above)
        if role == "switch":
            tree.switches[device.name] = device
            left.extend((child, (*above, device.name)) for child in reversed(element.children))
        elif role in ("gpu", "nic"):
            (tree.gpus if role == "gpu" else tree.nics).append(device)
    _check_sizes(tree, element.line)


def _check_sizes(tree: PciTree, line: int) -> None:
    for what, count, limit in (
        ("GPUs", len(tree.gpus), _MAX_GPUS),
        ("network adapters", len(tree.nics), _MAX_NICS),
        ("PCI devices", len(tree.lines), _MAX_PCI),
    ):
        if count > limit:
            raise TopologyError(f"line {line}: more than {limit} {what}")


def checked_bus_id(word: object, what: str) -> str:
    """Return `word` as a PCI address in lower case; TopologyError if it is not one."""
    if not isinstance(word, str) or not _BUS_ID.fullmatch(word.lower()):
        raise TopologyError(f'{what} = {_checks.shown(word)} is not like "0000:07:00.0"')
    return word.lower()


def _name(tree: PciTree, element: Element, bus_id: str, *, is_switch: bool) -> str:
    """Return a unique name for a PCI device: its bus id, plus "#2" and so on if several switches have the same.

    Hand-drawn models repeat bus ids of switches; for any other device this is a TopologyError.
    """
    name = bus_id
    if bus_id in tree.lines:
        if not is_switch or bus_id not in tree.switches:
            raise TopologyError(
                f"line {element.line}: pci busid {bus_id} is that of line {tree.lines[bus_id]}"
            )
        number = sum(1 for switch in tree.switches if switch.startswith(bus_id)) + 1
        name = f"{bus_id}#{number}"
        if number == 2:
            tree.notes.append(f"Several switches have the bus id {bus_id}; as many are there as are written.")
    tree.lines[name] = element.line
    return name


def _role(element: Element, bus_id: str, given: frozenset[str]) -> str:
    """Return a PCI device's role by its content, else by its class: "gpu", "nic", "switch" or "other"."""
    tags = {child.tag for child in element.children}
    for tag, role in (("gpu", "gpu"), ("nic", "nic"), ("pci", "switch")):
        if tag in tags:
            return role
    if bus_id in given:
        return "gpu"
    pci_class = element.get("class").lower()
    if pci_class:
        return _role_of_class(pci_class, element.get("vendor").lower())
    if given:
        return "nic"
    raise TopologyError(
        f"line {element.line}: pci {bus_id} has no class, so it may be a GPU or a network adapter; "
        "list the GPUs in gpu_bus_ids="
    )


def _role_of_class(pci_class: str, vendor: str) -> str:
    if pci_class.startswith(_NIC_CLASS):
        return "nic"
    console = pci_class.startswith(_VGA_CLASS) and vendor not in _GPU_VENDORS
    return "gpu" if pci_class.startswith(_GPU_CLASSES) and not console else "other"
