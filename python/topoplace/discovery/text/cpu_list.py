"""Sets of CPUs in Linux notation, such as "0-23,48-71"."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache


def list_of(numbers: Iterable[int]) -> str:
    """Return ascending numbers as text such as "0-3,8"; "" for no numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in runs)


@lru_cache(maxsize=64)
def bits_of(mask: int) -> Sequence[int]:
    """Return the positions of the bits that are set in `mask`, ascending."""
    return array("L", (match.start() for match in re.finditer("1", f"{mask:b}"[::-1])))


@lru_cache(maxsize=64)
def list_of_mask(mask: int) -> str | None:
    """Return the CPUs in a bit mask as text such as "0-3,8"; None for an empty mask."""
    return list_of(bits_of(mask)) or None
