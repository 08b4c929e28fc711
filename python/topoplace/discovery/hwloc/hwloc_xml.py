"""Reader of the XML that `lstopo machine.xml` writes (hwloc 1 to 3).

Objects are nested like hwloc's tree. Direct NVLinks and xGMI links are in separate matrices of MB/s between OS devices,
NVSwitches and packages: NVLinkBandwidth and XGMIBandwidth. XGMIBandwidth has a constant for any link if the driver
gives no speeds. hwloc 1 has no such matrices, and there NUMA nodes contain packages.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator

from topoplace import _checks
from topoplace.discovery.hwloc import hwloc_machine
from topoplace.discovery.hwloc.hwloc_machine import Bandwidths, Thing
from topoplace.discovery.text import decode, xml_tree
from topoplace.discovery.text.xml_tree import Element
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S
from topoplace.topology.topology import Topology

MATRICES = ("NVLinkBandwidth", "XGMIBandwidth")

_ROOT = re.compile(r"<topology(?: version=\"[0-9.]+\")?\s*>")
_BUS_ID = re.compile(r"[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
_PCI_TYPE = re.compile(r"([0-9a-fA-F]{4}) \[([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\].*")
_SPEED = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,9})?")
_MASK = re.compile(r"(?:0x[0-9a-fA-F]{1,8})?(?:,(?:0x[0-9a-fA-F]{1,8})?)*")
_MAX_MASK_WORDS = 2048  # of 32 CPUs each
_MAX_OBJECTS = 1 << 8  # of a matrix
_MAX_MBPS = 1 << 40
_UNKNOWN_INDEX = (1 << 32) - 1
# The types of OS devices that are co-processors, RDMA ports and interfaces: a number until hwloc 2, bits in hwloc 3.
_COPROCESSOR_2, _FABRIC_2, _NETWORK_2 = 5, 3, 2
_COPROCESSOR_3, _FABRIC_3, _NETWORK_3 = 8, 32, 16
_OLD_TYPES = {"Socket": "Package"}


def recognised(text: str) -> bool:
    """Return True if `text` looks like hwloc's XML."""
    return _ROOT.search(text[:4096]) is not None


def parse(
    data: str | bytes,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    socket_gb_per_s: float | None = None,
    name: str = "hwloc",
    machine: str = "machine0",
) -> Topology:
    """Read the topology of the machine that `data`, the XML of hwloc 1 to 3, describes.

    GPUs are in the order of their PCI addresses. NVSwitches that share no GPU are assumed to be joined, because hwloc
    lists no links between switches.
    pcie_gb_per_s: GB/s of PCIe links of unknown speed.
    socket_gb_per_s: GB/s between sockets; None means the value for the processor's model, or the slowest known value.
    Raise TopologyError naming the line, and for a machine without an accelerator.
    """
    assumed = hwloc_machine.Assumed(pcie_gb_per_s, socket_gb_per_s)
    document = xml_tree.read(decode.decoded(data), "hwloc's XML")
    version = _version(document)
    root = Thing("")
    for element in document.children_of("object"):
        root.children.append(_thing(element, root, version))
    matrices = list(_matrices(document, root))
    return hwloc_machine.topology(root, matrices, assumed, name=name, machine=machine, notes=())


def _version(document: Element) -> int:
    if document.tag != "topology":
        raise TopologyError(f"line {document.line}: {_checks.shown(document.tag)} is not a topology of hwloc")
    match = re.fullmatch(r"([0-9]{1,3})(?:\.[0-9]{1,3})*", document.get("version", "1"))
    if not match or int(match[1]) not in (1, 2, 3):
        found = _checks.shown(document.get("version", "1"))
        raise TopologyError(f"line {document.line}: version = {found}: must be 1, 2 or 3 for hwloc's XML")
    return int(match[1])


# ---- objects ---------------------------------------------------------------------------------------------------


def _thing(element: Element, parent: Thing, version: int) -> Thing:
    """Return the hwloc object that the XML `element` describes, with all objects below it."""
    thing = Thing(_type(element), parent, element.line)
    thing.os_index, thing.gp_index = _index(element, "os_index"), _index(element, "gp_index")
    thing.name, thing.subtype = element.get("name"), element.get("subtype")
    if hwloc_machine.is_needed(thing.type):
        thing.infos = {info.get("name"): info.get("value") for info in element.children_of("info")}
    if "cpuset" in element.attributes:
        thing.cpus, thing.nodes = _mask(element, "cpuset"), _mask(element, "nodeset")
    if "pci_busid" in element.attributes:
        _add_pci(thing, element)
        thing.is_port = thing.type == "Bridge"
    if "local_memory" in element.attributes:
        thing.memory_bytes = float(xml_tree.integer(element, "local_memory"))
    if thing.type == "OSDev":
        _add_kind(thing, xml_tree.integer(element, "osdev_type"), version)
    thing.children = [_thing(child, thing, version) for child in _relevant_children(element)]
    return thing


def _relevant_children(element: Element) -> Iterator[Element]:
    """Yield the objects directly below `element` that are needed or have objects below them."""
    for child in element.children_of("object"):
        if child.children or hwloc_machine.is_needed(_type(child)):
            yield child


def _type(element: Element) -> str:
    name = element.get("type")
    return _OLD_TYPES.get(name, name)


def _add_kind(thing: Thing, kind: int, version: int) -> None:
    if version < 3:
        thing.is_coprocessor, thing.is_fabric = kind == _COPROCESSOR_2, kind == _FABRIC_2
        thing.is_network = kind == _NETWORK_2
    else:
        thing.is_coprocessor, thing.is_fabric = bool(kind & _COPROCESSOR_3), bool(kind & _FABRIC_3)
        thing.is_network = bool(kind & _NETWORK_3)


def _index(element: Element, name: str) -> int | None:
    """Return the attribute `name` of `element`, an object's index; None if it is missing or unknown."""
    if name not in element.attributes:
        return None
    index = xml_tree.integer(element, name)
    return index if index < _UNKNOWN_INDEX else None


def _mask(element: Element, name: str) -> int:
    """Return the attribute `name`, a set of CPUs or NUMA nodes, as a bit mask; 0 for an infinite set.

    The text has words of 32 bits, the highest first.
    """
    text = element.get(name)
    if text.startswith("0xf...f"):
        return 0
    if not _MASK.fullmatch(text) or text.count(",") >= _MAX_MASK_WORDS:
        raise TopologyError(f"line {element.line}: {name} = {_checks.shown(text)} is not a set")
    digits = "".join(word.removeprefix("0x").zfill(8) for word in text.split(","))
    return int(digits, 16)


def _add_pci(thing: Thing, element: Element) -> None:
    address, kind, speed = (element.get(key) for key in ("pci_busid", "pci_type", "pci_link_speed"))
    match = _PCI_TYPE.fullmatch(kind)
    for key, value, good in (
        ("pci_busid", address, _BUS_ID.fullmatch(address)),
        ("pci_type", kind, match),
        ("pci_link_speed", speed, not speed or _SPEED.fullmatch(speed)),
    ):
        if not good:
            raise TopologyError(f"line {element.line}: {key} = {_checks.shown(value)} is not hwloc's")
    if match:
        thing.pci_class, thing.vendor, thing.device = (int(word, 16) for word in match.groups())
    thing.bus_id, thing.gb_per_s = address, float(speed or 0.0)


# ---- matrices --------------------------------------------------------------------------------------------------


def _matrices(document: Element, root: Thing) -> Iterator[Bandwidths]:
    """Yield the bandwidth matrices of direct links; matrices of latencies and hops are skipped."""
    found = [
        element
        for tag in ("distances2", "distances2hetero")
        for element in document.children_of(tag)
        if element.get("name") in MATRICES
    ]
    if found:
        objects: Objects = {("gp", thing.type, thing.gp_index): thing for thing in root.walk()}
        objects |= {("os", thing.type, thing.os_index): thing for thing in root.walk()}
        for element in found:
            yield _matrix(element, objects)


Objects = dict[tuple[str, str, int | None], Thing]
"""Objects by (kind of index, type, index); the kind is "gp" for hwloc's own index, "os" for the system's."""


def _matrix(element: Element, objects: Objects) -> Bandwidths:
    where = f"line {element.line}: {element.get('name')}"
    n = xml_tree.integer(element, "nbobjs", low=1, high=_MAX_OBJECTS)
    things: list[Thing] = []
    for word in _words(element, "indexes"):
        kind, _, index = word.rpartition(":")
        key = (
            element.get("indexing", "gp"),
            kind or element.get("type"),
            _number(index, 1 << 62, f"{where}: index {_checks.shown(word)}"),
        )
        if key not in objects:
            raise TopologyError(f"{where}: there is no object {_checks.shown(word)}")
        things.append(objects[key])
    values = array("Q")
    for word in _words(element, "u64values"):
        values.append(_number(word, _MAX_MBPS, f"{where}: value {_checks.shown(word)}"))
    if (len(things), len(values)) != (n, n * n):
        raise TopologyError(f"{where}: {len(things)} objects and {len(values)} values, but nbobjs is {n}")
    return Bandwidths(element.get("name"), element.line, things, values)


def _number(word: str, high: int, what: str) -> int:
    if word.isascii() and word.isdigit() and len(word) < 20 and int(word) <= high:
        return int(word)
    raise TopologyError(f"{what} is not a number up to {high}")


def _words(element: Element, tag: str) -> Iterator[str]:
    for child in element.children_of(tag):
        yield from (match[0] for match in re.finditer(r"\S+", child.text))
