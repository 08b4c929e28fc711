"""Decoding of text from files and tools: limit its size, cut it into numbered lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace import _checks
from topoplace.errors import TopologyError

MAX_BYTES = 64 << 20
"""Limit on the length of a text in bytes or characters; no tool prints that much about a machine."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def decoded(data: object, what: str = "text") -> str:
    """Return `data`, str or UTF-8 bytes, as text without byte order mark; TopologyError for anything else."""
    if isinstance(data, str):
        text = data.removeprefix("\ufeff")
    elif isinstance(data, bytes):
        if len(data) > MAX_BYTES:
            raise TopologyError(f"{what} has {len(data)} bytes, more than {MAX_BYTES}")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TopologyError(
                f"{what} is not UTF-8: byte {error.start} is 0x{data[error.start]:02x}"
            ) from None
    else:
        raise TopologyError(f"{what} = {_checks.shown(data)} is neither a string nor bytes")
    if len(text) > MAX_BYTES:
        raise TopologyError(f"{what} has {len(text)} characters, more than {MAX_BYTES}")
    if "\0" in text:
        raise TopologyError(f"{what} is binary: character {text.index(chr(0))} is 0")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of `text`, numbered from 1, without terminal colours and line ends."""
    clean = _ESCAPE.sub("", text)
    number, start = 1, 0
    while (
        end := clean.find("\n", start)
    ) >= 0:  # a list of short lines would need many times the text's memory
        yield number, clean[start:end].rstrip("\r")
        number, start = number + 1, end + 1
    yield number, clean[start:].rstrip("\r")
