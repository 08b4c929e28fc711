"""Run times drawn from histograms, one for each application, as in the simulator of Amaral's thesis (section 5.4.4)."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Self

import numpy as np

from topoplace import _checks
from topoplace_lab.simulate.performance.around import AroundModel
from topoplace_lab.telemetry import FinishedRun

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace_lab.simulate.performance.models import PerformanceModel
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


@dataclass(frozen=True, slots=True)
class RunTimeHistogram:
    """The number of an application's runs by run time.

    Args:
        edges: K + 1 run times in seconds, not below 0, ascending; equal ones bound runs that took equally long.
        counts: The number of runs between each edge and the next.

    Raises:
        ValueError: Names a wrong edge or count.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"edges has {len(self.edges)} entries: must be one more than counts has")
        for i, edge in enumerate(self.edges):
            _checks.real(edge, f"edges[{i}]", ValueError, low=self.edges[i - 1] if i else 0.0)
        for i, count in enumerate(self.counts):
            _checks.integer(count, f"counts[{i}]", ValueError, low=0, high=1 << 53)
        if not any(self.counts):
            raise ValueError("counts: at least one must be above 0")

    @classmethod
    def of(cls, seconds: Iterable[float], bins: int = 20) -> Self:
        """Count run times in seconds, in bins of equal width from the shortest to the longest.

        Raises:
            ValueError: If there are no run times, if a run time is negative, or if `bins` is below 1.
        """
        given = [_checks.real(value, f"seconds[{i}]", ValueError) for i, value in enumerate(seconds)]
        bins = _checks.integer(bins, "bins", ValueError, low=1, high=1 << 20)
        if not given:
            raise ValueError("seconds: at least one run time needed")
        low, high = min(given), max(given)
        if low == high:
            return cls((low, high), (len(given),))
        counts, edges = np.histogram(given, bins, (low, high))
        return cls(tuple(edges.tolist()), tuple(counts.tolist()))

    def drawn(self, random: np.random.Generator) -> float:
        """Return a random run time in seconds: any time in a bin that is drawn by its number of runs."""
        ends = list(accumulate(self.counts))
        place = bisect_right(ends, int(random.integers(ends[-1])))
        return float(random.uniform(self.edges[place], self.edges[place + 1]))


class RunTimeHistograms(AroundModel):
    """A performance model that draws each job's base time from the histogram of its application.

    An application is the name in `JobGraph.profile`; a job without a histogram keeps its base time. `base` then gives
    the job's run time on its placement and next to other jobs.

    Args:
        histograms: The histogram of each application, by its name.
        base: See `AroundModel`.

    Raises:
        ValueError: If a value in `histograms` is no `RunTimeHistogram`.
    """

    def __init__(
        self, histograms: Mapping[str, RunTimeHistogram], base: PerformanceModel | None = None
    ) -> None:
        super().__init__(base)
        _checks.instance(histograms, Mapping, "histograms", ValueError)
        for name, histogram in histograms.items():
            _checks.instance(histogram, RunTimeHistogram, f"histograms[{_checks.shown(name)}]", ValueError)
        self.histograms = dict(histograms)

    @classmethod
    def of_runs(
        cls, runs: Iterable[FinishedRun], base: PerformanceModel | None = None, *, bins: int = 20
    ) -> Self:
        """Build the histograms from recorded runs, such as those of a `TelemetryLog`; runs without a name are left out.

        Args:
            bins: The number of bins of each histogram.
        """
        seconds: defaultdict[str, list[float]] = defaultdict(list)
        for run in runs:
            if run.application:
                seconds[run.application].append(run.seconds)
        return cls({name: RunTimeHistogram.of(times, bins) for name, times in seconds.items()}, base)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds of a job with the drawn base time under `base`."""
        histogram = self.histograms.get(job.job.profile or "")
        if histogram is not None:
            job = replace(job, base_time=histogram.drawn(random))
        return self.base.run_time(job, placement, random)
