"""The routes that a collective library takes between two GPUs of a machine, as input of `kernels.RingNetwork`.

A route is the fastest of the paths with the fewest connections; its level corresponds to NCCL's path types. GPUs
forward only over direct NVLinks, and only to their neighbours. Every connection is two links, one for each direction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from topoplace.collective.machine_graph import UNITS_PER_GB, GraphConnection, MachineGraph, Vertex, Wire
from topoplace.kernels import RingNetwork, Route
from topoplace.topology.links.nccl_rates import PathType, Rates

POWER_CPU = "socket-power9"
AMD_CPU = "socket-amd"
_NOT_INTEL = (POWER_CPU, AMD_CPU, "socket-arm", None)


@dataclass(frozen=True, slots=True)
class _Path:
    """A path towards a GPU: the links in order, the slowest one's rate, and the type."""

    links: tuple[int, ...]
    rate: int
    type: int


class _Links:
    """The links of a machine: connection i is link 2 i from a to b, and link 2 i + 1 back."""

    def __init__(self, graph: MachineGraph) -> None:
        self.graph = graph
        self.out: list[list[int]] = [[] for _ in graph.vertices]
        for i, connection in enumerate(graph.connections):
            self.out[connection.a].append(2 * i)
            self.out[connection.b].append(2 * i + 1)
        for links in self.out:
            links.sort(key=lambda link: -self.connection(link).rate)

    def connection(self, link: int) -> GraphConnection:
        return self.graph.connections[link >> 1]

    def tail(self, link: int) -> int:
        connection = self.connection(link)
        return connection.b if link & 1 else connection.a

    def head(self, link: int) -> int:
        return self.tail(link ^ 1)

    def is_gpu(self, vertex: int) -> bool:
        return self.graph.vertices[vertex] is Vertex.GPU


def ring_network(graph: MachineGraph, rates: Rates) -> RingNetwork:
    """Return the links and routes of a machine, with capacities in kB/s."""
    links = _Links(graph)
    capacities = [connection.rate for connection in graph.connections for _ in range(2)]
    return RingNetwork(graph.num_gpus, capacities, list(_routes(links, rates)), list(_cuts(links)))


def _routes(links: _Links, rates: Rates) -> Iterator[Route]:
    for end in range(links.graph.num_gpus):
        paths = _paths_to(links, end)
        for start in range(links.graph.num_gpus):
            if start != end:
                known = [(path, -1) for path in [paths.get(start)] if path]
                relayed = list(_relayed(links, start, end))
                # Fewest connections first, then the fastest; of equal ones the path without a relay.
                known = sorted(known + relayed, key=lambda one: (len(one[0].links), -one[0].rate))
                most = links.graph.most.get((min(start, end), max(start, end)))
                for path, relay in known:
                    yield Route(start, end, path.type, _uses(links, path, rates, most), relay)


def _paths_to(links: _Links, end: int) -> dict[int, _Path]:
    """Return the path from every vertex to `end` that passes no other GPU, found in rings around `end`."""
    paths = {end: _Path((), 1 << 60, 0)}
    border = [end]
    while border:
        fresh: dict[int, _Path] = {}
        for vertex in border:
            if vertex != end and links.is_gpu(vertex):
                continue
            for back in links.out[vertex]:
                start, path = links.head(back), _longer(links, back ^ 1, paths[vertex])
                if start not in paths and (start not in fresh or fresh[start].rate < path.rate):
                    fresh[start] = path
        paths |= fresh
        border = list(fresh)
    return paths


def _longer(links: _Links, link: int, path: _Path) -> _Path:
    """Return `path` with `link` before it."""
    connection = links.connection(link)
    ends = {links.graph.vertices[links.tail(link)], links.graph.vertices[links.head(link)]}
    kind = _TYPE_OF_WIRE[connection.wire]
    if connection.wire is Wire.PCIE:
        kind = PathType.PHB if Vertex.CPU in ends else PathType.PXB if ends == {Vertex.SWITCH} else kind
    return _Path((link, *path.links), min(connection.rate, path.rate), max(path.type, kind))


_TYPE_OF_WIRE = {
    Wire.NVLINK: PathType.NVL,
    Wire.C2C: PathType.C2C,
    Wire.PCIE: PathType.PIX,
    Wire.SYSTEM: PathType.SYS,
}


def _relayed(links: _Links, start: int, end: int) -> Iterator[tuple[_Path, int]]:
    """Yield (path, relay) of two direct NVLinks from `start` to `end`, in the order of the links at `end`."""
    into = {links.head(link): link for link in _nvlinks(links, start)}
    for back in _nvlinks(links, end):
        relay = links.head(back)
        if relay in into and relay != start:
            first, second = into[relay], back ^ 1
            rate = min(links.connection(first).rate, links.connection(second).rate)
            yield _Path((first, second), rate, PathType.NVB), relay


def _nvlinks(links: _Links, gpu: int) -> Iterator[int]:
    for link in links.out[gpu]:
        if links.connection(link).wire is Wire.NVLINK and links.is_gpu(links.head(link)):
            yield link


_OF_HOST = (Wire.PCIE, Wire.SYSTEM)


def _uses(links: _Links, path: _Path, rates: Rates, most: float | None) -> Sequence[tuple[int, int]]:
    """Return what a route takes of links, in thousandths of its rate.

    most: GB/s that the topology says of it; if that is less than its links have, it takes more of them.
    """
    cpus = links.graph.cpus
    slowed = int(path.rate / UNITS_PER_GB / most * 1000) if most else 1000
    intel = path.type == PathType.PHB and any(
        cpus.get(links.head(link)) not in _NOT_INTEL for link in path.links
    )
    uses: list[tuple[int, int]] = []
    for link in path.links:
        wire = links.connection(link).wire
        overhead = round(1000 * rates.intel_overhead) if intel and wire is Wire.PCIE else 1000
        uses.append((link, max(overhead, slowed if wire in _OF_HOST else 1000)))
        if wire is Wire.NVLINK and cpus.get(links.head(link)) == POWER_CPU:
            uses.append((link ^ 1, 1000))  # each byte also loads the way back
    return uses


# ---- cuts ------------------------------------------------------------------------------------------------------


def _cuts(links: _Links) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """Yield cuts around the PCIe switches and around one or two CPUs, both ways, with the links that cross them."""
    below = _below(links.graph)
    cpus = list(links.graph.cpus)
    groups = list(below.values())
    groups += [below[a] | below[b] for a, b in combinations(cpus, 2)]
    for inside in groups:
        near = [gpu for gpu in range(links.graph.num_gpus) if gpu in inside]
        far = [gpu for gpu in range(links.graph.num_gpus) if gpu not in inside]
        if near and far:
            out = [link for vertex in sorted(inside) for link in links.out[vertex]]
            across = [link for link in out if links.head(link) not in inside]
            yield near, across
            yield far, [link ^ 1 for link in across]


def _below(graph: MachineGraph) -> Mapping[int, set[int]]:
    """Return, for each PCIe switch and CPU, the vertices that PCIe attaches to it, itself included."""
    near: dict[int, list[int]] = {}
    for connection in graph.connections:
        if connection.wire is Wire.PCIE:
            near.setdefault(connection.a, []).append(connection.b)
            near.setdefault(connection.b, []).append(connection.a)
    below: dict[int, set[int]] = {}
    chains: list[tuple[int, ...]] = [(cpu,) for cpu in graph.cpus]  # a vertex after all those above it
    while chains:
        chain = chains.pop()
        for vertex in chain:
            below.setdefault(vertex, set()).add(chain[-1])
        if graph.vertices[chain[-1]] is not Vertex.GPU:
            chains += [
                (*chain, vertex)
                for vertex in near.get(chain[-1], ())
                if vertex not in chain and vertex not in graph.cpus
            ]
    return {vertex: group for vertex, group in below.items() if graph.vertices[vertex] is not Vertex.GPU}
