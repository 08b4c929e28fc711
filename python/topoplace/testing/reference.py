"""Brute force: every placement of a small job, the best one, and the check of a claim to be optimal."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations
from typing import TYPE_CHECKING, Final

from topoplace.cluster.hosts import HostAllocation, host_shares, needs_hosts
from topoplace.engine.admission import able_gpus, suits_of
from topoplace.engine.requirements import BY_LEVEL, require_honoured
from topoplace.engine.slices import slices_for
from topoplace.errors import AllocationError
from topoplace.objectives.links import LinkTables, scores_of
from topoplace.placement import Placement
from topoplace.testing.placements import gang_faults, group_faults

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.objectives.effective_bandwidth import EffectiveBandwidth

Order = Callable[["JobGraph", Placement], tuple[float, ...]]
"""A function that returns the sort key of a placement; smaller is better."""
SortKey = tuple[float, tuple[float, ...], list[int], tuple[int, ...]]
"""Memory of the GPUs, the key of an `Order`, the GPUs ascending, and the GPUs in task order."""
MOST_ORDERS: Final = 100_000
"""`reference_place` refuses a job with more orders of GPUs to try."""
_OF_TASK_ORDER: Final = ("aggregated_bandwidth", "bottleneck_bandwidth", "effective_bandwidth")
_OF_GPU_SET: Final = (*_OF_TASK_ORDER, "preserved_bandwidth")
_TOLERANCE: Final = 1e-9


def reference_place(job: JobGraph, cluster: Cluster, order: Order | None = None) -> Placement | None:
    """Return the best of all placements of a small job, found by trying each; None if there is none.

    A placement meets the job's requirements, and has a link for every edge. If the job states its GPU memory, the
    smallest memory comes first, then `order`. Ties go to the smallest ascending GPU list, then to the smallest order.

    Args:
        order: The sort key of a placement, such as `SearchPolicy.order`; by default the largest aggregated bandwidth.

    Raises:
        ValueError: Names a requirement that brute force does not support, or says that there are more than 100,000
            orders to try.
    """
    honours = BY_LEVEL.union(("gpu_fraction", "mig", "groups")) - {"prefer"}
    require_honoured(job, cluster, "reference_place", honours)
    if (number := num_orders(job, cluster)) > MOST_ORDERS:
        raise ValueError(f"{number} orders of GPUs to try; reference_place tries at most {MOST_ORDERS}")
    chosen, best = None, None
    for gpu_set in gpu_sets(job, cluster):
        for gpus in task_orders(job, gpu_set, cluster):
            placement = placed(job, gpus, cluster)
            key = sort_key(job, placement, order or _most_bandwidth)
            if best is None or key < best:
                chosen, best = placement, key
    return chosen


def num_orders(job: JobGraph, cluster: Cluster) -> int:
    """Return the number of ways to put the tasks on free GPUs, whatever their models and links; 0 for no tasks."""
    return math.perm(len(able_gpus(job, cluster)), job.num_tasks) if job.num_tasks else 0


def gpu_sets(job: JobGraph, cluster: Cluster) -> Iterator[tuple[int, ...]]:
    """Yield, in lexicographic order, each set of free GPUs that the job may get; CPUs and memory are not checked."""
    topology, suits = cluster.topology, suits_of(job)
    free = [gpu for gpu in able_gpus(job, cluster) if suits(topology.gpus[gpu])]
    for gpus in combinations(free, job.num_tasks):
        machines = len({int(topology.machine_of[gpu]) for gpu in gpus})
        apart = not job.anti_affinity or machines == len(gpus)
        together = machines == 1 or not job.single_machine
        if apart and together and topology.is_legal(gpus) and not any(gang_faults(gpus, job, topology)):
            yield gpus


def task_orders(job: JobGraph, gpu_set: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, ...]]:
    """Yield each order of the GPUs with a link for every edge, groups in their domains, and enough CPUs and memory."""
    topology = cluster.topology
    bandwidth = topology.derived(LinkTables).bandwidth
    for gpus in permutations(gpu_set):
        has_links = all(bandwidth[gpus[a]][gpus[b]] > 0 for a, b, _ in job.edges)
        if has_links and not any(group_faults(gpus, job, topology)) and _hosted(job, gpus, cluster):
            yield gpus


def placed(
    job: JobGraph, gpus: tuple[int, ...], cluster: Cluster, model: EffectiveBandwidth | None = None
) -> Placement:
    """Return the placement of task i on `gpus[i]`, with its host shares and MAPA's scores."""
    topology = cluster.topology
    return Placement(
        gpus,
        topology=topology,
        job=job,
        slices=slices_for(job, gpus, cluster)[0],
        hosts=host_shares(job, gpus, topology),
        scores=scores_of(job, gpus, topology, able_gpus(job, cluster), model),
    )


def sort_key(job: JobGraph, placement: Placement, order: Order) -> SortKey:
    """Return the whole sort key of a placement: GPU memory if the job states it, then `order`, then the GPUs."""
    memory = 0.0
    if job.gpu_memory_gb:
        memory = max(placement.topology.gpus[gpu].memory_gb or 0.0 for gpu in placement.gpus)
    return memory, order(job, placement), sorted(placement.gpus), placement.gpus


def better_placement(
    placement: Placement,
    job: JobGraph,
    cluster: Cluster,
    order: Order | None,
    model: EffectiveBandwidth | None,
) -> Placement | None:
    """Return a placement that is better than one that claims to be optimal; None if brute force finds none.

    order: the sort key that the policy minimises. Another placement is better if its key is smaller, or equal with a
    smaller ascending GPU list; for a job that states GPU memory, less memory comes first. Keys that need scores other
    than MAPA's are not compared. Without `order`, a placement is better if every link score that `placement` states is
    better. In any case, another order of the same GPUs is better if all stated scores of the used links are better.
    model: the model of the score effective_bandwidth; None for MAPA's.
    """
    for gpu_set in gpu_sets(job, cluster):
        same_set = set(gpu_set) == set(placement.gpus)
        names = _OF_TASK_ORDER if same_set else _OF_GPU_SET if order is None else ()
        stated = [name for name in names if name in placement.scores]
        for gpus in _different_orders(job, gpu_set, cluster):
            other = placed(job, gpus, cluster, model)
            if order is not None and _is_preferred(other, placement, job, order):
                return other
            if stated and all(other.scores[name] > placement.scores[name] + _TOLERANCE for name in stated):
                return other
    return None


def _most_bandwidth(job: JobGraph, placement: Placement) -> tuple[float, ...]:
    return (-placement.scores["aggregated_bandwidth"],)


def _hosted(job: JobGraph, gpus: tuple[int, ...], cluster: Cluster) -> bool:
    if not needs_hosts(job):
        return True
    try:
        cluster.hosts.check(HostAllocation(host_shares(job, gpus, cluster.topology)))
    except AllocationError:
        return False
    return True


def _different_orders(job: JobGraph, gpu_set: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, ...]]:
    """Yield one of the task orders for each collection of links that the job's edges can use."""
    tables = cluster.topology.derived(LinkTables)
    seen: set[tuple[tuple[float, int], ...]] = set()
    for gpus in task_orders(job, gpu_set, cluster):
        pairs = ((gpus[a], gpus[b]) for a, b, _ in job.edges)
        links = tuple(sorted((tables.bandwidth[u][v], tables.classes[u][v]) for u, v in pairs))
        if links not in seen:
            seen.add(links)
            yield gpus


def _is_preferred(one: Placement, other: Placement, job: JobGraph, order: Order) -> bool:
    """Return True if the sort key of `one` is smaller by more than rounding, or equal with a smaller GPU list."""
    try:
        keys = [sort_key(job, placement, order) for placement in (one, other)]
    except KeyError:
        return False  # the order reads scores that are not known here
    if keys[0][:2] == keys[1][:2]:
        return keys[0][2] < keys[1][2]
    first, second = ((memory, *key) for memory, key, *_ in keys)
    for a, b in zip(first, second, strict=True):
        if abs(a - b) > _TOLERANCE * max(1.0, abs(a), abs(b)):
            return a < b
    return False
