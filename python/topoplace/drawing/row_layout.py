"""Draw a machine whose GPUs meet in switches or in their CPUs: rows of GPUs between bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from topoplace.drawing.frame import Frame
from topoplace.drawing.scene import Line, Point, Rect, Text, fitted
from topoplace.drawing.states import draw_gpu, numbers_shown
from topoplace.drawing.wires import SwitchGroup, switch_groups, trunks
from topoplace.topology.devices import PATH_CLASSES, ComponentKind
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind

if TYPE_CHECKING:
    from topoplace.topology.devices import Nic
    from topoplace.topology.topology import Topology

MAX_GPUS: Final = 32
_MARGIN, _CPU, _PCIE, _ADAPTER, _GPU, _BAR = 8.0, 22.0, 14.0, 18.0, 36.0, 26.0
_GAP: Final = 16.0
_TO_BAR: Final = 46.0
_LANE: Final = _BAR + 8.0
_LANE_SHIFT: Final = 7.0
"""Distance of the lines to bars of one lane from those of the previous lane."""
_PATHS_OF_SWITCH: Final = (LinkKind.PCIE, LinkKind.PCIE_BRIDGES)


@dataclass(frozen=True)
class _Row:
    """GPUs side by side; the second row is the first one upside down."""

    gpus: Sequence[int]
    pitch: float
    left: float
    top: float
    """Where the row begins, counted from the side of its CPUs."""
    direction: int
    """1 downwards from the CPUs to the switches, -1 upwards."""

    def x(self, gpu: int) -> float:
        """Return the middle of a GPU."""
        return self.left + self.pitch * (self.gpus.index(gpu) + 0.5)

    def y(self, depth: float) -> float:
        """Return the height of what is `depth` away from the begin of the row."""
        return self.top + self.direction * depth

    def box(self, x: float, depth: float, width: float, height: float, classes: str = "") -> Rect:
        """Return a rectangle whose middle is at `x`, from `depth` on."""
        top = min(self.y(depth), self.y(depth + height))
        return Rect(x - width / 2, top, width, height, classes, 4)


def draw(frame: Frame) -> float:
    """Draw the machine below the top of `frame`, and return the y coordinate at which the drawing ends."""
    topology = frame.states.topology
    groups = switch_groups(topology)
    parents = _pcie_switches(topology)
    depth = _depths(topology, parents)
    parts = _parts(topology, parents)
    lanes = _lanes(groups, parts)
    rows = _rows(frame, parts, depth["end"], 1 + max(lanes, default=-1))
    for row in rows:
        _draw_sockets(frame, row, depth)
        _draw_hosts(frame, row, depth, parents)
        _draw_adapters(frame, row, depth)
    _draw_switches(frame, rows, list(zip(groups, lanes, strict=True)), depth)
    for row in rows:
        for gpu in row.gpus:
            box = row.box(row.x(gpu), depth["gpu"], min(56.0, row.pitch - 6), _GPU)
            draw_gpu(frame.scene, frame.states, gpu, replace(box, radius=6))
    last = rows[-1]
    bars = _TO_BAR + (1 + max(lanes)) * _LANE if groups and len(rows) == 1 else 0.0
    return max(last.y(0), last.y(depth["end"])) + bars + _MARGIN


def _depths(topology: Topology, parents: Mapping[int, str]) -> Mapping[str, float]:
    """Return how far from the begin of a row its parts are: PCIe switches, adapters, GPUs, the end."""
    pcie = _MARGIN + _CPU + _GAP
    adapter = pcie + (_PCIE + _GAP if parents else 0.0)
    gpu = adapter + (_ADAPTER + _GAP if topology.nics else 0.0)
    return {"pcie": pcie, "adapter": adapter, "gpu": gpu, "end": gpu + _GPU + _MARGIN}


def _parts(topology: Topology, parents: Mapping[int, str]) -> Sequence[Sequence[int]]:
    """Return the GPUs of each row, by socket and PCIe switch: more than eight GPUs are in two rows."""

    def key(gpu: int) -> tuple[int, int, str, int]:
        device = topology.gpus[gpu]
        socket = -1 if device.socket is None else device.socket
        return int(topology.machine_of[gpu]), socket, parents.get(gpu, ""), gpu

    gpus = sorted(range(topology.num_gpus), key=key)
    half = len(gpus) if len(gpus) <= 8 else (len(gpus) + 1) // 2
    return [gpus[:half], gpus[half:]] if half < len(gpus) else [gpus]


def _lanes(groups: Sequence[SwitchGroup], parts: Sequence[Sequence[int]]) -> Sequence[int]:
    """Return how many bars are between that of each group of switches and its row, so that none overlap."""
    place = {gpu: (row, i) for row, part in enumerate(parts) for i, gpu in enumerate(part)}
    taken: list[tuple[int, int, int, int]] = []
    for group in groups:
        at = sorted(map(place.__getitem__, group.links))
        row, first = at[0][0], min(i for _, i in at)
        last = max(i for _, i in at)
        below = [lane for r, a, b, lane in taken if r == row and a <= last and first <= b]
        taken.append((row, first, last, 1 + max(below, default=-1)))
    return [lane for *_, lane in taken]


def _rows(frame: Frame, parts: Sequence[Sequence[int]], depth: float, lanes: int) -> Sequence[_Row]:
    """Return the rows; between two are the switches, in so many lanes for each."""
    most = len(parts[0])
    pitch = min(96.0, (frame.width - 4 * _MARGIN) / most)
    left = frame.x + (frame.width - pitch * most) / 2
    between = 2 * (_TO_BAR + lanes * _LANE) if lanes else _GAP
    tops = frame.y + _MARGIN, frame.y + _MARGIN + 2 * depth + between
    return [_Row(part, pitch, left, tops[i], -1 if i else 1) for i, part in enumerate(parts)]


def _pcie_switches(topology: Topology) -> Mapping[int, str]:
    """Return the PCIe switch above each GPU, by its name, or by the first GPU of those that share one."""
    n = topology.num_gpus
    found: dict[int, str] = {}
    for a, b, _ in topology.component_links:
        if a < n <= b and topology.components[b - n].kind is ComponentKind.PCIE_SWITCH:
            found[a] = topology.components[b - n].name
    if found or any(part.kind is not ComponentKind.NVSWITCH for part in topology.components):
        return found
    numbers = topology.derived(numbers_shown)
    for u, v, link in topology.links:
        if link.kind in _PATHS_OF_SWITCH:
            found[v] = found.setdefault(u, f"PCIe switch of GPU {numbers[u]}")
    return found


def _spans(row: _Row, name_of: Mapping[int, str]) -> Sequence[tuple[str, Sequence[int]]]:
    """Return the neighbours in a row that have one name, with it."""
    found: list[tuple[str, list[int]]] = []
    for gpu in row.gpus:
        name = name_of.get(gpu)
        if name is None:
            continue
        if found and found[-1][0] == name:
            found[-1][1].append(gpu)
        else:
            found.append((name, [gpu]))
    return found


def _cpu_of(topology: Topology, row: _Row) -> Mapping[int, str]:
    """Return the CPU of each GPU of a row, by a name that is unique in the machine."""
    return {
        gpu: "host" if (socket := topology.gpus[gpu].socket) is None else f"socket {socket}"
        for gpu in row.gpus
    }


def _draw_sockets(frame: Frame, row: _Row, depth: Mapping[str, float]) -> None:
    """Draw a box around the GPUs of each socket, with a bar for its CPU."""
    for name, gpus in _spans(row, _cpu_of(frame.states.topology, row)):
        middle = (row.x(gpus[0]) + row.x(gpus[-1])) / 2
        width = row.pitch * len(gpus) - 4
        outer = replace(row.box(middle, 0, width, depth["end"], "socket"), radius=8)
        bar = row.box(middle, _MARGIN, width - 2 * _MARGIN, _CPU, "cpu")
        label = Text(middle, bar.y + 15, fitted(name, bar.width, 11), 11)
        frame.scene.add(outer, bar, label, data={"socket": name})


def _draw_hosts(frame: Frame, row: _Row, depth: Mapping[str, float], parents: Mapping[int, str]) -> None:
    """Draw the path of each GPU to its CPU, by way of its PCIe switch."""
    topology = frame.states.topology
    cpus = _cpu_of(topology, row)
    for name, gpus in _spans(row, parents):
        middle = (row.x(gpus[0]) + row.x(gpus[-1])) / 2
        bar = row.box(middle, depth["pcie"], row.pitch * len(gpus) - 16, _PCIE, "pcie-switch")
        label = Text(middle, bar.y + 10.5, fitted("PCIe switch", bar.width, 9), 9)
        frame.scene.explain("pcie-switch", "PCIe switch")
        frame.scene.add(bar, label, data={"switch": name}, title=name)
        ends = (middle, row.y(_MARGIN + _CPU)), (middle, row.y(depth["pcie"]))
        frame.scene.add(Line(ends, "cord"))
    for gpu in row.gpus:
        x = row.x(gpu) + 0.36 * min(56.0, row.pitch - 6) if topology.nics else row.x(gpu)
        is_below = gpu in parents
        start = depth["pcie"] + _PCIE if is_below else _MARGIN + _CPU
        end = parents[gpu] if is_below else cpus[gpu]
        if gb_per_s := _host_gb_per_s(topology, gpu):
            points = (x, row.y(start)), (x, row.y(depth["gpu"]))
            link = Link(LinkKind.HOST, 1, gb_per_s)
            frame.wiring.draw(f"{gpu}-{end}", link, points, used=frame.over_hosts(gpu))


def _host_gb_per_s(topology: Topology, gpu: int) -> float:
    """Return the speed of a GPU's own PCIe, of its link to a CPU or a PCIe switch if that is known."""
    kinds = [part.kind for part in topology.components]
    known = [
        link.gb_per_s
        for a, b, link in topology.component_links
        if a == gpu and b >= topology.num_gpus
        if link.kind in PATH_KINDS and kinds[b - topology.num_gpus] is not ComponentKind.NVSWITCH
    ]
    return max(known, default=topology.default)


def _draw_adapters(frame: Frame, row: _Row, depth: Mapping[str, float]) -> None:
    """Draw each network adapter at the nearest GPU; of equally near ones, at that with the fewest."""
    topology = frame.states.topology
    of_gpu: dict[int, list[Nic]] = {}
    for nic in topology.nics:
        ranks = [PATH_CLASSES.index(path) for path in nic.paths]
        gpu = min(range(topology.num_gpus), key=lambda i: (ranks[i], len(of_gpu.get(i, ())), i))
        of_gpu.setdefault(gpu, []).append(nic)
    room = min(56.0, row.pitch - 6)
    for gpu in row.gpus:
        own = of_gpu.get(gpu, [])
        for i, nic in enumerate(own):
            width = 0.72 * room / len(own)
            x = row.x(gpu) - 0.5 * room + width * (i + 0.5)
            box = row.box(x, depth["adapter"], width - 2, _ADAPTER)
            ends = (x, row.y(depth["adapter"] + _ADAPTER)), (x, row.y(depth["gpu"]))
            frame.draw_adapter(nic, box, [Line(ends, "cord")])


def _draw_switches(
    frame: Frame,
    rows: Sequence[_Row],
    groups: Sequence[tuple[SwitchGroup, int]],
    depth: Mapping[str, float],
) -> None:
    """Draw a bar for each group of NVSwitches in its lane, and a line from each GPU to it."""
    bars: list[Rect] = []
    for i, (group, lane) in enumerate(groups):
        own = [(row, gpu) for row in rows for gpu in row.gpus if gpu in group.links]
        xs = [row.x(gpu) for row, gpu in own]
        nearest = own[0][0]
        left, right = min(xs) - 0.5 * nearest.pitch + 4, max(xs) + 0.5 * nearest.pitch - 4
        deep = depth["end"] + _TO_BAR + lane * _LANE
        bars.append(nearest.box((left + right) / 2, deep, right - left, _BAR, "nvswitch"))
        for row, gpu in own:
            edge = bars[i].y if row.direction > 0 else bars[i].y + _BAR
            x = row.x(gpu) + _LANE_SHIFT * lane
            points = (x, row.y(depth["gpu"] + _GPU)), (x, edge)
            used = frame.over_switches(gpu)
            frame.wiring.draw(f"{gpu}-nvswitch{i}", group.links[gpu], points, used=used)
    for i, j, link in trunks(frame.states.topology, [group for group, _ in groups]):
        frame.wiring.draw(f"nvswitch{i}-nvswitch{j}", link, _between(bars[i], bars[j]))
    for i, (group, _) in enumerate(groups):
        count = f"{len(group.switches)} NVSwitches" if len(group.switches) > 1 else "NVSwitch"
        middle = bars[i].x + bars[i].width / 2
        label = Text(middle, bars[i].y + 17.5, fitted(count, bars[i].width, 12), 12)
        frame.scene.add(bars[i], label, data={"switch": f"nvswitch{i}"})


def _between(a: Rect, b: Rect) -> Sequence[Point]:
    """Return the line between two bars: across, if they are side by side, else down."""
    if a.y == b.y:
        a, b = sorted((a, b), key=lambda bar: bar.x)
        return (a.x + a.width, a.y + 0.5 * _BAR), (b.x, a.y + 0.5 * _BAR)
    a, b = sorted((a, b), key=lambda bar: bar.y)
    x = (max(a.x, b.x) + min(a.x + a.width, b.x + b.width)) / 2
    return (x, a.y + _BAR), (x, b.y)
