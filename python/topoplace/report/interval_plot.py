"""Draw means and their 95 % intervals, a panel for each scenario and a line for each policy."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from topoplace.report import figures
from topoplace.simulate.samples import Sample


def intervals(panels: Sequence[tuple[str, Mapping[str, Sample]]], path: str | Path, *, what: str) -> None:
    """Draw a dot for the mean of each sample, and a bar for its interval, to `path`.

    panels: titles, and samples by the names of the lines. what: label of the axis of values.
    """
    heights = [0.6 + 0.22 * len(samples) for _, samples in panels]
    figure, grid = figures.new(8, 0.4 + sum(heights), rows=len(panels), columns=1, heights=heights)
    all_axes = [grid] if len(panels) == 1 else [row[0] for row in grid]
    for axes, (title, samples) in zip(all_axes, panels, strict=True):
        for i, sample in enumerate(samples.values()):
            axes.errorbar(sample.mean, i, xerr=sample.margin, color=figures.colour(i), fmt="o", capsize=3)
        axes.set_yticks(range(len(samples)), [figures.literal(name) for name in samples], fontsize=8)
        axes.set_ylim(len(samples) - 0.5, -0.5)
        axes.set_title(figures.literal(title), fontsize=10)
        axes.grid(axis="x", alpha=0.3)
    all_axes[-1].set_xlabel(what)
    figures.save(figure, path)
