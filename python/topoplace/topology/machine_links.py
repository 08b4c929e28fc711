"""The links between the GPUs of one topology that is stored pair by pair: a machine, or machines with links between.

A pair has its direct link, else the best path through components, else the default link.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _core
from topoplace.errors import TopologyError
from topoplace.topology.links.link_kinds import NONE, SELF, Link, LinkKind
from topoplace.topology.routing import Paths

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from topoplace.topology.devices import Component, Gpu
    from topoplace.topology.links.distance import DistanceWeights

Entry = tuple[int, int, Link]

MAX_MATRIX_GPUS = 1 << 14
"""Limit on GPUs for (n, n) matrices; one of float64 then takes 2 GiB."""
_BLOCK = 1 << 20  # entries of a matrix that are filled at a time


class MachineLinks:
    """The links and distances of all pairs of GPUs."""

    of_levels: tuple[Link, ...] = ()
    """The links of a fabric's levels: none."""

    def __init__(
        self,
        gpus: Sequence[Gpu],
        components: Sequence[Component],
        component_links: Sequence[Entry],
        default: float,
        network: float,
        distances: DistanceWeights,
    ) -> None:
        """Store arguments that `Topology` has checked; `keep` adds the direct links."""
        self._gpus, self._has_paths, self._weights = gpus, bool(component_links), distances
        self._paths = Paths(len(gpus), components, component_links) if components else None
        self._host = Link(LinkKind.HOST, 1, default) if default else NONE
        self._system = Link(LinkKind.SYSTEM, 1, default) if default else NONE
        self._network = Link(LinkKind.NETWORK, 1, network) if network else NONE
        self._direct: dict[tuple[int, int], Link] = {}

    def keep(self, entries: Sequence[Entry]) -> tuple[Entry, ...]:
        """Store the direct links and return them, without those that equal the pair's path or default link."""
        distinct = {id(link): link for _, _, link in entries}
        rules = (self._host, self._system, self._network)
        ruled = {key for key, link in distinct.items() if link in rules or self._paths is not None}
        kept = (
            (u, v, link) for u, v, link in entries if id(link) not in ruled or link != self._indirect(u, v)
        )
        direct = tuple(kept) if ruled else tuple(entries)
        self._direct = {(u, v): link for u, v, link in direct}
        return direct

    def link(self, u: int, v: int) -> Link:
        """Return the link of GPUs u and v."""
        return self._direct.get((u, v) if u < v else (v, u)) or self._indirect(u, v)

    def default_link(self, u: int, v: int) -> Link:
        """Return the link assumed between GPUs u and v if there is neither a direct link nor a path."""
        a, b = self._gpus[u], self._gpus[v]
        if u == v:
            return SELF
        if a.machine != b.machine:
            return self._network
        if a.socket is None or b.socket is None or a.socket == b.socket:
            return self._host
        return self._system

    def distance(self, u: int, v: int) -> float:
        """Return the distance between GPUs u and v."""
        return self._weights.of(self.link(u, v))

    def matrix(self, value: Callable[[Link], float], dtype: DTypeLike) -> NDArray[Any]:
        """Return (n, n): `value(link)` of every pair; the diagonal is `value(SELF)`."""
        machine_names = [gpu.machine for gpu in self._gpus]
        _, machine = np.unique(machine_names, return_inverse=True)
        socket = np.array([-1 if gpu.socket is None else gpu.socket for gpu in self._gpus])
        host, system, network = (value(link) for link in (self._host, self._system, self._network))
        matrix = empty_matrix(len(self._gpus), dtype)
        for rows in row_blocks(len(matrix)):
            matrix[rows] = host
            apart = (socket[rows, None] != socket) & (socket[rows, None] >= 0) & (socket >= 0)
            matrix[rows][apart] = system
            matrix[rows][machine[rows, None] != machine] = network
        if self._paths is not None:
            self._paths.fill(matrix, value)
        for (u, v), link in self._direct.items():
            matrix[u, v] = matrix[v, u] = value(link)
        np.fill_diagonal(matrix, value(SELF))
        return matrix

    def distance_matrix(self) -> NDArray[np.float64]:
        """Return (n, n): the distance of every pair."""
        return self.matrix(self._weights.of, np.float64)

    @cached_property
    def native(self) -> _core.GpuDistances:
        """Return the distances for the kernels, which take all GPUs for those of one machine."""
        size = np.array([len(self._gpus)], np.int32)
        return _core.GpuDistances(np.zeros(1, np.int32), size, [self.distance_matrix()], [], 0.0)

    @cached_property
    def attachments(self) -> Sequence[Hashable] | None:
        """Return (n,) keys: GPUs of a machine with equal keys have equal links to other machines.

        None if all GPUs of each machine have equal links to other machines.
        """
        if len({gpu.machine for gpu in self._gpus}) == 1:
            return None
        if self._has_paths:
            return range(len(self._gpus))  # paths may lead anywhere
        links: dict[int, list[tuple[int, Link]]] = {}
        for (u, v), link in self._direct.items():
            if self._gpus[u].machine != self._gpus[v].machine:
                links.setdefault(u, []).append((v, link))
                links.setdefault(v, []).append((u, link))
        return [tuple(links.get(gpu, ())) for gpu in range(len(self._gpus))] if links else None

    def _indirect(self, u: int, v: int) -> Link:
        """Return the link of a pair without a direct one: its best path through components, or the default link."""
        found = self._paths.link(u, v) if u != v and self._paths is not None else None
        return found or self.default_link(u, v)


def empty_matrix(n: int, dtype: DTypeLike) -> NDArray[Any]:
    """Return an (n, n) array to fill; TopologyError for more than 16,384 rows."""
    if n > MAX_MATRIX_GPUS:
        raise TopologyError(
            f"a matrix of {n} x {n} is too large (at most {MAX_MATRIX_GPUS}); ask for single pairs"
        )
    return np.empty((n, n), dtype)


def row_blocks(n: int) -> Iterator[slice]:
    """Yield slices of the rows of an (n, n) matrix, small enough that Ctrl-C acts between two after milliseconds."""
    step = max(1, _BLOCK // max(1, n))
    for first in range(0, n, step):
        yield slice(first, first + step)
