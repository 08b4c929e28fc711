"""Print tables: coloured on a terminal if the package rich is installed, else as plain aligned text."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence

_LONGEST_NAME = 20
"""Longest text of a column that is not broken on a narrow terminal; other columns are, and nothing is cut off."""

Colours = Sequence[str | Sequence[str]]
"""For each row, the name of a colour (as in the package rich) or "", or a list of such names, one per cell."""


def show(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", colours: Colours = ()
) -> None:
    """Print a table with the given column heads. Floats have three significant digits; numbers are right-aligned.

    colours: colours of rows or cells, used only on a terminal.
    """
    cells = [[_cell(value) for value in row] for row in rows]
    numeric = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(columns))]
    if sys.stdout.isatty() and _show_rich(columns, cells, numeric, title, colours):
        return
    widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
    if title:
        print(plain(title))
    for row in [columns, *cells]:
        aligned = (
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        )
        print("  ".join(aligned).rstrip())


def _show_rich(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    title: str,
    colours: Colours,
) -> bool:
    try:
        from rich.box import SIMPLE_HEAD
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        return False
    console = Console()
    longest = [max((len(row[i]) for row in cells), default=0) for i in range(len(columns))]
    if sum(min(length, _LONGEST_NAME) + 3 for length in longest) > console.width:
        return False  # too narrow for a table: the terminal breaks lines of plain text, not numbers
    table = Table(title=Text(plain(title)) if title else None, title_justify="left", box=SIMPLE_HEAD)
    for column, length, right in zip(columns, longest, numeric, strict=True):
        whole = not right and length <= _LONGEST_NAME
        table.add_column(Text(column), justify="right" if right else "left", no_wrap=whole, overflow="fold")
    for i, row in enumerate(cells):
        colour = colours[i] if colours else ""
        shades = [colour] * len(row) if isinstance(colour, str) else colour
        table.add_row(*map(Text, row, shades))
    console.print(table)
    return True


def number(value: float) -> str:
    """Return `value` with three significant digits, and a large one with all digits of its whole part; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if 99.95 <= abs(value) < 1e15 else f"{value + 0.0:.3g}"


def _cell(value: object) -> str:
    return number(value) if isinstance(value, float) else plain(str(value))


def plain(text: str) -> str:
    """Return the text, escaped if it has characters that could control the terminal; names may be untrusted."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in {"", "-"}
    return True
