"""A paired bootstrap over blocks: how much the difference of two policies depends on some of a trace's jobs.

Jobs that follow each other in a trace wait for each other, so they are not independent draws. In order of submission,
they are divided into about as many blocks as each block has jobs. Blocks are drawn with replacement, the same ones for
both policies (Carlstein, The Annals of Statistics 14(3), 1986). Nothing is simulated again, so the interval says
nothing about other traces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace_lab.report.comparison import ComparisonRow, best_of

if TYPE_CHECKING:
    from topoplace_lab.simulate.metrics import Result

FEWEST_JOBS: Final = 100
"""Least number of jobs: with fewer, there are fewer than ten blocks, too few to draw from."""
_DRAWS: Final = 2000


class BlockInterval(NamedTuple):
    """The 95 % interval of a ratio over draws of blocks."""

    low: float
    high: float
    num_blocks: int

    def __str__(self) -> str:
        """Return what was drawn."""
        return f"{self.num_blocks} blocks of the trace's jobs"


def of_best(rows: Sequence[ComparisonRow], results: Sequence[Result]) -> BlockInterval | None:
    """Return `turnaround_ratio` of the best policy and the first; None if the first is best, or if none is.

    results: the results from which the rows were computed.
    """
    best = best_of(rows)
    return turnaround_ratio(results[0], results[min(best)]) if best and 0 not in best else None


def turnaround_ratio(first: Result, other: Result, *, seed: int = 0) -> BlockInterval | None:
    """Return the interval of the mean turnaround under another policy over that under the first.

    None if fewer than 100 jobs finished under both.

    Raises:
        ValueError: If the results have different jobs.
    """
    if first.jobs["job"].tolist() != other.jobs["job"].tolist():
        raise ValueError("other: must have the jobs of first")
    both = np.stack([result.jobs["end"] - result.jobs["submit"] for result in (first, other)])
    both = both[:, np.argsort(first.jobs["submit"], kind="stable")]
    both = both[:, ~np.isnan(both).any(axis=0)]
    num_jobs = both.shape[1]
    if num_jobs < FEWEST_JOBS:
        return None
    num_blocks = math.isqrt(num_jobs)
    sums = np.add.reduceat(both, np.arange(num_blocks) * num_jobs // num_blocks, axis=1)
    drawn = np.random.default_rng(seed).integers(num_blocks, size=(_DRAWS, num_blocks))
    before, after = sums[:, drawn].sum(axis=2)
    low, high = np.quantile(after / before, (0.025, 0.975)).tolist()
    return BlockInterval(low, high, num_blocks)
