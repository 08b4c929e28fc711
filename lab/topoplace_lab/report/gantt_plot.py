"""Draw a schedule: a bar for each GPU of each job, or the number of busy GPUs if there are many jobs."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace.drawing import figures
from topoplace.topology.device_numbers import in_words
from topoplace_lab.report import looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from topoplace_lab.simulate.metrics import Result

MAX_BARS: Final = 5000
"""Limit on the number of bars, one for each GPU of each job; more would be too thin, and slow to draw."""
MAX_ROWS: Final = 256
"""Limit on the number of rows, one for each GPU; more would be thinner than their labels."""
_MAX_NAMED_JOBS: Final = 24
_TALLEST_INCHES: Final = 24.0
_NUM_PERIODS: Final = 600
_HALF_HEIGHT: Final = 0.43


def gantt(result: Result, path: str | Path) -> None:
    """Draw a Gantt chart of a simulation: a row per GPU, and a bar per job coloured by its number of GPUs.

    Bandwidth-sensitive jobs have a dark edge. A run with more than `MAX_BARS` bars or `MAX_ROWS` GPUs is drawn as the
    number of GPUs that each size of job keeps busy.
    """
    ran = result.stays
    num_bars = sum(map(len, ran["gpus"]))
    end = float(np.max(ran["end"], initial=0.0))
    unit, seconds = looks.time_unit(end)
    where = figures.literal(f"{result.policy} on {result.topology.name}")
    if num_bars > MAX_BARS or result.topology.num_gpus > MAX_ROWS:
        figure, axes = figures.new(11, 5)
        _draw_busy_gpus(axes, result, ran, seconds)
        title = f"{where}: busy GPUs ({len(ran):,} jobs, too many for a bar each)"
    else:
        figure, axes = figures.new(11, min(1.6 + 0.28 * result.topology.num_gpus, _TALLEST_INCHES))
        _draw_bars(axes, result, ran, seconds)
        title = f"{where}: {len(ran)} jobs on GPUs (dark edge: bandwidth sensitive)"
    axes.set_title(title, fontsize=11)
    axes.set_xlim(0, end / seconds or 1)
    axes.set_xlabel(f"time ({unit})")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figures.save(figure, path)


def _draw_bars(axes: Axes, result: Result, ran: NDArray[np.void], seconds: float) -> None:
    """Draw a bar for each GPU of each job. seconds: length of the time axis' unit in seconds."""
    num_gpus = result.topology.num_gpus
    colours = _size_colours({len(gpus) for gpus in ran["gpus"]})
    for sensitive, edge in ((False, "#ffffff"), (True, "#222222")):
        _add_bars(axes, ran[ran["bandwidth_sensitive"] == sensitive], seconds, colours, edge)
    if len(ran) <= _MAX_NAMED_JOBS:
        _name_jobs(axes, ran, seconds)
    for size, colour in colours.items():
        axes.bar([0], [0], color=colour, label=str(size))
    if colours:
        columns = math.ceil(len(colours) / num_gpus)  # the legend must not be taller than the chart
        _legend(axes, columns)
    labelled = range(0, num_gpus, math.ceil(num_gpus / 64))
    axes.set_yticks(labelled, [in_words([gpu], result.topology) for gpu in labelled], fontsize=8)
    axes.set_ylim(num_gpus - 0.4, -0.6)


def _add_bars(
    axes: Axes, jobs: NDArray[np.void], seconds: float, colours: Mapping[int, Any], edge: str
) -> None:
    """Draw the bars of `jobs` at once, which takes a tenth of the time that a shape for each takes.

    seconds: length of the time axis' unit in seconds. colours: by the number of GPUs of a job. edge: colour of edges.
    """
    from matplotlib.collections import PolyCollection

    corners: list[list[tuple[float, float]]] = []
    fill: list[Any] = []
    for job in jobs:
        left, right = job["start"] / seconds, job["end"] / seconds
        for gpu in job["gpus"]:
            low, high = gpu - _HALF_HEIGHT, gpu + _HALF_HEIGHT
            corners.append([(left, low), (right, low), (right, high), (left, high)])
            fill.append(colours[len(job["gpus"])])
    axes.add_collection(PolyCollection(corners, facecolors=fill, edgecolors=edge, linewidths=0.5))


def _name_jobs(axes: Axes, ran: NDArray[np.void], seconds: float) -> None:
    """Write each job's id into its bars. seconds: length of the time axis' unit in seconds."""
    for job in ran:
        middle = (job["start"] + job["end"]) / 2 / seconds
        name = figures.literal(job["job"])
        for gpu in job["gpus"]:
            axes.text(middle, gpu, name, ha="center", va="center", fontsize=8, color="#ffffff", clip_on=True)


def _draw_busy_gpus(axes: Axes, result: Result, ran: NDArray[np.void], seconds: float) -> None:
    """Draw the mean number of busy GPUs in each of 600 periods, stacked by the size of the jobs that use them.

    seconds: length of the time axis' unit in seconds.
    """
    gpus = np.array([len(taken) for taken in ran["gpus"]])
    edges = np.linspace(0.0, float(np.max(ran["end"], initial=0.0)) or 1.0, _NUM_PERIODS + 1)
    groups = _size_groups(gpus)
    colours = _size_colours({largest for _, largest in groups}).values()
    below = np.zeros(_NUM_PERIODS)
    for (smallest, largest), colour in zip(groups, colours, strict=True):
        chosen = (gpus >= smallest) & (gpus <= largest)
        busy = _mean_busy(ran["start"][chosen], ran["end"][chosen], gpus[chosen], edges)
        label = f"{smallest}" if smallest == largest else f"{smallest}-{largest}"
        axes.stairs(below + busy, edges / seconds, baseline=below, fill=True, color=colour, label=label)
        below += busy
    axes.axhline(result.topology.num_gpus, color="#222222", linewidth=0.8, linestyle="--")
    axes.set_ylim(0, 1.05 * result.topology.num_gpus)
    axes.set_ylabel(f"busy GPUs (dashed: all {result.topology.num_gpus:,})")
    if groups:
        _legend(axes, 1)


def _legend(axes: Axes, columns: int) -> None:
    """Explain the colours to the right of the chart."""
    axes.legend(
        title="GPUs of a job",
        frameon=False,
        fontsize=8,
        ncols=columns,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )


def _mean_busy(
    start: NDArray[np.float64], end: NDArray[np.float64], gpus: NDArray[np.int_], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the mean number of GPUs that jobs keep busy between neighbouring `edges`, times in ascending order."""
    used = sum(sign * _gpu_seconds_after(times, gpus, edges) for sign, times in ((1.0, start), (-1.0, end)))
    return np.diff(used) / np.diff(edges)


def _gpu_seconds_after(
    times: NDArray[np.float64], gpus: NDArray[np.int_], edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the GPU seconds that jobs would have used by each edge if they began at `times` and never ended."""
    order = np.argsort(times)
    before = np.searchsorted(times[order], edges)
    num_gpus = np.concatenate(([0.0], np.cumsum(gpus[order])))[before]
    begun = np.concatenate(([0.0], np.cumsum(gpus[order] * times[order])))[before]
    return num_gpus * edges - begun


def _size_groups(gpus: NDArray[np.int_]) -> list[tuple[int, int]]:
    """Return the job sizes (smallest, largest) of each colour: single ones, or doubling ranges if more than 8."""
    sizes = sorted({int(size) for size in gpus if size})
    if len(sizes) <= 8:
        return [(size, size) for size in sizes]
    ranges = {(1 << (size.bit_length() - 1), (1 << size.bit_length()) - 1) for size in sizes}
    return sorted(ranges)


def _size_colours(sizes: set[int]) -> dict[int, Any]:
    """Return a colour for each number of GPUs in `sizes` above 0; more GPUs are darker."""
    from matplotlib import colormaps

    ascending = sorted(sizes - {0})
    shades = np.linspace(0.88, 0.18, len(ascending), endpoint=False)[::-1]
    return {size: colormaps["YlGnBu"](shade) for size, shade in zip(ascending, shades, strict=True)}
