"""Reader of the tables that `rocm-smi --showtopo…` and `amd-smi topology` print.

Each table has a title, a header of GPUs (GPU0 or a PCI address) and a row per GPU. The connection of two GPUs follows
from the first of these that is present:
- the weight: 15 is one xGMI link, 30 is xGMI through another GPU, more is PCIe and the sockets on the way;
- the bandwidth, as least-most in MB/s: of one lane and of all; "0-0" means no direct link;
- the link type, which is XGMI for a way through other GPUs too.
Hops are not used, being 1 for all pairs of a hive. NUMA lines alone imply no link.
The JSON of both tools has the same tables; see `smi_json`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.amd import models, smi_json
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link import Link, LinkKind
from topoplace.topology.links.link_catalogue import PCIE3_X16_GB_PER_S, LinkSpeed, xgmi_of
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
    "Link accessibility between two GPUs": "access",
    "ACCESS": "access",
}
_CELLS = {
    "weight": re.compile(r"[0-9]{1,6}|N/A"),
    "type": re.compile(r"XGMI|PCIE|SELF|0|N/A"),
    "bandwidth": re.compile(r"[0-9]{1,9}-[0-9]{1,9}|N/A"),
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
"""What amd-smi prints of links and a topology does not hold."""
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

    gpu_model: such as "MI250X"; it sets the speed of an xGMI link if the text has no bandwidth.
    pcie_gb_per_s: GB/s assumed for every pair without a direct link. Each NUMA node counts as one socket.
    Raises TopologyError naming the line and the cell.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    speed = None if gpu_model is None else _known_model(gpu_model)
    text = decode.decoded(data)
    tables, numa = _read_json(text) if smi_json.recognised(text) else _read(text)
    names = _devices(tables, numa)
    gpus = tuple(_gpus(names, [numa.get(device) for device in names], gpu_model, machine))
    links, notes, told = _links(names, tables, speed, pcie_gb_per_s)
    assumed = () if told else (LinkKind.XGMI,)
    if unused := [what for what, pattern in _WITHOUT_PLACE.items() if pattern.search(text)]:
        notes.append(f"A topology has no place for {', '.join(unused)} of links: left out.")
    if not smi_json.recognised(text):
        notes += _unread(text)
    return Topology(gpus, tuple(links), default=pcie_gb_per_s, name=name, notes=tuple(notes), assumed=assumed)


def _unread(text: str) -> Iterator[str]:
    """Yield a note on the lines from the first table on that are no part of a table or its legend."""
    lines = decode.numbered_lines(text)
    for _, line in lines:
        if _title(line) or _NUMA_START.match(line):
            break
    yield from unread.note(lines, _is_read, _COMMAND)


def _is_read(_: int, line: str) -> object:
    return _title(line) or _NUMA_START.match(line) or _LEGEND.match(line) or _DEVICE.match(line.lstrip())


def _gpus(
    names: Sequence[str], nodes: Sequence[int | None], model: str | None, machine: str
) -> Iterator[Gpu]:
    number = {node: i for i, node in enumerate(sorted(node for node in {*nodes} if node is not None))}
    for i, (device, node) in enumerate(zip(names, nodes, strict=True)):
        socket = None if node is None or None in nodes else number[node]
        address = device if ":" in device else None
        yield Gpu(i, device, model, machine, socket, bus_id=address, numa_node=node)


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

        TopologyError if a row is missing or the table is not symmetric.
        """
        for device in self.devices:
            if device not in self.rows:
                raise TopologyError(f"row {device} is missing in the {self.subject} table of {self.where}")
        matrix = [self.rows[device] for device in self.devices]
        for i, j in combinations(range(len(matrix)), 2):
            u, v = self.devices[i], self.devices[j]
            if matrix[i][j] in ("0", "SELF"):
                raise TopologyError(f"{self.places[u]}: {self.subject} of {u} to {v} is {matrix[i][j]}")
            if matrix[i][j] != matrix[j][i]:
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


def _read(text: str) -> tuple[dict[str, _Table], dict[str, int | None]]:
    """Return the tables in `text` by subject, such as "weight", and the NUMA node of each GPU by the GPU's name."""
    tables: dict[str, _Table] = {}
    nodes: dict[tuple[str, str], int] = {}
    subject = ""
    for number, line in decode.numbered_lines(text):
        if not line:
            continue
        if title := _title(line):
            subject = _SUBJECTS.get(title, "")
            if subject in tables:
                raise TopologyError(
                    f"line {number}: a second {subject} table, first in {tables[subject].where}"
                )
        elif _NUMA_START.match(line):
            _add_node(nodes, number, line)
        elif subject:
            _add_line(tables, subject, number, line.split(None, MAX_GPUS + 1))
    return tables, _nodes_by_gpu(nodes)


def _read_json(text: str) -> tuple[dict[str, _Table], dict[str, int | None]]:
    """Return the tables by subject, and the NUMA node by GPU, of a JSON text.

    The GPUs of a table are those with a row.
    """
    cells, numa = smi_json.read(text)
    rows: dict[str, dict[str, dict[str, str]]] = {}
    for subject, row, column, cell in cells:
        rows.setdefault(subject, {}).setdefault(row, {})[column] = cell
    tables: dict[str, _Table] = {}
    for subject, found in rows.items():
        where = f"the JSON, {subject}"
        tables[subject] = table = _Table(subject, where, _checked_devices(list(found), where))
        for device, columns in found.items():
            if columns.keys() != found.keys():
                raise TopologyError(
                    f"{where}: row {device} is of {len(columns)} GPUs, and {len(found)} have rows"
                )
            table.add(where, device, [columns[other] for other in found])
    nodes: dict[tuple[str, str], int] = {}
    for gpu, word, number in numa:
        if not _NODE.fullmatch(number):
            raise TopologyError(f"{gpu}: NUMA {word.lower()} {_checks.shown(number)} is not a number")
        nodes[gpu, word] = int(number)
    return tables, _nodes_by_gpu(nodes)


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


def _devices(tables: Mapping[str, _Table], numa: Mapping[str, int | None]) -> list[str]:
    """Return the GPUs in the order of the tables, which must all have the same GPUs."""
    first = next(iter(tables.values()), None)
    names = sorted(numa, key=lambda gpu: (len(gpu), gpu)) if first is None else first.devices
    if len(names) > MAX_GPUS:
        raise TopologyError(f"NUMA nodes of {len(names)} GPUs, more than {MAX_GPUS}")
    if not names:
        raise TopologyError(
            "no GPU: the text has neither a table of weights, types or bandwidths nor NUMA nodes"
        )
    for table in tables.values():
        if table.devices != names:
            raise TopologyError(
                f"{table.where}: the {table.subject} table has other GPUs than the first table"
            )
    for gpu in numa:
        if gpu not in names:
            raise TopologyError(f"{gpu} has a NUMA node, but the GPUs are {names[0]} to {names[-1]}")
    return names


# ---- links -----------------------------------------------------------------------------------------------------

Cell = tuple[str, str, str]
"""Weight, type and bandwidth of a pair, as printed; N/A if missing."""


def _links(
    names: Sequence[str], tables: Mapping[str, _Table], speed: LinkSpeed | None, pcie_gb_per_s: float
) -> tuple[list[tuple[int, int, Link]], list[str], bool]:
    """Return the link of every pair that the tables describe, notes, and whether the speeds of xGMI are told."""
    pairs = list(combinations(range(len(names)), 2))
    columns = {subject: table.pairs() for subject, table in tables.items()}
    if not {"weight", "type", "bandwidth"} & columns.keys():
        link = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
        note = f"Neither weights nor types nor bandwidths: xGMI is not told, every pair has {pcie_gb_per_s:g} GB/s."
        return [(u, v, link) for u, v in pairs], [note], True
    unknown = ["N/A"] * len(pairs)
    cells = [columns.get(subject, unknown) for subject in ("weight", "type", "bandwidth")]
    link_of = cache(_link_reader(speed, pcie_gb_per_s))
    links = [
        (u, v, found)
        for (u, v), *cell in zip(pairs, *cells, strict=True)
        if (found := link_of((cell[0], cell[1], cell[2])))
    ]
    count = Counter(zip(*cells, strict=True))
    told = speed is not None or not _number(count, _is_silent)
    return links, [*_notes(count, speed), *_more_notes(columns)], told


def _link_reader(speed: LinkSpeed | None, pcie_gb_per_s: float) -> Callable[[Cell], Link | None]:
    """Return a function from the cell of a pair of GPUs to the link of this pair.

    The function returns None if the cell shows neither a direct link nor a path.
    """
    lane = speed or models.SLOWEST_XGMI

    def link_of(cell: Cell) -> Link | None:
        weight, kind, bandwidth = cell
        if _is_direct(cell):
            least, _, most = bandwidth.partition("-")
            if most.isdigit() and int(most):
                return models.xgmi_link(int(least), int(most))
            return Link(LinkKind.XGMI, 1, lane.gb_per_s)
        if weight == "N/A" or kind == "XGMI":
            return None
        far = int(weight) >= 2 * models.PCIE_WEIGHT + models.SOCKETS_WEIGHT
        return Link(LinkKind.SYSTEM if far else LinkKind.HOST, 1, pcie_gb_per_s)

    return link_of


def _is_direct(cell: Cell) -> bool:
    """Return True if `cell` shows an xGMI link that joins its two GPUs without another GPU between them."""
    weight, kind, bandwidth = cell
    if kind == "PCIE":
        return False
    if weight != "N/A":
        return int(weight) <= models.XGMI_WEIGHT
    if bandwidth != "N/A":
        return not bandwidth.endswith("-0")
    return kind == "XGMI"


def _is_silent(cell: Cell) -> bool:
    """Return True if `cell` shows an xGMI link without its bandwidth."""
    return _is_direct(cell) and cell[2].endswith(("N/A", "-0"))


def _notes(count: Counter[Cell], speed: LinkSpeed | None) -> Iterator[str]:
    """Yield notes about links that were assumed and links that are missing."""
    direct = _number(count, _is_direct)
    silent = _number(count, _is_silent)
    relayed = _number(count, lambda cell: not _is_direct(cell) and ("XGMI" in cell or cell[2] == "0-0"))
    if silent and speed is None:
        gb_per_s = models.SLOWEST_XGMI.gb_per_s
        yield f"{silent} of {direct} xGMI links have no speed: {gb_per_s:g} GB/s is assumed; see gpu_model."
    if relayed:
        yield f"{relayed} of {count.total()} pairs have no direct link: xGMI by way of other GPUs is not counted."


def _number(count: Counter[Cell], which: Callable[[Cell], bool]) -> int:
    return sum(number for cell, number in count.items() if which(cell))


def _more_notes(columns: Mapping[str, list[str]]) -> Iterator[str]:
    if columns.keys() & {"weight", "type", "bandwidth"} == {"type"} and "XGMI" in columns["type"]:
        yield "Types alone do not tell direct links: every XGMI pair is taken as one link."
    access = columns.get("access", [])
    if closed := sum(cell in ("DISABLED", "False") for cell in access):
        yield f"{closed} of {len(access)} pairs have no peer access."
