"""Create matplotlib figures in memory and write them to files; no display is needed."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topoplace import policies
from topoplace.drawing.style import COLOURS
from topoplace.errors import require_package

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_HATCHES: Final = ("", "///", "...", "xxx")
_LINE_STYLES: Final = ("-", "--", ":", "-.")


def new(
    width: float, height: float, *, rows: int = 1, columns: int = 1, heights: Sequence[float] | None = None
) -> tuple[Figure, Any]:
    """Create an empty figure of `width` by `height` inches with a grid of plots.

    heights: of the rows, relative to each other; None makes them equal. Returns the figure and its axes: one object for
    a single plot, else a two-dimensional array. ImportError if matplotlib is missing.
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
    """Escape a name so that matplotlib shows it unchanged; a dollar sign would start a formula."""
    return name.replace("$", r"\$")


def colour(i: int) -> str:
    """Return the colour of series `i`; colours repeat after the last."""
    return COLOURS[i % len(COLOURS)]


def policy_numbers(names: Sequence[str]) -> list[int]:
    """Return which series each policy is, by which `colour`, `hatch` and `line_style` choose its look.

    A built-in policy has the same look in every picture, also if its options follow in brackets. Other names, and those
    of a policy that is there already, are further series.
    """
    known = list(policies.names())
    numbers: list[int] = []
    further = len(known)
    for name in names:
        policy = name.partition(" (")[0]
        number = known.index(policy) if policy in known else further
        if number in numbers:
            number = further
        further += number == further
        numbers.append(number)
    return numbers


def policy_colour(name: str) -> str:
    """Return the colour of a built-in policy, in any picture; black for other names."""
    return colour(policy_numbers([name])[0]) if name in policies.names() else "#000000"


def hatch(i: int) -> str:
    """Return the hatch of series `i`, which tells apart series of the same colour."""
    return _HATCHES[i // len(COLOURS) % len(_HATCHES)]


def line_style(i: int) -> str:
    """Return the line style of series `i`, which tells apart series of the same colour."""
    return _LINE_STYLES[i // len(COLOURS) % len(_LINE_STYLES)]


def time_unit(end: float) -> tuple[str, float]:
    """Return the unit of a time axis that ends at `end` seconds, and how many seconds it has."""
    return ("h", 3600.0) if end > 7200 else ("s", 1.0)
