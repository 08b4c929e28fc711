"""Draw the GPUs left over the time of a simulation, and how many of them typical jobs cannot use."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from topoplace.drawing import figures
from topoplace_lab.report import looks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def fragmentation(series: NDArray[np.void], path: str | Path, *, of: str) -> None:
    """Draw the rows of `fragmentation_series` as steps: the GPUs left, and the part that typical jobs cannot use.

    of: the policy and the cluster, for the title.
    """
    figure, axes = figures.new(11, 5)
    end = float(series["time"][-1]) if len(series) else 0.0
    unit, seconds = looks.time_unit(end)
    for i, (column, label) in enumerate((("left", "left"), ("fragment", "lost to a typical job"))):
        style = {"fill": True, "color": looks.colour(i + 1), "label": label}
        if len(series) > 1:
            axes.stairs(series[column][:-1], series["time"] / seconds, **style)
    axes.set_title(f"{figures.literal(of)}: GPUs that are left, and those lost to a typical job", fontsize=11)
    axes.set_xlim(0, end / seconds or 1)
    axes.set_ylim(bottom=0)
    axes.set_xlabel(f"time ({unit})")
    axes.set_ylabel("GPUs")
    if len(series) > 1:
        axes.legend(frameon=False, fontsize=9)
    figures.save(figure, path)
