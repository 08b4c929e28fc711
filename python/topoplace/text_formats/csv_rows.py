"""Rows of a CSV text with a header, and the numbers in them; every error names the line."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

from topoplace import _checks

MAX_NUMBER = 1e15


def lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line number, fields) of each line that is not blank; ValueError for text that is not CSV."""
    _checks.instance(text, str, "text", ValueError)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for fields in reader:
            if any(field.strip() for field in fields):
                yield reader.line_num, fields
    except csv.Error as error:
        raise ValueError(f"line {reader.line_num}: {error}") from None


def records(
    text: str,
    needed: Sequence[str],
    optional: Collection[str] | None = (),
    row: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, fields by column name) of each line below the header; fields are text.

    needed: the required columns. optional: the other columns allowed; None allows any. row: makes the block in which a
    line with a wrong number of fields is refused, and which may suppress the ValueError. ValueError also for a header
    with wrong columns.
    """
    rows = lines(text)
    _, given = next(rows, (1, list[str]()))
    header = [name.strip() for name in given]
    unknown = [] if optional is None else sorted(set(header) - set(needed) - set(optional))
    if unknown or not set(needed) <= set(header) or len(set(header)) != len(header):
        also = f"; allowed: {', '.join(optional)}" if optional else ""
        raise ValueError(
            f"line 1: columns = {_checks.shown(header)}: must contain each of {', '.join(needed)} once{also}"
        )
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
        limits = f"{low:g}..{high:g}" if high < MAX_NUMBER else f"from {low:g}"
        raise ValueError(f"line {line}: {column} = {_checks.shown(text)}, not a number {limits}")
    return value
