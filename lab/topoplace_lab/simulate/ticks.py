"""Points in time at multiples of an interval."""

from __future__ import annotations

import math
from typing import Final

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER

_SHORTEST: Final = 1e-6
"""Least number of seconds between two ticks; a simulation takes a step for each tick."""


class Ticks:
    """The unused multiples of an interval in seconds. name: the interval's name in errors."""

    def __init__(self, interval: float, name: str) -> None:
        """Check the arguments; ValueError for an interval that is below a microsecond or not finite."""
        self._interval = _checks.real(interval, name, ValueError, low=_SHORTEST, high=MAX_NUMBER)
        self._name = name
        self._number = 0

    def next_time(self) -> float:
        """Return the next multiple, in seconds; it may be in the past."""
        return self._number * self._interval

    def due(self, now: float) -> bool:
        """Return True if `now` is an unused multiple; in any case, use up all multiples until `now`.

        ValueError if the interval is too small: the next multiple is equal to `now` in floating point.
        """
        number = max(self._number, math.floor(now / self._interval))
        while number * self._interval < now:
            number += 1
        due = number * self._interval == now
        self._number = number + due
        if self.next_time() <= now:
            raise ValueError(f"{self._name} = {self._interval:g} is too small at {now:g} s")
        return due
