"""The best path between two accelerators that no direct link joins, through the switches and CPUs of their machine.

One rule. A path runs over `Component`s, never through another accelerator, and is as fast as its slowest link; a pair
has the fastest of its paths. The kind of the pair is the worst thing on that path: a PCIe switch makes it PCIE, a
socket or NUMA node HOST, a link between sockets SYSTEM, a link of an unknown kind UNKNOWN; among equally fast paths
the one with the best kind counts.

NVSwitches work side by side: a GPU spreads what it sends over all of them. NVSwitches joined by links of their own form
a plane (those links are taken to be wide enough); over one plane a pair has the smaller of its two GPUs' links into it,
and in all the sum over the planes. Where all GPUs are wired alike that is the full speed of a GPU for every pair.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from topoplace.devices import Component, ComponentKind
from topoplace.links import DECIMALS, Link, LinkKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

Entries = Sequence[tuple[int, int, Link]]
Members = list[frozenset[int]]
"""Of each GPU, the connected parts of the machine that it is attached to."""

_WORST_LAST = (LinkKind.PCIE, LinkKind.HOST, LinkKind.SYSTEM, LinkKind.UNKNOWN)
_RANK_OF_KIND = {kind: rank for rank, kind in enumerate(_WORST_LAST)}
_RANK_OF_COMPONENT = {ComponentKind.PCIE_SWITCH: 0, ComponentKind.SOCKET: 1, ComponentKind.NUMA_NODE: 1}


class Paths:
    """The paths through the components of one machine; vertices are GPUs 0..n-1, then components."""

    def __init__(self, num_gpus: int, components: Sequence[Component], links: Entries) -> None:
        switches = {num_gpus + j for j, part in enumerate(components) if part.kind is ComponentKind.NVSWITCH}
        through = [link for link in links if switches.isdisjoint(link[:2])]
        self._num_gpus = num_gpus
        self._planes = _planes(num_gpus, switches, links)
        self._levels = _levels(num_gpus, components, through)

    def link(self, u: int, v: int) -> Link | None:
        """The best path between GPUs u and v, or None where there is none."""
        best = next((link for link, members in self._levels if members[u] & members[v]), None)
        lanes, gbps = 0, 0.0
        for plane in self._planes:
            if u in plane and v in plane:
                lanes += min(plane[u][0], plane[v][0])
                gbps += min(plane[u][1], plane[v][1])
        if gbps and (best is None or gbps >= best.gbps):
            return Link(LinkKind.NVSWITCH, lanes, round(gbps, DECIMALS))
        return best

    def fill(self, matrix: NDArray[Any], value: Callable[[Link], float]) -> None:
        """Write `value(link)` of every pair that has a path into the (n, n) `matrix`."""
        if not self._levels and not self._planes:
            return
        known: dict[tuple[LinkKind, int, float], float] = {}
        for u in range(self._num_gpus):
            for v in range(u):
                if (link := self.link(u, v)) is not None:
                    key = (link.kind, link.lanes, link.gbps)
                    if key not in known:
                        known[key] = value(link)
                    matrix[u, v] = matrix[v, u] = known[key]


def _levels(num_gpus: int, components: Sequence[Component], links: Entries) -> list[tuple[Link, Members]]:
    """What hangs together over links of at least some speed and at most some rank: fastest first, then best first."""

    def rank(a: int, b: int, link: Link) -> int:
        parts = (components[v - num_gpus].kind for v in (a, b) if v >= num_gpus)
        return max(_RANK_OF_KIND.get(link.kind, 0), *(_RANK_OF_COMPONENT.get(kind, 0) for kind in parts))

    by_speed: defaultdict[float, list[tuple[int, int, int]]] = defaultdict(list)
    for a, b, link in links:
        by_speed[link.gbps].append((rank(a, b, link), a, b))
    forests = [_Forest(num_gpus, len(components)) for _ in _WORST_LAST]
    levels: list[tuple[Link, Members]] = []
    for gbps in sorted(by_speed, reverse=True):
        for worst, kind in enumerate(_WORST_LAST):
            added = [(a, b) for found, a, b in by_speed[gbps] if found <= worst]
            if added:
                forests[worst].join(added)
                levels.append((Link(kind, 1, gbps), forests[worst].members()))
    return levels


class _Forest:
    """Which components hang together, and which of these parts each GPU is attached to; GPUs join nothing."""

    def __init__(self, num_gpus: int, num_components: int) -> None:
        self._num_gpus = num_gpus
        self._parent = list(range(num_gpus + num_components))
        self._attached: list[set[int]] = [set() for _ in range(num_gpus)]

    def join(self, edges: Iterable[tuple[int, int]]) -> None:
        for a, b in edges:
            low, high = min(a, b), max(a, b)
            if low < self._num_gpus:
                self._attached[low].add(high)
            else:
                self._parent[self.root(low)] = self.root(high)

    def root(self, vertex: int) -> int:
        parent = self._parent
        while parent[vertex] != vertex:
            parent[vertex] = parent[parent[vertex]]
            vertex = parent[vertex]
        return vertex

    def members(self) -> Members:
        return [frozenset(map(self.root, attached)) for attached in self._attached]


def _planes(num_gpus: int, switches: Iterable[int], links: Entries) -> list[dict[int, tuple[int, float]]]:
    """The planes of NVSwitches: of each GPU attached to one, its lanes into it and their GB/s together."""
    last = max(switches, default=num_gpus - 1)
    forest = _Forest(num_gpus, last + 1 - num_gpus)
    inside = set(switches)
    forest.join((a, b) for a, b, _ in links if a in inside and b in inside)
    planes: defaultdict[int, dict[int, tuple[int, float]]] = defaultdict(dict)
    for a, b, link in links:
        gpu, switch = min(a, b), max(a, b)
        if gpu < num_gpus and switch in inside:
            plane = planes[forest.root(switch)]
            lanes, gbps = plane.get(gpu, (0, 0.0))
            plane[gpu] = (lanes + link.lanes, gbps + link.gbps)
    return [planes[root] for root in sorted(planes)]
