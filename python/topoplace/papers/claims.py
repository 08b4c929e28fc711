"""Rows of a reproduction: a paper's figure, ours, and a verdict computed from the two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Final

REPRODUCED: Final = "reproduced"
DIFFERS: Final = "differs"
ORDER_ONLY: Final = "order only"
NOT_COMPARABLE: Final = "not comparable"


@dataclass(frozen=True, slots=True)
class Claim:
    """A row of a reproduction.

    `id` is the number in our list of the paper's figures. `paper` and `ours` are the two figures as printed. `why`
    states the rule of the verdict.
    """

    id: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """Return the row as `--json` prints it."""
        return asdict(self)


def exactly(paper: object, ours: object) -> str:
    """Return `reproduced` if the values are equal, else `differs`."""
    return REPRODUCED if paper == ours else DIFFERS


def within(paper: float, ours: float, tolerance: float) -> str:
    """Return `reproduced` if the values differ by at most `tolerance` (absolute), else `differs`."""
    return REPRODUCED if abs(paper - ours) <= tolerance else DIFFERS


def in_order(values: Sequence[float], paper: Sequence[float], tolerance: float) -> str:
    """Compare `values` with the ascending values of the paper.

    Returns `reproduced` if each is within `tolerance`, `order only` if they ascend too (allowing ties within
    `tolerance`), else `differs`.
    """
    if all(abs(ours - theirs) <= tolerance for ours, theirs in zip(values, paper, strict=True)):
        return REPRODUCED
    return ORDER_ONLY if holds_order(values, tolerance) else DIFFERS


def holds_order(values: Sequence[float], tolerance: float = 0.0) -> bool:
    """Return whether no value is below its predecessor by more than `tolerance`."""
    return all(later >= earlier - tolerance for earlier, later in pairwise(values))


def listed(values: Iterable[float], digits: int = 1) -> str:
    """Return the values as text, separated by commas."""
    return ", ".join(f"{value:.{digits}f}" for value in values)
