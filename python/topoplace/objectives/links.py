"""MAPA's scores of the links that a job uses, and of those it leaves free (Ranganath et al., SC'21).

Bandwidths are in GB/s (1e9 bytes per second, one direction). Sums of products are written out term by term, so the last
bits of a score do not depend on the computer's BLAS library.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks, kernels
from topoplace.objectives.arguments import (
    different_gpus,
    each_once,
    edges_between,
    gpu_of_each_task,
    gpus_in_task_order,
)
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth, is_extrapolated
from topoplace.objectives.pair_links import (
    MAX_LISTED_GPUS,
    NUM_LINK_CLASSES,
    Edges,
    Ints,
    KnownLinks,
    PairLinks,
    Rows,
    class_of,
    rows_of,
    rows_under,
)
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph

# Up to this size a plain loop is faster than numpy on tiny arrays.
_MAX_LOOPED_GPUS: Final = 24
# Above this size the sum over all pairs costs more than the search, so it is cached until the free GPUs change.
_MAX_SUMMED_GPUS: Final = 512
_MAX_GPU: Final = 2**31 - 1
_DEFAULT_MODEL: Final = EffectiveBandwidth()


def link_class(topology: Topology) -> NDArray[np.int8]:
    """Return an array (n, n) with the class of each GPU pair's link: 0 double NVLink, 1 single NVLink, 2 any other.

    Two or more parallel NVLinks, and NVSwitch, are class 0; one NVLink is class 1. NVLink-C2C counts like NVLink. Links
    of unknown kind, xGMI and ICI are classified by bandwidth, with thresholds at the midpoints of the paper's Table 1:
    class 1 from 16 GB/s, class 0 from 37.5 GB/s. All other links are class 2.
    """
    _checks.instance(topology, Topology, "topology", ValueError)
    classes: NDArray[np.int8] = topology.link_matrix(class_of, np.int8)
    return classes


class LinkTables:
    """Tables of the bandwidth and the class of the link between every two GPUs of a topology.

    For up to 512 GPUs the tables are nested lists, the fastest form for a few look-ups; for more, views of matrix rows.
    `topology.derived(LinkTables)` returns the cached tables of a topology.
    """

    __slots__ = ("_count_scores", "_indifferent", "_sums", "bandwidth", "classes", "link_class", "matrix")

    def __init__(self, topology: Topology) -> None:
        _checks.instance(topology, Topology, "topology", ValueError)
        self.matrix = topology.bandwidth_matrix()
        self.link_class = link_class(topology)
        self.bandwidth: Sequence[Sequence[float]] = rows_of(self.matrix)
        self.classes: Sequence[Sequence[int]] = rows_of(self.link_class)
        self._count_scores: dict[EffectiveBandwidth, kernels.LinkCountScore] = {}
        self._indifferent: kernels.LinkCountScore | None = None
        self._sums: tuple[tuple[int, ...], dict[int, float], float] = ((), {}, 0.0)

    def remaining(self, free: tuple[int, ...], taken: Sequence[int]) -> float:
        """Return the sum of the bandwidths among the GPUs in `free` but not in `taken`, GB/s, rounded to 0.001.

        Args:
            taken: A subset of `free`.
        """
        if self._sums[0] != free:
            among = self.matrix[:, free].sum(axis=1)[list(free)]
            self._sums = (free, dict(zip(free, among.tolist(), strict=True)), float(among.sum()) / 2)
        _, of_gpu, total = self._sums
        inside = float(self.matrix[np.ix_(taken, taken)].sum()) / 2
        return round(total - sum(of_gpu[gpu] for gpu in taken) + inside, 3)

    @property
    def indifferent(self) -> kernels.LinkCountScore:
        """Return a kernel objective that scores all embeddings equally, so that only the tie-break order decides."""
        if self._indifferent is None:
            self._indifferent = kernels.LinkCountScore(
                np.zeros_like(self.link_class), lambda counts: np.zeros(len(counts))
            )
        return self._indifferent

    def count_score(self, model: EffectiveBandwidth) -> kernels.LinkCountScore:
        """Return the kernel objective that maximises the effective bandwidth predicted by `model` (eq. 2).

        The object is cached per model.
        """
        score = self._count_scores.get(model)
        if score is None:
            score = self._count_scores[model] = kernels.LinkCountScore(self.link_class, model)
        return score


def aggregated_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return the sum of the bandwidths of the links that the job's edges use, GB/s (MAPA, eq. 1).

    Task i runs on `gpus[i]`; ValueError unless these are different GPUs, one per task.
    """
    gpus = gpu_of_each_task(job, gpus, topology)
    rows = topology.derived(LinkTables).bandwidth
    return sum(rows[gpus[a]][gpus[b]] for a, b, _ in job.edges)


def bottleneck_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Return the bandwidth of the slowest link that the job's edges use, GB/s; infinite for a job without edges.

    Task i runs on `gpus[i]`; ValueError unless these are different GPUs, one per task.
    """
    gpus = gpu_of_each_task(job, gpus, topology)
    rows = topology.derived(LinkTables).bandwidth
    return min((rows[gpus[a]][gpus[b]] for a, b, _ in job.edges), default=float("inf"))


def link_counts(job: JobGraph, gpus: Sequence[int], topology: Topology) -> tuple[int, int, int]:
    """Return the numbers of double NVLinks, single NVLinks and other links that the job's edges use.

    The numbers are x, y and z of MAPA's eq. 2. Task i runs on `gpus[i]`; ValueError unless these are different GPUs,
    one per task.
    """
    gpus = gpu_of_each_task(job, gpus, topology)
    rows = topology.derived(LinkTables).classes
    counts = [0] * NUM_LINK_CLASSES
    for a, b, _ in job.edges:
        counts[rows[gpus[a]][gpus[b]]] += 1
    return counts[0], counts[1], counts[2]


def preserved_bandwidth(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Return the preserved bandwidth, which stays for later jobs after `gpus` are allocated, GB/s (MAPA, eq. 3).

    It is the sum of the bandwidths of all pairs of GPUs that are in `free` but not in `gpus`. If a fabric joins several
    machines, pairs of GPUs on different machines do not count: they share the ports of their machines, so that the sum
    would count each port many times. GPUs of `gpus` that are not in `free` change nothing. If a machine has more than
    512 GPUs in `free`, the result is rounded to 0.001 GB/s.

    Raises:
        ValueError: An argument names an unknown GPU, or a GPU twice.
    """
    _checks.instance(topology, Topology, "topology", ValueError)
    if topology.fabric is None or topology.num_machines == 1:
        return remaining_bandwidth(gpus, topology, free)
    taken = different_gpus(gpus, topology, "gpus")
    left = np.zeros(topology.num_gpus, bool)
    left[list(different_gpus(free, topology, "free"))] = True
    left[list(taken)] = False
    return math.fsum(_inside_machines(left, topology))


def _inside_machines(left: NDArray[np.bool_], topology: Topology) -> Iterator[float]:
    """Yield the GB/s of all pairs of one machine among the GPUs that are `left`, once for machines that are alike.

    left: (num_gpus,).
    """
    template_of = np.array(topology.template_of)
    sizes = np.array([template.num_gpus for template in topology.templates])[template_of]
    first = np.cumsum(sizes) - sizes
    for number, template in enumerate(topology.templates):
        rows = left[first[template_of == number, None] + np.arange(template.num_gpus)]
        packed = np.packbits(rows, axis=1)
        _, where, count = np.unique(packed, axis=0, return_index=True, return_counts=True)
        for row, machines in zip(where.tolist(), count.tolist(), strict=True):
            inside = np.flatnonzero(rows[row]).tolist()
            yield machines * remaining_bandwidth((), template, inside)


def remaining_bandwidth(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Return the sum of the bandwidths of all pairs of GPUs that are in `free` but not in `gpus`, GB/s.

    Pairs of GPUs on different machines count as well: this is eq. 3 of MAPA on the whole graph, which
    `kernels.best_remainder` maximises. If `free` has more than 512 GPUs, the result is rounded to 0.001 GB/s.
    ValueError as for `preserved_bandwidth`.
    """
    taken = set(different_gpus(gpus, topology, "gpus"))
    free = different_gpus(free, topology, "free")
    if taken.issuperset(free):
        return 0.0
    tables = topology.derived(LinkTables)
    if len(free) > _MAX_SUMMED_GPUS:
        return tables.remaining(free, sorted(taken.intersection(free)))
    rest = [gpu for gpu in free if gpu not in taken]
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
    """Return all of MAPA's scores of running task i of `job` on `gpus[i]`; `gpus` are a subset of `free`.

    The keys are aggregated_bandwidth, bottleneck_bandwidth, preserved_bandwidth and effective_bandwidth (eq. 2), all in
    GB/s, and effective_bandwidth_extrapolated: 1.0 if eq. 2 was not fitted on this number of GPUs, or on such machines,
    else 0.0. If a fabric joins several machines, preserved_bandwidth counts links inside machines only.

    Args:
        model: The model of effective bandwidth, by default that with MAPA's coefficients.

    Raises:
        ValueError: `gpus` are not different GPUs, one per task.
    """
    gpus = gpu_of_each_task(job, gpus, topology)
    _check_model(model)
    return {
        **job_link_scores(job, gpus, topology, model),
        "effective_bandwidth_extrapolated": float(is_extrapolated(gpus, topology, model)),
        "preserved_bandwidth": preserved_bandwidth(gpus, topology, free),
    }


def link_scores(
    edges: Edges, gpus: Sequence[int], topology: Topology, model: EffectiveBandwidth | None = None
) -> dict[str, float]:
    """Return the scores that depend only on the links that the edges use, in GB/s.

    The keys are aggregated_bandwidth, effective_bandwidth and bottleneck_bandwidth (infinite without edges).

    Args:
        edges: (a, b, weight) of each pair of tasks that communicates; task a runs on `gpus[a]`.
        model: The model of effective bandwidth, by default that with MAPA's coefficients.

    Raises:
        ValueError: A GPU is unknown or listed twice, or an edge does not join two of the tasks with a weight above 0.
    """
    gpus = gpus_in_task_order(gpus, topology)
    edges = edges_between(edges, len(gpus))
    _check_model(model)
    return _scores_between(edges, np.array([(a, b) for a, b, _ in edges]), gpus, topology, model)


def job_link_scores(
    job: JobGraph, gpus: Sequence[int], topology: Topology, model: EffectiveBandwidth | None = None
) -> dict[str, float]:
    """Return the `link_scores` of running task i of `job` on `gpus[i]`, without checking the arguments."""
    return _scores_between(job.edges, job.edge_array[:, :2], gpus, topology, model)


def _scores_between(
    edges: Sequence[tuple[int, int, float]],
    ends: NDArray[Any],
    gpus: Sequence[int],
    topology: Topology,
    model: EffectiveBandwidth | None,
) -> dict[str, float]:
    """Return the link scores of these edges. ends: (m, 2) the tasks of each edge."""
    placed = np.array(gpus, dtype=np.int64)
    machines = topology.machine_of[placed]
    if topology.fabric is not None and len(machines) and (machines == machines[0]).all():
        topology, local = topology.template(int(machines[0])), topology.local_index
        gpus = [local[gpu] for gpu in gpus]
    elif PairLinks.serves(topology, len(edges)):
        u, v = placed[ends.astype(np.int64).T]
        return _scores_of_pairs(*topology.derived(PairLinks).of(u, v), model)
    if topology.num_gpus <= MAX_LISTED_GPUS:
        tables = topology.derived(LinkTables)
        return scores_in(edges, gpus, tables.bandwidth, tables.classes, model)
    links = rows_under(edges, gpus, topology.link)
    bandwidth = {u: {v: link.gb_per_s for v, link in row.items()} for u, row in links.items()}
    classes = {u: {v: class_of(link) for v, link in row.items()} for u, row in links.items()}
    return scores_in(edges, gpus, bandwidth, classes, model)


def _scores_of_pairs(number: Ints, known: KnownLinks, model: EffectiveBandwidth | None) -> dict[str, float]:
    """Return the scores of `scores_in`, added up in the same order."""
    speeds = known.speeds[number]
    x, y, z = np.bincount(known.classes[number], minlength=NUM_LINK_CLASSES).tolist()
    return {
        "aggregated_bandwidth": float(np.add.accumulate(speeds)[-1]),
        "effective_bandwidth": (model or _DEFAULT_MODEL).of_checked((x, y, z)),
        "bottleneck_bandwidth": float(speeds.min()),
    }


def scores_from(
    edges: Edges,
    gpus: Sequence[int],
    bandwidth: Rows[float],
    classes: Rows[int],
    model: EffectiveBandwidth | None = None,
) -> dict[str, float]:
    """Return the same scores as `link_scores`, computed from tables instead of a topology.

    `bandwidth` and `classes` must contain every pair that an edge uses.

    Args:
        bandwidth: GB/s of GPU pairs.
        classes: Link classes 0..2 of GPU pairs.
        model: The model of effective bandwidth, by default that with MAPA's coefficients.

    Raises:
        ValueError: Names an argument of another form, or the pair of GPUs without an entry.
    """
    listed = _checks.ordered(gpus, "gpus", ValueError)
    checked = (
        _checks.integer(gpu, f"gpus[{i}]", ValueError, low=0, high=_MAX_GPU) for i, gpu in enumerate(listed)
    )
    gpus = each_once(tuple(checked), "gpus")
    edges = edges_between(edges, len(gpus))
    _check_model(model)
    for a, b, _ in edges:
        u, v = gpus[a], gpus[b]
        _checks.real(_entry(bandwidth, u, v, "bandwidth"), f"bandwidth[{u}][{v}]", ValueError)
        found = _entry(classes, u, v, "classes")
        _checks.integer(found, f"classes[{u}][{v}]", ValueError, low=0, high=NUM_LINK_CLASSES - 1)
    return scores_in(edges, gpus, bandwidth, classes, model)


def _entry(table: Any, u: int, v: int, what: str) -> object:
    try:
        return table[u][v]
    except (LookupError, TypeError):
        raise ValueError(f"{what} has no entry for GPUs {u} and {v}") from None


def _check_model(model: EffectiveBandwidth | None) -> None:
    if model is not None:
        _checks.instance(model, EffectiveBandwidth, "model", ValueError)


def scores_in(
    edges: Edges,
    gpus: Sequence[int],
    bandwidth: Rows[float],
    classes: Rows[int],
    model: EffectiveBandwidth | None = None,
) -> dict[str, float]:
    """Return the same scores as `scores_from`, without checking the arguments."""
    counts = [0] * NUM_LINK_CLASSES
    aggregated, bottleneck = 0.0, float("inf")
    for a, b, _ in edges:
        u, v = gpus[a], gpus[b]
        speed = bandwidth[u][v]
        aggregated += speed
        if speed < bottleneck:
            bottleneck = speed
        counts[classes[u][v]] += 1
    return {
        "aggregated_bandwidth": aggregated,
        "effective_bandwidth": (model or _DEFAULT_MODEL).of_checked((counts[0], counts[1], counts[2])),
        "bottleneck_bandwidth": bottleneck,
    }
