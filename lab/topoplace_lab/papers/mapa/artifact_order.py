"""The tie-breaking of MAPA's published artifact, for comparing placements with its logs job by job.

The artifact lists the sets of free GPUs in the order in which its graph miner finds them, and every assignment of tasks
to each set. It keeps the first one with the maximal score. Ties therefore depend on the miner; the orders below are
reconstructed from its logs. Two conventions differ from the rest of this library: a ring of two tasks counts its link
twice, and preserved bandwidth counts NVLinks only.

The best assignment within a GPU set does not depend on which other GPUs are free. It is therefore computed once per
topology and job pattern, and a decision is one masked maximum over the sets.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives import NUM_LINK_CLASSES, OTHER_LINK, LinkTables, link_scores
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth, is_extrapolated
from topoplace.placement import Placement
from topoplace.policies import Baseline, Greedy, MapaTopoAware, Preserve
from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.kernels import WorkBudget
    from topoplace.topology.topology import Topology

_PATTERNS: Final = {"ring": JobGraph.ring, "star": JobGraph.star, "clique": JobGraph.clique}
# (pattern, size) -> the positions of the sorted GPU set that the miner's set order compares, first to last.
_SET_ORDER: Final[dict[tuple[str, int], tuple[int, ...]]] = {
    **{(pattern, 1): (0,) for pattern in ("ring", "star", "clique")},
    **{(pattern, 2): (0, 1) for pattern in ("ring", "star", "clique")},
    **{("star", size): tuple(range(size)) for size in (3, 4, 5)},
    **{(pattern, 3): (1, 0, 2) for pattern in ("ring", "clique")},
    **{(pattern, 4): (2, 0, 1, 3) for pattern in ("ring", "clique")},
    ("ring", 5): (3, 2, 0, 1, 4),
    ("clique", 5): (3, 0, 1, 2, 4),
}
_MAX_CANDIDATES: Final = 20_000_000
_MAX_GPUS: Final = 64


@dataclass(frozen=True)
class Candidates:
    """All s sets of k GPUs for one job pattern on a topology of n GPUs, in the artifact's order, with their scores.

    members: (s, k) GPUs of each set, ascending. mask: (s,) the same sets as bit masks. nvlink: (n, n) GB/s of each
    pair's NVLinks, 0 for other links. inside: (s,) sum of NVLink GB/s among a set's GPUs. aggregated, effective: (s,)
    best aggregated and effective bandwidth over all assignments of tasks to a set, GB/s. aggregated_order,
    effective_order: (s, k) the first assignment that reaches this score; task i runs on the GPU in column i.
    """

    members: NDArray[np.int64]
    mask: NDArray[np.uint64]
    nvlink: NDArray[np.float64]
    inside: NDArray[np.float64]
    aggregated: NDArray[np.float64]
    aggregated_order: NDArray[np.int64]
    effective: NDArray[np.float64]
    effective_order: NDArray[np.int64]

    def allowed(self, usable: Iterable[int], required: Iterable[int]) -> NDArray[np.bool_]:
        """Return (s,) True for each set inside `usable` that contains all of `required`."""
        usable_bits, required_bits = _bits(usable), _bits(required)
        chosen: NDArray[np.bool_] = (self.mask & ~usable_bits) == 0
        chosen &= (self.mask & required_bits) == required_bits
        return chosen

    def preserved(self, free: Iterable[int]) -> NDArray[np.float64]:
        """Return (s,) the NVLink GB/s among the GPUs in `free` that remain after taking each set."""
        stays = np.zeros(len(self.nvlink))
        stays[list(free)] = 1.0
        degree = (self.nvlink * stays).sum(axis=1)
        total = (degree * stays).sum() / 2
        remaining: NDArray[np.float64] = total - degree[self.members].sum(axis=1) + self.inside
        return remaining


def edges_of(job: JobGraph) -> tuple[tuple[int, int, float], ...]:
    """Return the edges whose links the artifact adds up: the job's edges, twice for a ring of two tasks."""
    return job.edges * 2 if job.name == "ring" and job.num_tasks == 2 else job.edges


def candidates_of(topology: Topology, job: JobGraph, model: EffectiveBandwidth) -> Candidates:
    """Return the scored GPU sets of `job` on `topology`, built on first use and cached with the topology.

    Raise ValueError if the artifact's order is unknown for the job's pattern or size, or the job's edges are not those
    of the pattern in its name. Also raise it if the topology has too many GPU sets to list.
    """
    n, k = topology.num_gpus, job.num_tasks
    if (job.name, k) not in _SET_ORDER:
        raise ValueError(
            "the artifact's order is known for rings, stars and cliques of 1 to 5 tasks, "
            f"not for {job.name!r} of {k}"
        )
    if n > _MAX_GPUS or math.comb(n, k) * math.factorial(k) > _MAX_CANDIDATES:
        raise ValueError(f"{k} of {n} GPUs are too many orders to list")
    if job.edges != _PATTERNS[job.name](k).edges:
        raise ValueError(f"a job called {job.name!r} whose edges are not those of a {job.name}")
    per_topology = topology.derived(_Tables)
    key = (job.name, k, model)
    if key not in per_topology:
        per_topology[key] = _build(topology.derived(LinkTables), job, model)
    return per_topology[key]


class _Tables(dict[tuple[str, int, EffectiveBandwidth], Candidates]):
    """The `Candidates` of one topology, by pattern name, number of tasks and bandwidth model."""

    def __init__(self, _topology: Topology) -> None:
        super().__init__()


def _bits(gpus: Iterable[int]) -> np.uint64:
    return np.uint64(sum(1 << int(gpu) for gpu in gpus))


@lru_cache(maxsize=64)
def _sets(n: int, k: int, order: tuple[int, ...]) -> NDArray[np.int64]:
    """Return all k-subsets of n GPUs as rows of an array (s, k), each row ascending.

    The rows are sorted by the column order[0], ties by column order[1], and so on.
    """
    subsets = sorted(itertools.combinations(range(n), k), key=lambda subset: [subset[i] for i in order])
    return np.array(subsets, dtype=np.int64).reshape(-1, k)


def _build(links: LinkTables, job: JobGraph, model: EffectiveBandwidth) -> Candidates:
    k = job.num_tasks
    bandwidth = np.array(links.bandwidth)
    classes = links.link_class
    members = _sets(len(bandwidth), k, _SET_ORDER[job.name, k])
    orders = np.array(list(itertools.permutations(range(k))), dtype=np.int64)
    gpus = members[:, orders]
    aggregated = np.zeros(gpus.shape[:2])
    counts = np.zeros((NUM_LINK_CLASSES, *gpus.shape[:2]), dtype=np.int64)
    for a, b, _ in edges_of(job):
        u, v = gpus[..., a], gpus[..., b]
        aggregated += bandwidth[u, v]
        for c in range(NUM_LINK_CLASSES):
            counts[c] += classes[u, v] == c
    effective = _predict_counts(counts, model)
    rows = np.arange(len(members))
    by_aggregated, by_effective = aggregated.argmax(axis=1), effective.argmax(axis=1)
    nvlink = _nvlink(links)
    return Candidates(
        members=members,
        mask=np.bitwise_or.reduce(np.uint64(1) << members.astype(np.uint64), axis=1),
        nvlink=nvlink,
        inside=nvlink[members[:, :, None], members[:, None, :]].sum(axis=(1, 2)) / 2,
        aggregated=aggregated[rows, by_aggregated],
        aggregated_order=gpus[rows, by_aggregated],
        effective=effective[rows, by_effective],
        effective_order=gpus[rows, by_effective],
    )


def _predict_counts(counts: NDArray[np.int64], model: EffectiveBandwidth) -> NDArray[np.float64]:
    """Return the effective bandwidth (MAPA, eq. 2), GB/s, for arrays of link counts.

    counts: shape (3, ...): double NVLinks, single NVLinks and other links. Equal counts are evaluated once.
    """
    base = int(counts.sum(axis=0).max()) + 1
    code = (counts[0] * base + counts[1]) * base + counts[2]
    distinct, where = np.unique(code, return_inverse=True)
    predicted = model.predict(distinct // (base * base), distinct // base % base, distinct % base)
    result: NDArray[np.float64] = predicted[where.reshape(code.shape)]
    return result


def place(
    rule: str,
    job: JobGraph,
    cluster: Cluster,
    free: Iterable[int],
    required: Iterable[int],
    model: EffectiveBandwidth,
) -> Placement | None:
    """Return the placement that a policy of the artifact chooses, None if no GPU set is possible.

    rule: "baseline", "topo-aware", "greedy" or "preserve". free: GPUs that may be used. required: GPUs that must be
    used. ValueError as for `candidates_of`.
    """
    topology = cluster.topology
    table = candidates_of(topology, job, model)
    allowed = table.allowed(free, required)
    if not allowed.any():
        return None
    gpus = _RULES[rule](table, job, cluster, allowed)
    rest = [gpu for gpu in cluster.free_gpus() if gpu not in gpus]
    scores = {
        **link_scores(edges_of(job), gpus, topology, model),
        "effective_bandwidth_extrapolated": float(is_extrapolated(gpus, topology, model)),
        "preserved_bandwidth": preserved_bandwidth(rest, topology),
    }
    return Placement(gpus=gpus, scores=scores, topology=topology, job=job)


def preserved_bandwidth(free: Sequence[int], topology: Topology) -> float:
    """Return the sum of the GB/s of the NVLinks between `free` GPUs, which the artifact calls preserved bandwidth."""
    return float(_nvlink(topology.derived(LinkTables))[np.ix_(free, free)].sum()) / 2


def _nvlink(links: LinkTables) -> NDArray[np.float64]:
    """Return an array (n, n): GB/s of each pair's NVLinks, 0 for other links."""
    return np.where(links.link_class == OTHER_LINK, 0.0, np.array(links.bandwidth))


def _first_maximum(values: NDArray[np.float64], allowed: NDArray[np.bool_]) -> int:
    return int(np.where(allowed, values, -np.inf).argmax())


def _baseline(
    table: Candidates, _job: JobGraph, _cluster: Cluster, allowed: NDArray[np.bool_]
) -> tuple[int, ...]:
    return _gpus(table.aggregated_order[allowed.argmax()])


def _topo_aware(
    table: Candidates, job: JobGraph, cluster: Cluster, allowed: NDArray[np.bool_]
) -> tuple[int, ...]:
    # The artifact sets the group size by machine name: three GPUs a socket on Summit, the one machine with six.
    size = 3 if cluster.topology.num_gpus == 6 else 4
    group = table.members // size
    together = allowed & (group == group[:, :1]).all(axis=1)
    if job.num_tasks < size and together.any():
        return _gpus(table.members[together.argmax()])
    return _baseline(table, job, cluster, allowed)


def _greedy(
    table: Candidates, _job: JobGraph, _cluster: Cluster, allowed: NDArray[np.bool_]
) -> tuple[int, ...]:
    return _gpus(table.aggregated_order[_first_maximum(table.aggregated, allowed)])


def _preserve(
    table: Candidates, job: JobGraph, cluster: Cluster, allowed: NDArray[np.bool_]
) -> tuple[int, ...]:
    if job.bandwidth_sensitive and job.num_tasks > 1:
        return _gpus(table.effective_order[_first_maximum(table.effective, allowed)])
    preserved = np.where(allowed, table.preserved(cluster.free_gpus()), -np.inf)
    return _gpus(table.aggregated_order[_first_maximum(table.aggregated, preserved == preserved.max())])


_RULES: Final[dict[str, Callable[[Candidates, JobGraph, Cluster, NDArray[np.bool_]], tuple[int, ...]]]] = {
    "baseline": _baseline,
    "topo-aware": _topo_aware,
    "greedy": _greedy,
    "preserve": _preserve,
}


def _gpus(row: NDArray[np.int64]) -> tuple[int, ...]:
    return tuple(row.tolist())


class OfArtifact(MapaPolicy):
    """A policy of MAPA with the choice of the paper's published code, ties included.

    It decides for rings, stars and cliques of up to five tasks, on one machine of up to 64 GPUs (30 for five tasks);
    all other cases raise ValueError.
    """

    rule: ClassVar[str]

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement that the artifact chooses inside `free` with all of `required`."""
        return place(self.rule, job, cluster, free, required, self.model)


class BaselineOfArtifact(OfArtifact, Baseline):
    """The artifact's Baseline."""

    rule = "baseline"


class TopoAwareOfArtifact(OfArtifact, MapaTopoAware):
    """The artifact's Topo-aware; sockets are ignored, and groups are consecutive ids."""

    rule = "topo-aware"


class GreedyOfArtifact(OfArtifact, Greedy):
    """The artifact's Greedy."""

    rule = "greedy"


class PreserveOfArtifact(OfArtifact, Preserve):
    """The artifact's Preserve, without its threshold unless one is given."""

    rule = "preserve"
