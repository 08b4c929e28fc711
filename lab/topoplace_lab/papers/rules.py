"""Rules that turn our values into a verdict on a paper's claim.

A rule is data: ranges that our values must be in. Every rule can therefore judge other values, and a test shows for
each rule that some value fails it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from topoplace_lab.simulate.samples import Sample

REPRODUCED: Final = "reproduced"
ORDER_ONLY: Final = "order only"
DIFFERS: Final = "differs"
NOT_COMPARABLE: Final = "not comparable"

Range = tuple[float, float]
"""The least and the largest value, both included."""
ANY: Final[Range] = (-math.inf, math.inf)


class Rule(Protocol):
    """An interface of rules: `text` describes the rule in words, `verdict` applies it to values."""

    @property
    def text(self) -> str:
        """Return the rule in words, for the column "why"."""
        ...

    def verdict(self, *values: object) -> str:
        """Return the verdict on our values, in the order that the rule expects."""
        ...


@dataclass(frozen=True, slots=True)
class Equal:
    """A rule for values without an error: `reproduced` if they are the expected ones, else `differs`."""

    expected: tuple[object, ...]
    text: str = "reproduced if equal"

    def verdict(self, *values: object) -> str:
        """Return `reproduced` if the values are the expected ones, else `differs`."""
        return REPRODUCED if values == self.expected else DIFFERS


@dataclass(frozen=True, slots=True)
class Ranges:
    """A rule for numbers: a range for each value.

    reproduced: ranges for the verdict `reproduced`, one per value; None if the paper states an order without numbers.
    order: ranges for the verdict `order only`; None if there is no order to agree with. text: both in words.
    paper: the paper's numbers for the first of the values, as far as it has any; pictures show ours next to them.

    A `Sample` is in a range if the 95 % interval of its mean is. If an interval crosses an end of the range for
    `reproduced`, chance would decide. The same holds for `order only` if the paper states no number. The verdict is
    then `order only` if the order is certain, else `not comparable`.
    """

    reproduced: tuple[Range, ...] | None
    order: tuple[Range, ...] | None
    text: str
    paper: tuple[float, ...] = ()

    def verdict(self, *values: object) -> str:
        """Return the verdict on numbers or samples, as many as there are ranges."""
        in_range, in_order = (_inside(values, ranges) for ranges in (self.reproduced, self.order))
        if in_range:
            return REPRODUCED
        if in_order:
            return ORDER_ONLY
        return (
            NOT_COMPARABLE if in_range is None or (self.reproduced is None and in_order is None) else DIFFERS
        )

    def or_order(self, text: str, *ranges: Range) -> Ranges:
        """Return this rule with ranges for the verdict `order only`; a single range holds for every value.

        text: when the order agrees, to follow "order only".
        """
        count = len(self.reproduced or ())
        return replace(
            self, order=ranges * count if len(ranges) == 1 else ranges, text=f"{self.text}, order only {text}"
        )


def near(*paper: float, tolerance: float, unit: str = "") -> Ranges:
    """Return the rule that each value is within `tolerance` (absolute) of the paper's; unit: the tolerance's unit."""
    each = " each" if len(paper) > 1 else ""
    ranges = tuple((value - tolerance, value + tolerance) for value in paper)
    return Ranges(ranges, None, f"reproduced within {tolerance:g}{unit}{each}", paper)


def between(low: float, high: float, text: str) -> Ranges:
    """Return the rule that one value is in a range; text: the range in words, to follow "reproduced"."""
    return Ranges(((low, high),), None, f"reproduced {text}")


def alike(*paper: float, factor: float) -> Ranges:
    """Return the rule that each value differs from the paper's by a factor of up to `factor`; all are positive."""
    each = " each" if len(paper) > 1 else ""
    ranges = tuple((value / factor, value * factor) for value in paper)
    return Ranges(ranges, None, f"reproduced within a factor of {factor:g}{each}", paper)


def ordered(text: str, *ranges: Range) -> Ranges:
    """Return the rule of a paper that states an order without numbers; text: when it agrees, after "order only"."""
    return Ranges(None, ranges, f"order only {text}")


def _inside(values: Sequence[object], ranges: Sequence[Range] | None) -> bool | None:
    """Return whether every value is in its range; None if chance decides, that is if an interval crosses an end."""
    if ranges is None:
        return False
    found = [_in_range(value, *limits) for value, limits in zip(values, ranges, strict=True)]
    return False if False in found else None if None in found else True


def _in_range(value: object, low: float, high: float) -> bool | None:
    if not isinstance(value, Sample):
        value = Sample((float(value),))  # type: ignore[arg-type]
    if low <= value.low and value.high <= high:
        return True
    return None if value.high >= low and value.low <= high else False
