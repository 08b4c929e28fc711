"""A quantity measured in several simulations: its mean, and how far chance may have moved it."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_T_975: Final = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""97.5 % quantiles of Student's t distribution for 1 to 30 degrees of freedom."""
_NORMAL_975: Final = 1.95996
UNBOUNDED: Final = (-math.inf, math.inf)
_LARGEST: Final = 700.0
"""Of an exponent."""


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
        """Return the sample in another unit."""
        return Sample.of(factor * value for value in self.values)

    def __format__(self, spec: str) -> str:
        """Return the mean, and the interval in brackets if there are several values, each in the format `spec`."""
        interval = f" [{self.low:{spec}}, {self.high:{spec}}]" if len(self.values) > 1 else ""
        return f"{self.mean:{spec}}{interval}"


def t_975(degrees: int) -> float:
    """Return the 97.5 % quantile of Student's t distribution with that many degrees of freedom, at least 1."""
    if degrees <= len(_T_975):
        return _T_975[degrees - 1]
    z = _NORMAL_975
    return z + (z**3 + z) / (4 * degrees) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees**2)
