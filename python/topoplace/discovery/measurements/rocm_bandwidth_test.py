"""Reader of measurements by `rocm-bandwidth-test`.

The tool prints matrices of copies between devices; GPUs and processors share one numbering. A GPU is recognised by its
PCI address, or else by a copy to itself, which the tool does not measure on processors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

MAX_DEVICES = 256
"""Limit on the devices of one machine; larger matrices are refused."""

_TITLE = re.compile(r"\s*(Unidirectional|Bi?directional) copy peak bandwidth GB/s\s*")
_HEADER = re.compile(r"\s*D/D\s(.*)")
_DEVICE = re.compile(
    r"\s*Device:\s*([0-9]{1,5}),([^,]+)(?:,.*?(?<![0-9a-fA-F-])([0-9a-fA-F]{1,2}:[0-9a-fA-F]{1,2}\.[0-7]))?\s*"
)
_ROW = re.compile(r"(?:[cg]pu)?[0-9]{1,5}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,12})?")


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `rocm-bandwidth-test`."""
    return any(_TITLE.fullmatch(line) for line in text.splitlines()[:5000])


def parse(
    data: str | bytes,
    *,
    default_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "rocm-bandwidth-test",
    machine: str = "machine0",
) -> Topology:
    """Read the copies from GPU to GPU in the output of `rocm-bandwidth-test` as a topology.

    A pair has the slower of its two directions, and a link of unknown kind. default_gb_per_s: GB/s assumed for pairs
    that were not measured in both directions. Raise TopologyError naming the line, also if no copies between GPUs in
    one direction were measured.
    """
    default_gb_per_s = _checks.positive(default_gb_per_s, "default_gb_per_s", TopologyError)
    tables, known = _read(decode.decoded(data))
    table = _one_way(tables)
    gpus = [device for device in table.columns if _is_gpu(device, table, known)]
    if not gpus:
        raise TopologyError(_why_not(tables))
    pairs = len(gpus) * (len(gpus) - 1) // 2
    links = tuple(_links(gpus, table))
    silent = pairs - len(links)
    note = f"{silent} of {pairs} pairs were not measured: {default_gb_per_s:g} GB/s is assumed."
    return Topology(
        tuple(_gpu(i, device, known, machine) for i, device in enumerate(gpus)),
        links,
        default=default_gb_per_s,
        name=name,
        notes=(note,) if silent else (),
    )


def _is_gpu(device: str, table: _RocmTable, known: Mapping[str, tuple[str, str | None]]) -> bool:
    """Return True if a device is a GPU: it has a PCI address, or it copies to itself."""
    return known.get(device, ("", None))[1] is not None or table.get(device, device) is not None


def _one_way(tables: Mapping[str, _RocmTable]) -> _RocmTable:
    _check_rows(tables)
    if "Unidirectional" not in tables:
        raise TopologyError(_why_not(tables))
    return tables["Unidirectional"]


def _check_rows(tables: Mapping[str, _RocmTable]) -> None:
    """Refuse a matrix without rows, and one that has rows for only some of its columns."""
    for table in tables.values():
        missing = [column for column in table.columns if column not in table.rows]
        if 0 < len(missing) < len(table.columns) or not table.rows:
            raise TopologyError(
                f"line {table.line}: row {_checks.shown((missing or table.columns)[0])} is missing in the matrix"
            )


def _links(gpus: Sequence[str], table: _RocmTable) -> Iterator[tuple[int, int, Link]]:
    for i, j in combinations(range(len(gpus)), 2):
        there, back = table.get(gpus[i], gpus[j]), table.get(gpus[j], gpus[i])
        if there is not None and back is not None:
            yield i, j, Link(LinkKind.UNKNOWN, 1, min(there, back))


def _gpu(index: int, device: str, known: Mapping[str, tuple[str, str | None]], machine: str) -> Gpu:
    model, address = known.get(device, (None, None))
    return Gpu(index, f"GPU{index}", model, machine, bus_id=address, maker=Maker.AMD.value)


# ---- text ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _RocmTable:
    """One matrix of measured GB/s from the device of a row to that of a column; None if not measured."""

    line: int
    columns: list[str]
    rows: dict[str, list[float | None]] = field(default_factory=dict[str, list[float | None]])
    place: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.place = {column: i for i, column in enumerate(self.columns)}

    def get(self, source: str, target: str) -> float | None:
        """Return GB/s from device `source` to device `target`; None if it was not measured."""
        return self.rows[source][self.place[target]] if source in self.rows else None


def _read(text: str) -> tuple[dict[str, _RocmTable], dict[str, tuple[str, str | None]]]:
    """Return the matrices by title, and model and PCI address by the device's number."""
    tables: dict[str, _RocmTable] = {}
    known: dict[str, tuple[str, str | None]] = {}
    title, table = "", None
    for number, line in decode.numbered_lines(text):
        if not line:
            continue
        if match := _TITLE.fullmatch(line):
            title, table = match[1], None
        elif match := _DEVICE.fullmatch(line):
            known[match[1]] = match[2].strip() or match[1], _address(match[3])
        elif match := _HEADER.fullmatch(line):
            table = _header(number, match[1].split(None, MAX_DEVICES)) if title else None
            if table and tables.setdefault(title, table) is not table:
                raise TopologyError(f"line {number}: a second matrix of {title} copies")
            title = ""
        elif table and (words := line.split(None, MAX_DEVICES + 1)):
            if _ROW.fullmatch(words[0]):
                _add(table, number, words)
            else:
                table = None  # the matrix has ended
    return tables, known


def _header(number: int, columns: list[str]) -> _RocmTable:
    if not 1 <= len(columns) <= MAX_DEVICES or len(set(columns)) < len(columns):
        raise TopologyError(
            f"line {number}: a header of {len(columns)} columns, {len(set(columns))} different"
        )
    return _RocmTable(number, columns)


def _add(table: _RocmTable, number: int, words: list[str]) -> None:
    device, cells = words[0], words[1:]
    if device in table.rows:
        raise TopologyError(f"line {number}: row {_checks.shown(device)} appears twice")
    if len(cells) != len(table.columns):
        raise TopologyError(f"line {number}: {len(cells)} columns, the header has {len(table.columns)}")
    table.rows[device] = [
        _gb_per_s(cell, number, column) for column, cell in zip(table.columns, cells, strict=True)
    ]


def _gb_per_s(cell: str, number: int, column: str) -> float | None:
    if cell == "N/A":
        return None
    if not _NUMBER.fullmatch(cell) or float(cell) == 0.0:
        raise TopologyError(
            f"line {number}: {_checks.shown(cell)} in column {_checks.shown(column)} is not a speed in GB/s"
        )
    return float(cell)


def _address(short: str | None) -> str | None:
    """Return a PCI address in full, such as 0000:0d:00.0 for 0d:0.0."""
    if short is None:
        return None
    bus, device, function = re.split(r"[:.]", short)
    return f"0000:{int(bus, 16):02x}:{int(device, 16):02x}.{function}"


def _why_not(tables: Mapping[str, _RocmTable]) -> str:
    if not tables:
        return "the text has no matrix of copies with a header D/D"
    table = tables.get("Unidirectional") or next(iter(tables.values()))
    columns = _checks.shown(", ".join(table.columns))
    if table.rows.keys() - set(table.columns):
        return f"line {table.line}: no copy from GPU to GPU was measured: the columns are {columns}"
    if "Unidirectional" not in tables:
        return f"line {table.line}: only both directions at once were measured, not one; the columns are {columns}"
    return f"line {table.line}: no GPU: none of the devices {columns} copies to itself"
