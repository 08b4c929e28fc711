"""Lists of GPUs in command-line arguments: single ids and ranges, such as 0-3,6."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_ENTRY = re.compile(r"\s*(-?[0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")


def numbers(topology: Topology) -> tuple[int, ...]:
    """Return the number that tools use for each GPU: on one machine, its device number; on several, its id."""
    from topoplace.topology.device_numbers import device_numbers

    return device_numbers(topology) if topology.num_machines == 1 else tuple(range(topology.num_gpus))


def of_topology(text: str | None, topology: Topology, flag: str) -> list[int]:
    """Return the ids of the GPUs that `text` lists by their `numbers`, [] for None; see `parse`.

    A blank text, such as that of a shell's unset variable, is a ValueError.
    """
    if text is None:
        return []
    if not text.strip():
        raise ValueError(f"{flag} {text!r}: no GPU is named; leave the option out if there is none")
    known = {number: gpu for gpu, number in enumerate(numbers(topology))}
    return [known[number] for number in parse(text, known, flag)]


def parse(text: str, known: int | Mapping[int, int], flag: str) -> list[int]:
    """Return the numbers that `text` lists, in its order; [] for a blank text.

    known: the valid numbers, or their count from 0. flag: the option, such as --busy. Raises ValueError naming the
    option and an entry that is neither a number nor an ascending range, or a GPU that is unknown or repeated.
    """
    there = range(known) if isinstance(known, int) else sorted(known)
    gpus: dict[int, None] = {}
    for entry in text.split(",") if text.strip() else ():
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise ValueError(f"{flag} {text!r}: not GPU numbers such as 0-3,6: {entry!r}")
        first = int(match[1])
        last = int(match[2] or first)
        if last < first:
            raise ValueError(f"{flag} {text!r}: {entry!r}: a range ascends, such as {last}-{first}")
        for gpu in _between(first, last, there, flag, text):
            if gpu in gpus:
                raise ValueError(f"{flag} {text!r}: GPU {gpu}: given twice")
            gpus[gpu] = None
    return list(gpus)


def _between(first: int, last: int, there: Sequence[int], flag: str, text: str) -> Iterator[int]:
    """Yield the GPUs from `first` to `last` that there are: a range may pass over one that is lost.

    ValueError for an end that lies outside, or a single GPU that is not there; it begins with `flag` and `text`.
    """
    gaps = there[-1] - there[0] + 1 > len(there)
    for gpu in (first, last):
        if not there[0] <= gpu <= there[-1] or (first == last and gpu not in there):
            ids = ",".join(map(str, there)) if gaps else f"{there[0]}..{there[-1]}"
            raise ValueError(f"{flag} {text!r}: GPU {gpu}: the GPUs are {ids}")
    yield from (gpu for gpu in range(first, last + 1) if not gaps or gpu in there)


def text(gpus: Iterable[int]) -> str:
    """Return GPUs as a text that `parse` reads, in their order."""
    return ",".join(map(str, gpus))
