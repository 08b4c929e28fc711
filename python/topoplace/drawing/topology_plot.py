"""Write the drawing of a topology to a file: an SVG directly, other formats by matplotlib."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace.drawing import figures, picture, style, svg_text
from topoplace.drawing.scene import Line, Rect, Scene, Text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topoplace.drawing.scene import Shape
    from topoplace.drawing.states import Busy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_PIXELS_PER_INCH: Final = 100.0
_POINTS: Final = 72.0 / _PIXELS_PER_INCH
"""Points of matplotlib per pixel."""


def topology(
    topo: Topology,
    path: str | Path,
    *,
    busy: Busy = (),
    chosen: Sequence[int] = (),
    degraded: Iterable[int] = (),
    job: JobGraph | None = None,
) -> None:
    """Draw `topo` and write it to `path`; the arguments mean the same as in `topoplace.drawing.svg`.

    Formats other than SVG need matplotlib.
    """
    scene = picture.scene(topo, busy=busy, chosen=chosen, job=job, degraded=degraded)
    if Path(path).suffix == ".svg":
        Path(path).write_text(svg_text.written(scene, "auto"), "utf-8")
        return
    figure, axes = figures.new(scene.width / _PIXELS_PER_INCH, scene.height / _PIXELS_PER_INCH)
    axes.set_xlim(0, scene.width)
    axes.set_ylim(scene.height, 0)
    axes.set_aspect("equal")
    for side in (axes.xaxis, axes.yaxis, axes.spines[:]):
        side.set_visible(False)
    _draw(axes, scene)
    figures.save(figure, path)


def _draw(axes: Axes, scene: Scene) -> None:
    """Draw every shape of a scene in light colours, from back to front."""
    for order, item in enumerate(scene.items):
        for shape in item.shapes:
            look = style.properties(shape.classes, inherited=item.classes)
            if isinstance(shape, Text):
                _write(axes, shape, look, order)
            else:
                axes.add_patch(_patch(shape, look, order))


def _write(axes: Axes, text: Text, look: Mapping[str, str], order: int) -> None:
    axes.text(
        text.x,
        text.y,
        figures.literal(text.text),
        fontsize=text.size * _POINTS,
        ha={"start": "left", "middle": "center", "end": "right"}[text.anchor],
        va="baseline",
        color=look.get("fill", "#000000"),
        fontweight=look.get("font-weight", "normal"),
        zorder=order,
        in_layout=False,
    )


def _patch(shape: Shape, look: Mapping[str, str], order: int) -> Any:
    """Return a rectangle or a line as a patch of matplotlib."""
    from matplotlib.patches import FancyBboxPatch, PathPatch, Rectangle
    from matplotlib.path import Path as Curve

    # The axes alone say how large the picture is; measuring thousands of patches takes long.
    options: dict[str, Any] = _options(look) | {"zorder": order, "in_layout": False}
    if isinstance(shape, Line):
        codes = [Curve.MOVETO, Curve.LINETO]
        if len(shape.points) == 3:
            codes = [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3]
        cap = look.get("stroke-linecap", "butt")
        return PathPatch(Curve(np.array(shape.points), codes), capstyle=cap, **options)
    assert isinstance(shape, Rect)
    corner, size = (shape.x, shape.y), (shape.width, shape.height)
    if not shape.radius or "hatch" in options:
        return Rectangle(corner, size[0], size[1], **options)
    return FancyBboxPatch(
        corner, size[0], size[1], boxstyle=f"round,pad=0,rounding_size={shape.radius}", **options
    )


def _options(look: Mapping[str, str]) -> dict[str, Any]:
    """Return properties of CSS as arguments of patches."""
    from matplotlib.colors import to_rgba

    width = float(look.get("stroke-width", "1"))
    fill, stroke = look.get("fill", "none"), look.get("stroke", "none")
    if fill.startswith("url"):
        lines = style.properties(fill.removeprefix("url(#topoplace-").removesuffix(")"))["stroke"]
        return {"facecolor": "none", "edgecolor": lines, "hatch": "////", "linewidth": 0.0}
    dashes = [float(part) / width for part in look.get("stroke-dasharray", "").split()]
    return {
        "facecolor": to_rgba(fill, float(look.get("fill-opacity", "1"))) if fill != "none" else "none",
        "edgecolor": to_rgba(stroke, float(look.get("stroke-opacity", "1"))) if stroke != "none" else "none",
        "linewidth": width * _POINTS,
        "linestyle": (0, tuple(dashes)) if dashes else "-",
    }
