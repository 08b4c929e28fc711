"""The GPUs that are reserved, by time."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator

Mask = int
"""A set of GPUs: bit i is set if GPU i is in the set."""


class BusyTimes:
    """The GPUs that are reserved from each point in time to the next one."""

    def __init__(self, now: float) -> None:
        self._times = [now, math.inf]
        self._masks: list[Mask] = [0]

    def add(self, mask: Mask, start: float, end: float) -> None:
        """Reserve GPUs from `start`, or from now if that is later, to `end`, in seconds."""
        first, last = self._split(max(start, self._times[0])), self._split(end)
        for number in range(first, last):
            self._masks[number] |= mask

    def starts(self, most_busy: int, seconds: float) -> Iterator[float]:
        """Yield the times, earliest first, from which at most `most_busy` GPUs are reserved for `seconds`."""
        for number, start in enumerate(self._times[:-1]):
            used, at = 0, number
            while used.bit_count() <= most_busy:
                used |= self._masks[at]
                at += 1
                if self._times[at] >= start + seconds:
                    break
            if used.bit_count() <= most_busy:
                yield start

    def _split(self, time: float) -> int:
        """Return the number of the period that begins at `time`; the period it is in is split if necessary."""
        number = bisect_left(self._times, time)
        if self._times[number] != time:
            self._times.insert(number, time)
            self._masks.insert(number, self._masks[number - 1])
        return number
