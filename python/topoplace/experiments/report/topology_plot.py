"""Draw a topology: GPUs in their sockets, the links between them, and the GPUs and links that a job uses."""

# matplotlib does not annotate its **kwargs.
# pyright: reportUnknownMemberType=false
from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from topoplace.errors import TopologyError
from topoplace.experiments.report import figures
from topoplace.objectives import DOUBLE_NVLINK, SINGLE_NVLINK, link_class
from topoplace.topology.links.link import PATH_KINDS, LinkKind

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.link import Link
    from topoplace.topology.topology import Topology

_INDIRECT: Final = frozenset({*PATH_KINDS, LinkKind.XGMI_RELAYED, LinkKind.NETWORK, LinkKind.NONE})
_DOUBLE_COLOUR: Final = "#1b7837"
_SINGLE_COLOUR: Final = "#7fbf7b"
_UNKNOWN_COLOUR: Final = "#d6604d"
_PCIE_COLOUR: Final = "#c9c9c9"
_FREE_COLOUR: Final = "#f7f7f7"
_BUSY_COLOUR: Final = "#9e9e9e"
_CHOSEN_COLOUR: Final = "#f4a582"
MAX_GPUS: Final = 256
"""Limit on GPUs; a picture of more is unreadable."""
_MAX_MACHINES_BY_SOCKET: Final = 4
_LABEL_BOX: Final = {"facecolor": "#ffffff", "edgecolor": "none", "pad": 1.0, "alpha": 0.85}


def topology(
    topo: Topology,
    path: str | Path,
    *,
    busy: Iterable[int] = (),
    chosen: Sequence[int] = (),
    job: JobGraph | None = None,
) -> None:
    """Draw `topo` with GPUs grouped by machine or socket, and direct links coloured by kind.

    GPUs behind NVSwitches have one line each to the switches; pairs with an unknown link are dotted. Links over PCIe,
    the host or the network are omitted, as they join every pair. busy: GPUs drawn in grey. chosen: highlighted GPUs in
    task order, labelled with their task. job: with `chosen`, also highlight the links of its edges, dashed if such a
    link is omitted.

    Raises TopologyError for more than `MAX_GPUS` GPUs.
    """
    if topo.num_gpus > MAX_GPUS:
        raise TopologyError(
            f"{topo.num_gpus} GPUs are too many for a picture (at most {MAX_GPUS}); draw one machine"
        )
    groups = _groups(topo)
    columns = math.ceil(math.sqrt(len(groups)))
    figure, axes = figures.new(max(6.4, 2.1 * columns), max(5.6, 1.8 * columns))
    positions = _layout(topo.num_gpus, groups, columns)
    _draw_groups(axes, topo, groups, positions)
    used = _draw_links(axes, topo, positions)
    for a, b, _ in job.edges if job and chosen else ():
        _underlay(axes, topo, positions, chosen[a], chosen[b])
    taken = set(busy)
    for gpu, (x, y) in enumerate(positions):
        colour = _CHOSEN_COLOUR if gpu in chosen else _BUSY_COLOUR if gpu in taken else _FREE_COLOUR
        axes.scatter([x], [y], s=620, color=colour, edgecolors="#333333", linewidths=1.2, zorder=3)
        axes.text(x, y, str(gpu), ha="center", va="center", fontsize=10, fontweight="bold", zorder=4)
        if gpu in chosen:
            axes.annotate(
                f"task {list(chosen).index(gpu)}",
                (x, y),
                xytext=(0, -20),
                textcoords="offset points",
                ha="center",
                fontsize=7,
                zorder=4,
            )
    for label, colour, width in used:
        axes.plot([], [], color=colour, linewidth=width, label=label)
    if used:
        axes.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(used), frameon=False, fontsize=9)
    axes.set_title(f"{figures.literal(topo.name)}: {topo.num_gpus} GPUs", fontsize=12)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.axis("off")
    figures.save(figure, path)


def _groups(topo: Topology) -> list[list[int]]:
    """Return the groups in which GPUs are drawn: by machine and, for at most four machines, by socket.

    If that gives a single group of more than four GPUs, it is cut into smaller groups.
    """
    groups: dict[tuple[str, int | None], list[int]] = {}
    by_socket = topo.num_machines <= _MAX_MACHINES_BY_SOCKET
    for gpu in topo.gpus:
        groups.setdefault((gpu.machine, gpu.socket if by_socket else None), []).append(gpu.index)
    if len(groups) > 1 or topo.num_gpus <= 4:
        return list(groups.values())
    width = math.ceil(math.sqrt(topo.num_gpus))
    return [list(range(start, min(start + width, topo.num_gpus))) for start in range(0, topo.num_gpus, width)]


def _layout(num_gpus: int, groups: Sequence[Sequence[int]], columns: int) -> list[tuple[float, float]]:
    """Return the position (x, y) of each GPU. The GPUs of a group form a ring; the rings form a grid.

    columns: number of rings side by side.
    """
    positions = [(0.0, 0.0)] * num_gpus
    size = max(len(group) for group in groups)
    radius = max(1.0, size / 4)
    for number, group in enumerate(groups):
        middle_x = (number % columns) * (2.3 * radius + 1.0)
        middle_y = -(number // columns) * (2.3 * radius + 1.0)
        for i, gpu in enumerate(group):
            angle = (0.5 + 1 / len(group)) * math.pi - 2 * math.pi * i / len(group)
            positions[gpu] = (middle_x + radius * math.cos(angle), middle_y + radius * math.sin(angle))
    return positions


def _draw_groups(
    axes: Axes, topo: Topology, groups: Sequence[Sequence[int]], positions: Sequence[tuple[float, float]]
) -> None:
    from matplotlib.patches import FancyBboxPatch

    for group in groups:
        gpu = topo.gpus[group[0]]
        by_socket = topo.num_machines <= _MAX_MACHINES_BY_SOCKET
        if by_socket and gpu.socket is None:
            continue
        xs, ys = zip(*(positions[i] for i in group), strict=True)
        box = FancyBboxPatch(
            (min(xs), min(ys)),
            max(xs) - min(xs),
            max(ys) - min(ys),
            boxstyle="round,pad=0.42,rounding_size=0.3",
            facecolor="#eef3f8",
            edgecolor="#9db4c8",
            zorder=0,
        )
        axes.add_patch(box)
        names = [figures.literal(gpu.machine)] if topo.num_machines > 1 else []
        names += [f"socket {gpu.socket}"] if by_socket else []
        axes.text(
            min(xs) - 0.36,
            max(ys) + 0.5,
            ", ".join(names),
            fontsize=8,
            color="#4a6785",
            va="bottom",
            zorder=2,
            bbox=_LABEL_BOX,
        )


def _draw_links(
    axes: Axes, topo: Topology, positions: Sequence[tuple[float, float]]
) -> list[tuple[str, str, float]]:
    """Draw direct links between GPUs; return (label, colour, line width) of each kind drawn, for the legend.

    They are in order of decreasing speed, after links to NVSwitches and unknown links.
    """
    classes = link_class(topo)
    drawn: dict[str, tuple[str, str, float]] = {}
    for u, v, link in sorted(topo.links, key=lambda item: item[2].gb_per_s):
        if link.kind in _INDIRECT or link.kind in (LinkKind.NVSWITCH, LinkKind.UNKNOWN):
            continue
        style = {DOUBLE_NVLINK: (_DOUBLE_COLOUR, 3.4), SINGLE_NVLINK: (_SINGLE_COLOUR, 1.8)}
        colour, width = style.get(int(classes[u, v]), (_PCIE_COLOUR, 1.0))
        lanes = f"{link.lanes} x " if link.lanes > 1 else ""
        label = f"{lanes}{link.kind.label} ({link.gb_per_s:g} GB/s)"
        drawn[label] = (label, colour, width)
        axes.add_patch(_arc(positions[u], positions[v], positions, colour, width))
    _draw_unknown(axes, topo, positions, drawn)
    _draw_switches(axes, topo, positions, drawn)
    return list(drawn.values())[::-1]


def _pairs_of(topo: Topology, kind: LinkKind) -> list[tuple[int, int, Link]]:
    n = topo.num_gpus
    pairs = ((u, v, topo.link(u, v)) for u in range(n) for v in range(u + 1, n))
    return [pair for pair in pairs if pair[2].kind is kind]


def _draw_unknown(
    axes: Axes,
    topo: Topology,
    positions: Sequence[tuple[float, float]],
    drawn: dict[str, tuple[str, str, float]],
) -> None:
    for u, v, _ in _pairs_of(topo, LinkKind.UNKNOWN):
        drawn["unknown"] = ("unknown", _UNKNOWN_COLOUR, 1.0)
        axes.add_patch(_arc(positions[u], positions[v], positions, _UNKNOWN_COLOUR, 1.0, linestyle=":"))


def _draw_switches(
    axes: Axes,
    topo: Topology,
    positions: Sequence[tuple[float, float]],
    drawn: dict[str, tuple[str, str, float]],
) -> None:
    """Draw one box per group of GPUs joined by NVSwitches, and a line from each of these GPUs to the box.

    drawn: legend entries by label, to which the lines are added.
    """
    fastest: dict[int, Link] = {}
    group: dict[int, int] = {}
    for u, v, link in _pairs_of(topo, LinkKind.NVSWITCH):
        group[u] = group[v] = group.get(u, u)
        for gpu in (u, v):
            fastest[gpu] = max(link, fastest.get(gpu, link), key=lambda found: found.gb_per_s)
    for first in sorted(set(group.values())):
        members = [gpu for gpu in group if group[gpu] == first]
        middle = (
            sum(positions[gpu][0] for gpu in members) / len(members),
            sum(positions[gpu][1] for gpu in members) / len(members),
        )
        for gpu in members:
            label = f"{fastest[gpu].lanes} x NVLink to NVSwitches ({fastest[gpu].gb_per_s:g} GB/s)"
            drawn[label] = (label, _DOUBLE_COLOUR, 3.4)
            ends = (positions[gpu][0], middle[0]), (positions[gpu][1], middle[1])
            width = 3.4 if topo.num_gpus <= 16 else 1.2
            axes.plot(*ends, color=_DOUBLE_COLOUR, linewidth=width, zorder=0.6)
        axes.text(
            *middle,
            "NVSwitch",
            ha="center",
            va="center",
            fontsize=9,
            zorder=5,
            bbox={"boxstyle": "round,pad=0.4", "facecolor": "#d9f0d3", "edgecolor": _DOUBLE_COLOUR},
        )


def _underlay(axes: Axes, topo: Topology, positions: Sequence[tuple[float, float]], u: int, v: int) -> None:
    """Highlight the link between GPUs `u` and `v` as used by the job; it is dashed if it passes through the host."""
    direct = topo.link(u, v).kind not in _INDIRECT
    width, style = (9.0, "-") if direct else (2.0, "--")
    axes.add_patch(
        _arc(positions[u], positions[v], positions, _CHOSEN_COLOUR, width, zorder=0.5, linestyle=style)
    )


def _arc(
    start: tuple[float, float],
    end: tuple[float, float],
    positions: Sequence[tuple[float, float]],
    colour: str,
    width: float,
    *,
    zorder: float = 1.0,
    linestyle: str = "-",
) -> Any:
    """Return a line from `start` to `end`, bent if a straight line would cross another GPU.

    positions: positions of all GPUs.
    """
    from matplotlib.patches import FancyArrowPatch

    length = math.dist(start, end)
    blocked = any(
        math.dist(start, other) + math.dist(other, end) < length + 0.06
        for other in positions
        if other not in (start, end)
    )
    bend = f"arc3,rad={_outward(start, end, positions) * 0.28 if blocked else 0.0}"
    return FancyArrowPatch(
        start,
        end,
        zorder=zorder,
        linestyle=linestyle,
        connectionstyle=bend,
        arrowstyle="-",
        color=colour,
        linewidth=width,
        shrinkA=0,
        shrinkB=0,
    )


def _outward(
    start: tuple[float, float], end: tuple[float, float], positions: Sequence[tuple[float, float]]
) -> int:
    """Return the sign (1 or -1) of the curvature that bends an arc from `start` to `end` away from the centre.

    positions: positions of all GPUs, whose mean is the centre of the picture.
    """
    middle_x = sum(x for x, _ in positions) / len(positions)
    middle_y = sum(y for _, y in positions) / len(positions)
    from_middle = ((start[0] + end[0]) / 2 - middle_x, (start[1] + end[1]) / 2 - middle_y)
    side = (end[1] - start[1]) * from_middle[0] - (end[0] - start[0]) * from_middle[1]
    return 1 if side >= 0 else -1
