"""Lists of GPUs as command-line arguments give them: single ids and ranges, such as 0-3,6."""

from __future__ import annotations

import re
from collections.abc import Iterable

_ENTRY = re.compile(r"\s*(-?[0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")


def parse(text: str, num_gpus: int, flag: str) -> list[int]:
    """Return the GPUs that `text` lists, in its order; none for a blank text.

    num_gpus: number of GPUs of the topology. flag: the option, such as --busy.
    Raises ValueError naming the option and an entry that is neither an id nor an ascending range, or a GPU that is
    unknown or repeated.
    """
    gpus: dict[int, None] = {}
    for entry in text.split(",") if text.strip() else ():
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{flag} {text!r}: not GPU numbers such as 0-3,6: {entry!r}")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise ValueError(f"{flag} {text!r}: {entry!r}: a range ascends, such as {last}-{first}")
        for gpu in (first, last):
            if not 0 <= gpu < num_gpus:
                raise ValueError(f"{flag} {text!r}: GPU {gpu}: the GPUs are 0..{num_gpus - 1}")
        for gpu in range(first, last + 1):
            if gpu in gpus:
                raise ValueError(f"{flag} {text!r}: GPU {gpu}: given twice")
            gpus[gpu] = None
    return list(gpus)


def text(gpus: Iterable[int]) -> str:
    """Return GPUs as a list that `parse` reads, in their order."""
    return ",".join(map(str, gpus))
