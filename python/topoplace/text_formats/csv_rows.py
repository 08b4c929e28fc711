"""Rows of a CSV text with a header, and the numbers in them; every error names the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any

from topoplace import _checks

MAX_NUMBER = 1e15

Lines = str | Iterable[str]
"""A text, or an iterable of its lines, such as an open file."""


def lines_of(text: Lines) -> Iterator[str]:
    """Yield the lines of a text with their ends; ValueError for anything but a string or strings.

    Lines end only at a newline: `str.splitlines` would also split at other characters that users write into logs.
    """
    _checks.refuse_path(text, "text", ValueError)
    if isinstance(text, str):
        yield from io.StringIO(text, newline="")
        return
    for line in _iterable(text):
        if not isinstance(line, str):
            raise ValueError(f"text: {_checks.shown(line)} is not a line of text")
        yield line


def _iterable(text: Any) -> Iterable[object]:
    if hasattr(text, "__iter__") and not isinstance(text, bytes | bytearray) and not hasattr(text, "keys"):
        with suppress(TypeError):  # an array of no dimension
            found: Iterable[object] = iter(text)
            return found
    raise ValueError(f"text = {_checks.shown(text)} is not a str, nor an iterable of lines")


def lines(text: Lines) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of each line that is not blank; ValueError for text that is not CSV."""
    reader = csv.reader(lines_of(text))
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def records(
    text: Lines,
    needed: Sequence[str],
    optional: Collection[str] | None = (),
    row: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields by column name) of each line below the header; fields are text.

    needed: the required columns. optional: the other columns allowed; None allows any. row: see `rows_below`. Raise
    ValueError also for a header with wrong columns.
    """
    rows = lines(text)
    _, given = next(rows, (1, list[str]()))
    header = checked_header(given, needed, optional)
    yield from rows_below(header, rows, row)


def checked_header(
    given: Sequence[str], needed: Collection[str], optional: Collection[str] | None = None
) -> list[str]:
    """Return the names of the columns; ValueError if one of `needed` is missing, one is unknown, or one repeats.

    optional: the other columns allowed; None allows any.
    """
    header = [name.strip() for name in given]
    unknown = [] if optional is None else sorted(set(header) - set(needed) - set(optional))
    if unknown or not set(needed) <= set(header) or len(set(header)) != len(header):
        also = f"; allowed: {', '.join(optional)}" if optional else ""
        if len(header) == 1 and not {";", "\t"}.isdisjoint(
            header[0]
        ):  # as spreadsheets write in some languages
            also += "; commas separate columns"
        raise ValueError(
            f"line 1: columns = {_checks.shown(header)}: must contain each of {', '.join(needed)} once{also}"
        )
    return header


def rows_below(
    header: Sequence[str],
    rows: Iterable[tuple[int, list[str]]],
    row: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields by column name) of each of `rows`, which are (line number, fields).

    row: returns the context in which a line with a wrong number of fields raises ValueError; it may suppress the error.
    """
    for line, fields in rows:
        if len(fields) == len(header):
            yield line, dict(zip(header, fields, strict=True))
            continue
        with row():
            raise ValueError(f"line {line}: {len(fields)} columns, {len(header)} needed")


def number(
    text: str,
    kind: type[int] | type[float],
    line: int,
    column: str,
    low: float = 0,
    high: float = MAX_NUMBER,
) -> float:
    """Return `text`, a cell of `column`, as a number of type `kind`; ValueError unless it is within low..high."""
    try:
        value = kind(text)
    except ValueError:
        value = float("nan")
    if not low <= value <= high:
        limits = (
            f"{_checks.bound(low)}..{_checks.bound(high)}"
            if high < MAX_NUMBER
            else f"from {_checks.bound(low)}"
        )
        raise ValueError(f"line {line}: {column} = {_checks.shown(text)}, not a number {limits}")
    return value
