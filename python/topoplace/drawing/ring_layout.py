"""Draw a machine whose GPUs are linked directly: its GPUs on an ellipse, so that no line passes through a GPU."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from topoplace.drawing.frame import Frame
from topoplace.drawing.scene import Line, Point, Rect, Text, fitted
from topoplace.drawing.states import draw_gpu
from topoplace.drawing.wires import direct_links
from topoplace.topology.devices import PATH_CLASSES

if TYPE_CHECKING:
    from topoplace.topology.devices import Nic
    from topoplace.topology.links.link_kinds import Link
    from topoplace.topology.topology import Topology

MAX_GPUS: Final = 24
_FEW: Final = 12
_GPU: Final = (46.0, 34.0)
_SMALL: Final = (34.0, 24.0)
"""The size of each GPU if more than 12 are on the ellipse, so that lines pass between them."""
_MARGIN: Final = 14.0
_LABEL: Final = 18.0
_ACROSS: Final = 48.0
"""Largest width of the ellipse of n GPUs, divided by 2 n."""
_NARROWEST: Final = 164.0
_ADAPTER: Final = (58.0, 18.0)


def draw(frame: Frame) -> float:
    """Draw the machine below the top of `frame`, and return the y coordinate at which the drawing ends."""
    topology = frame.states.topology
    links = direct_links(topology)
    groups = _groups(topology)
    sides = _ADAPTER[0] + 2 * _MARGIN if topology.nics else 0.0
    size = _GPU if topology.num_gpus <= _FEW else _SMALL
    height = min(0.72 * (frame.width - 2 * sides) + 20, 26.0 * topology.num_gpus + 130)
    middle = (frame.x + frame.width / 2, frame.y + _LABEL + height / 2)
    across = min(frame.width / 2 - sides - size[0] / 2 - _MARGIN, _ACROSS * topology.num_gpus)
    radii = across, height / 2 - size[1] / 2 - _MARGIN
    place = _places(groups, links, middle, radii)
    _draw_sockets(frame, groups, place)
    for u, v, link in links:
        frame.wiring.draw(f"{u}-{v}", link, (place[u], place[v]), used=frame.traffic.classes((u, v)))
    for u, v in sorted(frame.traffic.pairs - {(u, v) for u, v, _ in links}):
        used = frame.traffic.classes((u, v))
        frame.wiring.draw(f"{u}-{v}", topology.pairs.link(u, v), (place[u], place[v]), used=used)
    _draw_adapters(frame, place)
    for gpu, (x, y) in enumerate(place):
        draw_gpu(frame.scene, frame.states, gpu, Rect(x - size[0] / 2, y - size[1] / 2, *size, radius=6))
    return frame.y + _LABEL + height + _MARGIN


def _groups(topology: Topology) -> Sequence[Sequence[int]]:
    """Return the GPUs of each socket, or of each machine where there are several."""
    groups: dict[object, list[int]] = {}
    for gpu in topology.gpus:
        groups.setdefault((gpu.machine, gpu.socket), []).append(gpu.index)
    return list(groups.values())


def _places(
    groups: Sequence[Sequence[int]],
    links: Iterable[tuple[int, int, Link]],
    middle: Point,
    radii: tuple[float, float],
) -> Sequence[Point]:
    """Return the middle of each GPU; a group is an arc, in an order in which fast links are short."""
    n = sum(map(len, groups))
    begin = 90.0 if len(groups) == 2 else 180.0
    slots: list[Point] = []
    for i in range(n):
        angle = math.radians(begin + 360 * (i + 0.5) / n)
        slots.append((middle[0] + radii[0] * math.cos(angle), middle[1] + radii[1] * math.sin(angle)))
    # Two sockets stand side by side, and both count from the top.
    order = [
        list(group[::-1]) if len(groups) == 2 and not i else list(group) for i, group in enumerate(groups)
    ]
    slot_of = {gpu: i for i, gpu in enumerate(gpu for group in order for gpu in group)}
    weights = [(u, v, link.gb_per_s) for u, v, link in links]
    _shorten(slot_of, groups, weights, slots)
    return [slots[slot_of[gpu]] for gpu in range(n)]


def _shorten(
    slot_of: dict[int, int],
    groups: Sequence[Sequence[int]],
    weights: Sequence[tuple[int, int, float]],
    slots: Sequence[Point],
) -> None:
    """Swap GPUs of a group as long as that makes the links shorter, each times its speed."""

    def length() -> float:
        return sum(gb_per_s * math.dist(slots[slot_of[u]], slots[slot_of[v]]) for u, v, gb_per_s in weights)

    now, improved = length(), True
    while improved:
        improved = False
        for u, v in (pair for group in groups for pair in combinations(group, 2)):
            slot_of[u], slot_of[v] = slot_of[v], slot_of[u]
            if (then := length()) < now * 0.999:
                now, improved = then, True
            else:
                slot_of[u], slot_of[v] = slot_of[v], slot_of[u]


def _draw_sockets(frame: Frame, groups: Sequence[Sequence[int]], place: Sequence[Point]) -> None:
    """Draw a box around the GPUs of each socket; boxes that would overlap are left out."""
    topology = frame.states.topology
    boxes = [_box(frame, [place[gpu] for gpu in group]) for group in groups]
    if any(_overlap(a, b) for a, b in combinations(boxes, 2)):
        return
    for group, box in zip(groups, boxes, strict=True):
        gpu = topology.gpus[group[0]]
        parts = [gpu.machine] if topology.num_machines > 1 else []
        parts += [] if gpu.socket is None else [f"socket {gpu.socket}"]
        if not parts:
            continue
        if len(group) > 1:
            parts.append(f"PCIe {_slowest(topology, group):g} GB/s")
        text = fitted(", ".join(parts), box.width - 12, 10)
        label = Text(box.x + 6, box.y + 13, text, 10, "start", "faint")
        data = {"socket": f"{int(topology.machine_of[group[0]])}/{gpu.socket}"}
        frame.scene.add(box, label, classes="", data=data)


def _slowest(topology: Topology, group: Sequence[int]) -> float:
    """Return the speed of the slowest pair of a group and, where all pairs are direct, of the paths over the host."""
    return min(topology.default, *(topology.pairs.link(u, v).gb_per_s for u, v in combinations(group, 2)))


def _box(frame: Frame, points: Sequence[Point]) -> Rect:
    """Return the box around GPUs, wide enough for its label, inside the frame."""
    xs, ys = zip(*points, strict=True)
    width = max(max(xs) - min(xs) + _GPU[0] + 16, _NARROWEST)
    top, bottom = min(ys) - _GPU[1] / 2 - 20, max(ys) + _GPU[1] / 2 + 8
    left = min(max(frame.x, (min(xs) + max(xs) - width) / 2), frame.x + frame.width - width)
    return Rect(left, top, width, bottom - top, "socket", 8)


def _overlap(a: Rect, b: Rect) -> bool:
    return a.x < b.x + b.width and b.x < a.x + a.width and a.y < b.y + b.height and b.y < a.y + a.height


def _draw_adapters(frame: Frame, place: Sequence[Point]) -> None:
    """Draw each network adapter at the side of its nearest GPUs, with a line to each of them."""
    sides: dict[bool, list[tuple[float, str, Nic, Sequence[Point]]]] = {False: [], True: []}
    for nic in frame.states.topology.nics:
        near = [place[gpu] for gpu in _nearest(nic.paths)]
        x, y = (sum(point[axis] for point in near) / len(near) for axis in (0, 1))
        ends: Sequence[Point] = near if len(near) < len(place) else []
        sides[x > frame.x + frame.width / 2].append((y, nic.name, nic, ends))
    top, bottom = min(y for _, y in place), max(y for _, y in place)
    for is_right, adapters in sides.items():
        x = frame.x + (frame.width - _ADAPTER[0] - 4 if is_right else 4)
        for i, (_, _, nic, ends) in enumerate(sorted(adapters, key=itemgetter(0, 1))):
            y = top + (bottom - top) * (i + 0.5) / len(adapters)
            start = x if is_right else x + _ADAPTER[0]
            lines = [Line(((start, y), end), "cord") for end in ends]
            frame.draw_adapter(nic, Rect(x, y - 9, *_ADAPTER, radius=3), lines)


def _nearest(paths: Sequence[str]) -> Sequence[int]:
    """Return the GPUs with the nearest path class, of the path class of each GPU."""
    best = min(map(PATH_CLASSES.index, paths))
    return [gpu for gpu, path in enumerate(paths) if PATH_CLASSES.index(path) == best]
