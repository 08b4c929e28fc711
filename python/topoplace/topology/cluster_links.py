"""The links between the GPUs of a cluster: inside a machine those of its template, between machines the fabric's.

Two GPUs of different machines have the link of the first level at which they meet.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _core
from topoplace.topology import level_ports
from topoplace.topology.links.link_kinds import NONE, SELF, Link, LinkKind
from topoplace.topology.machine_links import empty_matrix, row_blocks

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from topoplace.topology.fabric import Level
    from topoplace.topology.links.distance import DistanceWeights
    from topoplace.topology.tiling import Tiling

    Ints = NDArray[np.int32]


class ClusterLinks:
    """The links and distances of all pairs of GPUs of a tiling."""

    def __init__(self, tiling: Tiling, network: float, distances: DistanceWeights) -> None:
        """Store the arguments; `network` is GB/s between machines that meet at no level.

        Raise TopologyError if the speed of a GPU's links into a level is unknown.
        """
        self._tiling, self._network_gb_per_s, self._weights = tiling, network, distances
        self._levels = tiling.fabric.levels
        self._network = Link(LinkKind.NETWORK, 1, network) if network else NONE
        self._ports = [
            level_ports.ports_into(level, tiling.templates, tiling.template_of) for level in self._levels
        ]
        """For each level, by template number, the port into that level of every GPU of the template."""

    @property
    def of_levels(self) -> tuple[Link, ...]:
        """Return, for each level, the link between two GPUs that meet there through the fastest ports."""
        pairs = zip(self._levels, self._ports, strict=True)
        return tuple(level_ports.best(level, ports, self._network_gb_per_s) for level, ports in pairs)

    def link(self, u: int, v: int) -> Link:
        """Return the link of GPUs u and v."""
        i, j = self._machine_at(u), self._machine_at(v)
        return self._inside(u, v, i) if i == j else self._meeting(u, i, v, j)[1]

    def default_link(self, u: int, v: int) -> Link:
        """Return the link assumed between GPUs u and v if nothing else is known: their machine's, or the network."""
        i, first = self._machine_at(u), self._tiling.offsets[self._machine_at(u)]
        if i != self._machine_at(v):
            return self._network
        return self._tiling.template(i).pairs.default_link(u - first, v - first)

    def distance(self, u: int, v: int) -> float:
        """Return the distance between GPUs u and v.

        Inside a machine, the distance is the weight of the link; between machines, the sum of the weights of the levels
        on the path.
        """
        i, j = self._machine_at(u), self._machine_at(v)
        if i == j:
            return self._weights.of(self._inside(u, v, i))
        level, link = self._meeting(u, i, v, j)
        return self._weights.of(link) if link == NONE else self._level_distances[level]

    def matrix(self, value: Callable[[Link], float], dtype: DTypeLike) -> NDArray[Any]:
        """Return (n, n): `value(link)` of every pair; the diagonal is `value(SELF)`."""
        return self._matrix(value, None, dtype)

    def distance_matrix(self) -> NDArray[np.float64]:
        """Return (n, n): the distance of every pair."""
        return self._matrix(self._weights.of, self._level_distances, np.float64)

    @cached_property
    def native(self) -> _core.GpuDistances:
        """Return the distances for the kernels."""
        rails = [rail for of_template in self._template_rails for rail in of_template]
        rows: list[tuple[Ints, Ints, Ints, NDArray[np.uint8], float]] = []
        for number, level in enumerate(self._levels):
            ports, of_template = self._numbered_ports(number)
            rows.append(
                (
                    _domain_numbers(level),
                    np.array(rails if level.rail else [], np.int32),
                    np.array([port for ports_of in of_template for port in ports_of], np.int32),
                    self._joined(level, ports).astype(np.uint8),
                    self._level_distances[number],
                )
            )
        templates = self._tiling.templates
        return _core.GpuDistances(
            np.array(self._tiling.template_of, np.int32),
            np.array([template.num_gpus for template in templates], np.int32),
            [template.distance_matrix() for template in templates],
            rows,
            self._level_distances[-1],
        )

    @cached_property
    def attachments(self) -> Sequence[Hashable] | None:
        """Return (n,) keys: GPUs of a machine with equal keys have equal links to other machines.

        Equal keys on two machines mean the same rail. None if all GPUs of each machine have equal links.
        """
        railed = any(level.rail for level in self._levels)
        keys: list[list[Hashable]] = [
            [
                (rail if railed else 0, *(ports.get(t, (NONE,) * (gpu + 1))[gpu] for ports in self._ports))
                for gpu, rail in enumerate(rails)
            ]
            for t, rails in enumerate(self._template_rails)
        ]
        if all(len(set(of_template)) == 1 for of_template in keys):
            return None
        return tuple(key for t in self._tiling.template_of for key in keys[t])

    # ---- pairs ---------------------------------------------------------------------------------------------

    def _machine_at(self, gpu: int) -> int:
        return bisect_right(self._tiling.offsets, gpu) - 1

    def _inside(self, u: int, v: int, machine: int) -> Link:
        first = self._tiling.offsets[machine]
        return self._tiling.templates[self._tiling.template_of[machine]].pairs.link(u - first, v - first)

    def _meeting(self, u: int, i: int, v: int, j: int) -> tuple[int, Link]:
        """Return (level, link) for GPU u of machine i and GPU v of machine j.

        `level` is the index of the first level at which these GPUs have a path, and `link` the link there. If there is
        none, the result is the number of levels, and the link of the network.
        """
        for number, level in enumerate(self._levels):
            domain = level.domains[i]
            same_domain = domain is not None and domain == level.domains[j]
            if same_domain and (not level.rail or self._rail(u, i) == self._rail(v, j)):
                ports = self._port(number, u, i), self._port(number, v, j)
                link = level_ports.link_between(level, *ports, self._network_gb_per_s)
                if link != NONE:
                    return number, link
        return len(self._levels), self._network

    def _port(self, level: int, gpu: int, machine: int) -> Link:
        ports = self._ports[level].get(self._tiling.template_of[machine])
        return level_ports.PLUGGED if ports is None else ports[gpu - self._tiling.offsets[machine]]

    def _rail(self, gpu: int, machine: int) -> int:
        return self._template_rails[self._tiling.template_of[machine]][gpu - self._tiling.offsets[machine]]

    @cached_property
    def _template_rails(self) -> list[list[int]]:
        return [
            [local if gpu.rail is None else gpu.rail for local, gpu in enumerate(template.gpus)]
            for template in self._tiling.templates
        ]

    @cached_property
    def _level_distances(self) -> list[float]:
        """Return, for each level, the distance of two GPUs that meet there; last, of GPUs that meet at no level."""
        weights, climbed = self._weights, 0.0
        distances: list[float] = []
        for level in self._levels:
            if level.kind is LinkKind.NVSWITCH:
                distances.append(weights.levels.get(level.name, weights.direct))
            else:
                climbed += weights.levels.get(level.name, weights.network)
                distances.append(climbed)
        return [*distances, climbed + weights.of(self._network)]

    # ---- matrices ------------------------------------------------------------------------------------------

    def _matrix(
        self, value: Callable[[Link], float], of_level: Sequence[float] | None, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Return an (n, n) array of `value(link)` for every pair of GPUs.

        `of_level`, if given, has the values for pairs on different machines: one by the level at which they meet, then
        one for pairs that meet at no level.
        """
        matrix = empty_matrix(self._tiling.offsets[-1], dtype)
        for rows in row_blocks(len(matrix)):
            matrix[rows] = value(self._network) if of_level is None else of_level[-1]
        for number in reversed(range(len(self._levels))):
            self._fill_level(matrix, number, value, None if of_level is None else of_level[number])
        blocks = [template.link_matrix(value, dtype) for template in self._tiling.templates]
        for first, template in zip(self._tiling.offsets, self._tiling.template_of, strict=False):
            end = first + len(blocks[template])
            matrix[first:end, first:end] = blocks[template]
        np.fill_diagonal(matrix, value(SELF))
        return matrix

    def _fill_level(
        self, matrix: NDArray[Any], number: int, value: Callable[[Link], float], same: float | None
    ) -> None:
        """Write `same`, or else `value(link)`, of the pairs that meet at a level or below into the (n, n) `matrix`."""
        level = self._levels[number]
        domain = np.repeat(_domain_numbers(level), np.diff(self._tiling.offsets))
        rails = self._tiled(self._template_rails) if level.rail else None
        ports, of_template = self._numbered_ports(number)
        port_of = self._tiled(of_template)
        links, there = self._links(level, ports), self._joined(level, ports)
        values = np.array(
            [[value(link) if same is None else same for link in row] for row in links], matrix.dtype
        )
        for rows in row_blocks(len(matrix)):
            shared = (domain[rows, None] == domain) & (domain >= 0)
            if rails is not None:
                shared &= rails[rows, None] == rails
            shared &= there[port_of[rows, None], port_of]
            matrix[rows][shared] = values[port_of[rows, None], port_of][shared]

    def _links(self, level: Level, ports: Sequence[Link]) -> list[list[Link]]:
        """Return the link between any two ports into a level."""
        gb_per_s = self._network_gb_per_s
        return [[level_ports.link_between(level, a, b, gb_per_s) for b in ports] for a in ports]

    def _joined(self, level: Level, ports: Sequence[Link]) -> NDArray[np.bool_]:
        """Return (p, p) True where two ports have a path."""
        return np.array([[link != NONE for link in row] for row in self._links(level, ports)])

    def _numbered_ports(self, level: int) -> tuple[list[Link], list[list[int]]]:
        """Return the distinct ports of the GPUs into `level`, and the index in that list of those of each template."""
        different: dict[tuple[LinkKind, int, float], int] = {}
        ports: list[Link] = []

        def number_of(port: Link) -> int:
            key = (port.kind, port.lanes, port.gb_per_s)
            if key not in different:
                different[key] = len(ports)
                ports.append(port)
            return different[key]

        of_template = [
            [
                number_of(port)
                for port in self._ports[level].get(t, (level_ports.PLUGGED,) * template.num_gpus)
            ]
            for t, template in enumerate(self._tiling.templates)
        ]
        return ports, of_template

    def _tiled(self, of_template: Sequence[Sequence[int]]) -> NDArray[np.int64]:
        """Return (n,) for each GPU the value that its template's list has for it."""
        return np.array([value for t in self._tiling.template_of for value in of_template[t]])


def _domain_numbers(level: Level) -> NDArray[np.int32]:
    """Return (m,) the number of each machine's domain in `level`, from 0; -1 for a machine in no domain."""
    number: dict[str | None, int] = {
        domain: i for i, domain in enumerate(dict.fromkeys(filter(None, level.domains)))
    }
    return np.array([number.get(domain, -1) for domain in level.domains], np.int32)
