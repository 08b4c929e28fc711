"""Draw plots with matplotlib off screen and write them to a file, whose suffix determines the format.

No display is needed. Each function raises ImportError with the package to install if matplotlib is missing, and OSError
if the path cannot be written.
"""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace.report import figures
from topoplace.report.topology_plot import topology
from topoplace.simulate.metrics import score_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

    from topoplace.simulate.metrics import Result

__all__ = ["comparison", "gantt", "histograms", "lines", "overhead", "topology"]

_TALLEST_INCHES: Final = 24.0
_MAX_NAMED_JOBS: Final = 24
_POLICY_COLOURS: Final = (
    "#8c8c8c",
    "#80b1d3",
    "#fdb462",
    "#1b7837",
    "#bc80bd",
    "#fb8072",
    "#4d4d4d",
    "#b3de69",
)


def gantt(result: Result, path: str | Path) -> None:
    """Draw a Gantt chart of a simulation: a row per GPU, and a bar per job coloured by its number of GPUs.

    Bandwidth-sensitive jobs have a dark edge.
    """
    num_gpus = result.topology.num_gpus
    figure, axes = figures.new(11, min(1.6 + 0.28 * num_gpus, _TALLEST_INCHES))
    colours = _size_colours(result)
    end = float(np.nanmax(result.jobs["end"], initial=0.0))
    unit, seconds = ("h", 3600.0) if end > 7200 else ("s", 1.0)
    for sensitive in (False, True):
        bars = [
            (gpu, job["start"] / seconds, job["run_time"] / seconds, colours[len(job["gpus"])])
            for job in result.jobs
            if bool(job["bandwidth_sensitive"]) == sensitive
            for gpu in job["gpus"]
        ]
        if bars:
            rows, left, width, colour = zip(*bars, strict=True)
            edge = "#222222" if sensitive else "#ffffff"
            axes.barh(rows, width, left=left, height=0.86, color=colour, edgecolor=edge, linewidth=0.5)
    _name_jobs(axes, result, seconds)
    for size, colour in colours.items():
        axes.bar([0], [0], color=colour, label=str(size))
    if colours:
        columns = math.ceil(len(colours) / num_gpus)  # the legend must not be taller than the chart
        where = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "ncols": columns}
        axes.legend(title="GPUs", frameon=False, fontsize=8, **where)
    labelled = range(0, num_gpus, math.ceil(num_gpus / 64))
    axes.set_yticks(labelled, [f"GPU {gpu}" for gpu in labelled], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, end / seconds or 1)
    axes.set_xlabel(f"time ({unit})")
    title = figures.literal(f"{result.policy} on {result.topology.name}: jobs on GPUs")
    axes.set_title(f"{title} (dark edge: bandwidth sensitive)", fontsize=11)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figures.save(figure, path)


def _name_jobs(axes: Axes, result: Result, seconds: float) -> None:
    """Write each job's id into its bars of a Gantt chart, unless there are more than 24 jobs.

    seconds: length of the time axis' unit in seconds.
    """
    if len(result.jobs) > _MAX_NAMED_JOBS:
        return
    for job in result.jobs:
        for gpu in job["gpus"]:
            middle = (job["start"] + job["end"]) / 2 / seconds
            name = figures.literal(job["job"])
            axes.text(middle, gpu, name, ha="center", va="center", fontsize=8, color="#ffffff", clip_on=True)


def comparison(results: Sequence[Result], path: str | Path) -> None:
    """Draw box plots of bandwidth-sensitive jobs' effective bandwidth and run time, one box per result.

    Each topology has a row of two plots. Boxes extend from the 25th to the 75th percentile, whiskers from the minimum
    to the maximum.
    """
    by_topology: dict[str, list[Result]] = {}
    for result in results:
        by_topology.setdefault(result.topology.name, []).append(result)
    figure, grid = figures.new(10, 2.9 * len(by_topology), rows=len(by_topology), columns=2)
    for row, (name, group) in zip(grid, by_topology.items(), strict=True):
        bandwidth = [score_of(result.sensitive, "effective_bandwidth") for result in group]
        run_time = [result.sensitive["run_time"] for result in group]
        names = [figures.literal(result.policy) for result in group]
        name = figures.literal(name)
        _boxes(row[0], bandwidth, names, f"{name}: effective bandwidth (GB/s)")
        _boxes(row[1], run_time, names, f"{name}: run time (s)")
    figure.suptitle("Bandwidth-sensitive jobs", fontsize=12)
    figures.save(figure, path)


def overhead(
    series: Sequence[tuple[str, Sequence[int], Sequence[float]]],
    path: str | Path,
    *,
    along: str = "GPUs of the job",
    logarithmic: bool = False,
) -> None:
    """Draw scheduling decision times over problem sizes, with time on a logarithmic axis.

    series: for each line, its label, sizes and milliseconds. along: label of the size axis. logarithmic: make the size
    axis logarithmic as well.
    """
    lines(series, path, along=along, what="time of one decision (ms)", logarithmic=(logarithmic, True))


def lines(
    series: Sequence[tuple[str, Sequence[int], Sequence[float]]],
    path: str | Path,
    *,
    along: str,
    what: str,
    logarithmic: tuple[bool, bool] = (False, False),
) -> None:
    """Draw one line per entry of `series`, each a label, x values and y values.

    along, what: labels of the x axis and the y axis. logarithmic: whether the x axis and the y axis are logarithmic.
    """
    figure, axes = figures.new(6.4, 4.2)
    for (label, sizes, values), colour in zip(series, _POLICY_COLOURS * len(series), strict=False):
        axes.plot(sizes, values, marker="o", markersize=4, label=label, color=colour)
    axes.set_xlabel(along)
    axes.set_ylabel(what)
    axes.set_xscale("log" if logarithmic[0] else "linear")
    axes.set_yscale("log" if logarithmic[1] else "linear")
    if not logarithmic[1]:
        axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    figures.save(figure, path)


def histograms(panels: Sequence[tuple[str, ArrayLike]], path: str | Path, *, of: str) -> None:
    """Draw histograms side by side, one for each (label, values), with counts on a logarithmic axis.

    of: label of the axis of counts.
    """
    figure, _ = figures.new(4.2 * len(panels), 3.4, columns=len(panels))
    for axes, (label, values) in zip(figure.axes, panels, strict=True):
        axes.hist(np.asarray(values), bins=41, color=_POLICY_COLOURS[1], edgecolor="#ffffff", linewidth=0.3)
        axes.axvline(0, color="#222222", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_ylabel(of)
        axes.grid(axis="y", alpha=0.3)
    figures.save(figure, path)


def _size_colours(result: Result) -> dict[int, Any]:
    """Return a colour for each number of GPUs that some job of the result has; more GPUs are darker."""
    from matplotlib import colormaps

    sizes = sorted({len(gpus) for gpus in result.jobs["gpus"] if gpus})
    return {size: colormaps["YlGnBu"](0.18 + 0.7 * size / sizes[-1]) for size in sizes}


def _boxes(axes: Axes, values: Sequence[Any], names: Sequence[str], title: str) -> None:
    boxes = axes.boxplot(
        [value if len(value) else [math.nan] for value in values],
        whis=(0, 100),
        widths=0.6,
        patch_artist=True,
        medianprops={"color": "#222222", "linewidth": 1.6},
    )
    for box, colour in zip(boxes["boxes"], _POLICY_COLOURS * len(names), strict=False):
        box.set_facecolor(colour)
    axes.set_xticks(range(1, len(names) + 1), names, fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.set_ylim(bottom=0)
    axes.grid(axis="y", alpha=0.3)
