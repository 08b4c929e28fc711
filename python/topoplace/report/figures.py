"""Figures of matplotlib, drawn off screen and written to a file; nothing here needs a display."""

# matplotlib leaves the types of its **kwargs open.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def new(width: float, height: float, *, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """An empty figure of so many inches and its axes, one or a grid of them."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("plots need matplotlib: pip install 'topoplace[plot]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if rows == columns == 1:
        return figure, figure.add_subplot()
    return figure, figure.subplots(rows, columns, squeeze=False)


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure; the ending of the path chooses the format."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a name may hold a letter the font lacks
        figure.savefig(path, dpi=140, bbox_inches="tight", pad_inches=0.12)


def literal(name: str) -> str:
    """A name as matplotlib shows it unchanged: a dollar would begin a formula."""
    return name.replace("$", r"\$")
