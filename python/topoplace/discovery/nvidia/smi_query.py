"""Reader of `nvidia-smi -q`, as text or, with -x, as XML: the driver's data on each GPU of a machine.

These are read: model, UUID, PCI address, PCIe generation and width, memory, processes, health, and the state of the
NVLink fabric. A GPU in MIG mode is unhealthy, as no job can get it whole; its slices, which have no UUID here, are
noted. GPUs that have joined one fabric meet in its switches. The connections of other GPUs are not stated: their links
are of kind UNKNOWN. Both forms become one list of paths and values for each GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery import in_use as uses
from topoplace.discovery.in_use import GpuUse
from topoplace.discovery.nvidia import gpu_line, mig, smi_health
from topoplace.discovery.nvidia.smi_table import IDLE_MIB
from topoplace.discovery.text import decode, xml_tree
from topoplace.discovery.text.xml_tree import Element
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import (
    PCIE3_X16_GB_PER_S,
    SPEEDS,
    Link,
    LinkKind,
    model_known,
    nvlink_of,
    rounded,
)
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

_LOG = re.compile(r"^=+NVSMI LOG=+[ \t]*\r?$", re.MULTILINE)
_XML = re.compile(r"<nvidia_smi_log\b")
_GPU = re.compile(r"GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])")
_PAIR = re.compile(r"( *)(\S[^:]*?)\s*(?::(?: (.*))?)?")
_NOT_LETTERS = re.compile(r"[^a-z0-9]+")
_NUMBER = re.compile(r"([0-9]{1,9})(?:x| MiB)?")
_MIB = 1024**2
_WORDS_OF_XML = {
    "product_name": "productname",
    "uuid": "gpuuuid",
    "pci_gpu_link_info": "gpulinkinfo",
    "pcie_gen": "pciegeneration",
    "link_widths": "linkwidth",
    "max_link_gen": "max",
    "current_link_gen": "current",
    "max_device_link_gen": "devicemax",
    "max_link_width": "max",
    "current_link_width": "current",
    "pci_bus_id": "busid",
    "current_mig": "current",
    "process_info": "processes",
    "multiprocessor_count": "multiprocessorcount",
    "attached_gpus": "attachedgpus",
}
"""Names of elements whose words differ from those of the text."""
_NONE = ("", "N/A", "None", "[N/A]", "Not Supported")


@dataclass(frozen=True, slots=True)
class _Block:
    """What the driver says of one GPU: values by path, in order; a path is of words in small letters."""

    bus_id: str
    values: Sequence[tuple[tuple[str, ...], str]]

    def get(self, *path: str) -> str | None:
        """Return the first value whose path ends like this; None for one that is not given."""
        found = (value for at, value in self.values if at[-len(path) :] == path and _slice_of(at) is None)
        value = next(found, "")
        return None if value in _NONE else value

    def number(self, *path: str) -> int | None:
        """Return the first number whose path ends like this, without its unit; None for one that is not given."""
        match = _NUMBER.fullmatch(self.get(*path) or "")
        return int(match[1]) if match else None

    @property
    def model(self) -> str | None:
        name = self.get("productname")
        return (model_known(name) or name) if name else None

    @property
    def memory_mib(self) -> int | None:
        # Of a MIG slice, new drivers give the memory that its compute instances share.
        return self.number("fbmemoryusage", "total") or self.number("sharedfbmemoryusage", "total")

    @property
    def in_use(self) -> bool:
        """Return True if a listed process computes on it, or more memory is used than an idle GPU needs."""
        kinds = (value for at, value in self.values if "processes" in at[:-1] and at[-1] == "type")
        return any("C" in kind for kind in kinds) or (self.number("fbmemoryusage", "used") or 0) > IDLE_MIB

    @property
    def tells_use(self) -> bool:
        """Return True if its processes, or the memory that they use, are given."""
        listed = (
            "processes" in at[:-1] or (at[-1] == "processes" and value != "N/A") for at, value in self.values
        )
        return any(listed) or self.number("fbmemoryusage", "used") is not None

    @property
    def healthy(self) -> bool:
        return not any(smi_health.faults(self.get))

    @property
    def is_cut(self) -> bool:
        """Return True if it is in MIG mode, so that no job can have it whole."""
        return self.get("migmode", "current") == "Enabled" or bool(self.slices())

    @property
    def clique(self) -> str | None:
        """Return ClusterUUID and CliqueId of the fabric that it has joined, joined by a dot; None if it has not."""
        if self.get("fabric", "state") != "Completed" or self.get("fabric", "status") not in (
            None,
            "Success",
        ):
            return None
        return f"{self.get('fabric', 'clusteruuid') or ''}.{self.get('fabric', 'cliqueid') or ''}"

    def parts(self) -> list[str]:
        """Return its MIG slices in words."""
        return [
            mig.described(
                part.number("index") or 0,
                self.model or "",
                part.number("multiprocessorcount") or 0,
                part.memory_mib or 0,
                self.memory_mib or 0,
            )
            for part in self.slices()
        ]

    def slices(self) -> list[_Block]:
        """Return the values of each of its MIG slices."""
        found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
        for at, value in self.values:
            number = _slice_of(at)
            if number is not None:
                found.setdefault(number, []).append((at[at.index(number) + 1 :], value))
        return [_Block(self.bus_id, values) for values in found.values()]


def _slice_of(path: tuple[str, ...]) -> str | None:
    """Return the word of a path that names a MIG slice; None for what is said of the whole GPU."""
    return next((word for word in path if word.startswith("migdevice#")), None)


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi -q`, with or without -x."""
    return _LOG.search(text) is not None or _XML.search(text[:4096]) is not None


def parse(
    data: str | bytes,
    *,
    pcie_gb_per_s: float | None = None,
    name: str = "nvidia-smi -q",
    machine: str = "machine0",
) -> Topology:
    """Read the GPUs of a machine.

    pcie_gb_per_s: GB/s of every pair without NVLinks; None means that of the slowest GPU's PCIe link, if stated. Raise
    TopologyError if there is no GPU, or one appears twice.
    """
    text = decode.decoded(data, "the log")
    blocks, notes = _blocks(text)
    if pcie_gb_per_s is None:
        pcie_gb_per_s = min((speed for one in blocks if (speed := _pcie(one))), default=PCIE3_X16_GB_PER_S)
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    gpus, notes_of_uuids = gpu_line.with_distinct_uuids(tuple(_gpus(blocks, machine)))
    links = tuple(_links(blocks, pcie_gb_per_s))
    notes += [*notes_of_uuids, *_notes(blocks, links)]
    return Topology(gpus, links, default=pcie_gb_per_s, name=name, notes=tuple(notes))


def in_use(data: str | bytes) -> tuple[GpuUse, ...]:
    """Return the use of the GPUs by all logs; those cut into MIG slices are in use. TopologyError names the fault."""
    text = decode.decoded(data, "the log")
    logs = [text] if _XML.search(text[:4096]) else _LOG.split(text)[1:] or [text]
    return uses.of_samples([_uses(log) for log in logs])


def _uses(log: str) -> list[GpuUse]:
    """Return the use of the GPUs in one log; without numbers if some are not described, which may be between."""
    blocks, attached, _ = _counted(log)
    return [
        GpuUse(
            None,
            None if attached > len(blocks) else number,
            by_place=True,
            taken=one.in_use or one.is_cut,
            fault="; ".join(smi_health.faults(one.get)),
            is_told=one.tells_use,
            uuid=one.get("gpuuuid"),
            bus_id=one.bus_id,
        )
        for number, one in enumerate(blocks)
    ]


# ---- the machine -----------------------------------------------------------------------------------------------


def _gpus(blocks: Sequence[_Block], machine: str) -> Iterator[Gpu]:
    for number, block in enumerate(blocks):
        mib = block.memory_mib
        yield Gpu(
            number,
            f"GPU{number}",
            block.model,
            machine,
            memory_gb=mib * _MIB / 1e9 if mib else None,
            uuid=block.get("gpuuuid"),
            bus_id=block.bus_id,
            healthy=block.healthy and not block.is_cut,
            maker=Maker.NVIDIA.value,
        )


def _pcie(block: _Block) -> float | None:
    """Return nominal GB/s of a GPU's PCIe link at its highest rate; None if it is not given."""
    generation = block.number("pciegeneration", "max")
    width = block.number("linkwidth", "max")
    speed = SPEEDS.get(f"pcie{generation}")
    return rounded(speed.gb_per_s * width / 16) if speed and width else None


def _links(blocks: Sequence[_Block], pcie_gb_per_s: float) -> Iterator[tuple[int, int, Link]]:
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    for v, other in enumerate(blocks):
        for u, one in enumerate(blocks[:v]):
            speed = nvlink_of(one.model or "") if one.model == other.model else None
            if speed is not None and one.clique is not None and one.clique == other.clique:
                gb_per_s = rounded(speed.most_links * speed.gb_per_s)
                yield u, v, Link(LinkKind.NVSWITCH, speed.most_links, gb_per_s)
            else:
                yield u, v, unknown


def _notes(blocks: Sequence[_Block], links: Sequence[tuple[int, int, Link]]) -> Iterator[str]:
    if any(link.kind is LinkKind.UNKNOWN for _, _, link in links):
        yield "`nvidia-smi -q` does not state how the GPUs are connected; `nvidia-smi topo -m` does."
    cliques = dict.fromkeys(clique for block in blocks if (clique := block.clique) is not None)
    for clique in cliques:
        members = [f"GPU{number}" for number, block in enumerate(blocks) if block.clique == clique]
        yield f"In the NVLink domain {clique} (ClusterUUID and CliqueId): {', '.join(members)}."
    yield from _troubles(blocks)
    yield from _use_notes(blocks)


def _use_notes(blocks: Sequence[_Block]) -> Iterator[str]:
    """Yield notes on the GPUs that are cut into slices, and on those in use."""
    yield from (
        mig.note(f"GPU{number}", block.parts()) for number, block in enumerate(blocks) if block.is_cut
    )
    busy = [block.in_use and block.healthy and not block.is_cut for block in blocks]
    if names := [f"GPU{number}" for number, is_busy in enumerate(busy) if is_busy]:
        yield f"In use, and free here: {', '.join(names)}; --busy-from reads which they are from the same text."


def _troubles(blocks: Sequence[_Block]) -> Iterator[str]:
    """Yield notes on each GPU that is broken, is outside its fabric, or has lost lanes of its PCIe link."""
    for number, block in enumerate(blocks):
        state, status = block.get("fabric", "state"), block.get("fabric", "status")
        if state is not None and block.clique is None:
            yield f"GPU{number} has not joined its NVLink fabric: state {state}, status {status or 'not given'}."
        if faults := list(smi_health.faults(block.get)):
            yield f"GPU{number} is marked unhealthy: {'; '.join(faults)}."
        if doubts := list(smi_health.doubts(block.get)):
            yield f"GPU{number}: {'; '.join(doubts)}."
        most, lanes = block.number("linkwidth", "max"), block.number("linkwidth", "current")
        if most and lanes and lanes < most:  # an idle link keeps its width, unlike its speed
            yield f"GPU{number}: its PCIe link has {lanes} of {most} lanes."


# ---- texts -----------------------------------------------------------------------------------------------------


def _blocks(text: str) -> tuple[list[_Block], list[str]]:
    """Return the GPUs of the first log in `text`, and notes on what else there is."""
    blocks, attached, num_logs = _counted(text)
    notes = list[str]()
    if attached > len(blocks):
        notes.append(
            f"{attached} GPUs are attached, and {len(blocks)} described: the others are missing here."
        )
    if num_logs > 1:
        notes.append(f"The text has {num_logs} logs; the first is read.")
    return blocks, notes


def _counted(text: str) -> tuple[list[_Block], int, int]:
    """Return the GPUs of the first log in `text`, the number of attached ones, and the number of logs."""
    xml = _XML.search(text[:4096]) is not None
    logs = [] if xml else _LOG.split(text)[1:]
    values = _of_xml(text) if xml else _of_text(logs[0] if logs else text)
    blocks, attached = list[_Block](), 0
    for bus_id, pairs in values:
        if bus_id is None:
            attached = next(
                (int(value) for at, value in pairs if at[-1] == "attachedgpus" and value.isdigit()), 0
            )
        elif any(block.bus_id == bus_id for block in blocks):
            raise TopologyError(f"GPU {bus_id} appears twice; give each machine its own text")
        else:
            blocks.append(_Block(bus_id, pairs))
    if not blocks:
        raise TopologyError("the log describes no GPU; `nvidia-smi -L` says why")
    if len(blocks) > gpu_line.MAX_GPUS:
        raise TopologyError(f"more than {gpu_line.MAX_GPUS} GPUs")
    return blocks, attached, len(logs)


_Values = list[tuple[tuple[str, ...], str]]


def _of_text(text: str) -> Iterator[tuple[str | None, _Values]]:
    """Yield the values before the first GPU, with None, and those of each GPU, with its PCI address."""
    here: str | None = None
    values: _Values = []
    open_: list[tuple[int, str]] = []
    slices = 0
    for number, line in decode.numbered_lines(text):
        gpu_line.refuse_elided(number, line)
        plain = line.rstrip()
        if gpu := _GPU.fullmatch(plain.strip()):
            yield here, values
            here, values, open_, slices = gpu[1], [], [], 0
            continue
        match = _PAIR.fullmatch(plain) if plain.strip() else None
        if match is None:
            continue
        depth, word, value = len(match[1]), _word(match[2]), match[3]
        while open_ and open_[-1][0] >= depth:
            open_.pop()
        if word == "migdevice":
            word, slices = f"migdevice#{slices}", slices + 1
        path = (*(name for _, name in open_), word)
        if value is not None:
            values.append((path, value.strip()))
        open_.append((depth, word))
    yield here, values


def _of_xml(text: str) -> Iterator[tuple[str | None, _Values]]:
    """Yield the same as `_of_text`, from XML."""
    root = xml_tree.read(text, "the log")
    yield None, [((_WORDS_OF_XML.get(one.tag, _word(one.tag)),), one.text) for one in root.children]
    for gpu in root.children_of("gpu"):
        values: _Values = []
        _walk(gpu, (), values)
        yield gpu.get("id"), values


def _walk(element: Element, path: tuple[str, ...], values: _Values) -> None:
    """Add the values below an element, with their paths."""
    slices = 0
    for child in element.children:
        word = _WORDS_OF_XML.get(child.tag, _word(child.tag))
        if word == "migdevice":
            word, slices = f"migdevice#{slices}", slices + 1
        if child.children:
            _walk(child, (*path, word), values)
        else:
            values.append(((*path, word), child.text))


def _word(name: str) -> str:
    """Return a name in small letters and digits alone, in which text and XML agree for most names."""
    return _NOT_LETTERS.sub("", name.lower())
