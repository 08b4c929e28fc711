"""The links and distances of many pairs of a cluster's GPUs at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from topoplace.objectives.arguments import gpu_of_each_task

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.link_kinds import Link
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
FEW_PAIRS = 3
"""Up to this number of pairs, `Topology.link` for each pair is faster."""
_MAX_LEVELS = 16
_FEW_KINDS = 1 << 12
"""Up to this number of possible kinds of pairs, a table of all of them is faster than sorting."""


MAX_LISTED_GPUS: Final = 512
"""Up to this size nested lists are faster than arrays for single look-ups, and not too large."""
Edges = Iterable[tuple[int, int, float]]
"""(a, b, weight) of each pair of tasks that communicates."""
Entry = TypeVar("Entry", covariant=True)
Value = TypeVar("Value")


class Row(Protocol[Entry]):
    """One row of a table of GPU pairs: an object that returns an entry when indexed by a GPU."""

    def __getitem__(self, gpu: int, /) -> Entry: ...


Rows = Row[Row[Entry]]
"""A table of GPU pairs: `rows[u][v]` is the entry of GPUs u and v."""


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


def rows_of(matrix: NDArray[Any]) -> Sequence[Sequence[Any]]:
    """Return the rows of a square matrix, with plain numbers: nested lists up to 512 GPUs, else views."""
    return matrix.tolist() if len(matrix) <= MAX_LISTED_GPUS else [memoryview(row) for row in matrix]


def rows_under(
    edges: Edges, gpus: Sequence[int], value: Callable[[int, int], Value]
) -> dict[int, dict[int, Value]]:
    """Return nested dicts `rows[u][v] = value(u, v)` for only the GPU pairs that the edges use.

    edges: (a, b, weight); task a runs on `gpus[a]`. For an edge (a, b), the result has `rows[u][v]` with u = `gpus[a]`
    and v = `gpus[b]`, not `rows[v][u]`. Its size does not depend on that of the topology.
    """
    rows: dict[int, dict[int, Value]] = {}
    for a, b, _ in edges:
        u, v = gpus[a], gpus[b]
        rows.setdefault(u, {})[v] = value(u, v)
    return rows


def communication_cost(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return the communication cost (eq. 3): the sum over the job's edges of weight times distance of the edge's GPUs.

    Task i runs on `gpus[i]`; distances are those of shortest paths, infinite without a path. For a job in which all
    tasks communicate with weight 1 (`JobGraph.clique`, like the paper's jobs), the cost is the sum of the distances of
    all GPU pairs.

    Raises:
        ValueError: `gpus` are not different GPUs, one per task.
    """
    return job_communication_cost(job, gpu_of_each_task(job, gpus, topology), topology)


def job_communication_cost(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return the `communication_cost` of a job without checking the arguments."""
    if not PairLinks.serves(topology, len(job.edges)):
        return communication_cost_from(job.edges, gpus, rows_under(job.edges, gpus, topology.distance))
    ends, weights = job.edge_array[:, :2].astype(np.int64), job.edge_array[:, 2]
    u, v = np.array(gpus, dtype=np.int64)[ends.T]
    pairs = topology.derived(PairLinks).of(u, v)
    costs: list[float] = (weights * np.array(pairs.distances)[pairs.number]).tolist()
    return sum(costs)


def communication_cost_from(
    edges: Iterable[tuple[int, int, float]], gpus: Sequence[int], distance: Rows[float]
) -> float:
    """Return the sum over edges (a, b, weight) of weight times the distance between `gpus[a]` and `gpus[b]`.

    distance: a table of GPU pairs that contains at least the pairs that edges use.
    """
    return sum(weight * distance[gpus[a]][gpus[b]] for a, b, weight in edges)
