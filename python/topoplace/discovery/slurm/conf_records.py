"""Slurm configuration text as records of keys and values, with the lines they are in."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from topoplace import _checks
from topoplace.discovery.text import decode
from topoplace.errors import TopologyError

# Shorter lines, and so many of them, would take much more memory than text.
_ALWAYS_RECORDS = 16_384
_MIN_CHARACTERS = 48
_PAIR = re.compile(r'\s*([A-Za-z_]+)\s*=\s*("[^"]*"|[^\s"]\S*|(?=\s|$))(?:\s+|$)')


@dataclass(frozen=True, slots=True)
class Record:
    """One line, with those that continue it."""

    line: int
    """Its number, from 1."""
    values: dict[str, str]
    """By key in lower case: Slurm does not tell Name from NAME."""

    def get(self, key: str) -> str | None:
        """The value of `key`, None where there is none."""
        return self.values.get(key)

    @property
    def where(self) -> str:
        """How a message begins."""
        return f"line {self.line}"


def records(text: str, known: frozenset[str]) -> Iterator[Record]:
    """The records of `text`: comments and blank lines left out, continued lines joined.

    The hyphens of a manual page's source, written as backslash and hyphen, are read as hyphens. known: the keys, in
    lower case. Raises TopologyError for anything else than KEY=VALUE, for a key that is not known or there twice.
    """
    most = max(_ALWAYS_RECORDS, len(text) // _MIN_CHARACTERS)
    for count, (line, content) in enumerate(_joined(text)):
        if count == most:
            raise TopologyError(f"line {line}: more than {most} lines that say something")
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
                raise TopologyError(f"line {line}: {_checks.shown(match[1])} is not a key of this file")
            if key in values:
                raise TopologyError(f"line {line}: {match[1]} is there twice")
            values[key] = match[2].strip('"')
            place = match.end()
        yield Record(line, values)


def _joined(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something: number of the first, and the text without comments and troff's hyphens."""
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
