"""The looks of series in pictures, and of the policies that they show: colours, hatches and line styles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from topoplace import policies
from topoplace.drawing.style import COLOURS

_HATCHES: Final = ("", "///", "...", "xxx")
_LINE_STYLES: Final = ("-", "--", ":", "-.")


def colour(i: int) -> str:
    """Return the colour of series `i`; colours repeat after the last."""
    return COLOURS[i % len(COLOURS)]


def policy_numbers(names: Sequence[str]) -> list[int]:
    """Return the series number of each policy; `colour`, `hatch` and `line_style` take this number.

    A built-in policy has the same look in every picture, even with options in brackets after its name. Other names, and
    further rows of the same policy, get series of their own.
    """
    known = list(policies.names())
    numbers: list[int] = []
    further = len(known)
    for name in names:
        policy = name.partition(" (")[0]
        number = known.index(policy) if policy in known else further
        if number in numbers:
            number = further
        further += number == further
        numbers.append(number)
    return numbers


def policy_colour(name: str) -> str:
    """Return the colour of a built-in policy, in any picture; black for other names."""
    return colour(policy_numbers([name])[0]) if name in policies.names() else "#000000"


def hatch(i: int) -> str:
    """Return the hatch of series `i`, which distinguishes series of the same colour."""
    return _HATCHES[i // len(COLOURS) % len(_HATCHES)]


def line_style(i: int) -> str:
    """Return the line style of series `i`, which distinguishes series of the same colour."""
    return _LINE_STYLES[i // len(COLOURS) % len(_LINE_STYLES)]


def time_unit(end: float) -> tuple[str, float]:
    """Return the unit of a time axis that ends at `end` seconds, and the seconds in this unit."""
    return ("h", 3600.0) if end > 7200 else ("s", 1.0)
