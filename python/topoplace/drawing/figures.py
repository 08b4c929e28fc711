"""Create matplotlib figures in memory and write them to files; no display is needed."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace.errors import require_package

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new(
    width: float, height: float, *, rows: int = 1, columns: int = 1, heights: Sequence[float] | None = None
) -> tuple[Figure, Any]:
    """Return an empty figure of `width` by `height` inches with a grid of plots.

    heights: relative heights of the rows; None makes them equal. Return the figure and its axes: one object for a
    single plot, else a two-dimensional array. Raise ImportError if matplotlib is missing.
    """
    require_package("matplotlib.figure", "drawing a picture")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if rows == columns == 1:
        return figure, figure.add_subplot()
    return figure, figure.subplots(rows, columns, squeeze=False, height_ratios=heights)


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure to `path`, whose suffix (.png, .svg, .pdf) determines the format.

    Texts of an SVG stay texts, and the same figure gives the same bytes.
    """
    import matplotlib as mpl

    is_svg = Path(path).suffix == ".svg"
    with warnings.catch_warnings(), mpl.rc_context({"svg.hashsalt": Path(path).name, "svg.fonttype": "none"}):
        warnings.filterwarnings("ignore", "Glyph")  # a name may contain a character that the font lacks
        figure.savefig(
            path, dpi=140, bbox_inches="tight", pad_inches=0.12, metadata={"Date": None} if is_svg else None
        )


def literal(name: str) -> str:
    """Return a name escaped so that matplotlib shows it unchanged; a dollar sign would start a formula."""
    return name.replace("$", r"\$")
