"""Conversion of a matrix of `nvidia-smi topo -m` in a Markdown table, or in comments, to the tool's form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

_ROW = re.compile(r"\s*\|\s*(?:[A-Za-z]\w*)?\s*\|")
_RULE = re.compile(r"\s*\|[\s|:-]+")
_DEVICE = re.compile(r"GPU[0-9]+|NIC[0-9]+|[a-z][a-z0-9]*_[0-9]+")
_SIGN = re.compile(r"[|#/]")
_COMMENT = re.compile(r"\s*(?:#|//)(?=\s+(?:GPU|NIC)[0-9]|\s+mlx[0-9]+_[0-9])")


def as_printed(lines: Iterable[str]) -> Iterator[str]:
    """Yield `lines` without the bars of tables and the comment signs before a matrix.

    The column of a table without a title has the names of the rows. It comes first, then devices and affinities.
    """
    order: list[int] = []
    for line in lines:
        if not _SIGN.search(line):  # no bar and no comment: most lines of a long text
            order = []
            yield line
            continue
        bars = line.lstrip().startswith("|")
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if bars else []
        order = (_order(cells) or order) if bars else []
        if _RULE.fullmatch(line):
            yield ""
        elif order:
            yield "\t".join(cells[i] for i in order if i < len(cells))
        else:
            comment = _COMMENT.match(line)
            yield line[comment.end() :] if comment else line.replace("|", " ") if _ROW.match(line) else line


def _order(cells: Sequence[str]) -> list[int]:
    """Return in which order `cells` of a header are printed; [] if they are no header, or in that order already."""
    devices = [i for i, cell in enumerate(cells) if _DEVICE.fullmatch(cell)]
    names = [i for i, cell in enumerate(cells) if not cell]
    if len(devices) < 2 or len(names) != 1 or names == [0]:
        return []
    return [*names, *devices, *(i for i in range(len(cells)) if i not in devices and i not in names)]
