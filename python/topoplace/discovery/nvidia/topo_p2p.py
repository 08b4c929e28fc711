"""Reader of the matrix that `nvidia-smi topo -p2p` prints: the pairs of GPUs with direct access to each other's memory.

The caller requests one capability (r: reads, w: writes, n: NVLink, a: atomics, p: PCIe), which the text does not
repeat. Status OK means that a direct path exists, of unknown kind and speed; with any other status data goes through
the memory of the host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.nvidia import matrix_rows
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import PCIE3_X16_GB_PER_S, Link, LinkKind
from topoplace.topology.topology import Topology

STATUSES = {
    "OK": "supported",
    "CNS": "not supported by the chipset",
    "GNS": "not supported by a GPU",
    "TNS": "not supported in this topology",
    "DR": "disabled by a key of the registry",
    "NS": "not supported",
    "U": "unknown",
}
"""The meaning of each status."""

_SELF = "X"
_GPU = re.compile(r"GPU[0-9]+")
_GLUED_GPUS = re.compile(r"(?:GPU[0-9]+)+")
_CELL = re.compile("|".join((*STATUSES, _SELF)))
_GLUED_CELLS = re.compile(rf"(?:{_CELL.pattern}){{1,256}}")
_OF_LEGEND = re.compile(r"\s*(?:Legend\s*:|[A-Z]{1,3}\s*=\s)")
_COMMAND = re.compile(r"\bnvidia-smi\s.*$")
_LEGEND = re.compile(r"\s*Legend\s*:")
_MAX_GPUS = 128


@dataclass(frozen=True)
class PeerAccess:
    """The status of every pair of GPUs."""

    gpus: tuple[str, ...]
    statuses: tuple[tuple[str, ...], ...]
    """(n, n) of the keys of `STATUSES`, X on the diagonal; the same in both directions."""

    def ok(self, u: int, v: int) -> bool:
        """Return True if GPUs u and v have direct access to each other's memory."""
        return self.statuses[u][v] == "OK"


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi topo -p2p`.

    Such a text has a header of only GPUs and, below it, a row of statuses. The row of a single GPU has none: its legend
    distinguishes this matrix from that of `topo -m`.
    """
    lines = [line.split() for _, line in decode.numbered_lines(text[:65536])]
    header = next((i for i, words in enumerate(lines) if _as_header(words)), len(lines))
    row = next((words for words in lines[header + 1 :] if words), [""])
    if not _GPU.fullmatch(row[0]) or not all(map(_GLUED_CELLS.fullmatch, row[1:])):
        return False
    return len(row) > 2 or (
        row[1:] == [_SELF] and any(map(matrix_rows.LEGEND_OF_ACCESS.match, text.splitlines()))
    )


def read(data: str | bytes) -> PeerAccess:
    """Return the statuses in `data`. Raise TopologyError naming the line and the cell."""
    lines = decode.numbered_lines(decode.decoded(data, "the peer matrix"))
    gpus, where = _header(lines)
    rows: dict[str, tuple[str, ...]] = {}
    for number, line in _rows(lines):
        gpu, *words = line.split()
        if gpu in rows:
            raise TopologyError(f"line {number}: row {gpu} appears twice")
        if gpu in gpus:
            rows[gpu] = _row(number, words, len(gpus))
        elif _GPU.fullmatch(gpu) or len(rows) < len(gpus):
            raise TopologyError(f"line {number}: {_checks.shown(gpu)} is not a column of the header")
    for gpu in gpus:
        if gpu not in rows:
            raise TopologyError(f"row {gpu} is missing, column {gpu} is in line {where}")
    statuses = tuple(rows[gpu] for gpu in gpus)
    _check_symmetry(gpus, statuses)
    return PeerAccess(gpus, statuses)


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "nvidia-smi -p2p",
    machine: str = "machine0",
) -> Topology:
    """Read a topology from the output of `nvidia-smi topo -p2p`.

    A pair with status OK has a link of kind `LinkKind.UNKNOWN`; any other pair has only a path through the host.
    gpu_model: the model of every GPU.
    pcie_gb_per_s: GB/s assumed for every pair.
    Raise TopologyError naming the line and the cell.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    gpu_model = None if gpu_model is None else _checks.text(gpu_model, "gpu_model", TopologyError)
    access = read(data)
    gpus = tuple(Gpu(i, gpu, gpu_model, machine) for i, gpu in enumerate(access.gpus))
    direct = Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)
    links = ((u, v, direct) for v in range(len(gpus)) for u in range(v) if access.ok(u, v))
    notes = (*_notes(access, pcie_gb_per_s), *_unread(data, access.gpus))
    return Topology(gpus, tuple(links), default=pcie_gb_per_s, name=name, notes=notes)


def _unread(data: str | bytes, gpus: Sequence[str]) -> Iterator[str]:
    """Yield a note on the lines below the header that are neither rows nor of the legend."""
    lines = decode.numbered_lines(decode.decoded(data))
    _header(lines)
    yield from unread.note(
        lines, lambda _, line: line.split(None, 1)[0] in gpus or _OF_LEGEND.match(line), _COMMAND
    )


def _notes(access: PeerAccess, pcie_gb_per_s: float) -> Iterator[str]:
    pairs = [(u, v) for v in range(len(access.gpus)) for u in range(v)]
    for status, meaning in STATUSES.items():
        found = [(u, v) for u, v in pairs if access.statuses[u][v] == status]
        if found:
            u, v = (access.gpus[i] for i in found[0])
            yield f"Direct access is {meaning} for {len(found)} of {len(pairs)} pairs, the first is {u} and {v}."
    if pairs:
        yield f"What connects the pairs, and how fast, is not given: {pcie_gb_per_s:g} GB/s is assumed."


def _as_header(words: Sequence[str]) -> tuple[str, ...]:
    if not words or not all(map(_GLUED_GPUS.fullmatch, words)):
        return ()
    return tuple(gpu for word in words for gpu in _GPU.findall(word))


def _header(lines: Iterator[tuple[int, str]]) -> tuple[tuple[str, ...], int]:
    """Return the GPUs that the header names, and the header's line number."""
    for number, line in lines:
        gpus = _as_header(line.split()) if "GPU" in line else ()
        if len(gpus) > _MAX_GPUS:
            raise TopologyError(f"line {number}: more than {_MAX_GPUS} GPUs")
        if len(set(gpus)) < len(gpus):
            raise TopologyError(f"line {number}: a GPU appears twice")
        if gpus:
            return gpus, number
    raise TopologyError("no GPU: no line is a header of columns GPU0, GPU1, ...")


def _rows(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    for number, line in lines:
        if _LEGEND.match(line):
            return
        if line.strip():
            yield number, line


def _row(number: int, words: Sequence[str], count: int) -> tuple[str, ...]:
    cells: list[str] = []
    for word in words:
        if not _GLUED_CELLS.fullmatch(word):
            raise TopologyError(f"line {number}: unknown status {_checks.shown(word)}")
        cells += _CELL.findall(word)
        if len(cells) > _MAX_GPUS:
            break
    if len(cells) != count:
        raise TopologyError(f"line {number}: {len(cells)} columns, the header has {count}")
    return tuple(cells)


def _check_symmetry(gpus: Sequence[str], statuses: Sequence[Sequence[str]]) -> None:
    for i, u in enumerate(gpus):
        for j, v in enumerate(gpus[: i + 1]):
            there, back = statuses[i][j], statuses[j][i]
            if (there == _SELF) != (i == j):
                raise TopologyError(f"row {u}: {u} to {v} is {there}")
            if there != back:
                raise TopologyError(f"row {u}: {u} to {v} is {there}, but {v} to {u} is {back}")
