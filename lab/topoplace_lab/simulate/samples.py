"""A quantity measured in several simulations: its mean, and how far chance may have moved it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

UNBOUNDED: Final = (-math.inf, math.inf)
_LARGEST: Final = 700.0
"""Largest exponent."""
_BISECTIONS: Final = 60
_TABULATED: Final = 30


@dataclass(frozen=True, slots=True)
class Sample:
    """The values of one quantity in independent simulations, one per seed, and the 95 % interval of their mean.

    values: at least one. A single value is taken as exact: its interval is the value itself. Formatting a sample as a
    number prints the mean and, in brackets, the interval.
    bounds: what no value can be below or above. The interval is then symmetric on a scale on which it cannot leave
    them: the logarithm of the distance from one bound, or of the ratio of both distances.
    """

    values: tuple[float, ...]
    bounds: tuple[float, float] = UNBOUNDED

    @classmethod
    def of(cls, values: Iterable[float], bounds: tuple[float, float] = UNBOUNDED) -> Sample:
        """Return a sample of the values."""
        return cls(tuple(map(float, values)), bounds)

    @property
    def mean(self) -> float:
        """Return the mean of the values."""
        return math.fsum(self.values) / len(self.values)

    @property
    def margin(self) -> float:
        """Return half the width of the 95 % interval of the mean without bounds, by Student's t distribution."""
        if len(self.values) == 1 or not math.isfinite(self.mean):
            return 0.0
        return t_975(len(self.values) - 1) * statistics.stdev(self.values) / math.sqrt(len(self.values))

    @property
    def low(self) -> float:
        """Return the lower end of the 95 % interval of the mean."""
        return self._end(-self.margin)

    @property
    def high(self) -> float:
        """Return the upper end of the 95 % interval of the mean."""
        return self._end(self.margin)

    def _end(self, distance: float) -> float:
        """Return the value at a distance from the mean, which is that on the scale of the bounds near the mean."""
        mean, (lowest, highest) = self.mean, self.bounds
        below, above = mean - lowest, highest - mean
        if not distance or below == above == math.inf or min(below, above) <= 0:
            return mean + distance
        factor = math.exp(max(-_LARGEST, min(_LARGEST, distance / below + distance / above)))
        if above == math.inf:
            return lowest + below * factor
        if below == math.inf:
            return highest - above / factor
        return lowest + (highest - lowest) * below * factor / (below * factor + above)

    def minus(self, other: Sample) -> Sample:
        """Return the differences from another sample of the same seeds, seed by seed."""
        return Sample.of(a - b for a, b in zip(self.values, other.values, strict=True))

    def over(self, other: Sample) -> Sample:
        """Return the ratios to another sample of the same seeds, seed by seed."""
        return Sample.of(a / b for a, b in zip(self.values, other.values, strict=True))

    def times(self, factor: float) -> Sample:
        """Return the sample with all values multiplied by `factor`, such as for another unit."""
        return Sample.of(factor * value for value in self.values)

    def __format__(self, spec: str) -> str:
        """Return the mean, and the interval in brackets if there are several values, each in the format `spec`."""
        interval = f" [{self.low:{spec}}, {self.high:{spec}}]" if len(self.values) > 1 else ""
        return f"{self.mean:{spec}}{interval}"


def t_975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution with that many degrees of freedom, at least 1.

    It has three decimals, as in the usual tables, up to 30 degrees.
    """
    found = t_quantile(0.975, degrees)
    return round(found, 3) if degrees <= _TABULATED else found


@lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: int) -> float:
    """Return the quantile of Student's t distribution for a probability of 0.5..1, exclusive of 1, by bisection."""
    low, high = 0.0, math.pi / 2
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_probability(middle, degrees) < probability else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _t_probability(angle: float, degrees: int) -> float:
    """Return the probability of no more than √degrees · tan(angle) (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    cosine, is_odd = math.cos(angle), degrees % 2
    term = cosine if is_odd else 1.0
    total = term if degrees > 1 else 0.0
    for k in range(2 + is_odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    inside = math.sin(angle) * total
    return 0.5 + ((angle + inside) / math.pi if is_odd else inside / 2)
