"""A note on the lines of a text from which a reader takes nothing, such as remarks and error messages of a tool."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

from topoplace import _checks

_MOST_SHOWN = 3
_LONGEST_SHOWN = 100
_PROMPT = re.compile(r"\s*(?:\S{0,80}[$#>%]|```.*|=+|-+|\*+)\s*")


def note(lines: Iterable[tuple[int, str]], read: Container[int], command: re.Pattern[str]) -> Iterator[str]:
    """Yield one note that shows the first lines with content whose numbers are not in `read`, and counts the others.

    There is none if every line is in `read`.
    lines: pairs of number and line. command: matches a command line of the tool at the end of a line; such lines and
    empty prompts are not noted.
    """
    left = [
        (number, line.strip())
        for number, line in lines
        if number not in read
        and line.strip()
        and not _PROMPT.fullmatch(line)
        and not command.search(line[-_LONGEST_SHOWN:])
    ]
    shown = [f"line {number}: {_checks.shown(line, _LONGEST_SHOWN)}" for number, line in left[:_MOST_SHOWN]]
    more = [f"{len(left) - _MOST_SHOWN} more"] if len(left) > _MOST_SHOWN else []
    if left:
        yield f"Lines from which nothing is read: {'; '.join((*shown, *more))}."
