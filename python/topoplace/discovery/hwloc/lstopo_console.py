"""Reader of the text that `lstopo-no-graphics -v` prints on a console.

One line per object, indented by two blanks per level, with its attributes in brackets, such as `PCI L#2
(busid=0006:00:00.0 id=10de:1db1 class=0302(3D))`. The short form without -v, `PCI 06:00.0 (3D)`, is read too. A summary
with the number of objects of each type may follow. Direct links between GPUs are not in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

from topoplace import _checks
from topoplace.discovery.hwloc import hwloc_machine
from topoplace.discovery.hwloc.hwloc_machine import Thing
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S
from topoplace.topology.topology import Topology

MAX_DEPTH = 64
_MAX_INDEX = 1 << 16

_MACHINE = re.compile(r"Machine (?:L#0 )?\(.*\)\s*")
_OBJECT = re.compile(r"( *)([A-Za-z0-9]+)(?:\[([A-Za-z,-]{1,80})\])?(?:\(([^)]{1,40})\))?(?: .*)?")
_REPEATED = re.compile(r" *([0-9]{1,6}) x \{ (PCI .*) \}")
_NO_ACCELERATORS = (0x01, 0x02)  # the classes of disks and of networks, by their first byte
_SUMMARY = re.compile(r"\s*(?:Special )?depth -?[0-9]+:\s+([0-9]{1,9}) (\w+) \(type #[0-9]+\)\s*")
_COUNTED = ("Package", "NUMANode", "PCIDev")
_NUMBER = re.compile(r"\bP#([0-9]{1,9})\b")
_INFO = re.compile(r"\b([A-Za-z][A-Za-z0-9]{0,60})=(?:\"([^\"]*)\"|([^\s()\"]+))")
_NAME = re.compile(r"(?<!=)\"([^\"]{1,80})\"")
_ADDRESS = re.compile(
    r"(?:PCI |busid=)(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F])\b"
)
_VENDOR = re.compile(r"\bid=([0-9a-fA-F]{4}):([0-9a-fA-F]{4})\b")
_CLASS = re.compile(r"\bclass=([0-9a-fA-F]{4})\b|\((VGA|3D|Display|ProcessingAccelerator)\)")
_CLASS_OF_NAME = {
    "VGA": hwloc_machine.VGA,
    "3D": hwloc_machine.CONTROLLER_3D,
    "Display": hwloc_machine.DISPLAY,
    "ProcessingAccelerator": hwloc_machine.ACCELERATOR,
}
_SPEED = re.compile(r"\blink=([0-9]{1,6}(?:\.[0-9]{1,9})?)GB/s")
_MEMORY = re.compile(r"\blocal=([0-9]{1,9})(KiB|MiB|GiB|TiB|KB|MB|GB|TB)\b")
_UNIT = {
    unit: 1024.0**power for power, prefix in enumerate("KMGT", 1) for unit in (f"{prefix}iB", f"{prefix}B")
}
_TYPES = {"PCI": "PCIDev", "HostBridge": "Bridge", "PCIBridge": "Bridge"}
_COPROCESSORS = frozenset(
    {"CoProc", "Co-Processor", "NVML", "RSMI", "AMDSMI"}
)  # kinds, and drivers of GPUs alone
_OS_DEVICES = ("CoProc", "GPU", "Net", "OpenFabrics", "Block", "DMA", "Storage", "Memory")


def recognised(text: str) -> bool:
    """Return True if `text` looks like console output of `lstopo-no-graphics`."""
    return any(_MACHINE.fullmatch(line) for line in text[:4096].split("\n"))


def parse(
    data: str | bytes,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    socket_gb_per_s: float | None = None,
    name: str = "lstopo",
    machine: str = "machine0",
) -> Topology:
    """Read the topology of a machine from the output of `lstopo-no-graphics [-v]`.

    GPUs are in the order of their PCI addresses. If the system hides PCI vendors, display devices count as GPUs, with a
    note. If the text omits vendors, only display devices without a screen count.
    pcie_gb_per_s: GB/s of PCIe links of unknown speed.
    socket_gb_per_s: GB/s between sockets; None means the value for the processor's model, or the slowest known value.
    Raise TopologyError naming the line, and for a machine without an accelerator.
    """
    assumed = hwloc_machine.Assumed(pcie_gb_per_s, socket_gb_per_s)
    text = decode.decoded(data)
    notes = [
        f"The matrix {matrix} of the text is not read, but that of hwloc's XML is."
        for matrix in ("NVLinkBandwidth", "XGMIBandwidth")
        if matrix in text
    ]
    return hwloc_machine.topology(_tree(text), (), assumed, name=name, machine=machine, notes=notes)


def _tree(text: str) -> Thing:
    """Return the machine with all objects below it.

    Text before the machine is skipped; text after it is used only to check the number of objects.
    """
    path: list[Thing] = []
    seen: Counter[str] = Counter()
    after = False
    for number, line in decode.numbered_lines(text):
        if not line:
            continue
        after = after or bool(path and not line.startswith("  "))
        if after:
            _check_summary(number, line, seen)
        elif path and line.strip():
            _add(number, line, path, seen)
        elif _MACHINE.fullmatch(line):
            path.append(Thing("Machine", line=number))
    if not path:
        raise TopologyError("the text has no line such as `Machine (total=342GiB)`")
    return path[0]


def _check_summary(number: int, line: str, seen: Counter[str]) -> None:
    match = _SUMMARY.fullmatch(line)
    if match and match[2] in _COUNTED and seen[match[2]] != int(match[1]):
        raise TopologyError(
            f"line {number}: the summary counts {int(match[1])} objects {match[2]}, but the text has {seen[match[2]]}"
        )


def _add(number: int, line: str, path: list[Thing], seen: Counter[str]) -> None:
    """Read the object in `line` and attach it to the object above it.

    path: the objects from the machine down to the last one read; afterwards it ends with the new object.
    """
    if repeated := _REPEATED.fullmatch(line.rstrip()):
        seen["PCIDev"] += _repeated(number, int(repeated[1]), repeated[2])
        return
    match = _OBJECT.fullmatch(line.rstrip())
    if not match:
        raise TopologyError(f"line {number}: {_checks.shown(line.strip())} is not an object of hwloc")
    depth, rest = divmod(len(match[1]), 2)
    if rest or depth > len(path) or depth >= MAX_DEPTH:
        raise TopologyError(f"line {number}: an object is indented by {len(match[1])} blanks")
    del path[depth:]
    kinds = match[3].split(",") if match[3] else [match[2]]
    thing = _thing(number, line, match[2], {*kinds, match[4] or ""}, path)
    thing.subtype = match[4] or ""
    path.append(thing)
    if hwloc_machine.is_needed(thing.type):
        seen[thing.type] += 1
        _attach(path)


def _repeated(number: int, count: int, pci: str) -> int:
    """Return `count`, the number of devices in one line such as "4 x { PCI ... }".

    TopologyError if they may be accelerators, as such a line gives no addresses.
    """
    found = _CLASS.search(pci)
    if not found or not found[1] or int(found[1], 16) >> 8 not in _NO_ACCELERATORS:
        raise TopologyError(
            f"line {number}: {count} devices in one line; print one per line with lstopo --no-collapse"
        )
    return count


def _attach(path: list[Thing]) -> None:
    """Make each object of `path` a child of the one before it.

    Caches and cores without relevant objects below them are never attached.
    """
    for above, below in pairwise(path):
        if not above.children or above.children[-1] is not below:
            above.children.append(below)


def _thing(number: int, line: str, word: str, kinds: set[str], path: list[Thing]) -> Thing:
    """Return the object that `line` describes; `kinds` are the object's type and subtypes."""
    thing = Thing("OSDev" if word in _OS_DEVICES else _TYPES.get(word, word), path[-1], number)
    if hwloc_machine.is_needed(thing.type):
        thing.infos = {info[1]: info[2] or info[3] or "" for info in _INFO.finditer(line)}
    thing.is_coprocessor = not _COPROCESSORS.isdisjoint(kinds)
    thing.is_fabric = "OpenFabrics" in kinds
    thing.is_network = not kinds.isdisjoint(("Net", "Network"))
    thing.is_port = word == "PCIBridge"
    if found := _NAME.search(line):
        thing.name = found[1]
    if thing.type in ("PCIDev", "Bridge"):
        _add_pci(thing, line)
    elif thing.type in ("NUMANode", "PU"):
        _add_number(thing, number, line, path)
    return thing


def _add_pci(thing: Thing, line: str) -> None:
    if found := _ADDRESS.search(line):
        thing.bus_id = f"{found[1] or '0000'}:{found[2]}"
    if found := _VENDOR.search(line):
        thing.vendor, thing.device = int(found[1], 16), int(found[2], 16)
    if found := _CLASS.search(line):
        thing.pci_class = int(found[1], 16) if found[1] else _CLASS_OF_NAME[found[2]]
    if found := _SPEED.search(line):
        thing.gb_per_s = float(found[1])


def _add_number(thing: Thing, number: int, line: str, path: list[Thing]) -> None:
    """Set the system's number of `thing`, a NUMA node or CPU, and add this number to the sets of all objects above."""
    found = _NUMBER.search(line)
    if not found or int(found[1]) > _MAX_INDEX:
        raise TopologyError(f"line {number}: {thing.type} has no number P# up to {_MAX_INDEX}")
    thing.os_index = int(found[1])
    bit = 1 << thing.os_index
    for above in path:
        if thing.type == "PU":
            above.cpus |= bit
        else:
            above.nodes |= bit
    if size := _MEMORY.search(line):
        thing.memory_bytes = int(size[1]) * _UNIT[size[2]]
