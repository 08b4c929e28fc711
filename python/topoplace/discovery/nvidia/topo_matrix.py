"""Reader of the matrix that `nvidia-smi topo -m` prints.

The text has a header of device names and affinity titles, one row per device with a label per column, and a legend.
Columns are separated by tabs or aligned by blanks, and a narrow column may touch the next. Affinity cells may be empty,
and the rows of network adapters missing.

Labels are X for the device itself and NV# for # parallel NVLinks. The others are paths: PIX and PXB (PCIe switches
only), PHB and NODE (through a host bridge), SYS (across sockets, SOC in old drivers). The text contains no speeds,
neither of NVLinks nor of PCIe; `nvidia-smi topo -mp` omits NVLinks altogether.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError
from topoplace.topology.devices import Gpu, Nic
from topoplace.topology.links.link import Link, LinkKind
from topoplace.topology.links.link_catalogue import (
    NVLINK_MODELS,
    PCIE3_X16_GB_PER_S,
    LinkSpeed,
    model_known,
    nvlink_of,
)
from topoplace.topology.topology import Topology

# Without a model: 25 GB/s a lane, as in generations 2, 3 and 4, and the largest number of lanes of any GPU.
_ANY_PORT = LinkSpeed(LinkKind.NVLINK, 25.0, None, "direct", 18)

_PATHS = {
    "PIX": LinkKind.PCIE,
    "PXB": LinkKind.PCIE,
    "PHB": LinkKind.HOST,
    "NODE": LinkKind.HOST,
    "SYS": LinkKind.SYSTEM,
}
_SELF = "X"
_OLD_LABELS = {"SOC": "SYS"}

_GPU = re.compile(r"GPU[0-9]+")
_GLUED_DEVICES = re.compile(r"(?:(?:GPU|NIC)[0-9]+){2,}")
_DEVICE = re.compile(r"(?:GPU|NIC)[0-9]+")
_GPU_ROW = re.compile(r"\s*GPU[0-9]+\s")
_WORD = re.compile(r"\S+")
_NVLINKS = re.compile(r"NV([1-9][0-9]{0,2})")
_GREEDY_NVLINKS = re.compile(r"NV([1-9][0-9]*)")
_PATH = re.compile("|".join((_SELF, *_PATHS, *_OLD_LABELS)))
_LABEL = re.compile(rf"{_NVLINKS.pattern}|{_PATH.pattern}")
_LABELS = re.compile(rf"(?:{_LABEL.pattern})+")
_TITLE = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID")
_AFFINITY = re.compile(r"[0-9,-]+|N/A")
_LEGEND = re.compile(r"\s*(?:NIC )?Legend\s*:")
_NVLINK_IN_LEGEND = re.compile(r"\s*NV[0-9#]+\s*=")
_LEGEND_BEFORE_NVLINK = re.compile(r"\s*[A-Z]{3}\s*=\s*Path traverses\b")
_LOST_UNDERLINE = re.compile(
    r"^\[4m|\[0m$", re.MULTILINE
)  # the header's underline without its escape characters
_NIC_NAME = re.compile(r"\s*(NIC[0-9]+):\s*(\S+)\s*")
_NUMBER = re.compile(r"[0-9]{1,4}")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,4})(?:-([1-9][0-9]{0,4}))?")

_MAX_GPUS = 128
_MAX_DEVICES = 512
_MAX_WORD = 4096
_TAB_WIDTH = 8

Word = tuple[str, int, int]
"""A word of a line, the column at which it starts, and the column after its end."""


def recognised(text: str) -> bool:
    """Return True if `text` looks like the output of `nvidia-smi topo -m`.

    It has a header of GPUs, and below that a GPU's row with a path label.
    """
    lines = _clean_lines(text[:65536])
    header = next(filter(None, map(_as_header, range(len(lines)), lines)), None)
    if header is None:
        return False
    row = next((line for line in lines[header.index + 1 :] if _GPU_ROW.match(line)), "")
    labels = row.split()[1 : 1 + len(header.devices)]
    return any(label != _SELF and _LABELS.fullmatch(label) for label in labels) or labels == [_SELF]


def parse(
    text: str | bytes,
    gpu_model: str | None = None,
    *,
    pcie_gb_per_s: float = PCIE3_X16_GB_PER_S,
    assume_no_nvlink: bool = False,
    name: str = "nvidia-smi",
    machine: str = "machine0",
) -> Topology:
    """Read the topology from the output of `nvidia-smi topo -m`.

    Sockets follow the NUMA affinity, or the CPU affinity if the NUMA affinity is unknown. NVLinks are assumed to lead
    to a switch if a GPU's row has more NVLinks in total than the GPU's model has. `notes` lists all assumptions.

    gpu_model: such as "V100" or "NVIDIA A100-SXM4-40GB"; it sets the speed of an NVLink, 25 GB/s if it is None.
    pcie_gb_per_s: GB/s assumed for every path that is not an NVLink.
    assume_no_nvlink: if True, read the text of `topo -mp` as that of a machine without NVLinks. If False, such a text
    (its legend has no NV#) is refused, because it omits NVLinks.
    Raises TopologyError naming the line and the cell.
    """
    pcie_gb_per_s = _checks.positive(pcie_gb_per_s, "pcie_gb_per_s", TopologyError)
    assume_no_nvlink = _checks.flag(assume_no_nvlink, "assume_no_nvlink", TopologyError)
    if gpu_model is not None:
        gpu_model = _checks.text(gpu_model, "gpu_model", TopologyError)
    lines = _clean_lines(text)
    header = _find_header(lines)
    rows = _read_rows(lines, header)
    _check_symmetry(header, rows)
    has_nvlink = any(label.startswith("NV") for gpu in header.gpus for label in rows[gpu].labels)
    notes = _notes(lines, header, rows, gpu_model, pcie_gb_per_s)
    if not has_nvlink and not assume_no_nvlink and len(header.gpus) > 1:
        notes += _hidden(lines, header)
    model, port = _known_model(gpu_model, has_nvlink)
    return Topology(
        _gpus(header, rows, model, machine),
        tuple(_links(header, rows, port, pcie_gb_per_s)),
        default=pcie_gb_per_s,
        name=name,
        nics=tuple(_nics(lines, header, rows)),
        notes=tuple(notes),
    )


# ---- header and rows -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Header:
    index: int
    devices: tuple[str, ...]
    titles: tuple[Word, ...]

    @cached_property
    def column(self) -> Mapping[str, int]:
        """Return the index of each device's column, by device."""
        return {device: i for i, device in enumerate(self.devices)}

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        return tuple(device for device in self.devices if _GPU.fullmatch(device))

    @cached_property
    def nics(self) -> tuple[str, ...]:
        return tuple(device for device in self.devices if not _GPU.fullmatch(device))


@dataclass(frozen=True)
class _Row:
    line: int
    labels: tuple[str, ...]  # by column
    affinity: Mapping[str, str]  # by title


def _clean_lines(text: object) -> list[str]:
    if not isinstance(text, str | bytes):
        raise TopologyError(f"text = {_checks.shown(text)} is not a string")
    clean = _LOST_UNDERLINE.sub("", decode.decoded(text))
    return [line for _, line in decode.numbered_lines(clean)]


def _as_header(index: int, line: str) -> _Header | None:
    if "GPU" not in line:
        return None
    titles = tuple((match[0], *match.span()) for match in _TITLE.finditer(line))
    words = line[: titles[0][1]].split() if titles else line.split()
    devices = [device for word in words for device in _devices(word)]
    if not devices or not _GPU.fullmatch(devices[0]) or any(map(_LABEL.match, devices)):
        return None
    return _Header(index, tuple(devices), titles)


def _devices(word: str) -> list[str]:
    """Return the device name in a word of the header, or the names if narrow columns touch."""
    return _DEVICE.findall(word) if _GLUED_DEVICES.fullmatch(word) else [word]


def _find_header(lines: Sequence[str]) -> _Header:
    header = next(filter(None, map(_as_header, range(len(lines)), lines)), None)
    if header is None:
        raise TopologyError("no GPU: no line is a header of columns GPU0, GPU1, ...")
    where = f"line {header.index + 1}"
    if len(header.devices) > _MAX_DEVICES or len(header.gpus) > _MAX_GPUS:
        raise TopologyError(f"{where}: more than {_MAX_GPUS} GPUs or {_MAX_DEVICES} columns")
    seen: set[str] = set()
    for device in header.devices:
        if device in seen:
            raise TopologyError(f"{where}: column {device} appears twice")
        seen.add(device)
    return header


def _read_rows(lines: Sequence[str], header: _Header) -> dict[str, _Row]:
    """Return the rows by device; every GPU has one, network adapters may have none."""
    rows: dict[str, _Row] = {}
    missing = set(header.gpus)
    for number, line in _matrix_lines(lines, header):
        words = _words(number, line, header)
        device = words[0][0]
        if device in rows:
            raise TopologyError(
                f"line {number}: row {device} appears twice, first in line {rows[device].line}"
            )
        if device in header.column:
            rows[device] = _read_row(number, line, words[1:], header)
            missing.discard(device)
        elif _GPU.fullmatch(device) or missing:
            raise TopologyError(f"line {number}: {_checks.shown(device)} is not a column of the header")
        else:
            break  # a prompt, or other text copied along
    for device in header.gpus:
        if device in missing:
            raise TopologyError(f"row {device} is missing, column {device} is in line {header.index + 1}")
    return rows


def _matrix_lines(lines: Sequence[str], header: _Header) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines[header.index + 1 :], header.index + 2):
        if _LEGEND.match(line):
            return
        if line.strip():
            yield number, line


def _read_row(number: int, line: str, words: Sequence[Word], header: _Header) -> _Row:
    count = len(header.devices)
    for device, (word, _, _) in zip(header.devices, words, strict=False):
        if not _LABEL.fullmatch(word) and not _AFFINITY.fullmatch(word):
            raise TopologyError(f"line {number}: unknown label {_checks.shown(word)} in column {device}")
    found = next((i for i, (word, _, _) in enumerate(words) if not _LABEL.fullmatch(word)), len(words))
    if found != count:
        raise TopologyError(f"line {number}: {found} columns, the header has {count}")
    labels = tuple(sys.intern(_OLD_LABELS.get(word, word)) for word, _, _ in words[:count])
    return _Row(number, labels, _affinity(number, line, words[count:], header))


def _affinity(number: int, line: str, words: Sequence[Word], header: _Header) -> dict[str, str]:
    """Return the affinity cells of a row, those after the labels, by the title of their column.

    Cells get titles in order if none is empty, else by the tabs in the line, else by their position in the line.
    """
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
    if words and len(words) == len(titles) - 1 and words[0][1] >= titles[0][1] + _TAB_WIDTH:
        # An empty cell was one tab, and its title two: the following cells are below the titles before their own.
        return {title: word for (title, _, _), (word, _, _) in zip(titles[1:], words, strict=True)}
    return {min(titles, key=lambda t: max(t[1] - end, start - t[2]))[0]: word for word, start, end in words}


# ---- cells without a blank between them ------------------------------------------------------------------------


def _words(number: int, line: str, header: _Header) -> list[Word]:
    """Return the words of a row, cut where narrow columns touch: "GPU0X", "NV18NV18", "SYS0-23"."""
    words: list[Word] = []
    for match in _WORD.finditer(line):
        at, word = match.start(), match[0]
        pieces = [word] if words else _row_name(word, header)
        for piece in (cell for part in pieces for cell in _cells(number, part)):
            words.append((piece, at, at + len(piece)))
            at += len(piece)
        if len(words) > 2 * _MAX_DEVICES:
            raise TopologyError(f"line {number}: more than {_MAX_DEVICES} columns")
    return words


def _row_name(word: str, header: _Header) -> list[str]:
    """Split the first word of a row into the name of a device and the text that touches it."""
    if word in header.column:
        return [word]
    names = [device for device in header.devices if word.startswith(device)]
    name = max(names, key=len, default="")
    return [name, word[len(name) :]] if name and _LABEL.match(word, len(name)) else [word]


def _cells(number: int, word: str) -> list[str]:
    """Return `word` cut into labels and at most one affinity; if it cannot be cut, return it whole."""
    cells: list[str] = []
    rest = word if len(word) <= _MAX_WORD else ""
    while rest and not _AFFINITY.fullmatch(rest):
        cut = _first_label(number, rest)
        if not cut:
            return [word]
        cells.append(rest[:cut])
        rest = rest[cut:]
    return ([*cells, rest] if rest else cells) or [word]


def _first_label(number: int, word: str) -> int:
    """Return the length of the label at the start of `word`; 0 if there is none."""
    if match := _PATH.match(word):
        return match.end()
    match = _GREEDY_NVLINKS.match(word)
    if match is None:
        return 0
    if word[match.end() :][:1] not in ("-", ","):
        return match.end() if len(match[1]) <= 3 else 0
    cuts = [cut for cut in range(3, min(6, match.end())) if _is_cpu_list(word[cut:])]
    if len(cuts) != 1:
        raise TopologyError(
            f"line {number}: {_checks.shown(word)} can be a label and an affinity in {len(cuts)} ways"
        )
    return cuts[0]


def _is_cpu_list(word: str) -> bool:
    ranges = [None] if len(word) > _MAX_WORD else [_RANGE.fullmatch(part) for part in word.split(",")]
    return all(found and (found[2] is None or int(found[1]) < int(found[2])) for found in ranges)


# ---- meaning ---------------------------------------------------------------------------------------------------


def _check_symmetry(header: _Header, rows: Mapping[str, _Row]) -> None:
    there_are = [(i, device, rows[device]) for i, device in enumerate(header.devices) if device in rows]
    for count, (i, u, row) in enumerate(there_are, 1):
        for j, v, other in there_are[:count]:
            there, back = row.labels[j], other.labels[i]
            if (there == _SELF) != (i == j):
                raise TopologyError(f"line {row.line}: {u} to {v} is {there}")
            if there != back:
                raise TopologyError(
                    f"line {other.line}: {v} to {u} is {back}, but line {row.line}: {u} to {v} is {there}"
                )


def _known_model(gpu_model: str | None, has_nvlink: bool) -> tuple[str | None, LinkSpeed]:
    """Return the GPU model's short name, and speed and number of its NVLinks.

    TopologyError if the model's NVLinks are unknown and the text has NVLinks.
    """
    if gpu_model is None:
        return None, _ANY_PORT
    speed = nvlink_of(gpu_model)
    if speed is not None:
        return model_known(gpu_model), speed
    if has_nvlink:
        known = ", ".join(NVLINK_MODELS)
        raise TopologyError(f"gpu_model = {_checks.shown(gpu_model)} is not known; known: {known}")
    return gpu_model, _ANY_PORT


def _notes(
    lines: Sequence[str], header: _Header, rows: Mapping[str, _Row], model: str | None, pcie_gb_per_s: float
) -> list[str]:
    labels = {label for gpu in header.gpus for label in rows[gpu].labels}
    notes: list[str] = []
    if model is None and any(label.startswith("NV") for label in labels):
        notes.append(f"The GPU model is not told: {_ANY_PORT.gb_per_s:g} GB/s per NVLink is assumed.")
    if labels & set(_PATHS):
        notes.append(f"The speed of PCIe is not told: {pcie_gb_per_s:g} GB/s is assumed.")
    if missing := [nic for nic in header.nics if nic not in rows]:
        notes.append(f"Network adapters with a column and no row: {', '.join(missing)}.")
    return notes


def _hidden(lines: Sequence[str], header: _Header) -> list[str]:
    """Return notes on a matrix without NVLinks; TopologyError if its legend shows that NVLinks were omitted."""
    legends = [i for i, line in enumerate(lines) if i > header.index and _LEGEND.match(line)]
    if not legends:
        return [
            "The text has no legend, so it does not tell whether NVLinks are shown (topo -m) or hidden (-mp)."
        ]
    legend = lines[legends[0] :]
    if not any(_NVLINK_IN_LEGEND.match(line) or _LEGEND_BEFORE_NVLINK.match(line) for line in legend):
        raise TopologyError(
            f"line {legends[0] + 1}: the legend has no NV#, so this is `topo -mp`, which hides NVLinks; "
            "assume_no_nvlink=True reads it as a machine without any"
        )
    return []


def _gpus(header: _Header, rows: Mapping[str, _Row], model: str | None, machine: str) -> tuple[Gpu, ...]:
    affinities = [rows[gpu].affinity for gpu in header.gpus]
    sockets = _sockets(affinities)
    gpus: list[Gpu] = []
    for i, (gpu, affinity) in enumerate(zip(header.gpus, affinities, strict=True)):
        cpus, node = affinity.get("CPU Affinity", ""), affinity.get("NUMA Affinity", "")
        gpus.append(
            Gpu(
                i,
                gpu,
                model,
                machine,
                sockets[i],
                numa_node=int(node) if _NUMBER.fullmatch(node) else None,
                cpus=cpus if _is_cpu_list(cpus) else None,
            )
        )
    return tuple(gpus)


def _sockets(affinities: Sequence[Mapping[str, str]]) -> list[int | None]:
    """Return the socket of each GPU: one number, from 0, for each distinct NUMA affinity, or else CPU affinity.

    All are None if a GPU has neither.
    """
    for title in ("NUMA Affinity", "CPU Affinity"):
        cells = [affinity.get(title, "N/A") for affinity in affinities]
        if "N/A" not in cells:
            number = {cell: i for i, cell in enumerate(dict.fromkeys(cells))}
            return [number[cell] for cell in cells]
    return [None] * len(affinities)


def _links(
    header: _Header, rows: Mapping[str, _Row], port: LinkSpeed, pcie_gb_per_s: float
) -> Iterator[tuple[int, int, Link]]:
    columns = [header.column[gpu] for gpu in header.gpus]
    labels = [[rows[gpu].labels[column] for column in columns] for gpu in header.gpus]
    switched = [sum(map(_lanes, row)) > port.most_links for row in labels]
    known: dict[tuple[str, bool], Link] = {}
    for j, i in combinations(range(len(labels)), 2):
        key = (labels[i][j], switched[i] or switched[j])
        if key not in known:
            u, v = header.gpus[i], header.gpus[j]
            known[key] = _link(f"line {rows[v].line}: {v} to {u}", *key, port, pcie_gb_per_s)
        yield j, i, known[key]


def _link(where: str, label: str, switched: bool, port: LinkSpeed, pcie_gb_per_s: float) -> Link:
    width = _lanes(label)
    if not width:
        return Link(_PATHS[label], 1, pcie_gb_per_s)
    if width > port.most_links:
        raise TopologyError(f"{where} is {label}, more than the {port.most_links} NVLinks of a GPU")
    return Link(LinkKind.NVSWITCH if switched else port.kind, width, width * port.gb_per_s)


def _lanes(label: str) -> int:
    match = _NVLINKS.fullmatch(label)
    return int(match[1]) if match else 0


def _nics(lines: Sequence[str], header: _Header, rows: Mapping[str, _Row]) -> Iterator[Nic]:
    named = {match[1]: match[2] for match in map(_NIC_NAME.fullmatch, lines) if match}
    for nic in header.nics:
        column = header.column[nic]
        paths = tuple(rows[gpu].labels[column] for gpu in header.gpus)
        if not set(paths) <= set(_PATHS):
            line = rows[nic].line if nic in rows else rows[header.gpus[0]].line
            raise TopologyError(f"line {line}: {nic} reaches a GPU by NVLink")
        yield Nic(named.get(nic, nic), paths)
