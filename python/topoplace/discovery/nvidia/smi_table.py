"""Reader of the table that `nvidia-smi` prints: the GPUs of a machine, and which of them are in use.

A GPU is in use if the list of processes has one that computes on it, or if more of its memory is used than an idle GPU
needs: processes in other containers are not listed. Graphics alone, such as a desktop, does not count. A GPU is
unhealthy if it is lost, if several of its fields are ERR!, or if its compute mode is Prohibited. A GPU in MIG mode is
also unhealthy, as no job can get it whole; its slices are noted, as the table lacks the UUIDs by which processes use
them. The table does not state how the GPUs are connected: their links are of kind UNKNOWN.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from topoplace import _checks
from topoplace.discovery import in_use as uses
from topoplace.discovery.in_use import GpuUse
from topoplace.discovery.nvidia import gpu_line, mig, smi_health
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import MISSING_GPU, Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind, model_known
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

_RECOGNISED = re.compile(r"^[ \t]*\|[ \t]*NVIDIA-SMI\b", re.MULTILINE)
_GPU = re.compile(
    r"\|\s*([0-9]{1,4})\s+(\S.{0,80}?)\s+(?:On|Off|N/A|TCC|WDDM|MCDM)?\s*\|\s*([0-9A-Fa-f]{4,8}:[0-9A-Fa-f:.]{6,8})\b.*\|.*"
)
_MEMORY = re.compile(r"\|[^|]*\|\s*([0-9]{1,9})MiB\s*/\s*([0-9]{1,9})MiB\s*\|.*")
_SLICE = re.compile(
    r"\|\s*([0-9]{1,4})\s+[0-9]{1,3}\s+[0-9]{1,3}\s+([0-9]{1,3})\s*\|\s*[0-9]{1,9}MiB\s*/\s*([0-9]{1,9})MiB\s*"
    r"\|\s*([0-9]{1,4})\b.*"
)
_PROCESS = re.compile(
    r"\|\s*([0-9]{1,4})\s+(?:(?:N/A|[0-9]+)\s+(?:N/A|[0-9]+)\s+)?[0-9]{1,10}\s+(C|G|C\+G|M\+C|M|G\+C)\s+\S.*"
)
_BORDER = re.compile(r"[|+=].*|[A-Z][a-z]{2} [A-Z][a-z]{2} .*")
_COMMAND = re.compile(r"\bnvidia-smi[`:]*\s*$")
_MIG_MODE = re.compile(r"\|\s*Enabled\*?\s*\|$")
"""The cell of MIG mode; the star marks a mode that starts with the next reset."""
_ECC = re.compile(r".*\|\s*([0-9]{1,12})\s*\|")
"""The first line of a GPU, with the number of its volatile uncorrectable ECC errors."""
_LINE = re.compile(r"^[ \t]*([|+][^\n]*)$", re.MULTILINE)
"""A line of the table."""
_MODE = re.compile(r"\b(E\. Process|E\. Thread|Prohibited)\s*\|$")
_PROCESSES = re.compile(r"^[ \t]*\|[ \t]*(?:Compute processes|Processes):", re.MULTILINE)
_NO_HANDLE = re.compile(r"Unable to determine the device handle for GPU")
_SEVERAL = 2
"""Least number of fields with ERR! that means more than a broken fan or sensor."""
_ELLIPSIS = re.compile(r"\.\.+$")
IDLE_MIB = 1024
"""MiB that the driver and its tools may use on a GPU without a job."""
_MIB = 1024**2
_LONGEST = 160


@dataclass(slots=True)
class _Row:
    """One GPU of the table."""

    number: int
    name: str
    bus_id: str
    used_mib: int | None = None
    total_mib: int | None = None
    computes: bool = False
    """True if a process that computes on it is listed."""
    slices: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Memory in MiB and number of multiprocessors of each MIG slice, by its number."""
    in_mig_mode: bool = False
    ecc_errors: int = 0
    """Uncorrectable ones since the driver was loaded."""
    errors: int = 0
    """The number of fields that are ERR!."""
    lost: bool = False
    mode: str = ""
    """Its compute mode if that is not the default."""

    def add(self, line: str) -> None:
        """Take from one of its lines what it tells about its health."""
        self.errors += line.count("ERR!")
        self.lost = self.lost or "GPU is lost" in line
        self.in_mig_mode = self.in_mig_mode or _MIG_MODE.search(line) is not None
        if mode := _MODE.search(line):
            self.mode = mode[1]

    @property
    def healthy(self) -> bool:
        return not (self.lost or self.errors >= _SEVERAL or self.mode == "Prohibited")

    def troubles(self) -> str:
        """Return what is wrong with it; "" for nothing."""
        said = (
            "the driver has lost it" if self.lost else "",
            f"fields that are ERR!: {self.errors}" if self.errors else "",
            smi_health.ecc_errors(self.ecc_errors),
        )
        return "; ".join(filter(None, (*said, f"its compute mode is {self.mode}" if self.mode else "")))

    @property
    def is_cut(self) -> bool:
        """Return True if no job can have it whole."""
        return self.in_mig_mode or bool(self.slices)

    @property
    def in_use(self) -> bool:
        return self.computes or (self.used_mib or 0) > IDLE_MIB

    def parts(self) -> list[str]:
        """Return its MIG slices in words."""
        return [
            mig.described(number, self.model, multiprocessors, mib, self.total_mib or 0)
            for number, (mib, multiprocessors) in sorted(self.slices.items())
        ]

    @property
    def model(self) -> str:
        """Return its model; nvidia-smi cuts long names."""
        plain = _ELLIPSIS.sub("", self.name).strip()
        return model_known(plain) or plain


def recognised(text: str) -> bool:
    """Return True if `text` has the first line of the table that `nvidia-smi` prints."""
    return _RECOGNISED.search(text) is not None


def parse(
    data: str | bytes,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "nvidia-smi",
    machine: str = "machine0",
) -> Topology:
    """Read the GPUs of a machine. pcie_gb_per_s: GB/s assumed for every pair.

    Raise TopologyError naming the line of a GPU that appears twice, or if there is no GPU.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    text = decode.decoded(data, "the table")
    rows = _rows(text)
    gpus = tuple(_gpus(rows, machine))
    unknown = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = tuple((u, v, unknown) for v in range(len(gpus)) for u in range(v))
    return Topology(gpus, links, default=pcie_gb_per_s, name=name, notes=tuple(_notes(text, rows)))


def in_use(data: str | bytes) -> tuple[GpuUse, ...]:
    """Return the use of the GPUs by all tables; those cut into MIG slices are in use. TopologyError names the fault."""
    text = decode.decoded(data, "the table")
    starts = [0, *(match.start() for match in _RECOGNISED.finditer(text))][2:]
    tables = [text[start:end] for start, end in pairwise([0, *starts, len(text)])]
    return uses.of_samples([_uses(table) for table in tables])


def _uses(table: str) -> list[GpuUse]:
    lists_processes = _PROCESSES.search(table) is not None
    tells_memory = _is_whole(table)
    return [_use(row, lists_processes, tells_memory) for row in _rows(table)]


def _is_whole(table: str) -> bool:
    """Return True if the last line of a table is its lower border, below which nothing is missing."""
    lines = _LINE.findall(table)
    return bool(lines) and lines[-1].startswith("+")


def _use(row: _Row, lists_processes: bool, tells_memory: bool) -> GpuUse:
    return GpuUse(
        None,
        row.number,
        taken=row.in_use or row.is_cut,
        fault="" if row.healthy else row.troubles(),
        is_told=lists_processes or row.in_use or (tells_memory and row.used_mib is not None),
        bus_id=row.bus_id,
    )


def _notes(text: str, rows: Sequence[_Row]) -> Iterator[str]:
    yield from _use_notes(rows)
    if not _is_whole(_first_table(text)):
        yield (
            "The table has no lower border, so its end is missing: other GPUs and the processes may be, and those "
            "free here may be in use."
        )
    for line in _lost_lines(text):
        yield f"{MISSING_GPU}{_checks.shown(line, _LONGEST)}."
    if (tables := len(_RECOGNISED.findall(text))) > 1:
        yield f"The text has {tables} tables; the first is read."
    lines = decode.numbered_lines(_first_table(text))
    yield from unread.note(
        lines, lambda _, line: _BORDER.match(line.strip()) or _NO_HANDLE.match(line.strip()), _COMMAND
    )


def _use_notes(rows: Sequence[_Row]) -> Iterator[str]:
    """Yield what the rows tell of GPUs that are in use, cut into slices, or ill."""
    yield "`nvidia-smi` does not state how the GPUs are connected; `nvidia-smi topo -m` does."
    if busy := [f"GPU{row.number}" for row in rows if row.in_use and row.healthy and not row.is_cut]:
        yield f"In use, and free here: {', '.join(busy)}; --busy-from reads which they are from the same text."
    if used := [f"GPU{row.number} {row.used_mib}" for row in rows if row.used_mib]:
        yield f"MiB of memory in use: {', '.join(used)}."
    yield from (mig.note(f"GPU{row.number}", row.parts()) for row in rows if row.is_cut)
    for row in rows:
        if troubles := row.troubles():
            yield f"GPU{row.number}{'' if row.healthy else ' is marked unhealthy'}: {troubles}."


def _lost_lines(text: str) -> Iterator[str]:
    """Yield the lines that name a GPU for which the driver has no handle."""
    for _, line in decode.numbered_lines(_first_table(text)):
        if _NO_HANDLE.match(line.strip()):
            yield line.strip()


def _gpus(rows: Sequence[_Row], machine: str) -> Iterator[Gpu]:
    for index, row in enumerate(rows):
        yield Gpu(
            index,
            f"GPU{row.number}",
            row.model,
            machine,
            memory_gb=row.total_mib * _MIB / 1e9 if row.total_mib else None,
            bus_id=row.bus_id,
            healthy=row.healthy and not row.is_cut,
            maker=Maker.NVIDIA.value,
        )


def _first_table(text: str) -> str:
    """Return the text up to the second table."""
    tables = [match.start() for match in _RECOGNISED.finditer(text)]
    return text[: tables[1]] if len(tables) > 1 else text


def _rows(text: str) -> list[_Row]:
    """Return the GPUs of the first table in `text`, with what the lines below each say of it."""
    rows: dict[int, _Row] = {}
    here: _Row | None = None
    inside = False
    for number, line in decode.numbered_lines(_first_table(text)):
        plain = line.strip()
        gpu_line.refuse_elided(number, line)
        if gpu := _GPU.fullmatch(plain):
            if int(gpu[1]) in rows:
                raise TopologyError(f"line {number}: GPU {gpu[1]} appears twice")
            ecc = _ECC.fullmatch(plain)
            here = rows[int(gpu[1])] = _Row(int(gpu[1]), gpu[2], gpu[3], ecc_errors=int(ecc[1]) if ecc else 0)
            inside = True
        elif (part := _SLICE.fullmatch(plain)) and (row := rows.get(int(part[1]))):
            row.slices[int(part[2])] = int(part[3]), int(part[4])
        elif (process := _PROCESS.fullmatch(plain)) and (row := rows.get(int(process[1]))):
            row.computes |= "C" in process[2]
        elif (memory := _MEMORY.fullmatch(plain)) and here is not None and not here.total_mib:
            here.used_mib, here.total_mib = int(memory[1]), int(memory[2])
        inside = inside and plain.startswith("|")
        if here is not None and inside:
            here.add(plain)
    return _counted(list(rows.values()))


def _counted(rows: list[_Row]) -> list[_Row]:
    if not rows:
        raise TopologyError("the table has no GPU; `nvidia-smi -L` says why")
    if len(rows) > gpu_line.MAX_GPUS:
        raise TopologyError(f"more than {gpu_line.MAX_GPUS} GPUs")
    return rows
