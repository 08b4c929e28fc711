"""A fixed piece of work that knows nothing of topoplace: its CPU time says how fast this machine is at the moment.

A limit in milliseconds means one machine: two idle cores of an AMD EPYC, where the work takes `REFERENCE_S`. A slower
or a busy machine takes longer for the work, and about as much longer for what is measured next to it: the quotient
counts. A third of the time goes to the Python interpreter, a third to compiled loops full of branches, and a third to
reads scattered over half a megabyte. There are no larger arrays in it: they took up to five times as long while other
programs ran, and kernels did not. The work must never change, or the limits no longer mean what they did.

`python benchmarks/timing/yardstick.py` prints what the work takes here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

import numpy as np

REFERENCE_S = 0.001
"""CPU seconds of the work on the reference machine: the first decile of 5,000 runs while other programs used it."""
REST_S = 0.02
"""CPU seconds of measuring between two runs of the work: more often, it would clear the caches too often."""

_draws = np.random.default_rng(0)
_ORDER = _draws.permutation(1 << 15)
_READ = np.empty_like(_ORDER)
_VALUES, _SOUGHT = _draws.integers(0, 1 << 40, (2, 4_000))

Item = TypeVar("Item")


def work() -> int:
    """Do the work: count in a dict, sort and search, follow a permutation."""
    counts: dict[int, int] = {}
    for number in range(3_500):
        key = number * 7919 % 1009
        counts[key] = counts.get(key, 0) + number
    places = np.searchsorted(np.sort(_VALUES, kind="stable"), _SOUGHT)
    for _ in range(8):
        np.take(_ORDER, _ORDER, out=_READ)
    return len(counts) + int(places[0]) + int(_READ[0])


class Yardstick:
    """Does the work in between what is measured, and converts measured times to those of the reference machine."""

    def __init__(self) -> None:
        self._seconds: list[float] = []
        self._sampled = 0.0

    def sample(self, repeats: int = 5) -> None:
        """Do the work some times, after once that fills the caches."""
        work()
        for _ in range(repeats):
            before = time.thread_time()
            work()
            self._seconds.append(time.thread_time() - before)
        self._sampled = time.thread_time()

    def between(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield the items; do the work before those that come 20 ms of CPU time after the last time."""
        for item in items:
            if time.thread_time() - self._sampled > REST_S:
                self.sample()
            yield item

    @property
    def factor(self) -> float:
        """By what a time of here is multiplied to get that of the reference machine.

        The lower quartile of the work's times counts: what else runs adds to some of them, and to none of the rest.
        """
        return REFERENCE_S / statistics.quantiles(self._seconds, n=4)[0]


def main() -> None:
    """Print the deciles and the median of many runs."""
    yardstick = Yardstick()
    yardstick.sample(5_000)
    deciles = [1e3 * value for value in statistics.quantiles(yardstick._seconds, n=10)]
    print(f"first decile {deciles[0]:.3f} ms, median {deciles[4]:.3f} ms, last decile {deciles[8]:.3f} ms")


if __name__ == "__main__":
    main()
