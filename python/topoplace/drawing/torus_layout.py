"""Draw a torus or a grid, as TPUs are wired: a plane of chips, or several planes one behind the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Final

from topoplace.drawing.frame import Frame
from topoplace.drawing.scene import Point, Rect, Text, fitted
from topoplace.drawing.states import draw_gpu
from topoplace.drawing.wires import direct_links, words

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

MAX_WIRED: Final = 256
"""Limit on chips between which lines are drawn."""
_MARGIN: Final = 14.0
_NARROWEST, _WIDEST = 58.0, 120.0
_CHIP: Final = (46.0, 32.0)


@dataclass(frozen=True)
class Grid:
    """Chips numbered along planes, rows and columns, the last fastest; each is linked to its neighbours."""

    shape: tuple[int, int, int]
    """Planes, rows, columns."""

    def at(self, chip: int) -> tuple[int, int, int]:
        """Return the plane, the row and the column of a chip."""
        _, rows, columns = self.shape
        return chip // (rows * columns), chip // columns % rows, chip % columns


def grid_of(topology: Topology) -> Grid | None:
    """Return the grid that the direct links of a topology form, of two or three dimensions; None if they form none."""
    n = topology.num_gpus
    pairs = {(u, v) for u, v, _ in topology.links}
    if n < 6 or topology.tiling is not None or not n - 1 <= len(pairs) <= 3 * n:
        return None
    for shape in _shapes(n):
        if _is_grid(pairs, shape):
            return Grid(shape)
    return None


def _shapes(n: int) -> Iterator[tuple[int, int, int]]:
    """Yield the shapes of `n` chips with at least two dimensions of two or more."""
    divisors = [i for i in range(1, n + 1) if n % i == 0]
    for planes, rows in product(divisors, repeat=2):
        if n % (planes * rows) == 0 and rows > 1 and n // (planes * rows) > 1:
            yield planes, rows, n // (planes * rows)


def _is_grid(pairs: set[tuple[int, int]], shape: tuple[int, int, int]) -> bool:
    """Return True if `pairs` are the neighbours in a grid of this shape, whose dimensions may close to rings."""
    steps = (shape[1] * shape[2], shape[2], 1)
    closed = [size > 2 and (0, (size - 1) * step) in pairs for size, step in zip(shape, steps, strict=True)]
    count = 0
    for size, is_closed in zip(shape, closed, strict=True):
        count += math.prod(shape) // size * (size if is_closed else size - 1)
    if count != len(pairs):
        return False
    return all(
        (chip, chip + step) in pairs if at < size - 1 else not is_closed or (chip - at * step, chip) in pairs
        for chip, place in enumerate(product(*map(range, shape)))
        for at, size, step, is_closed in zip(place, shape, steps, closed, strict=True)
    )


def draw(frame: Frame, grid: Grid) -> float:
    """Draw the planes below the top of `frame`, and return the y coordinate at which the drawing ends."""
    if frame.states.topology.num_gpus > MAX_WIRED:
        return _draw_chips(frame, grid)
    planes = _Planes.of(frame, grid)
    for plane in range(grid.shape[0]):
        planes.draw_frame(frame, plane)
    for u, v, link in direct_links(frame.states.topology):
        frame.wiring.draw(f"{u}-{v}", link, planes.way(u, v), used=frame.traffic.classes((u, v)))
    for gpu in range(frame.states.topology.num_gpus):
        x, y = planes.place(gpu)
        box = Rect(x - planes.chip[0] / 2, y - planes.chip[1] / 2, *planes.chip, radius=4)
        draw_gpu(frame.scene, frame.states, gpu, box)
    bottom = frame.y + planes.height * math.ceil(grid.shape[0] / planes.beside)
    if grid.shape[0] == 1:
        return bottom
    note = "A stub at a corner is the link to the same place in the next plane"
    note += " (of the last one: in plane 0)." if _is_closed(frame.states.topology, grid) else "."
    frame.scene.add(Text(frame.x, bottom + 10, fitted(note, frame.width, 11), 11, "start", "faint"))
    return bottom + 18


def _is_closed(topology: Topology, grid: Grid) -> bool:
    """Return True if the last plane is linked to the first one."""
    last = topology.num_gpus // grid.shape[0] * (grid.shape[0] - 1)
    return grid.shape[0] > 2 and any((u, v) == (0, last) for u, v, _ in topology.links)


@dataclass(frozen=True)
class _Planes:
    """Where the chips of each plane are."""

    grid: Grid
    x: float
    y: float
    beside: int
    """Planes side by side."""
    width: float
    height: float
    """Of a plane, with the gap to the next one."""
    pitch: tuple[float, float]
    chip: tuple[float, float]

    @classmethod
    def of(cls, frame: Frame, grid: Grid) -> _Planes:
        """Return the planes as large as they can be in `frame`."""
        planes, rows, columns = grid.shape
        beside = max(1, min(planes, int(frame.width // (columns * _NARROWEST + 2 * _MARGIN))))
        width = frame.width / beside
        across = min(_WIDEST, (width - 3 * _MARGIN) / columns)
        chip = min(_CHIP[0], 0.5 * across), min(_CHIP[1], 0.36 * across)
        height = rows * 0.8 * across + 2 * _MARGIN
        return cls(grid, frame.x, frame.y, beside, width, height, (across, 0.8 * across), chip)

    def corner(self, plane: int) -> Point:
        """Return the upper left corner of a plane."""
        return self.x + plane % self.beside * self.width, self.y + plane // self.beside * self.height

    def place(self, chip: int) -> Point:
        """Return the middle of a chip."""
        plane, i, j = self.grid.at(chip)
        x, y = self.corner(plane)
        left = x + (self.width - self.grid.shape[2] * self.pitch[0]) / 2
        return left + (j + 0.5) * self.pitch[0], y + 4 + (i + 0.5) * self.pitch[1]

    def way(self, u: int, v: int) -> Sequence[Point]:
        """Return the line of a link: straight to a neighbour, bent where it closes a ring, a stub between planes."""
        (p, i, j), (q, k, m) = self.grid.at(u), self.grid.at(v)
        start, end = self.place(u), self.place(v)
        if p != q:
            x, y = end if q - p > 1 else start
            return (x + self.chip[0] / 2 - 2, y - self.chip[1] / 2 + 2), (
                x + self.chip[0] / 2 + 0.17 * self.pitch[0],
                y - self.chip[1] / 2 - 0.17 * self.pitch[1],
            )
        if abs(i - k) + abs(j - m) == 1:
            return start, end
        middle = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        if j != m:
            return start, (middle[0], middle[1] + 0.84 * self.pitch[1]), end
        return start, (middle[0] - 0.84 * self.pitch[0], middle[1]), end

    def draw_frame(self, frame: Frame, plane: int) -> None:
        """Draw the box of a plane with its name."""
        if self.grid.shape[0] == 1:
            return
        x, y = self.corner(plane)
        box = Rect(x + 3, y, self.width - 6, self.height - 8, "frame", 6)
        frame.scene.add(box, Text(x + 9, y + 13, f"plane {plane}", 10, "start", "faint"), classes="plane")


def _draw_chips(frame: Frame, grid: Grid) -> float:
    """Draw the planes side by side, without the lines between chips."""
    planes, rows, columns = grid.shape
    beside = max(1, min(planes, int(frame.width // (6.0 * columns + _MARGIN))))
    side = min(16.0, (frame.width - _MARGIN * (beside - 1)) / (beside * columns))
    for chip in range(planes * rows * columns):
        plane, i, j = grid.at(chip)
        x = frame.x + plane % beside * (side * columns + _MARGIN)
        y = frame.y + plane // beside * (side * rows + 26)
        if planes > 1 and not i and not j:
            label = fitted(f"plane {plane}", side * columns, 10)
            frame.scene.add(Text(x, y + 12, label, 10, "start", "faint"))
        box = Rect(x + j * side, y + 18 + i * side, max(1.0, side - 1), max(1.0, side - 1))
        draw_gpu(frame.scene, frame.states, chip, box)
    bottom = frame.y + math.ceil(planes / beside) * (side * rows + 26)
    link = frame.states.topology.links[0][2]
    dimensions = sum(size > 1 for size in grid.shape)
    note = f"Not drawn: the links of each chip to its neighbours along {dimensions} dimensions, {words(link)}"
    frame.scene.add(Text(frame.x, bottom + 8, fitted(note, frame.width, 11), 11, "start", "faint"))
    return bottom + 16
