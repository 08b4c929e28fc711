"""What a placement is worth: the scores of MAPA (Ranganath et al., SC'21) and their parts.

Bandwidths are GB/s (1e9 bytes per second, one direction). `topology` is a `Topology`, `job` a `JobGraph`,
`gpus[i]` the GPU of task i. Every score is a sum of a few products written out term by term, so its bits do
not depend on the machine's BLAS.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

import numpy as np

from topoplace.objectives.authors_utility import AuthorsUtility
from topoplace.objectives.effective import FITTED_TASKS, MAPA_COEFFICIENTS, EffectiveBandwidth
from topoplace.objectives.link_tables import (
    DOUBLE_NVLINK,
    NUM_LINK_CLASSES,
    OTHER_LINK,
    SINGLE_NVLINK,
    LinkTables,
    class_of,
    link_class,
)
from topoplace.objectives.utility import Costs, Utility, communication_cost, fragmentation, interference

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

__all__ = [
    "DOUBLE_NVLINK",
    "FITTED_TASKS",
    "MAPA_COEFFICIENTS",
    "NUM_LINK_CLASSES",
    "OTHER_LINK",
    "SINGLE_NVLINK",
    "AuthorsUtility",
    "Costs",
    "EffectiveBandwidth",
    "LinkTables",
    "Utility",
    "aggregated_bandwidth",
    "bottleneck_bandwidth",
    "class_of",
    "communication_cost",
    "fragmentation",
    "interference",
    "link_class",
    "link_counts",
    "link_scores",
    "preserved_bandwidth",
    "scores_from",
    "scores_of",
]

# Up to here a plain loop is faster than numpy on tiny arrays.
_MAX_LOOPED_GPUS: Final = 24
# From here the sum over all pairs costs more than the search: it is kept for as long as the free GPUs stay the same.
_MAX_SUMMED_GPUS: Final = 512


def aggregated_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """Sum of the bandwidths of the links the job's edges use, GB/s (eq. 1)."""
    rows = topology.derived(LinkTables).bandwidth
    return sum(rows[gpus[a]][gpus[b]] for a, b, _ in job.edges)


def bottleneck_bandwidth(job: JobGraph, gpus: Sequence[int], topology: Topology) -> float:
    """The slowest link the job's edges use, GB/s; infinite for a job without edges."""
    rows = topology.derived(LinkTables).bandwidth
    return min((rows[gpus[a]][gpus[b]] for a, b, _ in job.edges), default=float("inf"))


def link_counts(job: JobGraph, gpus: Sequence[int], topology: Topology) -> tuple[int, int, int]:
    """How many double NVLinks, single NVLinks and other links the job's edges use: x, y, z of eq. 2."""
    rows = topology.derived(LinkTables).classes
    counts = [0] * NUM_LINK_CLASSES
    for a, b, _ in job.edges:
        counts[rows[gpus[a]][gpus[b]]] += 1
    return counts[0], counts[1], counts[2]


def preserved_bandwidth(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Sum of the bandwidths among the free GPUs that remain free once `gpus` are taken, GB/s (eq. 3).

    Of more than 512 free GPUs, rounded to 0.001 GB/s: it is what all of them have, less what `gpus` have.
    """
    taken = set(gpus)
    tables = topology.derived(LinkTables)
    free = tuple(free)
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
    tables = topology.derived(LinkTables)
    return scores_from(edges, gpus, tables.bandwidth, tables.classes, model)


def scores_from(
    edges: Iterable[tuple[int, int, float]],
    gpus: Sequence[int],
    bandwidth: Rows[float],
    classes: Rows[int],
    model: EffectiveBandwidth | None = None,
) -> dict[str, float]:
    """`link_scores` from tables that hold at least the pairs under `edges`: GB/s, and the class, of GPUs u and v."""
    model = model or _DEFAULT_MODEL
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


Entry = TypeVar("Entry", covariant=True)


class Row(Protocol[Entry]):
    """Something that can be asked for the entry of a GPU."""

    def __getitem__(self, gpu: int, /) -> Entry: ...


Rows = Row[Row[Entry]]
"""A table: `rows[u][v]`."""

_DEFAULT_MODEL = EffectiveBandwidth()
