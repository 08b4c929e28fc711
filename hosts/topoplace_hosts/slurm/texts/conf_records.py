"""Reader of Slurm configuration text as records of keys and values, with their line numbers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError

# More records than these, of shorter lines, would need much more memory than the text.
_ALWAYS_RECORDS = 16_384
_MIN_CHARACTERS = 48
_PAIR = re.compile(r'\s*([A-Za-z_]+)\s*=\s*("[^"]*"|[^\s"]\S*|(?=\s|$))(?:\s+|$)')


@dataclass(frozen=True, slots=True)
class ConfRecord:
    """One line of KEY=VALUE pairs, joined with its continuation lines."""

    line: int
    """The line's number, from 1."""
    values: dict[str, str]
    """Values by key in lower case, because Slurm does not distinguish Name from NAME."""

    def get(self, key: str) -> str | None:
        """Return the value of `key`; None if it is missing."""
        return self.values.get(key)

    @property
    def where(self) -> str:
        """Return the start of messages about this line, such as "line 7"."""
        return f"line {self.line}"


_FILE_OF = {
    **dict.fromkeys(("switchname", "blockname", "ringname", "blocksizes"), "topology.conf"),
    **dict.fromkeys(("gres", "grestypes", "partitionname", "clustername", "realmemory"), "slurm.conf"),
    **dict.fromkeys(("autodetect", "file", "multiplefiles"), "gres.conf"),
}
"""The file of each key that appears in only one of Slurm's files."""


def _help(key: str) -> str:
    """Return what to do about the unknown `key`, as the end of a sentence."""
    file = _FILE_OF.get(key)
    return f"it is one of {file}: give each file as its own text" if file else "remove or correct it"


def records(text: str, known: frozenset[str]) -> Iterator[ConfRecord]:
    """Yield a record for each line of `text` with content; comments are removed and continuation lines joined.

    The hyphens of a manual page's source, written as backslash and hyphen, are read as hyphens.
    known: the allowed keys, in lower case.
    Raises TopologyError for anything other than KEY=VALUE, and for an unknown or duplicate key.
    """
    limit = max(_ALWAYS_RECORDS, len(text) // _MIN_CHARACTERS)
    for count, (line, content) in enumerate(_joined_lines(text)):
        if count == limit:
            raise TopologyError(f"line {line}: more than {limit} lines with content")
        values: dict[str, str] = {}
        place = 0
        while place < len(content):
            match = _PAIR.match(content, place)
            if match is None:
                raise TopologyError(
                    f"line {line}: {_checks.shown(content[place:].strip(), 40)} is not KEY=VALUE"
                )
            key = sys.intern(match[1].lower())
            if key == "include":
                raise TopologyError(f"line {line}: Include names another file; put its text here")
            if key not in known:
                raise TopologyError(
                    f"line {line}: {_checks.shown(match[1])} is not a key of this file; {_help(key)}"
                )
            if key in values:
                raise TopologyError(f"line {line}: {match[1]} appears twice")
            values[key] = match[2].strip('"')
            place = match.end()
        yield ConfRecord(line, values)


def _joined_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each line with content; the number is that of the first of continued lines.

    Comments are removed, and troff's hyphens (a backslash and a hyphen) become hyphens.
    """
    begun, parts = 0, list[str]()
    for number, line in decode.numbered_lines(text):
        content = line.partition("#")[0].replace("\\-", "-").rstrip()
        begun = begun or number
        if content.endswith("\\"):
            parts.append(content[:-1])
            continue
        parts.append(content)
        if any(part.strip() for part in parts):
            yield begun, "".join(parts).strip()
        begun, parts = 0, []
    if any(part.strip() for part in parts):
        yield begun, "".join(parts).strip()
