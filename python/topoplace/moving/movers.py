"""The running jobs that may be moved or pre-empted, with their GPUs and costs."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.kernels.limits import until_deadline

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.moving.move_costs import MoveCosts

STAY, MOVE, PREEMPT = 0, 1, 2
"""The levels of a running job; each leaves at least as much room for others as those below it."""
FORBIDDEN: Final = math.inf
"""The cost of a level that is not allowed."""


class Mover(NamedTuple):
    """A running job that may be moved or pre-empted."""

    job_id: str
    job: JobGraph
    """The job graph; if it is unknown, a graph in which all tasks communicate and keep their GPU models."""
    gpus: tuple[int, ...]
    share: int
    """Thousandths of each of its GPUs that the job holds."""
    healthy: int
    """Thousandths of GPUs that others could get without this job; GPUs out of service do not count."""
    costs: tuple[float, float, float]
    """Cost of each level, ascending; infinite for those that are not allowed."""

    @property
    def size(self) -> int:
        """Return the thousandths of GPUs that the job holds."""
        return self.share * len(self.gpus)

    @property
    def gains(self) -> tuple[int, int, int]:
        """Return, for each level, the thousandths of GPUs that others gain; moves off GPUs out of service gain less."""
        return 0, self.healthy - self.size, self.healthy

    @property
    def cheapest(self) -> float:
        """Return the lowest cost of making the job leave."""
        return min(self.costs[MOVE], self.costs[PREEMPT])


def movers_of(cluster: Cluster, movable: Iterable[str] | None, costs: MoveCosts) -> list[Mover]:
    """Return the jobs that may leave their GPUs, sorted by id.

    movable: ids of running jobs, None for all. Jobs in MIG slices stay. Raise AllocationError for an id that is no
    running job, or runs in a slice. Raise DeadlineError after the deadline (`kernels.limits.deadline`).
    """
    running = [job_id for job_id in cluster.native.job_ids() if not cluster.native.slices_of(job_id)]
    ids = running if movable is None else _checked(movable, set(running), cluster)
    out = set(cluster.out_of_service())
    found = (_mover(job_id, cluster, out, costs) for job_id in until_deadline(sorted(set(ids))))
    return [mover for mover in found if mover.cheapest < FORBIDDEN]


def _checked(movable: Iterable[str], running: Container[str], cluster: Cluster) -> tuple[str, ...]:
    """Return `movable` as ids; AllocationError for one that is not among the `running` jobs that may move."""
    if isinstance(movable, str):
        raise AllocationError(f"movable = {movable!r}: must be several job ids, not one text")
    ids: tuple[Any, ...] = _checks.sequence(movable, "movable", AllocationError)
    for i, job_id in enumerate(ids):
        if not (isinstance(job_id, str) and job_id in running):
            _checks.text(job_id, f"movable[{i}]", AllocationError)
            why = "runs in a MIG slice, and stays" if cluster.runs(job_id) else "is not a running job"
            raise AllocationError(f"movable[{i}] = {_checks.shown(job_id)} {why}")
    return ids


def _mover(job_id: str, cluster: Cluster, out: set[int], costs: MoveCosts) -> Mover:
    """Return a job and its costs. out: the GPUs out of service."""
    gpus, graph = cluster.native.gpus_of(job_id), cluster.jobs.get(job_id)
    share = cluster.gpu_thousandths_of(job_id)
    moving, preempting = costs.of(job_id, share * len(gpus) / WHOLE_GPU)
    if graph is None and (not gpus or job_id in cluster.hosts.held):
        moving = FORBIDDEN  # which CPUs and memory it needs is unknown
    if graph is None:
        graph = _of_unknown_graph(gpus, share, cluster) if gpus else JobGraph.independent(1)
    if preempting < moving:
        moving = FORBIDDEN
    healthy = share * sum(gpu not in out for gpu in gpus)
    return Mover(job_id, graph, gpus, share, healthy, (0.0, moving, preempting))


def _of_unknown_graph(gpus: tuple[int, ...], share: int, cluster: Cluster) -> JobGraph:
    """Return a job whose tasks all communicate, and which needs GPUs of the models that it holds."""
    models = {cluster.topology.gpus[gpu].model for gpu in gpus}
    needed = None if None in models else tuple(sorted(model for model in models if model))
    return JobGraph.clique(len(gpus)).with_(gpu_model=needed or None, gpu_fraction=share / WHOLE_GPU)
