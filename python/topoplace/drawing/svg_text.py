"""Write a scene as the text of an SVG."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from html import escape
from typing import Final

from topoplace.drawing import style
from topoplace.drawing.scene import Item, Line, Rect, Scene, Shape, Text

THEMES: Final = ("auto", "light", "dark")
_NOT_IN_XML: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HATCHED: Final = {"fragmented": ("hatch", 45), "busy": ("strokes", -45)}
"""For each hatched class, the class of the lines, which also names the pattern, and their angle in degrees."""
_MAX_TITLE: Final = 300


def written(scene: Scene, theme: str) -> str:
    """Return the scene as a self-contained SVG; equal scenes give equal text. theme: see `THEMES`."""
    size = f'width="{_number(scene.width)}" height="{_number(scene.height)}"'
    box = f'viewBox="0 0 {_number(scene.width)} {_number(scene.height)}"'
    forced = "" if theme == "auto" else f" {theme}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="topoplace{forced}" {size} {box} role="img">'
    lines = [head, f"<title>{text_of(scene.title)}</title>", f"<style>\n{style.css()}\n</style>"]
    drawn = {name for classes in scene.legend for name in classes.split()}
    lines += [_pattern(*lines_of) for name, lines_of in _HATCHED.items() if name in drawn]
    lines.append(f'<rect class="page" {size}/>')
    lines += map(_item, scene.items)
    return "\n".join([*lines, "</svg>", ""])


def _pattern(name: str, degrees: int) -> str:
    return (
        f'<defs><pattern id="topoplace-{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate({degrees})"><path class="{name}" d="M0 0V6"/></pattern></defs>'
    )


@lru_cache(maxsize=4096)
def text_of(text: str) -> str:
    """Return a text as XML: special characters escaped, those that XML cannot hold replaced."""
    return escape(_NOT_IN_XML.sub("\ufffd", text))


def _item(item: Item) -> str:
    """Return an item as one element: a group, or its only shape."""
    attributes = _attributes(item.data)
    title = f"<title>{text_of(item.title[:_MAX_TITLE])}</title>" if item.title else ""
    if len(item.shapes) == 1 and not isinstance(item.shapes[0], Text):
        (shape,) = item.shapes
        return _shape(shape, item.classes, attributes, title)
    if not (item.classes or attributes or title):
        return "\n".join(_shape(shape) for shape in item.shapes)
    inside = "".join(_shape(shape) for shape in item.shapes)
    return f"<g{_classes(item.classes)}{attributes}>{title}{inside}</g>"


def _attributes(data: Mapping[str, str]) -> str:
    return "".join(f' data-{key}="{text_of(value)}"' for key, value in data.items())


def _shape(shape: Shape, classes: str = "", attributes: str = "", title: str = "") -> str:
    marks = _classes(f"{classes} {shape.classes}".strip()) + attributes
    if isinstance(shape, Text):
        place = f'x="{_number(shape.x)}" y="{_number(shape.y)}" font-size="{_number(shape.size)}"'
        return f'<text{marks} {place} text-anchor="{shape.anchor}">{text_of(shape.text)}</text>'
    if isinstance(shape, Line):
        place, name = f'd="{"".join(_path(shape))}"', "path"
    else:
        place, name = _box(shape), "rect"
    return f"<{name}{marks} {place}>{title}</{name}>" if title else f"<{name}{marks} {place}/>"


def _box(rect: Rect) -> str:
    sides = {"x": rect.x, "y": rect.y, "width": rect.width, "height": rect.height}
    if rect.radius:
        sides["rx"] = rect.radius
    return " ".join(f'{key}="{_number(value)}"' for key, value in sides.items())


def _path(line: Line) -> Iterator[str]:
    points = [f"{_number(x)} {_number(y)}" for x, y in line.points]
    yield f"M{points[0]}"
    yield f"Q{points[1]} {points[2]}" if len(points) == 3 else f"L{points[1]}"


def _classes(names: str) -> str:
    return f' class="{names}"' if names else ""


@lru_cache(maxsize=4096)
def _number(value: float) -> str:
    return f"{round(value, 1):g}" if abs(value) < 1e5 else f"{value:.0f}"
