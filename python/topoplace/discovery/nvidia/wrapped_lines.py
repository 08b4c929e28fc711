"""Rows of the matrix of `nvidia-smi topo -m` that a narrow terminal broke into several lines, joined again.

A terminal of 80 columns breaks the header and the rows of 8 GPUs with adapters. If a piece is as long as the longest,
the break may be inside a cell or between two; both are tried, and exactly one must give a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product

from topoplace.discovery.nvidia import matrix_rows
from topoplace.errors import TopologyError

_NAME = r"(?:GPU[0-9]+|NIC[0-9]+|[a-z][a-z0-9]*_[0-9a-z_]+)"
_NAMES = re.compile(rf"(?:\s+{_NAME})+\s*")
_LABEL = r"(?:X|NV[0-9]{1,3}|PIX|PXB|PHB|NODE|SYS|SOC)"
_HEADER = re.compile(rf"\s*GPU0(?:\s+{_NAME})*(?:\s+[A-Za-z]+)*\s*")
_ROW = re.compile(rf"\s*({_NAME})(?:\s+{_LABEL})+(?:\s+\S+)*\s*")
_REST_OF_HEADER = re.compile(r"(?!\s*GPU0(?![0-9]))[A-Za-z0-9_ \t]+")
_REST_OF_ROW = re.compile(r"[A-Z0-9,/ \t-]+")
_TITLE = re.compile("|".join((matrix_rows.CPUS, matrix_rows.NUMA, matrix_rows.GPU_NUMA)))
_APART = " ; "  # stands for any title where two headers are compared
_MOST_PIECES = 8
_MAX_LINE = 1000  # more columns than any terminal has


def joined(lines: list[str]) -> list[str]:
    """Return `lines` with the pieces of each broken row joined in its first line; the lines of the others are empty.

    If the header is whole, `lines` is returned. Raise TopologyError naming the line of a row that can be joined in no
    way, or in several.
    """
    start = next((i for i, line in enumerate(lines) if _is_start(line)), len(lines))
    rows = list(_rows(lines, start)) if start < len(lines) else []
    if len(rows) < 2 or len(rows[0]) < 2:
        return lines
    width = max(_width(lines[i]) for row in rows for i in row[:-1])
    names = [match[1] for row in rows[1:] if (match := _ROW.fullmatch(lines[row[0]]))]
    header = _joined(lines, rows[0], width, lambda text: _is_header(text, names))
    devices, titles = len(_TITLE.sub("", header).split()), len(_TITLE.findall(header))
    found = list(lines)
    for row in rows:
        text = (
            header
            if row is rows[0]
            else _joined(lines, row, width, lambda text: _is_row(text, devices, titles))
        )
        found[row[0] : row[-1] + 1] = [text, *[""] * (len(row) - 1)]
    return found


def _rows(lines: Sequence[str], start: int) -> Iterator[list[int]]:
    """Yield the indices of the lines of the header, which begins at `start`, and of each row below it."""
    here, rest = [start], _REST_OF_HEADER
    for i in range(start + 1, len(lines)):
        line = lines[i]
        if len(line) > _MAX_LINE:
            break
        if _ROW.fullmatch(line):
            yield here
            here, rest = [i], _REST_OF_ROW
        elif line.strip() and rest.fullmatch(line) and len(here) < _MOST_PIECES:
            here.append(i)
        else:
            break
    yield here


def _is_start(line: str) -> bool:
    return "GPU0" in line and len(line) <= _MAX_LINE and _HEADER.fullmatch(line) is not None


def _is_header(text: str, names: Sequence[str]) -> bool:
    """Return True if `text` has titles, and columns that begin with `names`, those of the rows."""
    columns = _TITLE.sub("", text)
    return _NAMES.fullmatch(f" {columns}") is not None and columns.split()[: len(names)] == list(names)


def _is_row(text: str, devices: int, titles: int) -> bool:
    """Return True if `text` has a name, a label for each device, and at most as many affinities as there are titles."""
    labels, affinities = text.split()[1 : 1 + devices], text.split()[1 + devices :]
    return (
        len(labels) == devices
        and all(re.fullmatch(_LABEL, label) for label in labels)
        and len(affinities) <= titles
        and all(cell == "N/A" or matrix_rows.is_cpu_list(cell) for cell in affinities)
    )


def _joined(lines: Sequence[str], row: Sequence[int], width: int, fits: Callable[[str], bool]) -> str:
    """Return the pieces of `row` joined in the only way that `fits`; TopologyError if there is none, or several."""
    if len(row) == 1:
        return lines[row[0]]
    pieces = [lines[i] for i in row]
    breaks = [
        ("",) if rest[0].isspace() else ("\t",) if _width(piece) < width else ("", "\t")
        for piece, rest in pairwise(pieces)
    ]
    ways = {
        "".join(part for pair in zip(pieces, (*blanks, ""), strict=True) for part in pair)
        for blanks in product(*breaks)
    }
    found = {tuple(_TITLE.sub(_APART, way).split()): way for way in sorted(ways) if fits(way)}
    if len(found) != 1:
        raise TopologyError(
            f"line {row[0] + 1}: goes on in line {row[1] + 1}, and where a cell ends is not clear; "
            "give the text as printed to a wider terminal or to a file"
        )
    (only,) = found.values()
    return only


def _width(line: str) -> int:
    return len(line.expandtabs())
