"""Draw a comparison of policies: boxes of jobs' bandwidth and run time, mean turnarounds, and makespans."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace.drawing import figures
from topoplace_lab.report import looks
from topoplace_lab.simulate.metrics import score_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topoplace_lab.simulate.metrics import Result

_BARS: Final = {"mean turnaround": "mean_turnaround", "makespan": "makespan"}
"""The title of each bar plot, with its key in a summary."""


def comparison(results: Sequence[Result], path: str | Path) -> None:
    """Draw box plots of bandwidth-sensitive jobs' effective bandwidth and run time, one box per result.

    If no bandwidth-sensitive job ran on a topology, the boxes show the waiting time and the slowdown of all jobs. Two
    more plots show the mean turnaround, which decides the best policy, and the makespan. Each topology has a row of
    plots. Boxes extend from the 25th to the 75th percentile, whiskers from the minimum to the maximum. A result without
    such jobs has no box.
    """
    by_topology: dict[str, list[Result]] = {}
    for result in results:
        by_topology.setdefault(result.topology.name, []).append(result)
    heights = [0.7 + 0.24 * len(group) for group in by_topology.values()]
    figure, grid = figures.new(18, 0.6 + sum(heights), rows=len(by_topology), columns=4, heights=heights)
    for row, (name, group) in zip(grid, by_topology.items(), strict=True):
        series = looks.policy_numbers([result.policy for result in group])
        for axes, (what, values) in zip(row[:2], _panels(group), strict=True):
            _boxes(axes, values, f"{figures.literal(name)}: {what}", series)
            axes.set_yticks(range(len(group)), [""] * len(group))
        for axes, (what, key) in zip(row[2:], _BARS.items(), strict=True):
            _bars(axes, group, key, f"{figures.literal(name)}: {what}", series)
        row[0].set_yticklabels([figures.literal(result.policy) for result in group], fontsize=9)
    figure.suptitle(
        "Median (line), middle half (box), least and most (whiskers) of jobs; mean turnaround; when the last job ends",
        fontsize=12,
    )
    figures.save(figure, path)


def _panels(group: Sequence[Result]) -> list[tuple[str, list[Any]]]:
    """Return title and values of the two plots for the results on one topology."""
    if any(len(result.sensitive) for result in group):
        bandwidth = [score_of(result.sensitive, "effective_bandwidth") for result in group]
        return [
            ("effective bandwidth of sensitive jobs (GB/s)", bandwidth),
            ("run time of sensitive jobs (s)", [result.sensitive["run_time"] for result in group]),
        ]
    return [
        ("waiting time (s)", [result.jobs["wait"] for result in group]),
        ("slowdown incl. wait", [result.jobs["slowdown_with_wait"] for result in group]),
    ]


def _boxes(axes: Axes, values: Sequence[Any], title: str, series: Sequence[int]) -> None:
    """Draw a horizontal box for each array of `values`, the first at the top, with the look of its series."""
    from matplotlib.patheffects import withStroke

    halo = [withStroke(linewidth=3.4, foreground="#ffffff")]  # shows the median on dark boxes
    boxes = axes.boxplot(
        [value[~np.isnan(value)] for value in values],
        positions=range(len(values)),
        orientation="horizontal",
        whis=(0, 100),
        widths=0.68,
        patch_artist=True,
        medianprops={"color": "#222222", "linewidth": 1.6, "path_effects": halo},
    )
    for i, box in zip(series, boxes["boxes"], strict=True):
        box.set(facecolor=looks.colour(i), hatch=looks.hatch(i))
    _finish(axes, len(values), title)


def _bars(axes: Axes, group: Sequence[Result], key: str, title: str, series: Sequence[int]) -> None:
    """Draw a horizontal bar for a figure in seconds of each result's summary, in hours if they are long."""
    spans = np.array([float(result.summary()[key]) for result in group])
    unit, seconds = looks.time_unit(float(np.nanmax(spans, initial=0.0)))
    bars = axes.barh(range(len(spans)), spans / seconds, 0.68, edgecolor="#222222", linewidth=0.8)
    for bar, number in zip(bars.patches, series, strict=True):
        bar.set(facecolor=looks.colour(number), hatch=looks.hatch(number))
    axes.set_yticks(range(len(group)), [""] * len(group))
    _finish(axes, len(group), f"{title} ({unit})")


def _finish(axes: Axes, rows: int, title: str) -> None:
    axes.set_ylim(rows - 0.4, -0.6)
    axes.set_xlim(left=0)
    axes.set_title(title, fontsize=10)
    axes.grid(axis="x", alpha=0.3)
