"""Sets of CPUs as Linux lists them, such as "0-23,48-71"."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Sequence
from functools import lru_cache


def list_of(numbers: Iterable[int]) -> str:
    """Ascending numbers as a list such as "0-3,8"; "" for none."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(f"{low}-{high}" if low < high else f"{low}" for low, high in runs)


@lru_cache(maxsize=64)
def bits_of(mask: int) -> Sequence[int]:
    """The numbers of the bits that are set, ascending."""
    return array("L", (match.start() for match in re.finditer("1", f"{mask:b}"[::-1])))


@lru_cache(maxsize=64)
def list_of_mask(mask: int) -> str | None:
    """The CPUs of a set of bits as a list; None where there are none."""
    return list_of(bits_of(mask)) or None
