"""Draw a workload before it runs: jobs by size, run times, submissions, and the GPUs requested over time."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace.drawing import figures
from topoplace_lab.report import looks
from topoplace_lab.report.trace_figures import demand, described

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topoplace_lab.simulate.workloads.workload import Workload

_MOST_SIZES: Final = 16
_UNITS: Final = (("s", 1.0), ("min", 60.0), ("h", 3600.0), ("days", 86400.0))
_BINS: Final = 60


def trace(workload: Workload, path: str | Path) -> None:
    """Draw four plots of a workload; ValueError if it has no jobs.

    The plots show the shares of jobs and of GPU hours by number of GPUs, the distribution of run times, and the
    submissions over time. The last one shows the GPUs in use if each job ran at its submission.
    """
    figure, grid = figures.new(11, 6.4, rows=2, columns=2)
    _sizes(grid[0][0], workload)
    _run_times(grid[0][1], workload)
    _submissions(grid[1][0], workload)
    _demand(grid[1][1], workload)
    for axes in figure.axes:
        axes.grid(alpha=0.3)
    figures.save(figure, path)


def _sizes(axes: Axes, workload: Workload) -> None:
    """Draw two bars for each number of GPUs; the rarest of many numbers are left out."""
    figure = described(workload)
    sizes = figure["sizes"]
    shown = sorted(sorted(sizes, key=lambda size: -sizes[size]["jobs"])[:_MOST_SIZES], key=int)
    totals = {"jobs": figure["jobs"], "gpu_hours": figure["gpu_hours"] or 1.0}
    for i, (key, label) in enumerate((("jobs", "of jobs"), ("gpu_hours", "of GPU hours"))):
        heights = [100 * sizes[size][key] / totals[key] for size in shown]
        places = np.arange(len(shown)) + 0.4 * i - 0.2
        axes.bar(places, heights, 0.4, label=f"% {label}", color=looks.colour(1 + 2 * i))
    axes.set_xticks(range(len(shown)), shown)
    axes.set_xlabel(
        "GPUs of the job" + (f" (the {len(shown)} most common)" if len(shown) < len(sizes) else "")
    )
    axes.set_ylabel("share (%)")
    axes.legend(frameon=False)


def _run_times(axes: Axes, workload: Workload) -> None:
    seconds = np.sort(workload.base_time)
    positive = seconds[seconds > 0]
    axes.plot(
        positive,
        100 * np.arange(1 + len(seconds) - len(positive), len(seconds) + 1) / len(seconds),
        color=looks.colour(3),
        drawstyle="steps-post",
    )
    axes.set_xscale("log")
    axes.set_xlabel("run time (s)")
    axes.set_ylabel("jobs up to this run time (%)")
    axes.set_ylim(0, 102)


def _submissions(axes: Axes, workload: Workload) -> None:
    unit, seconds = _unit(float(np.ptp(workload.submit_time)))
    times = (workload.submit_time - workload.submit_time.min()) / seconds
    axes.hist(times, bins=_BINS, color=looks.colour(1), edgecolor="#ffffff", linewidth=0.3)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("jobs submitted")


def _demand(axes: Axes, workload: Workload) -> None:
    times, gpus = demand(workload)
    unit, seconds = _unit(float(times[-1] - times[0]))
    axes.plot(
        (times - times[0]) / seconds, gpus, color=looks.colour(5), drawstyle="steps-post", linewidth=0.8
    )
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("GPUs if no job waited")
    axes.set_ylim(bottom=0)


def _unit(span: float) -> tuple[str, float]:
    """Return the largest unit of time, with its seconds, of which a span has at least two."""
    return next((unit for unit in reversed(_UNITS) if span >= 2 * unit[1]), _UNITS[0])
