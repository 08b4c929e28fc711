"""Rows of a paper's reproduction: the paper's number, our number, and a verdict computed from these two."""

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
    """One row of a paper's reproduction: a quantity, the paper's value, our value, and whether they agree.

    `id` numbers the row within its paper. `paper` and `ours` are the two values, as printed text. `verdict` is
    "reproduced", "order only" (only the order or direction of values agrees), "differs" or "not comparable". `why`
    states the rule that gives this verdict.
    """

    id: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """Return the row's fields by name, as `topoplace papers NAME --json` prints them."""
        return asdict(self)


def exactly(paper: object, ours: object) -> str:
    """Return `reproduced` if the values are equal, else `differs`."""
    return REPRODUCED if paper == ours else DIFFERS


def within(paper: float, ours: float, tolerance: float) -> str:
    """Return `reproduced` if the values differ by at most `tolerance` (absolute), else `differs`."""
    return REPRODUCED if abs(paper - ours) <= tolerance else DIFFERS


def in_order(values: Sequence[float], paper: Sequence[float], tolerance: float) -> str:
    """Return the verdict on our `values` against the paper's, which ascend; `tolerance` is absolute.

    The verdict is `reproduced` if each value is within `tolerance` of the paper's. Otherwise it is `order only` if our
    values ascend too, apart from drops of at most `tolerance`, else `differs`.
    """
    if all(abs(ours - theirs) <= tolerance for ours, theirs in zip(values, paper, strict=True)):
        return REPRODUCED
    return ORDER_ONLY if holds_order(values, tolerance) else DIFFERS


def holds_order(values: Sequence[float], tolerance: float = 0.0) -> bool:
    """Return True if the values ascend: none is more than `tolerance` below its predecessor."""
    return all(later >= earlier - tolerance for earlier, later in pairwise(values))


def listed(values: Iterable[float], digits: int = 1) -> str:
    """Return the values as text separated by commas, each with `digits` decimals."""
    return ", ".join(f"{value:.{digits}f}" for value in values)
