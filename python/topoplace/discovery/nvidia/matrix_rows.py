"""Header and rows of the matrix that `nvidia-smi topo -m` prints, even if copying changed its blanks.

Columns are separated by tabs or aligned by blanks, and a narrow column may touch the next, also in the header. Affinity
cells may be empty, and the rows of network adapters may be missing. So may the header: the position of a row's X then
names its column. Remarks may follow a row. Text that the topology does not use becomes a note.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from topoplace import _checks
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import PATHS

SELF = "X"
NVLINKS = re.compile(r"NV([1-9][0-9]{0,2})")
"""The label of a number of NVLinks."""
CPUS, NUMA, GPU_NUMA = "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
"""The titles of the columns after the labels, in their order."""
LEGEND = re.compile(r"\s*(?:NIC )?Legend\s*:")
MAX_GPUS = 128
MAX_DEVICES = 512

_TITLES = {CPUS: CPUS, NUMA: NUMA, GPU_NUMA: GPU_NUMA, "CPU": CPUS, "NUMA": NUMA}
_OLD_LABELS = {"SOC": "SYS"}
_GPU = re.compile(r"GPU[0-9]+")
_GPUS = re.compile(r"(?:GPU[0-9]+)+")
_DEVICE = r"(?:GPU|NIC)[0-9]+|mlx[0-9]+_[0-9]+"
_TOUCHING = re.compile(r"[0-9][A-Za-z]")
_WORD = re.compile(r"\S+")
_GREEDY_NVLINKS = re.compile(r"NV([1-9][0-9]*)")
_PATH = re.compile("|".join((SELF, *PATHS, *_OLD_LABELS)))
_LABEL = re.compile(rf"{NVLINKS.pattern}|{_PATH.pattern}")
LEGEND_OF_ACCESS = re.compile(r"\s*OK\s*=\s*Status")  # below the matrix of `topo -p2p`
_GPU_ROW = re.compile(rf"(\s*GPU[0-9]+)\s*(?:{_LABEL.pattern})")
_LABELS = re.compile(rf"(?:{_LABEL.pattern})+")
_TITLE = re.compile(r"CPU Affinity|NUMA Affinity|GPU NUMA ID|\bCPU\b|\bNUMA\b")
_AFFINITY = re.compile(r"[0-9,-]+|N/A")
_RANGE = re.compile(r"(0|[1-9][0-9]{0,4})(?:-(0|[1-9][0-9]{0,4}))?")

_OMITTED = ("...", "…")
_MAX_WORD = 4096
_MAX_BLANK_LINES = 16
_TAB_WIDTH = 8

Word = tuple[str, int, int]
"""A word of a line, the column at which it starts, and the column after its end."""


@dataclass(frozen=True)
class Header:
    """The columns of the matrix."""

    index: int
    """Index of the header's line, or of the first row if the text has no header."""
    devices: tuple[str, ...]
    titles: tuple[Word, ...]

    @cached_property
    def column(self) -> Mapping[str, int]:
        """Return the index of each device's column, by device."""
        return {device: i for i, device in enumerate(self.devices)}

    @cached_property
    def gpus(self) -> tuple[str, ...]:
        """Return the devices that are GPUs."""
        return tuple(device for device in self.devices if _GPU.fullmatch(device))

    @cached_property
    def nics(self) -> tuple[str, ...]:
        """Return the devices that are network adapters."""
        return tuple(device for device in self.devices if not _GPU.fullmatch(device))


@dataclass(frozen=True)
class MatrixRow:
    """The cells of one device."""

    line: int
    labels: tuple[str, ...]
    """The labels by column."""
    affinity: Mapping[str, str]
    """The affinities by title."""


@dataclass(frozen=True)
class Matrix:
    """The matrix as printed; every GPU has a row, network adapters may have none."""

    header: Header
    rows: Mapping[str, MatrixRow]
    notes: tuple[str, ...]
    """Notes on text beyond the matrix, and on assumptions about it."""
    end: int
    """Index of the line at which another matrix begins, else the number of lines."""


def recognised(lines: Sequence[str]) -> bool:
    """Return True if there is a header of GPUs with a GPU's row of path labels below it.

    Without a header, one GPU's row with an X and another label is enough.
    """
    header = _header_of_titles(lines)
    if header is None:
        return any(_is_bare_row(line) for line in lines)
    row = next((line for line in lines[header.index + 1 :] if _GPU_ROW.match(line)), "")
    labels = row.split()[1 : 1 + len(header.devices)]
    if labels == [SELF]:
        return not any(map(LEGEND_OF_ACCESS.match, lines))
    return any(label != SELF and _LABELS.fullmatch(label) for label in labels)


def read(lines: Sequence[str]) -> Matrix:
    """Return the matrix in `lines`, the text without terminal colours. Raise TopologyError naming the line."""
    notes: list[str] = []
    header = _header_of_titles(lines) or _header_of_rows(lines, notes)
    where = f"line {header.index + 1}"
    if len(header.devices) > MAX_DEVICES or len(header.gpus) > MAX_GPUS:
        raise TopologyError(f"{where}: more than {MAX_GPUS} GPUs or {MAX_DEVICES} columns")
    if len(header.column) < len(header.devices):
        twice = next(device for i, device in enumerate(header.devices) if header.column[device] != i)
        if twice in _OMITTED:
            raise TopologyError(f"{where}: {twice} marks omitted columns; give the complete text")
        raise TopologyError(f"{where}: column {twice} appears twice")
    rows = _read_rows(lines, header, notes)
    end = _second_matrix(lines, max(row.line for row in rows.values()))
    if end < len(lines):
        notes.append(
            f"A second matrix begins in line {end + 1} and is left out; give each machine its own text."
        )
    return Matrix(header, rows, tuple(notes), end)


def _second_matrix(lines: Sequence[str], start: int) -> int:
    """Return the index, from `start` on, of the header of another matrix: it is of another machine, or another time.

    If there is none, return the number of lines.
    """
    for index in range(start, len(lines)):
        if not _GPUS.match(lines[index].lstrip()):
            continue
        has_row = _is_row(_below(lines, index))
        if has_row and _as_header(index, lines[index], lines):
            return index
    return len(lines)


def is_cpu_list(word: str) -> bool:
    """Return True if `word` is like "0-23,48-71", or like "0-0,8-8" with several ranges of one CPU."""
    ranges = [None] if len(word) > _MAX_WORD else [_RANGE.fullmatch(part) for part in word.split(",")]
    one_cpu = 0 if len(ranges) > 1 else 1
    return all(found and (found[2] is None or int(found[2]) - int(found[1]) >= one_cpu) for found in ranges)


# ---- header ----------------------------------------------------------------------------------------------------


def _header_of_titles(lines: Sequence[str]) -> Header | None:
    """Return the header, the first line of columns GPU0, GPU1, ... that has the row of a GPU below it, or else any."""
    first: Header | None = None
    for index, line in enumerate(lines):
        if not _GPUS.match(line.lstrip()):
            continue
        has_row = _is_row(_below(lines, index))
        if (has_row or first is None) and (header := _as_header(index, line, lines)):
            if has_row:
                return header
            first = header
    return first


def _as_header(index: int, line: str, lines: Sequence[str]) -> Header | None:
    titles = tuple((_TITLES[match[0]], *match.span()) for match in _TITLE.finditer(line))
    words = line[: titles[0][1]].split() if titles else line.split()
    if not words or not _GPU.match(words[0]) or any(map(_LABEL.match, words)):
        return None
    if any(map(_TOUCHING.search, words)):
        name = _row_names(lines, index)
        words = [device for word in words for device in _devices(word, name)]
    if not _GPU.fullmatch(words[0]) or any(map(_LABEL.match, words)):
        return None
    return Header(index, tuple(words), titles)


def _row_names(lines: Sequence[str], index: int) -> re.Pattern[str]:
    """Return a pattern of one device name: that of a row below line `index`, or one of the usual form."""
    below = (line.split(None, 1) for line in lines[index + 1 : index + 1 + MAX_DEVICES])
    known = {words[0] for words in below if len(words) == 2 and _LABEL.match(words[1])}
    names = [f"{re.escape(name)}(?![0-9])" for name in sorted(known, key=len, reverse=True)]
    return re.compile("|".join((*names, _DEVICE)))


def _devices(word: str, name: re.Pattern[str]) -> list[str]:
    """Return the device name in a word of the header, or the names if columns touch."""
    if len(word) > _MAX_WORD or name.fullmatch(word):
        return [word]
    found = name.findall(word)
    if "".join(found) == word:
        return found
    gpus = _GPUS.match(word)  # behind GPUs anything is an adapter
    return [*_GPU.findall(gpus[0]), word[gpus.end() :]] if gpus else [word]


def _below(lines: Sequence[str], index: int) -> str:
    """Return the next line with content below line `index`; "" if there is none, or only after many blank lines."""
    return next(filter(str.strip, lines[index + 1 : index + 2 + _MAX_BLANK_LINES]), "")


def _is_row(line: str) -> bool:
    """Return True if `line` is the row of a GPU: labels, then nothing or affinities; cells may touch."""
    match = _GPU_ROW.match(line)
    words = line[match.end(1) :].split() if match else []
    labels = next((i for i, word in enumerate(words) if not _LABELS.fullmatch(word)), len(words))
    return labels > 1 or (labels == 1 and (len(words) == 1 or _AFFINITY.fullmatch(words[1]) is not None))


def _is_bare_row(line: str) -> bool:
    """Return True if `line` is the row of a GPU with an X and at least one other label."""
    if not _GPU_ROW.match(line):
        return False
    labels = line.split()[1:]
    count = next((i for i, label in enumerate(labels) if not _LABEL.fullmatch(label)), len(labels))
    return count > 1 and SELF in labels[:count]


def _header_of_rows(lines: Sequence[str], notes: list[str]) -> Header:
    """Return the header that the rows of a text without one need: each device has the column of its X."""
    index = next((i for i, line in enumerate(lines) if _is_bare_row(line)), None)
    if index is None:
        raise TopologyError("no GPU: no line is a header of columns GPU0, GPU1, ...")
    rows = [words for line in lines[index : index + MAX_DEVICES] if (words := _bare_words(line))]
    width = min(map(len, rows)) - 1
    why = _why_no_header(rows, width)
    if why:
        raise TopologyError(
            f"line {index + 1}: the rows have no header, and {why}; "
            "give the line with GPU0, GPU1, ... above them"
        )
    named = {row.index(SELF) - 1: row[0] for row in rows}
    gpus = sum(map(bool, map(_GPU.fullmatch, named.values())))
    unnamed = width - len(named)
    more = f", and {unnamed} columns without a row are taken as network adapters" if unnamed else ""
    notes.append(f"The text has no header: each row names the column of its X{more}.")
    devices = tuple(named.get(i, f"NIC{i - gpus}") for i in range(width))
    return Header(index - 1, devices, _titles_of_row(lines[index], width))


def _why_no_header(rows: Sequence[Sequence[str]], width: int) -> str:
    """Return why the rows do not state the columns, as the end of a sentence; "" if they do."""
    if any(len(row) != width + 1 or row.count(SELF) != 1 for row in rows):
        return f"not each of them has one X and {width} labels"
    columns = [row.index(SELF) - 1 for row in rows if _GPU.fullmatch(row[0])]
    if sorted(columns) != list(range(len(columns))):
        return f"their X are not in the columns 1 to {len(columns)}"
    return ""


def _bare_words(line: str) -> list[str]:
    """Return the name and the labels of a row without a header; [] for another line."""
    words = line.split()
    count = next((i for i, word in enumerate(words[1:], 1) if not _LABEL.fullmatch(word)), len(words))
    return words[:count] if count > 2 else []


def _titles_of_row(line: str, width: int) -> tuple[Word, ...]:
    cells = [(match.start(), match.end()) for match in _WORD.finditer(line)][1 + width :]
    return tuple(
        (title, start, end) for title, (start, end) in zip((CPUS, NUMA, GPU_NUMA), cells, strict=False)
    )


# ---- rows ------------------------------------------------------------------------------------------------------


def _read_rows(lines: Sequence[str], header: Header, notes: list[str]) -> dict[str, MatrixRow]:
    """Return the rows by device."""
    rows: dict[str, MatrixRow] = {}
    missing = set(header.gpus)
    for number, line in _matrix_lines(lines, header):
        if not missing and _GPUS.match(line.lstrip()) and _as_header(number - 1, line, lines):
            break  # another matrix begins
        words, remark = _words(number, line, header)
        device = words[0][0]
        if device in rows:
            raise TopologyError(
                f"line {number}: row {device} appears twice, first in line {rows[device].line}"
            )
        if device in header.column:
            if remark:
                notes.append(f"Line {number}: {_checks.shown(remark)} after the row of {device} is left out.")
            if not missing and _is_cut(lines, number, words[1:], device, header):
                notes.append(
                    f"Line {number}: the text ends inside the row of {device}, whose cells are left out."
                )
                break
            rows[device] = _read_row(number, line.removesuffix(remark), words[1:], header)
            missing.discard(device)
        elif _GPU.fullmatch(device) or missing:
            raise TopologyError(
                f"line {number}: {_checks.shown(device)} is not a column of the header; give the text as printed"
            )
        else:
            break  # a prompt, or other text copied along
    for device in header.gpus:
        if device in missing:
            raise TopologyError(
                f"row {device} is missing, column {device} is in line {header.index + 1}; give the complete text"
            )
    return rows


def _is_cut(lines: Sequence[str], number: int, words: Sequence[Word], device: str, header: Header) -> bool:
    """Return True if the text ends inside the row of a network adapter: its last cell may be cut too.

    The rows of GPUs have the adapters' paths too, so only paths between adapters are lost.
    """
    if _GPU.fullmatch(device) or len(words) >= len(header.devices) or any(map(str.strip, lines[number:])):
        return False
    return all(_LABEL.fullmatch(word) for word, _, _ in words[:-1])


def _matrix_lines(lines: Sequence[str], header: Header) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(lines[header.index + 1 :], header.index + 2):
        if LEGEND.match(line):
            return
        if line.strip():
            yield number, line


def _read_row(number: int, line: str, words: Sequence[Word], header: Header) -> MatrixRow:
    count = len(header.devices)
    for device, (word, _, _) in zip(header.devices, words, strict=False):
        if word in _OMITTED:
            raise TopologyError(f"line {number}: {word} marks omitted columns; give the complete text")
        if not _LABEL.fullmatch(word) and not _AFFINITY.fullmatch(word):
            raise TopologyError(
                f"line {number}: unknown label {_checks.shown(word)} in column {device}; "
                f"known: {', '.join((SELF, 'NV#', *PATHS))}"
            )
    found = next((i for i, (word, _, _) in enumerate(words) if not _LABEL.fullmatch(word)), len(words))
    if found != count:
        raise TopologyError(
            f"line {number}: {found} columns, the header has {count}; give the line as printed"
        )
    labels = tuple(sys.intern(_OLD_LABELS.get(word, word)) for word, _, _ in words[:count])
    return MatrixRow(number, labels, _affinity(number, line, words[count:], header))


def _affinity(number: int, line: str, words: Sequence[Word], header: Header) -> dict[str, str]:
    """Return the affinity cells of a row, those after the labels, by the title of their column.

    Cells get titles in order if none is empty, else by the tabs in the line, else by their position in the line.
    """
    titles = header.titles
    if len(words) > len(titles):
        raise TopologyError(
            f"line {number}: {len(words)} affinities, the header has {len(titles)}; remove what is not of the row"
        )
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


def _words(number: int, line: str, header: Header) -> tuple[list[Word], str]:
    """Return the words of a row, cut where narrow columns touch, as in "GPU0X" or "SYS0-23", and a remark after it.

    A remark begins with the first word after the labels that is neither a label nor an affinity.
    """
    words: list[Word] = []
    for match in _WORD.finditer(line):
        at, word = match.start(), match[0]
        pieces = [word] if words else _row_name(word, header)
        pieces = [cell for part in pieces for cell in _cells(number, part)]
        if len(words) > len(header.devices) and not all(map(_is_cell, pieces)):
            return words, line[at:]
        for piece in pieces:
            words.append((piece, at, at + len(piece)))
            at += len(piece)
        if len(words) > 2 * MAX_DEVICES:
            raise TopologyError(f"line {number}: more than {MAX_DEVICES} columns")
    return words, ""


def _is_cell(word: str) -> bool:
    return bool(_LABEL.fullmatch(word) or _AFFINITY.fullmatch(word))


def _row_name(word: str, header: Header) -> list[str]:
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
    cuts = [cut for cut in range(3, min(6, match.end())) if is_cpu_list(word[cut:])]
    if len(cuts) != 1:
        raise TopologyError(
            f"line {number}: {_checks.shown(word)} can be a label and an affinity in {len(cuts)} ways; "
            "put a blank between them"
        )
    return cuts[0]
