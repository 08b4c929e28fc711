"""Decoding of text from files and tools: limit its size, cut it into numbered lines."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator

from topoplace import _checks
from topoplace.errors import TopologyError

MAX_BYTES = 64 << 20
"""Limit on the length of a text in bytes or characters; no tool prints that much about a machine."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w.+-]*[ \t]*(?=\r?$)", re.MULTILINE)
_IN_FRONT = (
    r"> ?",  # a quotation
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?(?:[ \t]|(?=\r?$))",  # a time
    r"0: ?",  # the only task of srun --label
)
_LINES_IN_FRONT = tuple(
    (re.compile(f"^(?!{front})[^\r\n]", re.MULTILINE), re.compile(f"^{front}", re.MULTILINE))
    for front in _IN_FRONT
)
"""For each prefix of lines: a pattern of a line without it, and one that removes it."""
_HOST_IN_FRONT = (  # of pdsh, clush and srun --label; of syslog with time and program
    r"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d )?(?=[A-Za-z_.-]{0,64}\d)([A-Za-z0-9][\w.-]{0,63})"
    r"(?: [\w./-]{1,64}\[\d{1,9}\])?:(?: |[ \t]*(?=\r?$))"
)
_HOST = re.compile(f"^{_HOST_IN_FRONT}", re.MULTILINE)
_WITHOUT_HOST = re.compile(f"^(?!{_HOST_IN_FRONT})[^\r\n]", re.MULTILINE)
_FEWEST_LINES = 2
"""Least number of lines of a host; a name in front of fewer lines is a key with its value."""
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ENCODING_OF_XML = re.compile(r"(\s*<\?xml[^>]*?)\s+encoding=(?:\"[^\"]*\"|'[^']*')")


def decoded(data: object, what: str = "text", *, fences: bool = False) -> str:
    """Return `data`, str or bytes, as text without byte order mark; TopologyError for anything else, or a path.

    Bytes are UTF-8, or UTF-16 with a byte order mark, as PowerShell writes it. Lines that only open or close a code
    block of Markdown become empty. A prefix of every line is removed: the ">" of a quotation, a time in ISO 8601, the
    label 0 of `srun --label`, or the name of a host, as by `pdsh` and syslog. Lines of several hosts are refused.
    fences: True keeps the lines that open or close a code block.
    """
    _checks.refuse_path(data, what, TopologyError)
    if isinstance(data, str):
        text = data.removeprefix("\ufeff")
    elif isinstance(data, bytes):
        if len(data) > MAX_BYTES:
            raise TopologyError(f"{what} has {len(data)} bytes, more than {MAX_BYTES}")
        text = _from_utf16(data, what) if data.startswith(_UTF16) else _from_utf8(data, what)
    else:
        raise TopologyError(f"{what} = {_checks.shown(data)} is neither a string nor bytes")
    if len(text) > MAX_BYTES:
        raise TopologyError(f"{what} has {len(text)} characters, more than {MAX_BYTES}")
    if "\0" in text:
        raise TopologyError(
            f"{what} is binary: character {text.index(chr(0))} is 0 (save UTF-16 with a byte order mark, or as UTF-8)"
        )
    for other_line, front in _LINES_IN_FRONT:
        if front.match(text) and not other_line.search(text):
            text = front.sub("", text)
    text = _without_host(text, what)
    return _FENCE.sub("", text) if not fences and ("```" in text or "~~~" in text) else text


def _without_host(text: str, what: str) -> str:
    """Return `text` without the host in front of every line; TopologyError if several hosts are there.

    A log of NCCL stays as it is: it is of several hosts, and each of its lines names its own.
    """
    if not _HOST.match(text) or _WITHOUT_HOST.search(text) or " NCCL " in text:
        return text
    hosts = Counter(found[1] for found in _HOST.finditer(text))
    if min(hosts.values()) < _FEWEST_LINES:
        return text
    if len(hosts) > 1:
        raise TopologyError(
            f"{what} has lines of {len(hosts)} hosts, such as {' and '.join(list(hosts)[:2])}; "
            "give one text per host: the lines with its name in front"
        )
    return _HOST.sub("", text)


def _from_utf8(data: bytes, what: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        found = f"byte {error.start} is 0x{data[error.start]:02x}"
        raise TopologyError(f"{what} is not UTF-8: {found}") from None


def _from_utf16(data: bytes, what: str) -> str:
    """Return text in UTF-16; an XML declaration loses the name of the encoding, which holds no longer."""
    try:
        return _ENCODING_OF_XML.sub(r"\1", data.decode("utf-16"), count=1)
    except UnicodeDecodeError as error:
        raise TopologyError(
            f"{what} begins like UTF-16, but is not: bytes from {error.start} are no character"
        ) from None


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
