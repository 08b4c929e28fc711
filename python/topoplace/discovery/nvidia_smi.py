"""The matrix that `nvidia-smi topo -m` prints, as a Topology.

The text has a header of device names and affinity titles, one row per device with a label per column, and a
legend. Columns are separated by tabs or aligned by blanks; affinity cells may be empty. Labels: X for the device
itself, NV# for # NVLinks side by side, and the paths PIX and PXB (PCIe switches only), PHB and NODE (through a host
bridge), SYS, in old drivers SOC (across sockets). The text tells neither the speed of an NVLink nor that of PCIe.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from topoplace import _checks
from topoplace.devices import Gpu, Nic
from topoplace.errors import TopologyError
from topoplace.links import LANE_GBPS, PCIE3_X16_GBPS, Link, LinkKind
from topoplace.topology import Topology


@dataclass(frozen=True)
class NvlinkPort:
    """The NVLinks of a GPU model."""

    kind: LinkKind
    lane_gbps: float
    max_lanes: int


def _port(kind: LinkKind, max_lanes: int) -> NvlinkPort:
    return NvlinkPort(kind, LANE_GBPS[kind], max_lanes)


_BRIDGE = NvlinkPort(LinkKind.NVLINK3, 14.0625, 4)  # 112.5 GB/s both ways over four lanes

# What the vendor says of each model; any other is refused, because its speed would be a guess.
PORTS: Mapping[str, NvlinkPort] = {
    "P100": _port(LinkKind.NVLINK1, 4),
    "V100": _port(LinkKind.NVLINK2, 6),
    "A100": _port(LinkKind.NVLINK3, 12),
    "A6000": _BRIDGE,
    "3090": _BRIDGE,
    "H100": _port(LinkKind.NVLINK4, 18),
    "H200": _port(LinkKind.NVLINK4, 18),
    "B200": _port(LinkKind.NVLINK5, 18),
    "GB200": _port(LinkKind.NVLINK5, 18),
}
# Where no model is given: 25 GB/s a lane, as in generations 2, 3 and 4, and the most lanes any GPU has.
_ANY_PORT = NvlinkPort(LinkKind.NVLINK, 25.0, 18)

_PATHS = {
    "PIX": LinkKind.PCIE,
    "PXB": LinkKind.PCIE,
    "PHB": LinkKind.HOST,
    "NODE": LinkKind.HOST,
    "SYS": LinkKind.SYSTEM,
}
_SELF = "X"
_OLD_LABELS = {"SOC": "SYS"}

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_GPU = re.compile(r"GPU[0-9]+")
_NVLINKS = re.compile(r"NV([1-9][0-9]{0,2})")
_LABEL = re.compile(rf"{_SELF}|{_NVLINKS.pattern}|{'|'.join((*_PATHS, *_OLD_LABELS))}")
_TITLE = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID")
_AFFINITY = re.compile(r"[0-9,-]+|N/A")
_LEGEND = re.compile(r"\s*(?:NIC )?Legend\s*:")
_NIC_NAME = re.compile(r"\s*(NIC[0-9]+):\s*(\S+)\s*")


def recognised(text: str) -> bool:
    """Whether `text` looks like this matrix: below a header of GPUs, the row of one has a label of a path."""
    lines = _ESCAPE.sub("", text[:65536]).split("\n")
    header = next(filter(None, map(_as_header, range(len(lines)), lines)), None)
    if header is None:
        return False
    rows = (line.split() for line in lines[header.index + 1 :])
    rows_of_gpus = (words for words in rows if words and _GPU.fullmatch(words[0]))
    labels = next(rows_of_gpus, [""])[1 : 1 + len(header.devices)]
    return any(label != _SELF and _LABEL.match(label) for label in labels) or labels == [_SELF]


def parse(
    text: str,
    gpu_model: str | None = None,
    *,
    pcie_gbps: float = PCIE3_X16_GBPS,
    name: str = "nvidia-smi",
    machine: str = "machine0",
) -> Topology:
    """The topology that `text`, printed by `nvidia-smi topo -m`, shows.

    gpu_model: such as "V100" or "NVIDIA A100-SXM4-40GB"; it sets the speed of an NVLink, which is 25 GB/s without.
    pcie_gbps: the speed assumed of every path that is no NVLink. Sockets follow the NUMA affinity, or the CPU
    affinity where that is not known. NVLinks are taken to lead to a switch where a GPU has more of them than it
    could have wired directly. Raises TopologyError naming the line and the cell.
    """
    pcie_gbps = _checks.positive(pcie_gbps, "pcie_gbps", TopologyError)
    model, port = _known_model(gpu_model)
    lines = _clean_lines(text)
    header = _find_header(lines)
    rows = _read_rows(lines, header)
    _check_symmetry(header.devices, rows)
    sockets = _sockets([rows[gpu].affinity for gpu in header.gpus])
    gpus = tuple(
        Gpu(i, gpu, model, machine, socket)
        for i, (gpu, socket) in enumerate(zip(header.gpus, sockets, strict=True))
    )
    links = _links(header.gpus, rows, port, pcie_gbps)
    nics = _nics(lines, header, rows)
    return Topology(gpus, tuple(links), default=pcie_gbps, name=name, nics=tuple(nics))


# ---- header and rows -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Header:
    index: int
    devices: tuple[str, ...]
    titles: tuple[tuple[str, int, int], ...]  # title, where it starts, where it ends

    @property
    def gpus(self) -> tuple[str, ...]:
        return tuple(device for device in self.devices if _GPU.fullmatch(device))

    @property
    def nics(self) -> tuple[str, ...]:
        return tuple(device for device in self.devices if not _GPU.fullmatch(device))


@dataclass(frozen=True)
class _Row:
    line: int
    labels: Mapping[str, str]  # by device
    affinity: Mapping[str, str]  # by title


def _clean_lines(text: object) -> list[str]:
    if not isinstance(text, str):
        raise TopologyError(f"text = {_checks.shown(text)} is not a string")
    return [line.rstrip("\r") for line in _ESCAPE.sub("", text).split("\n")]


def _as_header(index: int, line: str) -> _Header | None:
    titles = tuple((match[0], *match.span()) for match in _TITLE.finditer(line))
    devices = line[: titles[0][1]].split() if titles else line.split()
    if not devices or not _GPU.fullmatch(devices[0]) or any(map(_LABEL.fullmatch, devices)):
        return None
    return _Header(index, tuple(devices), titles)


def _find_header(lines: Sequence[str]) -> _Header:
    header = next(filter(None, map(_as_header, range(len(lines)), lines)), None)
    if header is None:
        raise TopologyError("no GPU: no line is a header of columns GPU0, GPU1, ...")
    seen: set[str] = set()
    for device in header.devices:
        if device in seen:
            raise TopologyError(f"line {header.index + 1}: column {device} is there twice")
        seen.add(device)
    return header


def _read_rows(lines: Sequence[str], header: _Header) -> dict[str, _Row]:
    rows: dict[str, _Row] = {}
    for number, line in _matrix_lines(lines, header):
        device = line.split()[0]
        if device in rows:
            raise TopologyError(
                f"line {number}: row {device} is there twice, first in line {rows[device].line}"
            )
        if device in header.devices:
            rows[device] = _read_row(number, line, header)
        elif _GPU.fullmatch(device) or len(rows) < len(header.devices):
            raise TopologyError(f"line {number}: {_checks.shown(device)} is not a column of the header")
    for device in header.devices:
        if device not in rows:
            raise TopologyError(f"row {device} is missing, column {device} is in line {header.index + 1}")
    return rows


def _matrix_lines(lines: Sequence[str], header: _Header) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines[header.index + 1 :], header.index + 2):
        if _LEGEND.match(line):
            return
        if line.strip():
            yield number, line


def _read_row(number: int, line: str, header: _Header) -> _Row:
    words = [(match[0], *match.span()) for match in re.finditer(r"\S+", line)][1:]
    count = len(header.devices)
    for device, (word, _, _) in zip(header.devices, words, strict=False):
        if not _LABEL.fullmatch(word) and not _AFFINITY.fullmatch(word):
            raise TopologyError(f"line {number}: unknown label {_checks.shown(word)} in column {device}")
    found = next((i for i, (word, _, _) in enumerate(words) if not _LABEL.fullmatch(word)), len(words))
    if found != count:
        raise TopologyError(f"line {number}: {found} columns, the header has {count}")
    labels = [_OLD_LABELS.get(word, word) for word, _, _ in words[:count]]
    affinity = _affinity(number, line, words[count:], header)
    return _Row(number, dict(zip(header.devices, labels, strict=True)), affinity)


def _affinity(
    number: int, line: str, words: Sequence[tuple[str, int, int]], header: _Header
) -> dict[str, str]:
    """The cells after the labels by title: all there, or else by their tab, or else by their place in the line."""
    titles = header.titles
    if len(words) > len(titles):
        raise TopologyError(f"line {number}: {len(words)} affinities, the header has {len(titles)}")
    if len(words) == len(titles):
        return {title: word for (title, _, _), (word, _, _) in zip(titles, words, strict=True)}
    if "\t" in line:
        cells = line.lstrip().split("\t")[1 + len(header.devices) :]
        return {
            title: cell.strip() for (title, _, _), cell in zip(titles, cells, strict=False) if cell.strip()
        }
    return {min(titles, key=lambda t: max(t[1] - end, start - t[2]))[0]: word for word, start, end in words}


def _check_symmetry(devices: Sequence[str], rows: Mapping[str, _Row]) -> None:
    for i, u in enumerate(devices):
        for v in devices[: i + 1]:
            there, back = rows[u].labels[v], rows[v].labels[u]
            if (there == _SELF) != (u == v):
                raise TopologyError(f"line {rows[u].line}: {u} to {v} is {there}")
            if there != back:
                raise TopologyError(
                    f"line {rows[v].line}: {v} to {u} is {back}, but line {rows[u].line}: {u} to {v} is {there}"
                )


# ---- meaning ---------------------------------------------------------------------------------------------------


def _known_model(gpu_model: str | None) -> tuple[str | None, NvlinkPort]:
    if gpu_model is None:
        return None, _ANY_PORT
    words = re.split(r"[^A-Z0-9]+", _checks.text(gpu_model, "gpu_model", TopologyError).upper())
    for model, port in PORTS.items():
        if model in words:
            return model, port
    raise TopologyError(f"gpu_model = {_checks.shown(gpu_model)} is not known; known: {', '.join(PORTS)}")


def _sockets(affinities: Sequence[Mapping[str, str]]) -> list[int | None]:
    """A number from 0 for each different affinity, in the order of the GPUs; None for all where one is unknown."""
    for title in ("NUMA Affinity", "CPU Affinity"):
        cells = [affinity.get(title, "N/A") for affinity in affinities]
        if "N/A" not in cells:
            number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
            return [number[cell] for cell in cells]
    return [None] * len(affinities)


def _links(
    gpus: Sequence[str], rows: Mapping[str, _Row], port: NvlinkPort, pcie_gbps: float
) -> Iterator[tuple[int, int, Link]]:
    lanes = {(u, v): _lanes(rows[u].labels[v]) for u in gpus for v in gpus}
    switched = {u for u in gpus if sum(lanes[u, v] for v in gpus) > port.max_lanes}
    for i, u in enumerate(gpus):
        for j, v in enumerate(gpus[:i]):
            width = lanes[u, v]
            if width > port.max_lanes:
                raise TopologyError(
                    f"line {rows[v].line}: {v} to {u} is NV{width}, more than the {port.max_lanes} NVLinks of a GPU"
                )
            if width:
                kind = LinkKind.NVSWITCH if {u, v} & switched else port.kind
                yield j, i, Link(kind, width, width * port.lane_gbps)
            else:
                yield j, i, Link(_PATHS[rows[u].labels[v]], 1, pcie_gbps)


def _lanes(label: str) -> int:
    match = _NVLINKS.fullmatch(label)
    return int(match[1]) if match else 0


def _nics(lines: Sequence[str], header: _Header, rows: Mapping[str, _Row]) -> Iterator[Nic]:
    named = {match[1]: match[2] for match in map(_NIC_NAME.fullmatch, lines) if match}
    for nic in header.nics:
        paths = tuple(rows[nic].labels[gpu] for gpu in header.gpus)
        if not set(paths) <= set(_PATHS):
            raise TopologyError(f"line {rows[nic].line}: {nic} reaches a GPU by NVLink")
        yield Nic(named.get(nic, nic), paths)
