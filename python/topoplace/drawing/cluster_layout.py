"""Draw many machines: boxes of GPUs, or a tile for each machine, inside the domains of their network."""

from __future__ import annotations

import math
import os
import string
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Final

from topoplace.drawing import style
from topoplace.drawing.frame import Frame
from topoplace.drawing.scene import Line, Point, Rect, Text, fitted, text_width
from topoplace.drawing.states import draw_gpu
from topoplace.drawing.wires import direct_links, link_classes, switch_groups, words
from topoplace.topology.links.link_kinds import Link, LinkKind

if TYPE_CHECKING:
    from topoplace.topology.fabric import Level
    from topoplace.topology.topology import Topology

MAX_DRAWN_GPUS: Final = 1024
"""Limit on drawn GPUs; above it, each machine is one tile."""
_TILES: Final = (30.0, 24.0, 18.0, 14.0, 11.0, 9.0, 7.0, 5.0, 3.0)
_NAMED_TILES: Final = (64.0, 56.0, 48.0, 42.0, 36.0, 32.0, 28.0, 25.0, 22.0)
_NAME: Final = 11.0
_TALLEST: Final = 1100.0
_CELL: Final = (17.0, 16.0)
_SHARE_WORDS: Final = ("idle", *(f"up to {share} in use" for share in "⅛¼⅜½⅝¾⅞"), "full")
_FEW: Final = 7
"""Least machines of a domain that is drawn around tiles, if there are larger domains."""
_GAP: Final = 4.0
_LABEL: Final = 15.0
_BAR: Final = 18.0
_WIRE: Final = 22.0


@dataclass(eq=False)
class _Domain:
    """A domain of a level, with the domains of lower levels in it, or machines; or all of the cluster (no level)."""

    level: Level | None
    link: Link | None
    name: str
    machines: Sequence[int]
    inside: Sequence[_Domain] = field(default_factory=list["_Domain"])
    width: float = 0.0
    height: float = 0.0

    @property
    def is_switched(self) -> bool:
        """Return True for a domain of NVSwitches."""
        return self.level is not None and self.level.kind is LinkKind.NVSWITCH


@dataclass(frozen=True)
class _Machines:
    """How machines are drawn: as tiles of one size, or as boxes with GPUs."""

    width: float
    height: float
    columns: int
    """GPUs side by side; 0 for tiles."""
    has_wires: bool = False
    has_labels: bool = True
    """False if the domains around tiles have no room for their names."""
    has_names: bool = False
    """True if tiles have room for their own."""


def draw(frame: Frame) -> float:
    """Draw the machines below the top of `frame`, and return the y coordinate at which the drawing ends."""
    topology = frame.states.topology
    root, machines = _laid_out(frame)
    _Painter(frame, machines).paint(root, frame.x, frame.y)
    bottom = frame.y + root.height
    text = (
        _not_drawn(topology)
        if machines.columns
        else f"{_tiles_in_words(machines)}. {_levels_in_words(topology)}"
    )
    if not text:
        return bottom
    text = fitted(text, frame.width, 11)
    frame.scene.add(Text(frame.x, bottom + 16, text, 11, "start", "faint"))
    return bottom + 22


def _not_drawn(topology: Topology) -> str:
    """Return a sentence about the direct links inside machines, which have no lines here; "" without such links."""
    counts = [len(direct_links(template)) for template in topology.templates]
    total = sum(counts[template] for template in topology.template_of)
    return f"Not drawn: {total:,} direct links; draw one machine to see them." if total else ""


def _tiles_in_words(machines: _Machines) -> str:
    return "A tile is a machine" + (", with the end of its name" if machines.has_names else "")


def _levels_in_words(topology: Topology) -> str:
    """Return the levels of a network, innermost first: how many domains, and what a GPU has in them."""
    parts: list[str] = []
    for level, link in zip(topology.levels, topology.pairs.of_levels, strict=True):
        count = len(set(level.domains) - {None})
        over = f", {level.oversubscription:g}:1" if level.oversubscription > 1 else ""
        speed = f"{link.gb_per_s * level.oversubscription:g} GB/s a GPU"
        parts.append(f"{count:,} × {level.name} ({speed}{over}{', rails' if level.rail else ''})")
    return " · ".join(parts)


def _domains(topology: Topology, *, are_small_left_out: bool = False) -> _Domain:
    """Return the cluster as domains in domains; levels that say no more than those around them are left out."""
    levels = list(zip(topology.levels, topology.pairs.of_levels, strict=True))[::-1]
    if are_small_left_out:
        large = [entry for entry in levels if len(set(entry[0].domains)) * _FEW < topology.num_machines]
        levels = large or levels
    return _Domain(
        None, None, topology.name, range(topology.num_machines), _split(levels, range(topology.num_machines))
    )


def _split(levels: Sequence[tuple[Level, Link]], machines: Sequence[int]) -> Sequence[_Domain]:
    """Return the domains of the outermost level that has some of `machines`, those of lower levels inside."""
    for i, (level, link) in enumerate(levels):
        parts: dict[str | None, list[int]] = {}
        for machine in machines:
            parts.setdefault(level.domains[machine], []).append(machine)
        if all(name is None or len(part) == 1 for name, part in parts.items()):
            continue
        return [
            _Domain(
                level if name is not None else None, link, name or "", part, _split(levels[i + 1 :], part)
            )
            for name, part in parts.items()
        ]
    return []


# ---- sizes ---------------------------------------------------------------------------------------------------------


def _laid_out(frame: Frame) -> tuple[_Domain, _Machines]:
    """Return the domains with their sizes, and that of machines: as boxes with GPUs if they fit, else as tiles."""
    topology = frame.states.topology
    sizes = [_Machines(side, side, 0, has_names=True) for side in _NAMED_TILES if frame.height < math.inf]
    if topology.num_gpus <= MAX_DRAWN_GPUS:
        most = max(template.num_gpus for template in topology.templates) if topology.tiling else 0
        most = most or max(map(len, topology.gpus_of.values()))
        columns = most if most <= 4 else min(16, math.ceil(most / 2))
        rows = math.ceil(most / columns)
        machines = _Machines(
            columns * (_CELL[0] + 1) + 7, rows * (_CELL[1] + 2) + _LABEL + 4, columns, rows == 1
        )
        sizes = [machines, *sizes]
    root = _domains(topology)
    for machines in sizes:
        _measure(root, frame.width, machines, is_root=True)
        if root.height <= frame.height:
            return root, machines
    root, machines = _domains(topology, are_small_left_out=True), _Machines(_TILES[0], _TILES[0], 0)
    for side, has_labels in product(_TILES, (True, False)):
        machines = _Machines(side, side, 0, has_labels=has_labels)
        _measure(root, frame.width, machines, is_root=True)
        if root.height <= min(_TALLEST, frame.height):
            return root, machines
    return root, machines


def _measure(domain: _Domain, width: float, machines: _Machines, *, is_root: bool = False) -> None:
    """Set the size of a domain that is at most `width` wide, and those of the domains inside."""
    pad = 0.0 if is_root else _GAP
    room = width - 2 * pad
    for inner in domain.inside:
        _measure(inner, room, machines)
    right, bottom = _extent(domain, room, machines)
    least = min(room, text_width(_words(domain), 10) + 16) if machines.columns else 0.0
    domain.width = width if is_root else max(right, least) + 2 * pad
    domain.height = bottom + pad + _head(domain, machines) + _middle(domain, machines)


def _extent(domain: _Domain, room: float, machines: _Machines) -> Point:
    """Return the last point that `_flow` yields; equal machines need no walk."""
    if domain.inside:
        *_, end = _flow(domain, room, machines)
        return end
    count, gap = len(domain.machines), _gap(domain, machines)
    beside = max(
        1, int((min(room, _squarish(domain, machines, room)) + gap + 0.01) // (machines.width + gap))
    )
    rows = math.ceil(count / beside)
    return min(count, beside) * (machines.width + gap) - gap, rows * (machines.height + gap) - gap


def _gap(domain: _Domain, machines: _Machines) -> float:
    """Return the gap between the domains or machines inside a domain."""
    return _GAP if machines.columns or domain.inside else 1.0


def _head(domain: _Domain, machines: _Machines) -> float:
    """Return the height of the label of a domain."""
    if domain.level is None:
        return 0.0
    if machines.columns:
        return _BAR + 2
    return 12.0 if machines.has_labels or domain.inside else _GAP


def _middle(domain: _Domain, machines: _Machines) -> float:
    """Return the height of the bar of NVSwitches with its lines, between two rows of machines."""
    return _BAR + 2 * _WIRE if domain.is_switched and not domain.inside and machines.has_wires else 0.0


def _flow(domain: _Domain, room: float, machines: _Machines) -> Iterator[tuple[float, float]]:
    """Yield the place of each domain or machine inside `domain`, row after row, and at last the right and lower end."""
    sizes = [(inner.width, inner.height) for inner in domain.inside]
    if not sizes:
        sizes = [(machines.width, machines.height)] * len(domain.machines)
        room = min(room, _squarish(domain, machines, room))
    gap = _gap(domain, machines)
    x = y = tallest = right = 0.0
    for width, height in sizes:
        if x and x + width > room + 0.01:
            x, y, tallest = 0.0, y + tallest + gap, 0.0
        yield x, y
        right, tallest = max(right, x + width), max(tallest, height)
        x += width + gap
    yield right, y + tallest


def _squarish(domain: _Domain, machines: _Machines, room: float) -> float:
    """Return the width in which the machines of a domain form a rectangle, two rows of a domain of NVSwitches."""
    count = len(domain.machines)
    gap = _gap(domain, machines)
    if domain.level is None:
        return room
    if machines.columns:
        columns = math.ceil(count / 2) if domain.is_switched else min(8, count)
    else:
        columns = math.ceil(math.sqrt(count * 1.5))
        if machines.has_names:
            columns = math.ceil(count / math.ceil(count / columns))  # full rows
    return columns * (machines.width + gap)


# ---- painting ------------------------------------------------------------------------------------------------------


class _Painter:
    """Draws domains and machines whose sizes are known."""

    def __init__(self, frame: Frame, machines: _Machines) -> None:
        self._frame, self._machines = frame, machines
        self._states, self._scene = frame.states, frame.scene
        self._topology = frame.states.topology
        self._gpus_of = list(self._topology.gpus_of.values())
        self._bar_of: dict[int, Link | None] = {}
        self._start = ""
        """How the names of all machines of a domain begin, without their numbers."""

    def paint(self, domain: _Domain, x: float, y: float) -> None:
        """Draw a domain whose upper left corner is at (x, y)."""
        if domain.level is not None:
            self._paint_frame(domain, x, y)
        pad = 0.0 if domain.level is None and domain.width == self._frame.width else _GAP
        top = y + _head(domain, self._machines)
        places = list(_flow(domain, domain.width - 2 * pad, self._machines))
        if domain.inside:
            for inner, (left, row) in zip(domain.inside, places, strict=False):
                self.paint(inner, x + pad + left, top + row)
        elif middle := _middle(domain, self._machines):
            self._paint_switched(domain, places, (x + pad, top), middle)
        else:
            names = [self._topology.machine_names[machine] for machine in domain.machines]
            self._start = os.path.commonprefix(names).rstrip(string.digits)  # noqa: RUF071 (of letters)
            for machine, (left, row) in zip(domain.machines, places, strict=False):
                self._paint_machine(machine, x + pad + left, top + row)

    def _paint_switched(self, domain: _Domain, places: Sequence[Point], corner: Point, middle: float) -> None:
        """Draw machines in two rows, and between them the bar of their NVSwitches, which takes `middle` of height."""
        x, top = corner
        lower = max(row for _, row in places[:-1])
        bar = top + (lower - _GAP if lower else places[-1][1]) + _WIRE
        self._paint_bar(domain, x, bar, domain.width - 2 * _GAP)
        for machine, (left, row) in zip(domain.machines, places, strict=False):
            down, edge = (middle, bar + _BAR) if row else (0.0, bar)
            self._paint_machine(machine, x + left, top + row + down, domain, edge)

    def _paint_frame(self, domain: _Domain, x: float, y: float) -> None:
        assert domain.level is not None
        assert domain.link is not None
        box = Rect(x, y, domain.width, domain.height, "frame", 4)
        name = _words(domain) if self._machines.columns else domain.name
        size = 10.0 if self._machines.columns else 8.5
        shapes: list[Rect | Text] = [box]
        if self._is_fragmented(domain):
            meaning = "fragmented: free GPUs for a machine, but no idle machine"
            self._scene.explain("fragmented", meaning)
            shapes.append(Rect(x, y, domain.width, domain.height, "fragmented", 4))
        if self._machines.columns and not domain.is_switched:
            shapes.append(self._bar_of_level(domain, x, y))
        label = fitted(name, domain.width - 12, size)
        if (len(label) > 3 or label == name) and _head(domain, self._machines) > _GAP:
            base = y + size + (2.5 if self._machines.columns else 1.0)
            shapes.append(Text(x + 7, base, label, size, "start", "label"))
        title = f"{domain.level.name} {domain.name}: {len(domain.machines)} machines"
        if self._states.is_use_known:
            title += f", {self._states.free_of[list(domain.machines)].sum()} free GPUs"
        self._scene.add(*shapes, data={"domain": domain.name}, title=title)

    def _bar_of_level(self, domain: _Domain, x: float, y: float) -> Rect:
        """Return the bar of the switches of a domain, in the colour of their speed for a GPU."""
        level, link = domain.level, domain.link
        assert level is not None
        assert link is not None
        port = Link(link.kind, 1, link.gb_per_s * level.oversubscription)
        classes = f"level speed-{style.speed_class(port.gb_per_s)}"
        self._scene.explain(classes, "switches of the network")
        return Rect(x + _GAP, y + 3, domain.width - 2 * _GAP, _BAR - 4, classes, 3)

    def _is_fragmented(self, domain: _Domain) -> bool:
        """Return True if free GPUs of a domain would fill its smallest machine, but none of its machines is idle."""
        if domain.inside or not self._states.is_use_known:
            return False
        free = self._states.free_of
        sizes = [len(self._gpus_of[machine]) for machine in domain.machines]
        own = [int(free[machine]) for machine in domain.machines]
        return (
            len(own) > 1
            and sum(own) >= min(sizes) > 0
            and all(a < b for a, b in zip(own, sizes, strict=True))
        )

    def _paint_bar(self, domain: _Domain, x: float, y: float, width: float) -> None:
        bar = Rect(x, y, width, _BAR, "nvswitch", 4)
        label = Text(x + width / 2, y + 13, fitted("NVSwitch", width, 11), 11)
        self._scene.add(bar, label, data={"switch": domain.name}, title=_words(domain))

    def _paint_machine(
        self, machine: int, x: float, y: float, domain: _Domain | None = None, edge: float = 0.0
    ) -> None:
        """Draw a machine; edge: the height of the bar of NVSwitches of `domain` that its GPUs have lines to."""
        if not self._machines.columns:
            self._paint_tile(machine, x, y)
            return
        gpus, name = self._gpus_of[machine], self._topology.machine_names[machine]
        is_below = domain is not None and edge < y
        box = Rect(x, y, self._machines.width, self._machines.height, "", 4)
        shown = fitted(_tail(name, box.width - 8), box.width - 8, 8.5)
        label = Text(x + 4, y + (box.height - 5 if is_below else 10.5), shown, 8.5, "start", "faint")
        self._scene.add(box, label, classes="machine", data={"machine": str(machine)}, title=name)
        self._paint_own_bar(machine, x, y)
        columns = self._machines.columns
        for i, gpu in enumerate(gpus):
            left = x + 4 + i % columns * (_CELL[0] + 1)
            top = y + (4 if is_below else _LABEL) + i // columns * (_CELL[1] + 3)
            if domain is not None:
                ends = (left + _CELL[0] / 2, top if is_below else top + _CELL[1]), (left + _CELL[0] / 2, edge)
                self._paint_wire(domain, gpu, ends)
            draw_gpu(self._scene, self._states, gpu, Rect(left, top, *_CELL, radius=3))

    def _paint_wire(self, domain: _Domain, gpu: int, ends: Sequence[Point]) -> None:
        """Draw the line from a GPU to the NVSwitches of its domain."""
        assert domain.link is not None
        used = self._frame.over_switches(gpu)
        self._frame.wiring.draw(f"{gpu}-{domain.name}", domain.link, ends, thin=True, used=used)

    def _paint_own_bar(self, machine: int, x: float, y: float) -> None:
        """Draw the NVSwitches inside a machine as a bar between its two rows of GPUs."""
        template = self._topology.template_of[machine] if self._topology.tiling else -1
        if template < 0 or self._machines.has_wires:
            return
        if template not in self._bar_of:
            groups = switch_groups(self._topology.templates[template])
            self._bar_of[template] = next(iter(groups[0].links.values())) if groups else None
        link = self._bar_of[template]
        if link is None:
            return
        classes = link_classes(link)
        meaning = "NVSwitches inside a machine"
        meaning += f": {words(link)}" if len(self._topology.templates) == 1 else ""
        self._scene.explain(f"inner {classes}", meaning, is_line=True)
        middle = y + _LABEL + _CELL[1] + 1.5
        ends = (x + 4, middle), (x + self._machines.width - 4, middle)
        self._scene.add(Line(ends), classes=f"inner {classes}")

    def _paint_tile(self, machine: int, x: float, y: float) -> None:
        gpus = self._gpus_of[machine]
        used = len(gpus) - int(self._states.free_of[machine])
        named = gpus if self._states.colour_of else ()
        jobs = Counter(job for gpu in named if (job := self._states.job_of.get(gpu)))
        classes = f"tile {self._tile_state(gpus, used, jobs)}"
        title = f"{self._topology.machine_names[machine]}: "
        title += f"{used} of {len(gpus)} GPUs in use" if self._states.is_use_known else f"{len(gpus)} GPUs"
        if jobs:
            title += f" by {', '.join(list(jobs)[:4])}{' …' if len(jobs) > 4 else ''}"
        side = self._machines.width
        shapes: list[Rect | Text] = [Rect(x, y, side, side)]
        if self._machines.has_names:
            name = self._topology.machine_names[machine]
            shown = _tail(name.removeprefix(self._start) or name, side - 2)
            label = Text(x + side / 2, y + _NAME - 2.5, shown, 8.5)
            shapes = [Rect(x, y, side, side, "page"), label, Rect(x, y + _NAME, side, side - _NAME)]
        self._scene.add(*shapes, classes=classes, data={"machine": str(machine)}, title=title)

    def _tile_state(self, gpus: Sequence[int], used: int, jobs: Counter[str]) -> str:
        """Return the classes of a machine, and have the legend explain them."""
        states = self._states
        if states.task_of and any(gpu in states.task_of for gpu in gpus):
            self._scene.explain("tile chosen", "chosen")
            return "chosen"
        if states.unhealthy.issuperset(gpus):
            self._scene.explain("tile unhealthy", "out of service")
            return "unhealthy"
        if not states.is_use_known:
            self._scene.explain("tile other", "free or in use")
            return "other"
        step = math.ceil(used * style.SHARES / len(gpus))
        step = step if used == len(gpus) else min(step, style.SHARES - 1)
        self._scene.explain(f"tile share-{step}", _SHARE_WORDS[step])
        if not jobs:
            return f"share-{step}"
        number = states.colour_of[jobs.most_common(1)[0][0]]
        self._scene.explain(f"tile job-{number}", states.job_words(number))
        return f"share-{step} job-{number}"


def _words(domain: _Domain) -> str:
    """Return the name of a domain and what its level carries."""
    level, link = domain.level, domain.link
    if level is None or link is None:
        return ""
    over = f", {level.oversubscription:g}:1" if level.oversubscription > 1 else ""
    speed = link.gb_per_s * level.oversubscription
    name = domain.name if level.name in domain.name else f"{level.name} {domain.name}"
    return f"{name}: {speed:g} GB/s a GPU{over}{', rails' if level.rail else ''}"


def _tail(name: str, width: float) -> str:
    """Return the end of a machine's name, where names differ, if all of it does not fit."""
    if text_width(name, 8.5) <= width:
        return name
    tail = name[-int(width / (8.5 * 0.6)) + 1 :]
    return f"…{tail}"
