"""The items of a long JSON array, read one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

MAX_ITEM: Final = 1 << 22
"""Limit on the characters of one item; longer ones are refused as a mistake."""
_BLANK: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()
_END: Final = object()


def items(chunks: Iterable[str]) -> Iterator[Any]:
    """Yield the items of a JSON array whose text is given in pieces.

    Raise ValueError, which states the number of items read, if the text is no array, is damaged, or has too long an
    item.
    """
    source = iter(chunks)
    text, at, before, count = "", 0, "[", 0
    while True:
        found = _next(text, at, before, count)
        if found is None:
            more = next(source, None)
            if more is None or len(text) - at > MAX_ITEM:
                raise ValueError(f"after {count} items: the JSON is damaged, cut off, or of too long items")
            text, at = text[at:] + more, 0
            continue
        item, at = found
        if item is _END:
            break
        yield item
        before, count = ",", count + 1
    if text[at:].strip() or any(chunk.strip() for chunk in source):
        raise ValueError(f"after {count} items: the JSON array ends, and something follows")


def _next(text: str, at: int, before: str, count: int) -> tuple[Any, int] | None:
    """Return the item at `at` behind the character `before`, and where it ends; None if the text is too short for it.

    The item is `_END` at the end of the array. count: the number of items before, for messages.
    """
    at = _blanks(text, at)
    if text[at : at + 1] not in ("", before, "]"):
        raise ValueError(f"after {count} items: JSON needs {before!r}, not {text[at]!r}")
    if before == "," and text[at : at + 1] == "]":
        return _END, at + 1
    at = _blanks(text, at + 1)
    if before == "[" and text[at : at + 1] == "]":
        return _END, at + 1
    try:
        item, end = _DECODER.raw_decode(text, at)
    except ValueError:
        return None
    except RecursionError:
        raise ValueError(f"after {count} items: the JSON is nested too deeply") from None
    return (item, end) if _blanks(text, end) < len(text) else None  # a number may go on


def _blanks(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at
