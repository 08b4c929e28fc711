"""The palette of all pictures, and the style of each class of a drawing, in light and in dark."""

from __future__ import annotations

import math
from typing import Final, TypeAlias

COLOURS: Final = (
    "#8c8c8c",
    "#5aa5d8",
    "#e8a03a",
    "#1b7837",
    "#bc80bd",
    "#e31a1c",
    "#4d4d4d",
    "#8fc044",
    "#1f4fa3",
    "#ef86b6",
    "#8c510a",
    "#cfb41d",
)
"""Colours of series, such as policies and jobs, that are easy to tell apart, on white and on black."""

PALETTE: Final = {
    "page": ("#ffffff", "#11161c"),
    "ink": ("#1c2733", "#e6edf3"),
    "faint": ("#566573", "#a3b3c2"),
    "frame": ("#eef3f8", "#1b232c"),
    "edge": ("#9db4c8", "#4d6175"),
    "free": ("#ffffff", "#2b3642"),
    "busy": ("#aab1b8", "#596470"),
    "strokes": ("#7d868e", "#8a95a0"),
    "chosen": ("#8fd19e", "#1f6b3a"),
    "unhealthy": ("#f4b6ae", "#8c2f2a"),
    "used": ("#2e9e4f", "#4cc46e"),
    "slowest": ("#0b5d2a", "#b6f2c6"),
    "alarm": ("#b5312b", "#f0675f"),
    "amber": ("#d99a00", "#f0c040"),
    "switch": ("#d6e6f5", "#1d3a57"),
    "heat": ("#2166ac", "#6fb1ff"),
    "speed-0": ("#98a2ab", "#7d8994"),
    "speed-1": ("#9ccbe8", "#3d6f9a"),
    "speed-2": ("#5fa8d8", "#4a8fc8"),
    "speed-3": ("#2f83c4", "#5fb0ee"),
    "speed-4": ("#1f5fa8", "#8cc9ff"),
    "speed-5": ("#1c3f86", "#b7deff"),
    "speed-6": ("#2a1a63", "#e3f2ff"),
}
"""Each colour of drawings by name, for light and for dark surroundings.

Speeds are blue, and stand out the more the faster they are; a choice is green; only what is broken is red.
"""

SPEEDS: Final = 7
"""Number of speed classes; each is about twice as fast as the one below it."""
SHARES: Final = 8
"""Number of steps in which machines are shaded by the share of their GPUs in use."""
_OF_JOBS: Final = tuple(colour for colour in COLOURS if colour != "#4d4d4d")
"""The colours of jobs, without dark grey, which is that of free GPUs in dark surroundings."""
JOBS: Final = len(_OF_JOBS) - 1
"""Number of jobs with their own colour; the first colour is that of all other jobs."""

_WIDTHS: Final = ("1.2", "1.8", "2.6", "3.4", "4.4", "5.4", "6.6")
_SLOWEST_GB_PER_S: Final = 12.5
HOST_KINDS: Final = ("pcie", "pcie_bridges", "host", "host_bridges", "system")

Rule: TypeAlias = dict[str, str]
"""Properties of CSS with their values; "@name" is a colour of the palette."""


def _box(fill: str, stroke: str = "@edge", width: str = "1", **others: str) -> Rule:
    return {"fill": fill, "stroke": stroke, "stroke-width": width} | {
        key.replace("_", "-"): value for key, value in others.items()
    }


_THINGS: Final[dict[str, Rule]] = {
    "page": {"fill": "@page"},
    "label": {"fill": "@ink", "fill-opacity": "1", "stroke": "none"},
    "faint": {"fill": "@faint", "stroke": "none"},
    "strong": {"font-weight": "bold"},
    "frame": _box("@page"),
    "machine": _box("@frame"),
    "socket": _box("@frame"),
    "cpu": _box("@edge", fill_opacity=".35"),
    "pcie-switch": _box("@speed-0", "@speed-0", fill_opacity=".3"),
    "nvswitch": _box("@switch", "@speed-4", "1.2"),
    "adapter": _box("@page", "@faint"),
    "cord": {"fill": "none", "stroke": "@faint", "stroke-width": "1"},
    "link": {"fill": "none", "stroke-linecap": "round"},
}
_STATES: Final[dict[str, Rule]] = {
    "gpu": {"stroke": "@ink", "stroke-width": "1.2"},
    "tile": {"stroke": "@edge", "stroke-width": ".6"},
    "free": {"fill": "@free"},
    "other": {"fill": "@free"},
    "busy": {"fill": "@busy"},
    **{
        f"share-{step}": {"fill": "@heat", "fill-opacity": f"{0.14 + 0.86 * step / SHARES:.2f}"}
        for step in range(1, SHARES + 1)
    },
    "share-0": {"fill": "@free"},
    **{f"job-{i}": {"fill": colour} for i, colour in enumerate(_OF_JOBS)},
    "of-job": {"fill-opacity": ".55"},
    "taken": {"fill": "url(#topoplace-strokes)", "fill-opacity": "1", "stroke": "none"},
    "strokes": {"stroke": "@strokes", "stroke-width": "1"},
    "degraded": {"stroke": "@amber", "stroke-width": "3", "stroke-dasharray": "4 2"},
    "chosen": {"fill": "@chosen", "fill-opacity": "1"},
    "unhealthy": {"fill": "@unhealthy", "stroke": "@alarm", "stroke-dasharray": "2 2"},
    "fragmented": {"fill": "url(#topoplace-hatch)", "stroke": "none"},
    "hatch": {"stroke": "@alarm", "stroke-width": "1"},
}
_LINKS: Final[dict[str, Rule]] = {
    **{
        f"speed-{speed}": {"stroke": f"@speed-{speed}", "stroke-width": width}
        for speed, width in enumerate(_WIDTHS)
    },
    **{f"kind-{kind}": {"stroke-dasharray": "5 3"} for kind in HOST_KINDS},
    "kind-unknown": {"stroke-dasharray": "1 4"},
    "level": {"fill": "@frame", "stroke-width": "2"},
    "thin": {"stroke-width": "1.2"},
    "inner": {"stroke-width": "3"},
    "used": {"fill": "none", "stroke": "@used", "stroke-width": "12", "stroke-opacity": ".55"},
    "slowest": {"stroke": "@slowest", "stroke-opacity": ".6"},
}
RULES: Final = _THINGS | _STATES | _LINKS
"""The properties of each class; those of later ones take precedence."""


def speed_class(gb_per_s: float) -> int:
    """Return the class of a speed, 0 to 6: 12.5 GB/s and less, 25, 50, 100, 200, 400, 800 GB/s and more."""
    if gb_per_s <= _SLOWEST_GB_PER_S:
        return 0
    return min(SPEEDS - 1, round(math.log2(gb_per_s / _SLOWEST_GB_PER_S)))


def properties(classes: str, *, inherited: str = "", dark: bool = False) -> Rule:
    """Return the properties of a shape with these classes, in an item with the classes `inherited`, colours resolved.

    The result equals what a browser computes from `css`, for other writers than SVG.
    """
    found: Rule = {}
    for names in (inherited.split(), classes.split()):
        for name, rule in RULES.items():
            if name in names:
                found |= rule
    return {key: _colour(value, dark) for key, value in found.items()}


def css() -> str:
    """Return the style sheet of drawings; every colour is a custom property, which a page may set.

    The colours follow the reader's scheme; the class "light" or "dark" of the drawing forces one. Programs without
    custom properties draw in the light colours.
    """
    light, dark = (
        ";".join(f"--topoplace-{name}:{pair[i]}" for name, pair in PALETTE.items()) for i in (0, 1)
    )
    sheet = [
        f".topoplace{{{light}}}",
        f"@media(prefers-color-scheme:dark){{.topoplace:not(.light){{{dark}}}}}",
        f".topoplace.dark{{{dark}}}",
        '.topoplace text{font-family:"DejaVu Sans",Verdana,system-ui,sans-serif}',
    ]
    sheet += [f".topoplace .{name}{{{_declared(rule)}}}" for name, rule in RULES.items()]
    return "\n".join(sheet)


def _declared(rule: Rule) -> str:
    parts: list[str] = []
    for key, value in rule.items():
        parts.append(f"{key}:{_colour(value, dark=False)}")
        if value.startswith("@"):
            parts.append(f"{key}:var(--topoplace-{value[1:]})")
    return ";".join(parts)


def _colour(value: str, dark: bool) -> str:
    return PALETTE[value[1:]][dark] if value.startswith("@") else value
