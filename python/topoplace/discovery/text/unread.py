"""A note on the lines of a text from which a reader takes nothing, such as remarks and error messages of a tool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from topoplace import _checks

_MOST_SHOWN = 3
_LONGEST_SHOWN = 100
_PROMPT = re.compile(r"(?:\S{0,80}[$#>%]|```.*|=+|-+|\*+)")


def note(
    lines: Iterable[tuple[int, str]], is_read: Callable[[int, str], object], command: re.Pattern[str]
) -> Iterator[str]:
    """Yield one note that shows the first lines with content that are not read, and counts the others.

    Yield nothing if every line is read. lines: pairs of number and line. is_read: returns a true value for the number
    and text of a line that is read. command: matches a command line of the tool at the end of a line; such lines and
    empty prompts are not noted.
    """
    shown: list[str] = []
    count = 0
    for number, line in lines:
        text = line.strip()
        if (
            not text
            or is_read(number, line)
            or _PROMPT.fullmatch(text)
            or command.search(text[-_LONGEST_SHOWN:])
        ):
            continue
        count += 1
        if count <= _MOST_SHOWN:
            shown.append(f"line {number}: {_checks.shown(text, _LONGEST_SHOWN)}")
    more = [f"{count - _MOST_SHOWN} more"] if count > _MOST_SHOWN else []
    if shown:
        yield f"Lines from which nothing is read: {'; '.join((*shown, *more))}."
