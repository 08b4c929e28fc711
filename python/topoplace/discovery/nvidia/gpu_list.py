"""Reader of the output of `nvidia-smi -L`: the GPUs of a machine and their MIG slices.

A line "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b...)" names a GPU. A line "  MIG 3g.20gb     Device  0: (UUID:
MIG-c6d4...)" below it names one of its slices. 3g means three of the compute slices of a whole GPU, 20gb means 20 GB of
its memory. "1c.3g.20gb" is a part of such a slice with one of its three compute slices. A GPU with slices does not
appear as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from topoplace import _checks
from topoplace.discovery.nvidia import gpu_line, mig
from topoplace.discovery.nvidia.gpu_line import NamedGpu
from topoplace.discovery.nvidia.mig import slices_of
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind, model_known
from topoplace.topology.topology import Topology

_MIG = re.compile(
    r"\s*MIG (?:([1-7])c\.)?([1-7])g\.([0-9]{1,4})gb([+-][a-z0-9.+]{1,20})?\s+Device\s+([0-9]{1,3}):"
    r"(?: \(UUID: ([^()\s]{1,120})\))?\s*"
)
_MIG_WORD = re.compile(r"\s*MIG\b")
_COMMAND = re.compile(r"\bnvidia-smi\s+(?:-L|--list-gpus)[`:]*\s*$")


@dataclass(slots=True)
class ListedGpu:
    """A GPU and its MIG slices."""

    gpu: NamedGpu
    slices: list[ListedSlice] = field(default_factory=list["ListedSlice"])

    @property
    def has_devices(self) -> bool:
        """Return True if the GPU has slices, all with the UUIDs by which processes use them."""
        return bool(self.slices) and all(part.uuid for part in self.slices)


@dataclass(frozen=True, slots=True)
class ListedSlice:
    """One MIG slice of a GPU."""

    number: int
    compute: int
    """Number of its compute slices."""
    memory_gb: int
    uuid: str | None
    line: int


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi -L`.

    Such a text has a GPU in the first three lines that are not blank, and no line about NVLinks.
    """
    lines = [line for _, line in decode.numbered_lines(text[:65536]) if line.strip()]
    if any(re.search(r"^\s*Link\b|\bNVML:|\bNVLink$", line, re.IGNORECASE) for line in lines):
        return False
    return any(gpu_line.named_gpu(0, line) for line in lines[:3])


def read(data: str | bytes) -> tuple[ListedGpu, ...]:
    """Return the GPUs in `data` with their slices, in the order of the text. Raise TopologyError naming the line."""
    found: dict[int, ListedGpu] = {}
    here: ListedGpu | None = None
    text = decode.decoded(data, "the list of GPUs")
    for number, line in decode.numbered_lines(text):
        gpu_line.refuse_elided(number, line)
        gpu = gpu_line.named_gpu(number, line)
        if gpu is not None:
            if gpu.number in found:
                first = found[gpu.number].gpu.line
                raise TopologyError(
                    f"line {number}: {gpu.name} appears twice, first in line {first}; "
                    "give each machine its own text"
                )
            here = found[gpu.number] = ListedGpu(gpu)
        elif _MIG_WORD.match(line):
            _add_slice(number, line, here)
        else:
            gpu_line.refuse_cut_off(number, line)
        if len(found) > gpu_line.MAX_GPUS:
            raise TopologyError(f"line {number}: more than {gpu_line.MAX_GPUS} GPUs")
    if not found:
        raise TopologyError(
            'no GPU: the text has no line like "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5d5b...)"'
        )
    _refuse_cut_uuid(text, [entry.gpu for entry in found.values()])
    return tuple(found.values())


def _refuse_cut_uuid(text: str, gpus: Sequence[NamedGpu]) -> None:
    """Raise TopologyError if the text ends in the line of a GPU without UUID, and all other GPUs have one."""
    *others, last = gpus
    ends_here = text.count("\n") + 1 == last.line
    if ends_here and last.uuid is None and others and all(gpu.uuid for gpu in others):
        raise TopologyError(
            f"line {last.line}: the text ends before the UUID of {last.name}; give the complete text"
        )


def parse(
    data: str | bytes,
    *,
    slices_per_gpu: int | None = None,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "nvidia-smi -L",
    machine: str = "machine0",
) -> Topology:
    """Read the GPUs and MIG slices of a machine; a slice is named like GPU0/MIG1 and has its share of the compute.

    slices_per_gpu: the number of compute slices of a GPU whose model is unknown (7 for an A100 or H100, 4 for an A30).
    pcie_gb_per_s: GB/s assumed for every pair, as the text describes no links. Two whole GPUs have a link of kind
    `LinkKind.UNKNOWN`. A slice has only paths through the host, because no other GPU can reach it directly.
    Raise TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    if slices_per_gpu is not None:
        slices_per_gpu = _checks.integer(slices_per_gpu, "slices_per_gpu", TopologyError, low=1, high=64)
    listed = read(data)
    gpus, notes = gpu_line.with_distinct_uuids(tuple(_gpus(listed, slices_per_gpu, machine)))
    whole = [gpu.index for gpu in gpus if gpu.parent is None]
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = tuple((u, v, unknown) for v in whole for u in whole if u < v)
    if len(gpus) > 1:
        notes = (f"How the GPUs are connected is not given: {pcie_gb_per_s:g} GB/s is assumed.", *notes)
    notes = (*notes, *_notes(data, listed))
    return Topology(gpus, links, default=pcie_gb_per_s, name=name, notes=notes)


def _notes(data: str | bytes, listed: Sequence[ListedGpu]) -> Iterator[str]:
    """Yield notes on UUIDs that only some GPUs have, and on lines that are not of the list."""
    without = [entry.gpu.name for entry in listed if entry.gpu.uuid is None]
    if 0 < len(without) < len(listed):
        yield f"No UUID is given for {', '.join(without)}."
    read_lines = {
        line for entry in listed for line in (entry.gpu.line, *(part.line for part in entry.slices))
    }
    yield from _slice_notes(listed)
    lines = list(decode.numbered_lines(decode.decoded(data)))
    yield from filter(None, (gpu_line.lost_gpu(line) for _, line in lines))
    yield from gpu_line.missing_gpus(entry.gpu.name for entry in listed)
    yield from unread.note(
        lines, lambda number, line: number in read_lines or gpu_line.lost_gpu(line), _COMMAND
    )


def _slice_notes(listed: Sequence[ListedGpu]) -> Iterator[str]:
    """Yield notes on the GPUs that are cut into slices."""
    if cut := [entry.gpu.name for entry in listed if entry.has_devices]:
        yield f"Cut into MIG slices, which are devices of their own here: {', '.join(cut)}."
    for entry in (entry for entry in listed if entry.slices and not entry.has_devices):
        parts = [f"MIG{part.number} ({part.compute}g, {part.memory_gb} GB)" for part in entry.slices]
        yield mig.note(entry.gpu.name, parts)


def _add_slice(number: int, line: str, here: ListedGpu | None) -> None:
    match = _MIG.fullmatch(line)
    if match is None:
        raise TopologyError(
            f"line {number}: {_checks.shown(line.strip())} is not a slice; give the complete line"
        )
    if here is None:
        raise TopologyError(f"line {number}: a slice without a GPU above it")
    share, of, memory_gb, _, device, uuid = match.groups()
    if share is not None and int(share) > int(of):
        raise TopologyError(f"line {number}: {share}c of {of}g is more than there is")
    if any(other.number == int(device) for other in here.slices):
        raise TopologyError(f"line {number}: slice {device} of {here.gpu.name} appears twice")
    here.slices.append(ListedSlice(int(device), int(share or of), int(memory_gb), uuid, number))


def _gpus(listed: Sequence[ListedGpu], slices_per_gpu: int | None, machine: str) -> Iterator[Gpu]:
    index = 0
    for entry in listed:
        gpu = entry.gpu
        model = model_known(gpu.model) or gpu.model
        if not entry.has_devices:
            yield Gpu(index, gpu.name, model, machine, uuid=gpu.uuid, healthy=not entry.slices)
            index += 1
            continue
        parts = _parts(entry, slices_per_gpu)
        for part in entry.slices:
            yield Gpu(
                index,
                f"{gpu.name}/MIG{part.number}",
                model,
                machine,
                memory_gb=float(part.memory_gb) if part.memory_gb else None,
                uuid=part.uuid,
                parent=gpu.name,
                fraction=part.compute / parts,
            )
            index += 1


def _parts(entry: ListedGpu, slices_per_gpu: int | None) -> int:
    """Return how many compute slices the whole GPU has.

    slices_per_gpu: this number, if given. TopologyError if it is unknown for the model, or the listed MIG slices add up
    to more.
    """
    model = entry.gpu.model
    parts = slices_per_gpu or slices_of(model)
    if parts is None:
        raise TopologyError(
            f"line {entry.gpu.line}: the number of slices of a {_checks.shown(model)} is unknown; "
            "give slices_per_gpu="
        )
    used = sum(part.compute for part in entry.slices)
    if used > parts:
        raise TopologyError(f"line {entry.gpu.line}: {entry.gpu.name} has {used} slices of {parts}")
    return parts
