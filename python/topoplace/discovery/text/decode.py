"""Text as it comes from files and tools: decoded, of bearable size, cut into numbered lines."""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace import _checks
from topoplace.errors import TopologyError

MAX_BYTES = 64 << 20
"""More text than this is refused: no tool prints so much about a machine."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def decoded(data: object, what: str = "text") -> str:
    """`data`, str or UTF-8 bytes, as text without byte order mark; TopologyError for anything else."""
    if isinstance(data, str):
        text = data.removeprefix("\ufeff")
    elif isinstance(data, bytes):
        if len(data) > MAX_BYTES:
            raise TopologyError(f"{what} has {len(data)} bytes; at most {MAX_BYTES} are read")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise TopologyError(
                f"{what} is no text: byte {error.start} is 0x{data[error.start]:02x}"
            ) from None
    else:
        raise TopologyError(f"{what} = {_checks.shown(data)} is neither a string nor bytes")
    if len(text) > MAX_BYTES:
        raise TopologyError(f"{what} has {len(text)} characters; at most {MAX_BYTES} are read")
    if "\0" in text:
        raise TopologyError(f"{what} is no text: character {text.index(chr(0))} is 0")
    return text


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of `text` from 1, without the colours of a terminal and without the end of line."""
    clean = _ESCAPE.sub("", text)
    number, start = 1, 0
    while (end := clean.find("\n", start)) >= 0:  # a list of short lines would be many times the text
        yield number, clean[start:end].rstrip("\r")
        number, start = number + 1, end + 1
    yield number, clean[start:].rstrip("\r")
