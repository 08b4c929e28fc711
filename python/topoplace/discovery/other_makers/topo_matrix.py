"""Reader of matrices like that of `nvidia-smi topo -m` for accelerators of other makers.

Such matrices are printed by `npu-smi info -t topo` (Ascend), `xpu-smi topology -m` (Intel), `mthreads-gmi topo -m`,
`mx-smi topo -m` and `gpustack-runtime topo`. Devices are named NPU0, GPU 0/0 (a tile of a GPU), Device 0 and so on; the
classes of paths are those of `nvidia-smi`. Labels of a maker's own links, such as HCCS or XL8, state no speed: such a
pair has a link of kind UNKNOWN, at the speed assumed for PCIe, and a note names the label.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.nvidia import matrix_rows
from topoplace.discovery.text import decode, unread
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu, Nic
from topoplace.topology.links.link_kinds import PATHS, PCIE3_X16_GB_PER_S, Link, LinkKind, assumed_paths, path
from topoplace.topology.makers import Maker
from topoplace.topology.topology import Topology

_DEVICE = (
    r"(?:(?:NPU|XPU|MLU|GCU|DCU|PPU)[ \t]?[0-9]{1,3}(?:/[0-9]{1,2})?|GPU[0-9]{1,3}|GPU[ \t][0-9]{1,3}/[0-9]{1,2}"
    r"|Device[ \t][0-9]{1,3})"
)
_ADAPTER = r"(?:NIC[0-9]+|[a-z][a-z0-9]*_[0-9a-z_]+)"
_HEADER = re.compile(
    rf"[ \t|]*(?:[A-Z]{{2,20}}[ \t]*\|)?[ \t|]*{_DEVICE}(?:[ \t|]+(?:{_DEVICE}|{_ADAPTER}))*"
    r"(?:[ \t|]+(?:CPU|NUMA|Node)(?:[ \t]Affinity)?)*[ \t|]*"
)
_COLUMN = re.compile(rf"{_DEVICE}|{_ADAPTER}")
_ROW = re.compile(rf"[ \t|]*({_DEVICE}|{_ADAPTER})[ \t|]+(\S.*)")
_SELF = ("X", "S", "Self")
_DIRECT = re.compile(r"HCCS(?:_SW)?|SIO|MDF|XL(?:\*|[0-9]{1,3})|MX[0-9]*|MT(?:LINK)?[0-9]*|ML(?:INK)?[0-9]*")
_UNTOLD = ("NA", "N/A", "UNKNOWN")
_LEGEND = re.compile(r"[ \t]*([A-Z][A-Za-z0-9_*#/]{0,11})[ \t]*[=:][ \t]")
_TITLE = re.compile(r"\b(CPU|NUMA|Node)(?:[ \t]Affinity)?\b")
_OLD = {"SOC": "SYS"}
_COMMAND = re.compile(r"\b(?:npu-smi|xpu-smi|mthreads-gmi|mx-smi|cnmon|gpustack-runtime)\b[\w\s-]*$")
_TOOL = re.compile(
    r"\b(npu-smi|xpu-smi|xpumcli|mthreads-gmi|cnmon)\b|^\|[ \t]*([A-Z]{3,20})[ \t]*\|", re.MULTILINE
)
_MAKERS = {
    r"HCCS|SIO|npu-smi|ASCEND|NPU": Maker.ASCEND,
    r"XL(?:\*|[0-9])|MDF|xpu-smi|xpumcli|INTEL|GPU[0-9]+/": Maker.INTEL,
    r"MT[0-9L]|mthreads-gmi|MTHREADS": Maker.MOORE_THREADS,
    r"ML[0-9I]|cnmon|CAMBRICON|MLU": Maker.CAMBRICON,
    r"HYGON|DCU": Maker.HYGON,
    r"AMD": Maker.AMD,
    r"NVIDIA": Maker.NVIDIA,
}
"""Makers by their links, tools, names in the corner of a matrix, and devices."""
_MAX_LINE = 8192
_MAX_DEVICES = 128


_Row = tuple[int, tuple[str, ...], tuple[str, ...]]
"""The line, the labels by column, and the affinities by title."""


@dataclass(frozen=True, slots=True)
class _Matrix:
    header: int
    """The line of the header."""
    columns: tuple[str, ...]
    """The devices, then the adapters, without blanks in their names."""
    titles: tuple[str, ...]
    rows: Mapping[str, _Row]
    """By device."""
    lines: frozenset[int]
    """All lines that are read."""

    @property
    def devices(self) -> tuple[str, ...]:
        """Return the columns that are accelerators."""
        return tuple(name for name in self.columns if not re.fullmatch(_ADAPTER, name))


def recognised(text: str) -> bool:
    """Return True if `text` has such a matrix, of devices or with labels that `nvidia-smi` does not have."""
    lines = list(decode.numbered_lines(text[:65536]))
    for at, (_, line) in enumerate(lines):
        if len(line) > _MAX_LINE or not _HEADER.fullmatch(line):
            continue
        below = (
            _ROW.fullmatch(other)
            for _, other in lines[at + 1 : at + 1 + _MAX_DEVICES]
            if len(other) < _MAX_LINE
        )
        rows = [match for match in below if match]
        cells = [cell for match in rows for cell in re.split(r"[ \t|]+", match[2])]
        own = any(map(_DIRECT.fullmatch, cells)) or not re.search(r"GPU[0-9]", line)
        if own and any(cell in _SELF for cell in cells):
            return True
    return False


def parse(
    data: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    name: str = "topo matrix",
    machine: str = "machine0",
) -> Topology:
    """Read the accelerators of the matrix in `data`, with the classes of their paths.

    gpu_model: the model of every accelerator. pcie_gb_per_s: GB/s assumed for PCIe on a path PIX, and for a link whose
    label states no speed. Raise TopologyError naming the line.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    gpu_model = None if gpu_model is None else _checks.text(gpu_model, "gpu_model", TopologyError)
    text = decode.decoded(data)
    matrix = _read(text)
    labels = {(u, v): _label(matrix, u, v) for u in matrix.devices for v in matrix.devices if u != v}
    _check_symmetry(matrix, labels)
    index = {device: i for i, device in enumerate(matrix.devices)}
    links = tuple(
        (index[u], index[v], _link(label, pcie_gb_per_s))
        for (u, v), label in labels.items()
        if index[u] < index[v]
    )
    described = _legend(text)
    notes = [*_notes(matrix, labels, described, pcie_gb_per_s)]
    own = matrix.lines | {number for number, line in decode.numbered_lines(text) if _LEGEND.match(line)}
    notes += unread.note(
        decode.numbered_lines(text),
        lambda number, line: number in own or re.match(r"[ \t]*(?:Legend|[-+|=: \t]*$)", line),
        _COMMAND,
    )
    return Topology(
        tuple(_gpus(matrix, gpu_model, machine, _maker(text, labels.values(), matrix.devices))),
        links,
        default=pcie_gb_per_s,
        name=name,
        nics=tuple(_nics(matrix)),
        notes=tuple(notes),
    )


# ---- meaning ---------------------------------------------------------------------------------------------------


def _label(matrix: _Matrix, u: str, v: str) -> str:
    _, labels, _ = matrix.rows[u]
    label = labels[matrix.columns.index(v)]
    return _OLD.get(label, label)


def _check_symmetry(matrix: _Matrix, labels: Mapping[tuple[str, str], str]) -> None:
    for (u, v), label in labels.items():
        if labels[v, u] != label:
            raise TopologyError(
                f"line {matrix.rows[v][0]}: {v} to {u} is {labels[v, u]}, but line {matrix.rows[u][0]}: {u} to {v} "
                f"is {label}; give the text as printed"
            )


def _link(label: str, pcie_gb_per_s: float) -> Link:
    return path(PATHS[label], pcie_gb_per_s) if label in PATHS else Link(LinkKind.UNKNOWN, 1, pcie_gb_per_s)


def _legend(text: str) -> frozenset[str]:
    """Return the labels that the text explains."""
    return frozenset(match[1] for _, line in decode.numbered_lines(text) if (match := _LEGEND.match(line)))


def _notes(
    matrix: _Matrix, labels: Mapping[tuple[str, str], str], described: frozenset[str], pcie_gb_per_s: float
) -> Iterator[str]:
    count = Counter(labels.values())
    if kinds := [kind for label, kind in PATHS.items() if label in count]:
        yield f"The speed of PCIe is not given: {assumed_paths(pcie_gb_per_s, kinds)}."
    for label, pairs in count.items():
        if label in PATHS:
            continue
        if label not in _UNTOLD and not _DIRECT.fullmatch(label) and label not in described:
            line = next(matrix.rows[u][0] for (u, _), one in labels.items() if one == label)
            raise TopologyError(
                f"line {line}: {_checks.shown(label)} is no known label, and no legend explains it"
            )
        yield (
            f"{pairs // 2} pairs have {label}, whose speed is not given: kind UNKNOWN, {pcie_gb_per_s:g} GB/s is "
            "assumed."
        )
    yield f"The accelerators are {matrix.devices[0]} to {matrix.devices[-1]} of the tool, counted from 0 here."


def _gpus(matrix: _Matrix, gpu_model: str | None, machine: str, maker: str) -> Iterator[Gpu]:
    affinities = [
        dict(zip(matrix.titles, cells, strict=False))
        for device in matrix.devices
        for _, _, cells in [matrix.rows[device]]
    ]
    sockets = _sockets(affinities)
    for i, (device, cells) in enumerate(zip(matrix.devices, affinities, strict=True)):
        cpus, node = cells.get("CPU", ""), cells.get("NUMA", "")
        yield Gpu(
            i,
            re.sub(r"^Device", "GPU", device),
            gpu_model,
            machine,
            sockets[i],
            numa_node=int(node) if node.isdecimal() and int(node) < 1 << 16 else None,
            cpus=cpus if matrix_rows.is_cpu_list(cpus) else None,
            maker=maker,
        )


def _maker(text: str, labels: Iterable[str], devices: Sequence[str]) -> str:
    """Return the maker of the accelerators, by its own link, the tool, the name in the corner or the devices."""
    tools = (match[1] or match[2] for match in _TOOL.finditer(text))
    words = [*labels, *tools, *devices]
    found = (_MAKERS[key] for word in words for key in _MAKERS if re.match(key, word))
    return next(found, Maker.UNKNOWN).value


def _sockets(affinities: Sequence[Mapping[str, str]]) -> Sequence[int | None]:
    """Return the socket of each accelerator: one number for each distinct NUMA or else CPU affinity."""
    for title in ("NUMA", "CPU"):
        cells = [cells.get(title, "N/A") for cells in affinities]
        if not {"N/A", "NA", ""} & set(cells) and (
            title == "NUMA" or all(map(matrix_rows.is_cpu_list, cells))
        ):
            number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
            return [number[cell] for cell in cells]
    return [None] * len(affinities)


def _nics(matrix: _Matrix) -> Iterator[Nic]:
    for nic in matrix.columns:
        if nic not in matrix.devices:
            paths = tuple(_label(matrix, device, nic) for device in matrix.devices)
            if not set(paths) <= PATHS.keys():
                raise TopologyError(f"line {matrix.header}: {nic} reaches an accelerator by no path of PCIe")
            yield Nic(nic, paths)


# ---- text ------------------------------------------------------------------------------------------------------


def _plain(device: str) -> str:
    return re.sub(r"[ \t]", "", device)


def _read(text: str) -> _Matrix:
    lines = [(number, line) for number, line in decode.numbered_lines(text) if len(line) <= _MAX_LINE]
    at = next(
        (i for i, (_, line) in enumerate(lines) if _HEADER.fullmatch(line) and _has_row(lines, i)), None
    )
    if at is None:
        raise TopologyError(
            "no line is a header of accelerators with their rows below; give the text as printed"
        )
    number, header = lines[at]
    columns = tuple(_plain(name) for name in _COLUMN.findall(header))
    if len(set(columns)) < len(columns) or len(columns) > _MAX_DEVICES:
        raise TopologyError(f"line {number}: a column appears twice, or there are more than {_MAX_DEVICES}")
    titles = tuple("CPU" if match[1] == "CPU" else "NUMA" for match in _TITLE.finditer(header))
    rows = _rows(lines[at + 1 :], columns)
    found = _Matrix(number, columns, titles, rows, frozenset({number, *(row[0] for row in rows.values())}))
    _check_rows(found)
    return found


def _check_rows(matrix: _Matrix) -> None:
    """Raise TopologyError if a device has no row, or no X in its own column."""
    for device in matrix.devices:
        if device not in matrix.rows:
            raise TopologyError(
                f"row {device} is missing, column {device} is in line {matrix.header}; give the complete text"
            )
        line, labels, _ = matrix.rows[device]
        if labels[matrix.columns.index(device)] not in _SELF:
            raise TopologyError(f"line {line}: {device} has no X or S in its own column")


def _rows(lines: Sequence[tuple[int, str]], columns: Sequence[str]) -> dict[str, _Row]:
    """Return the rows by device, up to another matrix; a cut row of an adapter is left out."""
    rows: dict[str, _Row] = {}
    for number, line in lines:
        match = _ROW.fullmatch(line)
        device = _plain(match[1]) if match else ""
        if match is None or device not in columns:
            continue
        if device in rows:
            break
        cells = [cell for cell in re.split(r"[ \t|]+", match[2]) if cell]
        if len(cells) >= len(columns):
            rows[device] = number, tuple(cells[: len(columns)]), tuple(cells[len(columns) :])
        elif not re.fullmatch(_ADAPTER, device):
            raise TopologyError(
                f"line {number}: {len(cells)} columns, the header has {len(columns)}; give the line as printed"
            )
    return rows


def _has_row(lines: Sequence[tuple[int, str]], at: int) -> bool:
    return any(_ROW.fullmatch(line) for _, line in lines[at + 1 : at + 4])
