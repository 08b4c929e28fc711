"""Draw plots with matplotlib off screen and write them to a file, whose suffix determines the format.

No display is needed. Each function raises ImportError with the package to install if matplotlib is missing, and OSError
if the path cannot be written.
"""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from topoplace.drawing import figures
from topoplace.drawing.topology_plot import topology
from topoplace_lab.report import looks
from topoplace_lab.report.comparison_plot import comparison
from topoplace_lab.report.fragmentation_plot import fragmentation
from topoplace_lab.report.gantt_plot import gantt
from topoplace_lab.report.trace_plot import trace

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["comparison", "fragmentation", "gantt", "histograms", "lines", "overhead", "topology", "trace"]


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
    for i, (label, sizes, values) in enumerate(series):
        style = {"color": looks.colour(i), "linestyle": looks.line_style(i)}
        axes.plot(sizes, values, marker="o", markersize=4, label=figures.literal(label), **style)
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
        axes.hist(np.asarray(values), bins=41, color=looks.colour(1), edgecolor="#ffffff", linewidth=0.3)
        axes.axvline(0, color="#222222", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_xlabel(label)
        axes.set_ylabel(of)
        axes.grid(axis="y", alpha=0.3)
    figures.save(figure, path)
