"""The links and distances of many pairs of a cluster's GPUs at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from topoplace.topology.links.link import Link
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
FEW_PAIRS = 3
"""Up to this number of pairs, `Topology.link` for each pair is faster."""
_MAX_LEVELS = 16
_FEW_KINDS = 1 << 12
"""Up to this number of possible kinds of pairs, a table of all of them is faster than sorting."""


class Pairs(NamedTuple):
    """The distinct links of pairs of GPUs."""

    links: list[Link]
    distances: list[float]
    """The distance of pairs with each of `links`."""
    number: Ints
    """The index in `links` of each pair's link."""


class _LinksInside:
    """The links of one machine, each looked up when it is first asked for."""

    def __init__(self, machine: Topology) -> None:
        self._machine = machine
        self._known: dict[tuple[int, int], Link] = {}

    def of(self, u: int, v: int) -> Link:
        known = self._known.get((u, v))
        if known is None:
            known = self._known[u, v] = self._machine.link(u, v)
        return known


class PairLinks:
    """A look-up of links of pairs of a cluster's GPUs that computes each kind of pair only once.

    A kind of pair is given by the levels that the two machines share and, for each GPU, by its machine's template and
    its number there. `topology.derived(PairLinks)` returns the cached object of a topology.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known: dict[int, tuple[Link, float]] = {}
        sizes = [template.num_gpus for template in topology.templates]
        first = np.array([0, *accumulate(sizes)], dtype=np.int64)
        template = np.array(topology.template_of, dtype=np.int64)[topology.machine_of]
        self._port = first[template] + np.array(topology.local_index, dtype=np.int64)
        self._num_ports = int(first[-1])

    @staticmethod
    def serves(topology: Topology, num_pairs: int) -> bool:
        """Return True if `PairLinks` is the faster way to look up `num_pairs` pairs."""
        return num_pairs > FEW_PAIRS and topology.tiling is not None and len(topology.levels) <= _MAX_LEVELS

    def of(self, u: Ints, v: Ints) -> Pairs:
        """Return the links and distances of the pairs of GPUs `u[i]` and `v[i]`."""
        levels = self._topology.levels
        machine = self._topology.machine_of
        i, j = machine[u], machine[v]
        apart = i != j
        shared = apart.astype(np.int64)
        for number, level in enumerate(levels):
            one = level.codes[i]
            shared += (apart & (one == level.codes[j]) & (one >= 0)) * (2 << number)
        kind = (shared * self._num_ports + self._port[u]) * self._num_ports + self._port[v]
        where, number_of = _different(kind, (2 << len(levels)) * self._num_ports**2)
        pairs = zip(kind[where].tolist(), u[where].tolist(), v[where].tolist(), strict=True)
        found = [self._of_kind(kind, one, other) for kind, one, other in pairs]
        return Pairs([link for link, _ in found], [distance for _, distance in found], number_of)

    def among(self, gpus: Sequence[int]) -> Pairs:
        """Return the links and distances of all pairs of `gpus`, as `of` does, with (k, k) numbers."""
        numbers = np.array(gpus, dtype=np.int64)
        links, distances, number = self.of(np.repeat(numbers, len(gpus)), np.tile(numbers, len(gpus)))
        return Pairs(links, distances, number.reshape(len(gpus), len(gpus)))

    def _of_kind(self, kind: int, u: int, v: int) -> tuple[Link, float]:
        known = self._known.get(kind)
        if known is None:
            known = self._known[kind] = self._asked(u, v)
        return known

    def _asked(self, u: int, v: int) -> tuple[Link, float]:
        topology = self._topology
        machine: int = topology.machine_of[u]
        if machine != topology.machine_of[v]:
            return topology.link(u, v), topology.distance(u, v)
        inside = topology.templates[topology.template_of[machine]].derived(_LinksInside)
        link = inside.of(topology.local_index[u], topology.local_index[v])
        return link, topology.distances.of(link)


def _different(kind: Ints, num_kinds: int) -> tuple[Ints, Ints]:
    """Return where each different value of `kind` occurs first or later, and for each entry the place of its value."""
    if num_kinds > max(_FEW_KINDS, 4 * len(kind)):
        _, where, number = np.unique(kind, return_index=True, return_inverse=True)
        return where, number
    at = np.full(num_kinds, -1, dtype=np.int64)
    at[kind] = np.arange(len(kind))
    present = np.flatnonzero(at >= 0)
    where = at[present]
    at[present] = np.arange(len(present))
    return where, at[kind]
