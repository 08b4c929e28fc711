"""The parts of a drawing: rectangles, lines and texts, in items that carry classes and data.

A scene has no colours; `style.py` has them by class. One scene can therefore become an SVG or another format.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

Point: TypeAlias = tuple[float, float]
_NO_DATA: Mapping[str, str] = {}
_LETTER: Final = 0.6
"""Width of a usual letter, relative to the size of the font; wide letters have 1.1."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, with rounded corners if `radius` is given."""

    x: float
    y: float
    width: float
    height: float
    classes: str = ""
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line between two points, or a curve: of three points, the middle one is its control point."""

    points: Sequence[Point]
    classes: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text whose baseline is at `y`; `anchor` states whether `x` is its "start", "middle" or "end"."""

    x: float
    y: float
    text: str
    size: float = 12.0
    anchor: str = "middle"
    classes: str = "label"


Shape: TypeAlias = Rect | Line | Text


@dataclass(frozen=True, slots=True)
class Item:
    """Shapes that belong together, such as a GPU: they share classes, data, and a tooltip."""

    shapes: Sequence[Shape]
    classes: str = ""
    data: Mapping[str, str] = field(default_factory=lambda: _NO_DATA)
    title: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the legend: a sample with the classes of what it explains, and its meaning."""

    classes: str
    meaning: str
    is_line: bool = False


@dataclass(slots=True)
class Scene:
    """A drawing that is being built: items from back to front, and the entries of its legend, by classes."""

    width: float
    height: float = 0.0
    items: list[Item] = field(default_factory=list[Item])
    legend: dict[str, Entry] = field(default_factory=dict[str, Entry])
    title: str = ""

    def add(
        self, *shapes: Shape, classes: str = "", data: Mapping[str, str] = _NO_DATA, title: str = ""
    ) -> None:
        """Add an item in front of the earlier ones."""
        self.items.append(Item(shapes, classes, data, title))

    def explain(self, classes: str, meaning: str, *, is_line: bool = False) -> None:
        """Add an entry for `classes` to the legend, unless there is one."""
        self.legend.setdefault(classes, Entry(classes, meaning, is_line))


def text_width(text: str, size: float) -> float:
    """Return the approximate width of a text in a font of `size`; as fonts differ, the estimate is generous."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (_LETTER * (len(text) - wide) + 1.1 * wide)


def fitted(text: str, width: float, size: float) -> str:
    """Return `text`, shortened with "…" if it is wider than `width`; "" if not even a letter fits."""
    text = text[: int(width / (size * _LETTER)) + 2]
    if text_width(text, size) <= width:
        return text
    while text and text_width(f"{text}…", size) > width:
        text = text[:-1]
    return f"{text}…" if text else ""
