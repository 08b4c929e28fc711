"""Draw the legend of a scene: a sample of each class that was drawn, with its meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from topoplace.drawing.scene import Entry, Line, Rect, Scene, Shape, Text, fitted, text_width

_SIZE: Final = 11.0
_SAMPLE: Final = (26.0, 12.0)
_ROW: Final = 19.0
_MARGIN: Final = 14.0
_STATES: Final = ("free", "other", "busy", "chosen", "unhealthy", "degraded")


def draw(scene: Scene, y: float) -> float:
    """Draw the legend of a scene from `y` downwards, and return the y coordinate at which it ends."""
    lines = [entry for entry in scene.legend.values() if entry.is_line]
    boxes = sorted((entry for entry in scene.legend.values() if not entry.is_line), key=_rank)
    for entries in (lines, boxes):
        x = _MARGIN
        for entry in entries:
            meaning = fitted(entry.meaning, scene.width - 2 * _MARGIN - _SAMPLE[0] - 6, _SIZE)
            width = _SAMPLE[0] + 6 + text_width(meaning, _SIZE)
            if x > _MARGIN and x + width > scene.width - _MARGIN:
                x, y = _MARGIN, y + _ROW
            shapes = [*_sample(entry, x, y), _text(meaning, x, y)]
            scene.add(*shapes, classes="key", data={"legend": entry.classes})
            x += width + 14
        y += _ROW if entries else 0.0
    return y


def _rank(entry: Entry) -> tuple[int, int, str]:
    """Return the place of a box in the legend: free, in use by share or job, chosen, unhealthy; then other things."""
    words = entry.classes.split()
    if words[0] not in ("gpu", "tile"):
        return len(_STATES), 0, entry.classes
    numbers = [int(word.rpartition("-")[2]) for word in words if word.startswith(("share-", "job-"))]
    states = [_STATES.index(word) for word in words if word in _STATES]
    return max(states, default=1), (numbers[0] or 99) if numbers and states else sum(numbers), entry.classes


def _sample(entry: Entry, x: float, y: float) -> Iterator[Shape]:
    if entry.is_line:
        yield Line(((x, y + 8), (x + _SAMPLE[0], y + 8)), entry.classes)
        return
    yield Rect(x, y + 2, *_SAMPLE, classes=entry.classes, radius=3)
    if "busy" in entry.classes.split():
        yield Rect(x, y + 2, *_SAMPLE, classes="taken", radius=3)


def _text(meaning: str, x: float, y: float) -> Text:
    return Text(x + _SAMPLE[0] + 6, y + 12, meaning, _SIZE, "start")
