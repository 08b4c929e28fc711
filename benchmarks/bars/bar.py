"""A promise in numbers: what was measured, its limit, and who says whether it is reached."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import NamedTuple

from timing.yardstick import Yardstick

RELATIONS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}
TIMES = ("us", "ms", "s")
ROUNDS = 3
UNCERTAIN = 1.1
"""How far the yardstick may err. A time between the limit and this many times the limit is near it: neither verdict."""


class Bar(NamedTuple):
    """A figure next to its limit; if it is a time, both are of the reference machine."""

    what: str
    limit: float
    measured: float
    unit: str = ""
    relation: str = "<="
    here: float | None = None
    """The time on this machine; None if the figure is not a time, or before it was converted."""

    @property
    def reached(self) -> bool:
        """Whether the limit is kept."""
        return RELATIONS[self.relation](self.measured, self.limit)

    @property
    def missed(self) -> bool:
        """Whether the limit is not kept, and would not be if the yardstick erred."""
        return not self.reached and not (self.unit in TIMES and self.measured <= UNCERTAIN * self.limit)

    def scaled(self, factor: float) -> Bar:
        """Return the bar with its time converted to the reference machine; other figures stay."""
        if self.unit not in TIMES:
            return self
        return self._replace(measured=self.measured * factor, here=self.measured)

    def better_of(self, other: Bar) -> Bar:
        """Return that of two measurements of one figure which is further within the limit."""
        if self.relation == ">=":
            return max(self, other, key=lambda bar: bar.measured)
        return min(self, other, key=lambda bar: bar.measured)

    def __str__(self) -> str:
        verdict = "reached" if self.reached else "MISSED" if self.missed else "near"
        here = "" if self.here is None else f"({shown(self.here)} here)"
        figures = f"{shown(self.measured):>14} {self.relation} {shown(self.limit):>13} {self.unit:3}"
        return f"{verdict:8}{figures} {here:17} {self.what}"


Measure = Callable[[Yardstick], Iterable[Bar]]
"""What measures some bars; it gets the yardstick that is held next to them."""


def judged(measure: Measure) -> list[Bar]:
    """Measure bars once; if one is missed, up to twice more, as others' work only adds time: the best figure counts."""
    bars = measured_once(measure)
    for _ in range(ROUNDS - 1):
        if all(bar.reached for bar in bars):
            break
        bars = [bar.better_of(again) for bar, again in zip(bars, measured_once(measure), strict=True)]
    return bars


def measured_once(measure: Measure) -> list[Bar]:
    """Measure bars with the yardstick before, in between and after."""
    yardstick = Yardstick()
    yardstick.sample()
    bars = []
    for bar in measure(yardstick):
        yardstick.sample()
        bars.append(bar)
    return [bar.scaled(yardstick.factor) for bar in bars]


def shown(value: float) -> str:
    """Return a number without zeros at its end."""
    text = f"{value:,.3f}"
    return text.rstrip("0").rstrip(".")
