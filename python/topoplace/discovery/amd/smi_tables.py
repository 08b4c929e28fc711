"""Reader of the tables that `rocm-smi --showtopo…` and `amd-smi topology` print.

Each table has a title, a header of GPUs (GPU0 or a PCI address) and a row per GPU. The connection of two GPUs follows
from the first of these that is present:
- the weight: 15 is one xGMI link, 15 more is another GPU on the way, 40 and more is PCIe and the sockets on the way;
- the bandwidth, as least-most in MB/s: of one lane and of all; "0-0" means no direct link;
- the link type, which is XGMI also for a path through other GPUs;
- the hops: 1 for all pairs of a hive, 2 through one CPU, 3 across sockets.
A link with disabled access does not count: the path is over PCIe.
A path over PCIe is across sockets if its weight, its hops or the NUMA nodes of its GPUs say so.
The JSON of both tools has the same tables; see `smi_json`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.amd import smi_json, smi_links
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.assemble import with_host_paths
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, LinkSpeed, xgmi_of
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

MAX_GPUS = 256
"""Limit on the GPUs of one machine; larger tables are refused."""

_SUBJECTS = {
    "Weight between two GPUs": "weight",
    "WEIGHT": "weight",
    "Link Type between two GPUs": "type",
    "LINK TYPE": "type",
    "Bandwidth": "bandwidth",
    "NUMA BW": "bandwidth",
    "Hops between two GPUs": "hops",
    "HOPS": "hops",
    "Link accessibility between two GPUs": "access",
    "ACCESS": "access",
    "LINK STATUS": "access",
}
_CELLS = {
    "weight": re.compile(r"[0-9]{1,6}|N/A"),
    "type": re.compile(r"XGMI|PCIE|SELF|0|N/A"),
    "bandwidth": re.compile(r"[0-9]{1,9}-[0-9]{1,9}|N/A"),
    "hops": re.compile(r"[0-9]{1,3}|N/A"),
    "access": re.compile(r"ENABLED|DISABLED|True|False|N/A"),
}
_WITHOUT_PLACE = {
    "cache coherency": re.compile(
        r'^CACHE COHER[AE]NCY TABLE:|"(?:coherent|cache_coher[ae]ncy)"\s*:', re.MULTILINE
    ),
    "atomics": re.compile(r'^ATOMICS TABLE:|"atomics"\s*:', re.MULTILINE),
    "DMA": re.compile(r'^DMA TABLE:|"dma"\s*:', re.MULTILINE),
    "directions": re.compile(r'^BI-DIRECTIONAL TABLE:|"bi_dir"\s*:', re.MULTILINE),
}
"""Tables of amd-smi on links that a topology does not store."""
_DEVICE = re.compile(r"GPU[0-9]{1,5}|[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-9a-fA-F]")
# "GPU[0]", and "GPU 0" in old versions.
_NUMA = re.compile(r"\s*GPU(?:\[| )([0-9]{1,5})\]?\s*:\s*\(Topology\) Numa (Node|Affinity):\s*(\S+)\s*")
_NUMA_START = re.compile(r"\s*GPU[\[ ].*\(Topology\)")
_LEGEND = re.compile(
    r"\s*(?:Legend:|[A-Z0-9,/* ]{1,30}=\s|WARNING: AMD GPU device\(s\) is/are in a low-power state)"
)
_COMMAND = re.compile(r"\b(?:rocm|amd)-smi\s.*$")
_NODE = re.compile(r"-?[0-9]{1,10}")
_MAX_NODE = 1 << 16
_SPARE = ("hops", "access")
"""The tables that only add to others; a text with such a table damaged is read without the table."""
_WORST_FIRST = ("DISABLED", "False", "N/A", "True", "ENABLED")
"""The cells of the table of access."""
_FACT = re.compile(r"\s*GPU(?:\[| )([0-9]{1,5})\]?\s*:\s*([A-Za-z() ]{1,40}?)\s*:\s*(\S(?:.*\S)?)\s*")
_FACTS = {
    **dict.fromkeys(("Card Series", "Card series", "Card Model", "Card model", "Device Name"), "model"),
    "VRAM Total Memory (B)": "memory",
    "Unique ID": "uuid",
    "PCI Bus": "bus",
}
"""The keys in `_Found.facts` of the facts that rocm-smi states for a GPU, by its words."""
_UNIQUE = re.compile(r"0x[0-9a-fA-F]{1,16}")


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `rocm-smi --showtopo…` or `amd-smi topology`."""
    if smi_json.recognised(text):
        return True
    lines = text.splitlines()[:5000]
    return any(_title(line) in _SUBJECTS or _NUMA.fullmatch(line) for line in lines)


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "rocm-smi",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from the output of `rocm-smi --showtopo…` or `amd-smi topology`.

    gpu_model: model, such as "MI250X", for the speed of an xGMI link if the text has no bandwidth; None if unknown.
    pcie_gb_per_s: GB/s assumed for every pair without a direct link. Each NUMA node counts as one socket. Raises
    TopologyError naming the line and the cell.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    speed = None if gpu_model is None else _known_model(gpu_model)
    text = decode.decoded(data)
    is_json = smi_json.recognised(text)
    found = _read_json(text) if is_json else _read(text)
    gpus = tuple(_gpus(found, gpu_model, machine))
    models = {gpu.model for gpu in gpus}
    speed = speed or min(filter(None, (xgmi_of(model or "") for model in models)), key=_lane, default=None)
    columns = found.columns()
    links, notes = smi_links.read(gpus, columns, speed, pcie_gb_per_s)
    notes += found.notes
    if unused := [what for what, pattern in _WITHOUT_PLACE.items() if pattern.search(text)]:
        notes.append(f"A topology has no place for {', '.join(unused)} of links: left out.")
    if not is_json:
        notes += _unread(text)
    assumed = smi_links.assumed(links, columns, speed)
    return with_host_paths(
        Topology(gpus, tuple(links), default=pcie_gb_per_s, name=name, notes=tuple(notes), assumed=assumed)
    )


def _lane(speed: LinkSpeed) -> float:
    return speed.gb_per_s


def _unread(text: str) -> Iterator[str]:
    """Yield a note on the lines from the first table on that are no part of a table or its legend."""
    lines = decode.numbered_lines(text)
    for _, line in lines:
        if _title(line) or _NUMA_START.match(line):
            break
    yield from unread.note(lines, _is_read, _COMMAND)


def _is_read(_: int, line: str) -> object:
    known = _title(line) or _NUMA_START.match(line) or _fact(line)
    return known or _LEGEND.match(line) or _DEVICE.match(line.lstrip())


def _gpus(found: _Found, model: str | None, machine: str) -> Iterator[Gpu]:
    names = found.devices()
    nodes = [found.numa.get(device) for device in names]
    number = {node: i for i, node in enumerate(sorted(node for node in {*nodes} if node is not None))}
    for i, (device, node) in enumerate(zip(names, nodes, strict=True)):
        facts = found.facts.get(device, {})
        memory, unique = facts.get("memory", ""), facts.get("uuid", "")
        yield Gpu(
            i,
            device,
            model or facts.get("model"),
            machine,
            socket=None if node is None or None in nodes else number[node],
            memory_gb=int(memory) / 1e9 if memory.isascii() and memory.isdigit() and int(memory) else None,
            uuid=f"GPU-{int(unique, 16):016x}" if _UNIQUE.fullmatch(unique) else None,
            bus_id=device if ":" in device else facts.get("bus"),
            numa_node=node,
            maker=Maker.AMD.value,
        )


def _known_model(gpu_model: str) -> LinkSpeed:
    speed = xgmi_of(_checks.text(gpu_model, "gpu_model", TopologyError))
    if speed is None:
        raise TopologyError(
            f"gpu_model = {_checks.shown(gpu_model)} is not an AMD Instinct such as MI100 or MI250X"
        )
    return speed


# ---- tables ----------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Table:
    """One table of the tool's output: a matrix with the same GPUs in its rows and columns."""

    subject: str
    where: str
    """The position of its header, for messages."""
    devices: list[str]
    rows: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    places: dict[str, str] = field(default_factory=dict[str, str])
    """The position of each row, for messages."""

    def add(self, place: str, device: str, cells: list[str]) -> None:
        """Add the row at `place`, such as "line 7"; refuse one that does not fit the header."""
        where = f"{place}: row {device}"
        if device in self.rows:
            raise TopologyError(f"{where} appears twice, first in {self.places[device]}")
        if device not in self.devices:
            raise TopologyError(f"{where} is not a column of the header in {self.where}")
        if len(cells) != len(self.devices):
            raise TopologyError(f"{where} has {len(cells)} columns, the header has {len(self.devices)}")
        known = _CELLS[self.subject]
        for column, cell in zip(self.devices, cells, strict=True):
            if not known.fullmatch(cell):
                raise TopologyError(
                    f"{where} has an unknown {self.subject} {_checks.shown(cell)} in column {column}"
                )
        self.rows[device], self.places[device] = [sys.intern(cell) for cell in cells], place

    def pairs(self) -> list[str]:
        """Return the cell of every pair of GPUs, in the order of `combinations(devices, 2)`.

        A pair has access if both directions have it. TopologyError if a row is missing, or another table is not
        symmetric.
        """
        for device in self.devices:
            if device not in self.rows:
                raise TopologyError(f"row {device} is missing in the {self.subject} table of {self.where}")
        matrix = [list(self.rows[device]) for device in self.devices]
        for i, j in combinations(range(len(matrix)), 2):
            u, v = self.devices[i], self.devices[j]
            if matrix[i][j] in ("0", "SELF"):
                raise TopologyError(f"{self.places[u]}: {self.subject} of {u} to {v} is {matrix[i][j]}")
            if self.subject == "access":
                matrix[i][j] = min(matrix[i][j], matrix[j][i], key=_WORST_FIRST.index)
            elif matrix[i][j] != matrix[j][i]:
                raise TopologyError(
                    f"{self.places[v]}: {self.subject} of {v} to {u} is {matrix[j][i]}, "
                    f"but {self.places[u]}: {u} to {v} is {matrix[i][j]}"
                )
        return [cell for i, row in enumerate(matrix) for cell in row[i + 1 :]]


def _title(line: str) -> str:
    """Return the title of a table in a line such as `=== Bandwidth ===` or `WEIGHT TABLE:`, or ""."""
    text = line.strip()
    if text.startswith("=") and text.endswith("="):
        return text.strip("=").strip()
    return text.removesuffix(" TABLE:") if text.endswith(" TABLE:") else ""


@dataclass(slots=True)
class _Found:
    """What a text of the tools contains."""

    tables: dict[str, _Table] = field(default_factory=dict[str, _Table])
    """By subject, such as "weight"."""
    numa: dict[str, int | None] = field(default_factory=dict[str, "int | None"])
    """The NUMA node of each GPU, by the GPU's name."""
    facts: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    """What is known of a GPU: model, memory in bytes, unique number, PCI address; by the GPU's name."""
    broken: dict[str, str] = field(default_factory=dict[str, str])
    """Why a table is left out, by subject."""

    @property
    def notes(self) -> list[str]:
        """Return notes on the tables that are left out."""
        return [f"The table of {subject} is left out: {why}." for subject, why in self.broken.items()]

    def devices(self) -> list[str]:
        """Return the GPUs in the order of the tables; TopologyError if there are none."""
        if not self.tables and not self.numa and self.broken:
            raise TopologyError(next(iter(self.broken.values())))
        needed = {subject: table for subject, table in self.tables.items() if subject not in _SPARE}
        names = _devices(needed or self.tables, self.numa)
        for subject, table in self.tables.items():
            with self.spared(subject):
                _check_devices(table, names)
        return names

    def columns(self) -> dict[str, list[str]]:
        """Return the cells of each table by pair of GPUs; a damaged table that others do not need is left out."""
        columns: dict[str, list[str]] = {}
        for subject, table in self.tables.items():
            if subject not in self.broken:
                with self.spared(subject):
                    columns[subject] = table.pairs()
        return columns

    @contextmanager
    def spared(self, subject: str) -> Generator[None]:
        """Leave the table `subject` out if reading it fails, unless the links need it."""
        try:
            yield
        except TopologyError as error:
            if subject not in _SPARE:
                raise
            self.broken.setdefault(subject, str(error))


def _read(text: str) -> _Found:
    """Return what the lines of `text` contain."""
    found = _Found()
    nodes: dict[tuple[str, str], int] = {}
    subject = ""
    for number, line in decode.numbered_lines(text):
        if not line:
            continue
        if title := _title(line):
            subject = _SUBJECTS.get(title, "")
            if subject in found.tables:
                where = found.tables[subject].where
                raise TopologyError(f"line {number}: a second {subject} table, first in {where}")
        elif _NUMA_START.match(line):
            _add_node(nodes, number, line)
        elif fact := _fact(line):
            found.facts.setdefault(fact[0], {}).setdefault(fact[1], fact[2])
        elif subject and subject not in found.broken:
            with found.spared(subject):
                _add_line(found.tables, subject, number, line.split(None, MAX_GPUS + 1))
    for subject in found.broken:
        found.tables.pop(subject, None)
    found.numa = _nodes_by_gpu(nodes)
    return found


def _fact(line: str) -> tuple[str, str, str] | None:
    """Return (GPU, key in `_FACTS`, value) of a line such as `GPU[0] : Card Series: AMD Instinct MI210`, or None."""
    match = _FACT.fullmatch(line)
    key = _FACTS.get(match[2]) if match else None
    return (f"GPU{int(match[1])}", key, match[3]) if match and key and _is_told(key, match[3]) else None


def _is_told(key: str, value: str) -> bool:
    return value not in ("", "N/A") and not (key == "model" and value.startswith("0x"))


def _read_json(text: str) -> _Found:
    """Return what a JSON text contains; the GPUs of a table are those with a row."""
    found = _Found()
    cells, numa, facts = smi_json.read(text)
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for subject, row, column, cell in cells:
        rows.setdefault(subject, {}).setdefault(row, {})[column] = cell
    for subject, listed in rows.items():
        with found.spared(subject):
            found.tables[subject] = _table_of_json(subject, listed)
    nodes: dict[tuple[str, str], int] = {}
    for gpu, word, number in numa:
        if not _NODE.fullmatch(number):
            raise TopologyError(f"{gpu}: NUMA {word.lower()} {_checks.shown(number)} is not a number")
        nodes[gpu, word] = int(number)
    found.numa = _nodes_by_gpu(nodes)
    for gpu, name, value in facts:
        key = _FACTS.get(name)
        if key and _is_told(key, value):
            found.facts.setdefault(gpu, {}).setdefault(key, value)
    return found


def _table_of_json(subject: str, rows: Mapping[str, Mapping[str, str]]) -> _Table:
    where = f"the JSON, {subject}"
    table = _Table(subject, where, _checked_devices(list(rows), where))
    for device, columns in rows.items():
        if columns.keys() != rows.keys():
            raise TopologyError(f"{where}: row {device} is of {len(columns)} GPUs, and {len(rows)} have rows")
        table.add(where, device, [columns[other] for other in rows])
    return table


def _nodes_by_gpu(nodes: Mapping[tuple[str, str], int]) -> dict[str, int | None]:
    gpus = dict.fromkeys(gpu for gpu, _ in nodes)
    return {gpu: _node(nodes.get((gpu, "Node")), nodes.get((gpu, "Affinity"))) for gpu in gpus}


def _add_line(tables: dict[str, _Table], subject: str, number: int, words: list[str]) -> None:
    if not words or not _DEVICE.fullmatch(words[0]):
        return  # a remark of the tool
    if subject in tables:
        tables[subject].add(f"line {number}", words[0], words[1:])
        return
    _checked_devices(words, f"line {number}")
    if len(set(words)) < len(words):
        raise TopologyError(f"line {number}: a header of {len(words)} columns, {len(set(words))} different")
    tables[subject] = _Table(subject, f"line {number}", words)


def _checked_devices(words: list[str], where: str) -> list[str]:
    if len(words) > MAX_GPUS:
        raise TopologyError(f"{where}: a header of more than {MAX_GPUS} columns")
    for word in words:
        if not _DEVICE.fullmatch(word):
            raise TopologyError(f"{where}: {_checks.shown(word)} in the header is not a GPU")
    return words


def _add_node(nodes: dict[tuple[str, str], int], number: int, line: str) -> None:
    match = _NUMA.fullmatch(line)
    if not match or not _NODE.fullmatch(match[3]):
        raise TopologyError(f"line {number}: {_checks.shown(line.strip())} is not a NUMA node of a GPU")
    key = f"GPU{int(match[1])}", match[2]
    if key in nodes:
        raise TopologyError(f"line {number}: the NUMA {match[2].lower()} of {key[0]} appears twice")
    nodes[key] = int(match[3])


def _node(node: int | None, affinity: int | None) -> int | None:
    """Return `node` if it is known, else `affinity`; the tool writes -1, also as an unsigned number, for unknown."""
    return next((value for value in (node, affinity) if value is not None and 0 <= value < _MAX_NODE), None)


def _check_devices(table: _Table, names: Sequence[str]) -> None:
    if table.devices != names:
        raise TopologyError(f"{table.where}: the {table.subject} table has other GPUs than the first table")


def _devices(tables: Mapping[str, _Table], numa: Mapping[str, int | None]) -> list[str]:
    """Return the GPUs in the order of the tables, which must all have the same GPUs."""
    first = next(iter(tables.values()), None)
    names = sorted(numa, key=lambda gpu: (len(gpu), gpu)) if first is None else first.devices
    if len(names) > MAX_GPUS:
        raise TopologyError(f"NUMA nodes of {len(names)} GPUs, more than {MAX_GPUS}")
    if not names:
        raise TopologyError(
            "no GPU: the text has neither a table of weights, types, bandwidths or hops nor NUMA nodes"
        )
    for table in tables.values():
        _check_devices(table, names)
    for gpu in numa:
        if gpu not in names:
            raise TopologyError(f"{gpu} has a NUMA node, but the GPUs are {names[0]} to {names[-1]}")
    return names
