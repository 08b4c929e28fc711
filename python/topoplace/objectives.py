"""What a placement is worth: the scores of MAPA (Ranganath et al., SC'21) and their parts.

Bandwidths are GB/s (1e9 bytes per second, one direction). `topology` is a `Topology`, `job` a `JobGraph`,
`gpus[i]` the GPU of task i. Every score is a sum of a few products written out term by term, so its bits do
not depend on the machine's BLAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from topoplace import kernels
from topoplace.links import NVLINKS, LinkKind

if TYPE_CHECKING:
    from topoplace.jobgraph import JobGraph
    from topoplace.links import Link
    from topoplace.topology import Topology

# Table 2 of the paper cuts these at three decimals; the digits are those the published artifact computes with.
# The artifact's logs print predictions to 1e-6 and agree with every digit given here.
MAPA_COEFFICIENTS: Final = (
    16.39670455,
    4.536821878,
    1.55623404,
    -20.69484581,
    -9.467461958,
    7.615106783,
    -7.973335727,
    12.73323772,
    -4.195655221,
    -8.413419363,
    62.85125807,
    27.41832588,
    -5.114108079,
    -46.97390071,
)
# Up to here nested lists and a plain loop are faster than numpy on tiny arrays; the second bound is where they cross.
_MAX_LISTED_GPUS: Final = 512
_MAX_LOOPED_GPUS: Final = 24
FITTED_TASKS: Final = range(2, 6)
"""Job sizes eq. 2 was fitted on; outside it extrapolates, and not even monotonically."""

DOUBLE_NVLINK, SINGLE_NVLINK, OTHER_LINK = 0, 1, 2
NUM_LINK_CLASSES: Final = 3

_NVLINKS: Final = NVLINKS | {LinkKind.NVSWITCH, LinkKind.C2C}
# Midpoints between the rows of Table 1 (PCIe 12, single NVLink 20 or 25, double NVLink 50 GB/s).
_SINGLE_FROM_GBPS = (12.0 + 20.0) / 2
_DOUBLE_FROM_GBPS = (25.0 + 50.0) / 2


class EffectiveBandwidth:
    """Predicted effective bandwidth (eq. 2): all-reduce GB/s of a set of links, from how many there are of each class.

    `coefficients` are theta 1 to 14 of the paper, in its order. The model was fitted on 2 to 5 GPUs of a DGX-1V;
    it is not monotone, so more or faster links may predict less.
    """

    __slots__ = ("_known", "coefficients")

    def __init__(self, coefficients: Sequence[float] = MAPA_COEFFICIENTS) -> None:
        if len(coefficients) != len(MAPA_COEFFICIENTS):
            raise ValueError(f"coefficients: {len(coefficients)} values, eq. 2 has {len(MAPA_COEFFICIENTS)}")
        values = tuple(float(value) for value in coefficients)
        for i, value in enumerate(values):
            if not np.isfinite(value):
                raise ValueError(f"coefficients[{i}] = {value}, not a finite number")
        self.coefficients = values
        self._known: dict[tuple[int, int, int], float] = {}

    def predict(self, x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Any:
        """GB/s for `x` double NVLinks, `y` single NVLinks and `z` other links; arrays broadcast."""
        return _weighted_sum(self.coefficients, _features(x, y, z))

    def of_counts(self, x: int, y: int, z: int) -> float:
        """`predict` of one link mix, remembered: placing asks for the same few mixes again and again."""
        known = self._known.get((x, y, z))
        if known is None:
            known = self._known[x, y, z] = float(self.predict(x, y, z))
        return known

    @classmethod
    def fit(cls, table: ArrayLike) -> EffectiveBandwidth:
        """Least-squares coefficients for rows (x, y, z, measured GB/s).

        Raises ValueError naming the row for a value that is not finite or a negative count, and for fewer rows
        than the 14 coefficients. Where the rows leave a direction undetermined the smallest coefficients are taken.
        """
        rows = np.asarray(table, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != 4:
            raise ValueError(f"table: shape {rows.shape}, rows of (x, y, z, measured) needed")
        if len(rows) < len(MAPA_COEFFICIENTS):
            raise ValueError(f"table: {len(rows)} rows, eq. 2 needs at least {len(MAPA_COEFFICIENTS)}")
        bad = np.argwhere(~np.isfinite(rows) | ((rows < 0) & (np.arange(4) < 3)))
        if len(bad):
            row, column = map(int, bad[0])
            raise ValueError(
                f"table[{row}, {column}] = {rows[row, column]}, not a finite non-negative number"
            )
        design = np.stack(_features(*rows[:, :3].T), axis=1)
        solution = np.linalg.lstsq(design, rows[:, 3], rcond=None)[0]
        return cls(solution.tolist())

    def __call__(self, counts: NDArray[np.int64]) -> NDArray[np.float64]:
        """GB/s of each row of `counts`, shape (v, 3): the form `kernels.LinkCountScore` asks for."""
        predicted: NDArray[np.float64] = self.predict(counts[:, 0], counts[:, 1], counts[:, 2])
        return predicted

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EffectiveBandwidth) and self.coefficients == other.coefficients

    def __hash__(self) -> int:
        return hash(self.coefficients)

    def __repr__(self) -> str:
        default = self.coefficients == MAPA_COEFFICIENTS
        return "EffectiveBandwidth()" if default else f"EffectiveBandwidth({self.coefficients})"


def _features(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> tuple[Any, ...]:
    """The fourteen terms of eq. 2, in the order of its coefficients."""
    x, y, z = (np.asarray(count, dtype=np.float64) for count in (x, y, z))
    pairs = (x * y, y * z, z * x)
    return (
        *(x, y, z, 1 / (x + 1), 1 / (y + 1), 1 / (z + 1)),
        *(*pairs, *(1 / (pair + 1) for pair in pairs)),
        *(x * y * z, 1 / (x * y * z + 1)),
    )


def _weighted_sum(coefficients: Sequence[float], features: Sequence[Any]) -> Any:
    total = coefficients[0] * features[0]
    for coefficient, feature in zip(coefficients[1:], features[1:], strict=True):
        total = total + coefficient * feature
    return total


def link_class(topology: Topology) -> NDArray[np.int8]:
    """Class of every pair's link, shape (n, n): 0 double NVLink, 1 single NVLink, 2 PCIe and everything else.

    Two or more NVLinks side by side, and NVSwitch, are "double". A link of unknown kind, and an xGMI link, is classed
    by its bandwidth, split at the midpoints of the paper's Table 1: single from 16 GB/s, double from 37.5 GB/s.
    """
    classes: NDArray[np.int8] = topology.link_matrix(_class_of, np.int8)
    return classes


def _class_of(link: Link) -> int:
    if link.kind in _NVLINKS:
        return DOUBLE_NVLINK if link.lanes >= 2 or link.kind == LinkKind.NVSWITCH else SINGLE_NVLINK
    if link.kind not in (LinkKind.UNKNOWN, LinkKind.XGMI) or link.gbps < _SINGLE_FROM_GBPS:
        return OTHER_LINK
    return DOUBLE_NVLINK if link.gbps >= _DOUBLE_FROM_GBPS else SINGLE_NVLINK


class LinkTables:
    """Bandwidth and class of every pair of one topology as plain lists, the fastest form for a handful of look-ups.

    `LinkTables.of(topology)` keeps one per topology for as long as the topology lives.
    """

    __slots__ = ("_count_scores", "_indifferent", "bandwidth", "classes", "link_class", "matrix")

    def __init__(self, topology: Topology) -> None:
        self.matrix = topology.bandwidth_matrix()
        self.link_class = link_class(topology)
        small = topology.num_gpus <= _MAX_LISTED_GPUS
        self.bandwidth: Sequence[Sequence[float]] = self.matrix.tolist() if small else list(self.matrix)
        self.classes: Sequence[Sequence[int]] = self.link_class.tolist() if small else list(self.link_class)
        self._count_scores: dict[EffectiveBandwidth, kernels.LinkCountScore] = {}
        self._indifferent: kernels.LinkCountScore | None = None

    @classmethod
    def of(cls, topology: Topology) -> LinkTables:
        """The tables of `topology`, built on first use."""
        tables = _link_tables.get(topology)
        if tables is None:
            tables = _link_tables[topology] = cls(topology)
        return tables

    @property
    def indifferent(self) -> kernels.LinkCountScore:
        """The kernel objective under which every embedding is as good as any other: the tie order alone decides."""
        if self._indifferent is None:
            self._indifferent = kernels.LinkCountScore(
                np.zeros_like(self.link_class), lambda counts: np.zeros(len(counts))
            )
        return self._indifferent

    def count_score(self, model: EffectiveBandwidth) -> kernels.LinkCountScore:
        """The kernel objective "eq. 2 with these coefficients on this topology", one object for all searches."""
        score = self._count_scores.get(model)
        if score is None:
            score = self._count_scores[model] = kernels.LinkCountScore(self.link_class, model)
        return score


_link_tables: WeakKeyDictionary[Topology, LinkTables] = WeakKeyDictionary()


def aggregated_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Sum of the bandwidths of the links the job's edges use, GB/s (eq. 1)."""
    rows = LinkTables.of(topology).bandwidth
    return sum(rows[gpus[a]][gpus[b]] for a, b, _ in job.edges)


def bottleneck_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """The slowest link the job's edges use, GB/s; infinite for a job without edges."""
    rows = LinkTables.of(topology).bandwidth
    return min((rows[gpus[a]][gpus[b]] for a, b, _ in job.edges), default=float("inf"))


def link_counts(job: JobGraph, gpus: Sequence[int], topology: Topology) -> tuple[int, int, int]:
    """How many double NVLinks, single NVLinks and other links the job's edges use: x, y, z of eq. 2."""
    rows = LinkTables.of(topology).classes
    counts = [0] * NUM_LINK_CLASSES
    for a, b, _ in job.edges:
        counts[rows[gpus[a]][gpus[b]]] += 1
    return counts[0], counts[1], counts[2]


def preserved_bandwidth(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Sum of the bandwidths among the free GPUs that remain free once `gpus` are taken, GB/s (eq. 3)."""
    taken = set(gpus)
    rest = [gpu for gpu in free if gpu not in taken]
    tables = LinkTables.of(topology)
    if len(rest) > _MAX_LOOPED_GPUS:
        return float(tables.matrix[np.ix_(rest, rest)].sum()) / 2
    total = 0.0
    for i, u in enumerate(rest):
        row = tables.bandwidth[u]
        for v in rest[i + 1 :]:
            total += row[v]
    return total


def scores_of(
    job: JobGraph,
    gpus: Sequence[int],
    topology: Topology,
    free: Iterable[int],
    model: EffectiveBandwidth | None = None,
) -> dict[str, float]:
    """Every score of placing `job` on `gpus` while `free` GPUs (those of the job among them) are free.

    Keys: aggregated_bandwidth, bottleneck_bandwidth, preserved_bandwidth (GB/s), effective_bandwidth (eq. 2, GB/s)
    and effective_bandwidth_extrapolated, 1.0 where the job's size is outside what eq. 2 was fitted on.
    """
    return {
        **link_scores(job.edges, gpus, topology, model or _DEFAULT_MODEL),
        "effective_bandwidth_extrapolated": float(job.num_tasks not in FITTED_TASKS),
        "preserved_bandwidth": preserved_bandwidth(gpus, topology, free),
    }


def link_scores(
    edges: Iterable[tuple[int, int, float]],
    gpus: Sequence[int],
    topology: Topology,
    model: EffectiveBandwidth,
) -> dict[str, float]:
    """The scores that depend on the links under `edges` (a, b, weight) alone: aggregated, effective, bottleneck."""
    tables = LinkTables.of(topology)
    bandwidth, classes = tables.bandwidth, tables.classes
    counts = [0] * NUM_LINK_CLASSES
    aggregated, bottleneck = 0.0, float("inf")
    for a, b, _ in edges:
        u, v = gpus[a], gpus[b]
        speed = bandwidth[u][v]
        aggregated += speed
        bottleneck = min(bottleneck, speed)
        counts[classes[u][v]] += 1
    return {
        "aggregated_bandwidth": aggregated,
        "effective_bandwidth": model.of_counts(counts[0], counts[1], counts[2]),
        "bottleneck_bandwidth": bottleneck,
    }


_DEFAULT_MODEL = EffectiveBandwidth()
