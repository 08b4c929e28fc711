"""Code blocks of Markdown, each as its own text with the line numbers of the whole text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from topoplace.discovery.text import decode

MAX_CHARACTERS = 1 << 17
"""Limit on the characters of a text with code blocks; documents by people are shorter."""

_FENCE = re.compile(r"[ \t]*(?:`{3,}|~{3,})[\w.+-]*[ \t]*")


def blocks(text: str) -> Iterator[tuple[str, set[int]]]:
    """Yield each code block of `text`, with all other lines empty, and the numbers of its lines.

    A text of more than 131,072 characters yields none.
    """
    if len(text) > MAX_CHARACTERS:
        return
    lines = [line for _, line in decode.numbered_lines(text)]
    fences = [i for i, line in enumerate(lines) if _FENCE.fullmatch(line)]
    for start, end in zip(fences[::2], fences[1::2], strict=False):
        kept = (line if start < i < end else "" for i, line in enumerate(lines))
        yield "\n".join(kept), set(range(start + 2, end + 1))
