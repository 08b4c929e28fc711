"""Print tables: coloured on a terminal if the package rich is installed, else as plain aligned text."""

from __future__ import annotations

import math
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

_GAP = "  "
_USUAL_WIDTH = 80
_SHORT: Final = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LONG: Final = ((86370, "d", 3600, "h", 24), (3599.5, "h", 60, "min", 60), (0, "min", 1, "s", 60))
"""(least seconds shown in a unit, the unit, seconds of the next smaller unit, its name, its number in the unit)."""
_RULES: Final = 3
"""Terminal columns between two columns of a table of rich; the table has one more in all."""
_LONGEST_NAME = 20
"""Longest text of a column that is not broken on a narrow terminal; other columns are broken, and none is cut off."""

_DURATION: Final = re.compile(r"−?[\d.,e+-]+ (µs|ms|s|min|h|d)( \d+ (s|min|h))?")
Colours = Sequence[str | Sequence[str]]
"""For each row, the name of a colour (as in the package rich) or "", or a list of such names, one per cell."""


def show(
    columns: Sequence[str], rows: Iterable[Sequence[object]], title: str = "", colours: Colours = ()
) -> None:
    """Print a table with the given column heads. Floats have three significant digits; numbers are right-aligned.

    Plain text on a terminal (or with COLUMNS set) that is too narrow becomes several tables with the same first column.
    colours: colours of rows or cells, used only on a terminal.
    """
    cells = [[cell(value) for value in row] for row in rows]
    numeric = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(columns))]
    if sys.stdout.isatty() and _show_rich(columns, cells, numeric, title, colours):
        return
    if title:
        print(plain(title))
    _show_plain(columns, cells, numeric)


def _show_plain(columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool]) -> None:
    """Print the table as aligned text, in parts that fit into the lines."""
    widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]
    for part, chosen in enumerate(_parts(widths, _naming(cells), _line_width())):
        if part:
            print()
        for row in [columns, *cells]:
            aligned = (row[i].rjust(widths[i]) if numeric[i] else row[i].ljust(widths[i]) for i in chosen)
            print(_GAP.join(aligned).rstrip())


def _line_width() -> int | None:
    """Return the width of the lines of standard output; None if it is no terminal, and COLUMNS is not below 80.

    Test runners and shells set COLUMNS to the usual width for programs that print to a pipe.
    """
    width = shutil.get_terminal_size((_USUAL_WIDTH, 24)).columns
    return width if sys.stdout.isatty() or width < _USUAL_WIDTH else None


def _parts(widths: Sequence[int], first: int, line: int | None) -> Iterator[list[int]]:
    """Yield the columns of each part of a table that fits into lines of width `line`; each begins with the `first`."""
    part = list(range(first))
    for i in range(first, len(widths)):
        if (
            line is not None
            and len(part) > first
            and sum(widths[j] + len(_GAP) for j in part) + widths[i] > line
        ):
            yield part
            part = list(range(first))
        part.append(i)
    yield part


def _naming(cells: Sequence[Sequence[str]]) -> int:
    """Return how many columns, from the left, tell rows apart: two if only the second does, else one."""
    first, second = ({row[i] for row in cells if len(row) > 2} for i in range(2))
    return 2 if len(first) < len(second) == len(cells) else 1


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
    widths = column_widths(columns, cells, console.width - _RULES * len(columns) - 1)
    if widths is None:
        return False  # too narrow: plain text is printed in parts
    table = Table(title=Text(plain(title)) if title else None, title_justify="left", box=SIMPLE_HEAD)
    for column, width, right in zip(columns, widths, numeric, strict=True):
        table.add_column(Text(column), justify="right" if right else "left", width=width, overflow="fold")
    for i, row in enumerate(cells):
        colour = colours[i] if colours else ""
        shades = [colour] * len(row) if isinstance(colour, str) else colour
        table.add_row(*map(Text, row, shades))
    console.print(table)
    return True


def column_widths(columns: Sequence[str], cells: Sequence[Sequence[str]], most: int) -> list[int] | None:
    """Return the widths of columns, `most` together, that break no word; None if there are none.

    By default, rich would cut the last columns. Short texts stay on one line first, then longer ones, then heads.
    """
    longest = [max((len(row[i]) for row in cells), default=0) for i in range(len(columns))]
    widths = [
        max(min(length, _LONGEST_NAME), *(len(word) for text in texts for word in text.split()), 0)
        for length, texts in zip(longest, zip(columns, *cells, strict=True), strict=True)
    ]
    spare = most - sum(widths)
    if spare < 0:
        return None
    for wanted in (longest, list(map(len, columns))):
        for i in sorted(range(len(widths)), key=lambda column: wanted[column] - widths[column]):
            more = min(max(0, wanted[i] - widths[i]), spare)
            widths[i] += more
            spare -= more
    return widths


def number(value: float) -> str:
    """Return `value` as text with three significant digits, or all digits of a larger whole part; "-" for NaN."""
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if 99.95 <= abs(value) < 1e15 else f"{value + 0.0:.3g}"


def duration(seconds: float) -> str:
    """Return seconds as text in the two largest units, such as 7 h 37 min or 37.5 ms; "-" for NaN."""
    if math.isnan(seconds):
        return "-"
    if math.isinf(seconds):
        return "for ever"
    if seconds < 0:
        return f"−{duration(-seconds)}"
    if 0 < seconds < 59.95:
        size, unit = next(one for one in _SHORT if seconds >= one[0] * 0.9995 or one == _SHORT[-1])
        return f"{number(seconds / size)} {unit}"
    if seconds == 0:
        return "0 s"
    _, unit, size, part, parts = next(one for one in _LONG if seconds >= one[0])
    whole, rest = divmod(round(seconds / size), parts)
    return f"{whole:,} {unit} {rest} {part}" if rest else f"{whole:,} {unit}"


def cell(value: object) -> str:
    """Return the text of a value in a table."""
    return number(value) if isinstance(value, float) else plain(str(value))


def plain(text: str) -> str:
    """Return the text, escaped if it has characters that could control the terminal; names may be untrusted."""
    return text if text.isprintable() else ascii(text)[1:-1]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return text in {"", "-", "for ever"} or _DURATION.fullmatch(text) is not None
    return True
