"""A row of a reproduction: what a paper states, what we get, and a verdict computed from the two."""

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
    """`id` as in our list of the paper's numbers; `paper` and `ours` as printed; `why` explains the verdict."""

    id: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """The row as `--json` prints it."""
        return asdict(self)


def exactly(paper: object, ours: object) -> str:
    """`reproduced` for the same value, else `differs`."""
    return REPRODUCED if paper == ours else DIFFERS


def within(paper: float, ours: float, tolerance: float) -> str:
    """`reproduced` where ours is at most `tolerance` (absolute) off, else `differs`."""
    return REPRODUCED if abs(paper - ours) <= tolerance else DIFFERS


def in_order(values: Sequence[float], paper: Sequence[float], tolerance: float) -> str:
    """How far `values` follow the paper's, which are ascending: `reproduced` within `tolerance` each, `order only`
    where just the order is the same (ties within the tolerance allowed), else `differs`."""
    if all(abs(ours - theirs) <= tolerance for ours, theirs in zip(values, paper, strict=True)):
        return REPRODUCED
    return ORDER_ONLY if holds_order(values, tolerance) else DIFFERS


def holds_order(values: Sequence[float], tolerance: float = 0.0) -> bool:
    """Whether no value is below the one before it by more than `tolerance`."""
    return all(later >= earlier - tolerance for earlier, later in pairwise(values))


def listed(values: Iterable[float], digits: int = 1) -> str:
    """Figures side by side in a row."""
    return ", ".join(f"{value:.{digits}f}" for value in values)
