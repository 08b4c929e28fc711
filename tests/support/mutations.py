"""Texts as they get broken on their way: lines lost, cells glued together, ends cut off, or swollen beyond measure."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

from hypothesis import strategies as st

from topoplace import TopologyError, discovery
from topoplace.discovery import Format

FIXTURES = sorted((Path(__file__).parents[1] / "data").iterdir())
"""Small texts of every format, written by hand."""
MAX_BYTES = 40_000
"""Longer texts are cut before they are broken, to keep a test short."""
_WORDS = [
    *rb"- -1 0 99999999999999999999 1e999 NaN GPU0 X SYS [0-9] < &a; { [ *x N/A 0000:00:00.0".split(),
    *(b"", b"\xff", b"\t", b'"', b"- a", b"a" * 5000, b"\r", b"\x1b[31m"),
]


def refused_at_most(data: bytes, format: Format | None, *, by_content: bool = True) -> None:
    """Reads `data` in the format its content tells, and in that of the text it was made from."""
    if by_content:
        with contextlib.suppress(TopologyError):
            discovery.read(data)
    if format is not None:
        with contextlib.suppress(TopologyError):
            format.parse(data)


def format_of(path: Path) -> Format | None:
    try:
        return discovery.format_of(path.read_bytes())
    except TopologyError:
        return None


def swollen(original: bytes, how: str, size: int) -> bytes:
    """About `size` bytes made of `original`, in one of the ways that cost a careless parser most."""
    lines = original.split(b"\n")
    middle = lines[len(lines) // 2] or b"x"
    if how == "repeated":
        return (original * (size // len(original) + 1))[:size]
    if how == "one line":
        return original + (middle + b" ") * ((size - len(original)) // (len(middle) + 1))
    if how == "lines":
        body = (middle + b"\n") * ((size - len(original)) // (len(middle) + 1))
        return b"\n".join(lines[: len(lines) // 2]) + b"\n" + body + b"\n".join(lines[len(lines) // 2 :])
    word = {"brackets": b"[", "elements": b"<a>", "cells": b"1 ", "tabs": b"\t", "dashes": b"- - "}[how]
    return original[: len(original) // 2] + word * (size // 2 // len(word))


WAYS = ("repeated", "one line", "lines", "brackets", "elements", "cells", "tabs", "dashes")


@st.composite
def broken(draw: st.DrawFn, data: bytes) -> bytes:
    """`data` after one to four accidents."""
    data = data[:MAX_BYTES]
    for _ in range(draw(st.integers(1, 4))):
        accident = draw(st.sampled_from([_lines, _cells, _cut, _bytes]))
        data = accident(draw, data)
    return data


def _lines(draw: st.DrawFn, data: bytes) -> bytes:
    """A line is lost, doubled, or moved."""
    lines = data.split(b"\n")
    i, j = (draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    what = draw(st.sampled_from(["lost", "doubled", "moved", "glued"]))
    if what == "lost":
        del lines[i]
    elif what == "doubled":
        lines.insert(j, lines[i])
    elif what == "moved":
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i : i + 2] = [b"".join(lines[i : i + 2])]
    return b"\n".join(lines)


def _cells(draw: st.DrawFn, data: bytes) -> bytes:
    """A word becomes another, is lost, or is glued to the next."""
    words = re.split(rb"(\s+)", data)
    i = draw(st.integers(0, len(words) - 1))
    words[i] = draw(st.sampled_from([*_WORDS, words[draw(st.integers(0, len(words) - 1))]]))
    return b"".join(words)


def _cut(draw: st.DrawFn, data: bytes) -> bytes:
    """Only the beginning is there, or only the end."""
    place = draw(st.integers(0, len(data)))
    return data[:place] if draw(st.booleans()) else data[place:]


def _bytes(draw: st.DrawFn, data: bytes) -> bytes:
    """Some bytes are others."""
    place = draw(st.integers(0, len(data)))
    return data[:place] + draw(st.binary(max_size=4)) + data[place + draw(st.integers(0, 4)) :]
