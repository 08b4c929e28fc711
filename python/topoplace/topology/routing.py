"""The best path between two GPUs without a direct link, through the switches and CPUs of their machine.

A path runs over `Component`s, never through another GPU. It is as fast as its slowest link, and a pair of GPUs has the
fastest of its paths. The worst part of that path decides the pair's kind: a PCIe switch makes it PCIE, a link between
two of them PCIE_BRIDGES, a socket or NUMA node HOST, a link between NUMA nodes of one socket HOST_BRIDGES, one between
sockets SYSTEM, a link of unknown kind UNKNOWN. Among equally fast paths, the one with the best kind counts, from PCIE,
the best, to UNKNOWN, the worst.

NVSwitches work in parallel: a GPU spreads its traffic over all of them. NVSwitches joined by links form a plane, and
those links are assumed to be wide enough. Over one plane, a pair has the speed of the slower of its GPUs' links into
the plane; the pair's speed is the sum over all planes. If all GPUs are wired alike, every pair gets a GPU's full speed.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from topoplace.topology.devices import Component, ComponentKind
from topoplace.topology.links.link_kinds import PATH_KINDS, Link, LinkKind, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

Entries = Sequence[tuple[int, int, Link]]
Edge = tuple[int, float, int]
"""(vertex it leads to, GB/s, rank of the worst part): ranks from 0 stand for the kinds in `_WORST_LAST`."""

_WORST_LAST = (*PATH_KINDS, LinkKind.UNKNOWN)
_RANK_OF_KIND = {kind: rank for rank, kind in enumerate(_WORST_LAST)}
_RANK_OF_COMPONENT = {
    ComponentKind.PCIE_SWITCH: _RANK_OF_KIND[LinkKind.PCIE],
    ComponentKind.SOCKET: _RANK_OF_KIND[LinkKind.HOST],
    ComponentKind.NUMA_NODE: _RANK_OF_KIND[LinkKind.HOST],
}


def nvswitches(num_gpus: int, components: Sequence[Component]) -> set[int]:
    """Return the vertices that are NVSwitches; GPUs are vertices 0..num_gpus - 1, `components` follow."""
    parts = enumerate(components, num_gpus)
    return {vertex for vertex, part in parts if part.kind is ComponentKind.NVSWITCH}


class Paths:
    """The paths through the components of one machine; vertices are GPUs 0..n-1, then components."""

    def __init__(self, num_gpus: int, components: Sequence[Component], links: Entries) -> None:
        switches = nvswitches(num_gpus, components)
        self._num_gpus = num_gpus
        self._planes = _planes(num_gpus, switches, links)
        self._edges: list[list[Edge]] = [[] for _ in range(num_gpus + len(components))]
        for a, b, link in links:
            if switches.isdisjoint((a, b)):
                rank = _rank(link, [components[v - num_gpus].kind for v in (a, b) if v >= num_gpus])
                self._edges[a].append((b, link.gb_per_s, rank))
                self._edges[b].append((a, link.gb_per_s, rank))
        self._reached: dict[int, list[dict[int, float]]] = {}

    def link(self, u: int, v: int) -> Link | None:
        """Return the best path between GPUs u and v as a link, or None if there is no path."""
        best = self._through_components(u, v)
        lanes, gb_per_s = 0, 0.0
        for plane in self._planes:
            if u in plane and v in plane:
                lanes += min(plane[u][0], plane[v][0])
                gb_per_s += min(plane[u][1], plane[v][1])
        if gb_per_s and (best is None or gb_per_s >= best.gb_per_s):
            return Link(LinkKind.NVSWITCH, lanes, rounded(gb_per_s))
        return best

    def fill(self, matrix: NDArray[Any], value: Callable[[Link], float]) -> None:
        """Write `value(link)` of every pair that has a path into the (n, n) `matrix`."""
        if not self._planes and not any(self._edges):
            return
        known: dict[tuple[LinkKind, int, float], float] = {}
        for u in range(self._num_gpus):
            for v in range(u):
                if (link := self.link(u, v)) is not None:
                    key = (link.kind, link.lanes, link.gb_per_s)
                    if key not in known:
                        known[key] = value(link)
                    matrix[u, v] = matrix[v, u] = known[key]

    def _through_components(self, u: int, v: int) -> Link | None:
        """Return the fastest path between u and v without NVSwitches, as a link; among equals that of the best kind."""
        if not self._edges[u] or not self._edges[v]:
            return None
        if u not in self._reached:
            self._reached[u] = [self._widths(u, worst) for worst in range(len(_WORST_LAST))]
        widths = [
            max(
                (min(width.get(c, 0.0), gb_per_s) for c, gb_per_s, rank in self._edges[v] if rank <= worst),
                default=0.0,
            )
            for worst, width in enumerate(self._reached[u])
        ]
        fastest = max(widths)
        return Link(_WORST_LAST[widths.index(fastest)], 1, fastest) if fastest else None

    def _widths(self, gpu: int, worst: int) -> dict[int, float]:
        """Return GB/s of the fastest path from `gpu` to each component it can reach, by vertex.

        Only links and components of rank `worst` or below are used.
        """
        widths: dict[int, float] = {}
        waiting = [(-gb_per_s, c) for c, gb_per_s, rank in self._edges[gpu] if rank <= worst]
        heapq.heapify(waiting)
        while waiting:
            slowest, vertex = heapq.heappop(waiting)
            if vertex in widths:
                continue
            widths[vertex] = -slowest
            for other, gb_per_s, rank in self._edges[vertex]:
                if rank <= worst and other >= self._num_gpus and other not in widths:
                    heapq.heappush(waiting, (max(slowest, -gb_per_s), other))
        return widths


def _rank(link: Link, parts: Sequence[ComponentKind]) -> int:
    """Return the rank of a link that has the components `parts` at its ends, or at its one end that is no GPU."""
    rank = max(_RANK_OF_KIND.get(link.kind, 0), *map(_RANK_OF_COMPONENT.__getitem__, parts))
    between_switches = list(parts) == [ComponentKind.PCIE_SWITCH] * 2
    return max(rank, _RANK_OF_KIND[LinkKind.PCIE_BRIDGES]) if between_switches else rank


def _planes(num_gpus: int, switches: Iterable[int], links: Entries) -> list[dict[int, tuple[int, float]]]:
    """Return the planes, one dict each: for every attached GPU, its lanes into the plane and their total GB/s.

    A plane is a group of NVSwitches that are joined by links.
    """
    parent = {switch: switch for switch in switches}

    def root(switch: int) -> int:
        while parent[switch] != switch:
            parent[switch] = parent[parent[switch]]
            switch = parent[switch]
        return switch

    for a, b, _ in links:
        if a in parent and b in parent:
            parent[root(a)] = root(b)
    planes: defaultdict[int, dict[int, tuple[int, float]]] = defaultdict(dict)
    for a, b, link in links:
        gpu, switch = min(a, b), max(a, b)
        if gpu < num_gpus and switch in parent:
            plane = planes[root(switch)]
            lanes, gb_per_s = plane.get(gpu, (0, 0.0))
            plane[gpu] = (lanes + link.lanes, gb_per_s + link.gb_per_s)
    return [planes[switch] for switch in sorted(planes)]
