"""The links and distances of many pairs of a cluster's GPUs at once, and MAPA's classes of links."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.objectives.arguments import gpu_of_each_task
from topoplace.topology.links.link_kinds import NVLINKS, Link, LinkKind

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
FEW_PAIRS = 3
"""Up to this number of pairs, `Topology.link` for each pair is faster."""
_MAX_LEVELS = 16
_NO_KIND: Final = np.iinfo(np.int64).max

DOUBLE_NVLINK: Final = 0
"""The class of two or more NVLinks, and of links through NVSwitches (MAPA, Table 1)."""
SINGLE_NVLINK: Final = 1
"""The class of one NVLink."""
OTHER_LINK: Final = 2
"""The class of all other links."""
NUM_LINK_CLASSES: Final = 3
"""The number of classes of links."""

_NVLINKS: Final = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C}
# Midpoints between the rows of Table 1 (PCIe 12, single NVLink 20 or 25, double NVLink 50 GB/s).
_SINGLE_FROM_GB_PER_S = (12.0 + 20.0) / 2
_DOUBLE_FROM_GB_PER_S = (25.0 + 50.0) / 2

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


def class_of(link: Link) -> int:
    """Return the class of one link: 0 double NVLink, 1 single NVLink, 2 any other (see `link_class`)."""
    if type(link) is not Link:  # asked a million times for one large machine
        _checks.instance(link, Link, "link", ValueError)
    if link.kind in _NVLINKS:
        return DOUBLE_NVLINK if link.lanes >= 2 or link.kind == LinkKind.NVSWITCH else SINGLE_NVLINK
    if (
        link.kind not in (LinkKind.UNKNOWN, LinkKind.XGMI, LinkKind.ICI)
        or link.gb_per_s < _SINGLE_FROM_GB_PER_S
    ):
        return OTHER_LINK
    return DOUBLE_NVLINK if link.gb_per_s >= _DOUBLE_FROM_GB_PER_S else SINGLE_NVLINK


class KnownLinks(NamedTuple):
    """The links of kinds of pairs of GPUs, each array with an entry for each kind."""

    kinds: Ints
    """The kinds, ascending; the last is larger than any other, and that of no pair."""
    speeds: NDArray[np.float64]
    """GB/s."""
    classes: Ints
    """The result of `class_of`."""
    distances: NDArray[np.float64]


class PairLinks:
    """A look-up of links of pairs of a cluster's GPUs that computes each kind of pair only once.

    A kind of pair is given by the levels that the two machines share and, for each GPU, by its machine's template and
    its number there. `topology.derived(PairLinks)` returns the cached object of a topology.
    """

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._known = KnownLinks(np.array([_NO_KIND]), np.zeros(1), np.zeros(1, np.int64), np.zeros(1))
        sizes = [template.num_gpus for template in topology.templates]
        first = np.array([0, *accumulate(sizes)], dtype=np.int64)
        template = np.array(topology.template_of, dtype=np.int64)[topology.machine_of]
        self._port = first[template] + np.array(topology.local_index, dtype=np.int64)
        self._num_ports = int(first[-1])

    @staticmethod
    def serves(topology: Topology, num_pairs: int) -> bool:
        """Return True if `PairLinks` is the faster way to look up `num_pairs` pairs."""
        return num_pairs > FEW_PAIRS and topology.tiling is not None and len(topology.levels) <= _MAX_LEVELS

    def of(self, u: Ints, v: Ints) -> tuple[Ints, KnownLinks]:
        """Return the index of the link of each pair of GPUs `u[i]` and `v[i]` in a table of links, and the table."""
        kind, known = self._kinds_of(u, v), self._known
        number = np.searchsorted(known.kinds, kind)
        missing = known.kinds[number] != kind
        if missing.any():
            known = self._known = self._with(known, kind[missing], u[missing], v[missing])
            number = np.searchsorted(known.kinds, kind)
        return number, known

    def among(self, gpus: Sequence[int]) -> tuple[Ints, KnownLinks]:
        """Return the links of all pairs of `gpus`, as `of` does, with (k, k) indices."""
        numbers = np.array(gpus, dtype=np.int64)
        return self.of(*np.broadcast_arrays(numbers[:, None], numbers))

    def _kinds_of(self, u: Ints, v: Ints) -> Ints:
        machine = self._topology.machine_of
        i, j = machine[u], machine[v]
        apart = i != j
        shared = apart.astype(np.int64)
        for number, level in enumerate(self._topology.levels):
            one = level.codes[i]
            shared += (apart & (one == level.codes[j]) & (one >= 0)) * (2 << number)
        kinds: Ints = (shared * self._num_ports + self._port[u]) * self._num_ports + self._port[v]
        return kinds

    def _with(self, known: KnownLinks, kind: Ints, u: Ints, v: Ints) -> KnownLinks:
        """Return the known links and those of these pairs; other threads may use the old table meanwhile."""
        kinds, where = np.unique(kind, return_index=True)
        found = [self._asked(*pair) for pair in zip(u[where].tolist(), v[where].tolist(), strict=True)]
        place = np.searchsorted(known.kinds, kinds)
        return KnownLinks(
            np.insert(known.kinds, place, kinds),
            np.insert(known.speeds, place, [link.gb_per_s for link, _ in found]),
            np.insert(known.classes, place, [class_of(link) for link, _ in found]),
            np.insert(known.distances, place, [distance for _, distance in found]),
        )

    def _asked(self, u: int, v: int) -> tuple[Link, float]:
        topology = self._topology
        machine: int = topology.machine_of[u]
        if machine != topology.machine_of[v]:
            return topology.link(u, v), topology.distance(u, v)
        template = topology.templates[topology.template_of[machine]]
        link = template.link(topology.local_index[u], topology.local_index[v])
        return link, topology.distances.of(link)


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
    number, known = topology.derived(PairLinks).of(u, v)
    costs: list[float] = (weights * known.distances[number]).tolist()
    return sum(costs)


def communication_cost_from(
    edges: Iterable[tuple[int, int, float]], gpus: Sequence[int], distance: Rows[float]
) -> float:
    """Return the sum over edges (a, b, weight) of weight times the distance between `gpus[a]` and `gpus[b]`.

    distance: a table of GPU pairs that contains at least the pairs that edges use.
    """
    return sum(weight * distance[gpus[a]][gpus[b]] for a, b, weight in edges)
