"""Draw our numbers, with their 95 % intervals, next to a paper's."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from topoplace.drawing import figures
from topoplace_lab.report import looks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WIDEST: Final = 4.0
"""Largest ratio to the paper's number on the axis; an arrow at its end stands for a dot beyond."""


class Compared(NamedTuple):
    """One of our numbers next to the paper's number and the range that counts as reproduced.

    ours: the mean and the two ends of its interval. policy: the policy of the number, which gives the colour.
    """

    label: str
    paper: float
    reproduced: tuple[float, float]
    ours: tuple[float, float, float]
    policy: str = ""


def against_paper(numbers: Sequence[Compared], path: str | Path) -> None:
    """Draw our numbers over the paper's, a line each: a dot for the mean, a bar for its 95 % interval.

    The grey range counts as reproduced. The two numbers are at the right. The paper's numbers must not be 0.
    """
    figure, axes = figures.new(7.2, 0.9 + 0.22 * len(numbers))
    for line, number in enumerate(numbers):
        _line(axes, line, number)
    axes.set_xscale("log")
    axes.set_xlim(1 / _WIDEST, _WIDEST)
    ticks = (0.25, 0.5, 0.8, 1, 1.25, 2, 4)
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="#222222", linewidth=0.8, zorder=1)
    axes.set_yticks(range(len(numbers)), [figures.literal(number.label) for number in numbers], fontsize=8)
    axes.set_ylim(len(numbers) - 0.5, -0.5)
    axes.set_xlabel("our number over the paper's; grey counts as reproduced", fontsize=9)
    axes.set_title("the paper's, ours", fontsize=8, loc="right")
    axes.grid(axis="x", alpha=0.3)
    figures.save(figure, path)


def _line(axes: Axes, line: int, number: Compared) -> None:
    mean, low, high = (_on_axis(value / number.paper) for value in number.ours)
    grey = sorted(_on_axis(value / number.paper) for value in number.reproduced)
    axes.barh(line, grey[1] - grey[0], 0.8, grey[0], color="#d9d9d9", zorder=0)
    colour, ratio = looks.policy_colour(number.policy), number.ours[0] / number.paper
    axes.plot([low, high], [line, line], color=colour, linewidth=2)
    marker = "<" if ratio < 1 / _WIDEST else ">" if ratio > _WIDEST else "o"
    axes.plot([mean], [line], color=colour, marker=marker, markersize=6, clip_on=False)
    text = f"{number.paper:.4g}, {number.ours[0]:.4g}"
    axes.annotate(
        text, (1.01, line), xycoords=("axes fraction", "data"), fontsize=7, va="center", annotation_clip=False
    )


def _on_axis(ratio: float) -> float:
    return min(max(ratio, 1 / _WIDEST), _WIDEST)
