"""`repair`: new GPUs for the tasks of a running job that lost theirs, with few moves; and what further moves gain."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import AllocationError, SearchTimeoutError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.moving.held_shares import HeldShares
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.reassignment import plan_of
from topoplace.moving.repair_search import SAME, RepairSearch
from topoplace.moving.replicas import roles_of, without

if TYPE_CHECKING:
    from topoplace.moving.reassignment import Reassignment
    from topoplace.moving.repair_search import Found


@dataclass(frozen=True, slots=True)
class RepairFront:
    """The plans for a job, fewest moves first: each further plan moves more tasks for a shorter communication time."""

    plans: tuple[Reassignment, ...]
    """Empty if no task can be repaired."""
    bound: int
    """No repair of all tasks moves fewer tasks; 0 if tasks are in `unrepaired`."""
    unrepaired: Mapping[int, str] = field(default_factory=dict[int, str], hash=False)
    """The tasks for which no GPU was found, with the reason."""
    complete: bool = False
    """True if it is proven that no other repair has fewer moves than a plan and, within 1 %, no longer time."""
    smaller: Reassignment | None = None
    """If tasks are in `unrepaired`: how the job goes on with as few data replicas less as are found to suffice. None if
    it has no data replicas to give up, divides experts among them, or a host divided its CPUs.
    """
    waiting: Reassignment | None = None
    """As jobs in `soon` end, the first plan that repairs more tasks than the first of `plans`, moves fewer, or moves as
    many and is faster; None if there is none.
    """

    @property
    def fewest(self) -> bool:
        """Return True if it is proven that no repair moves fewer tasks than the first plan."""
        return bool(self.plans) and not self.unrepaired and self.plans[0].moved.all == self.bound

    def best(self, *, steps_left: float, costs: MoveCosts | None = None) -> Reassignment:
        """Return the plan with the least cost of moves and of communication in the steps that are left.

        Args:
            steps_left: Steps until the job ends.
            costs: The seconds of a move: `move` once, `move_per_gpu` for each task. None means `MoveCosts()`.

        Raises:
            ValueError: Names a wrong argument, or there is no plan for all tasks.
        """
        left = _checks.real(steps_left, "steps_left", ValueError)
        costs = MoveCosts() if costs is None else costs
        _checks.instance(costs, MoveCosts, "costs", ValueError)
        if not self.plans or self.unrepaired:
            raise ValueError("there is no plan for all tasks")
        return min(self.plans, key=lambda plan: costs.of(plan.job_id, plan.moved.all)[0] + left * plan.time)


def repair(
    job_id: str,
    cluster: Cluster,
    *,
    lost: Iterable[int] | None = None,
    soon: Mapping[str, float] | None = None,
    further: bool = True,
    timeout: float = 10.0,
) -> RepairFront:
    """Return plans that give tasks of a running job other GPUs in place of lost ones; the cluster is not changed.

    The first plan moves the fewest tasks. Tasks on healthy GPUs move only if they must: to keep a required group in one
    domain of its level, one of its tasks, the whole group, or a task in its way may move. Each further plan moves more
    tasks so that the job communicates less. The last one may be a fresh placement by the default policy. Before it, all
    assignments of a number of moves are compared, as long as they are at most 20,000; then machines that lost a GPU are
    replaced as a whole. Other jobs stay where they are, and held GPUs stay held.

    Args:
        lost: The job's GPUs that it can use no longer; None for those that are unhealthy.
        soon: Other jobs that end, with the seconds until then; see `RepairFront.waiting`.
        further: False returns the plan with the fewest moves alone, sooner.
        timeout: Seconds after which the plans found so far are returned.

    Raises:
        ValueError: Names a wrong argument: a GPU in `lost` that the job does not hold, no lost GPU at all, or a
            requirement of the job that repairs do not honour.
        AllocationError: No job of this id runs.
        SearchTimeoutError: `timeout` has passed before any plan was found.
    """
    end = time.monotonic() + _checks.positive(timeout, "timeout", ValueError)
    _checks.flag(further, "further", ValueError)
    job, gpus, shares = running(job_id, cluster)
    gone = _lost(lost, gpus, cluster, job_id)
    awaited = _soon(soon, cluster, job_id)
    with cluster.what_if():
        leave(job_id, cluster, gpus, gone)
        with naming(f"job {job_id!r}"):
            search = RepairSearch(shares.job, gpus, cluster, end, gone)
        found = search.front(further=further)
        smaller = None if found[0].is_whole else _smaller(job_id, job, gpus, gone, shares, cluster, end)
        later, wait = _later(search, found[0], awaited, cluster)
    plans = [plan_of(job_id, gpus, job, gpus, one, shares, cluster.topology) for one in found]
    plans = [one for one in plans if one.replaced]
    waiting = later and replace(plan_of(job_id, gpus, job, gpus, later, shares, cluster.topology), wait=wait)
    return RepairFront(
        tuple(plans), found[0].bound, found[0].unrepaired, search.is_complete, smaller, waiting
    )


def _smaller(
    job_id: str,
    job: JobGraph,
    gpus: tuple[int, ...],
    gone: Collection[int],
    shares: HeldShares,
    cluster: Cluster,
    end: float,
) -> Reassignment | None:
    """Return how a job goes on without the data replicas that lost the most tasks; None if it cannot."""
    dimensions = job.dimensions
    if "data" not in dimensions or "expert" in dimensions or shares.are_given:
        return None
    replicas = list(roles_of(job).replicas)
    replicas.sort(key=lambda tasks: -sum(gpus[task] in gone for task in tasks))
    hit = sum(any(gpus[task] in gone for task in tasks) for tasks in replicas)
    for count in range(1, min(hit + 1, len(replicas))):
        removed = {task for tasks in replicas[:count] for task in tasks}
        rest, old = without(job, removed), [gpu for task, gpu in enumerate(gpus) if task not in removed]
        with suppress(SearchTimeoutError):
            found = RepairSearch(rest, old, cluster, end, gone).first()
            if found.is_whole:
                return plan_of(job_id, gpus, rest, old, found, shares, cluster.topology, gone)
    return None


def running(job_id: str, cluster: Cluster) -> tuple[JobGraph, tuple[int, ...], HeldShares]:
    """Return the graph, the GPUs and the host resources of a running job whose tasks can move.

    Raise AllocationError if no such job runs, and ValueError if its tasks cannot move.
    """
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    gpus = cluster.gpus_of(job_id)
    if not gpus:
        raise AllocationError(f"no job {job_id!r} with GPUs runs")
    job = cluster.jobs.get(job_id) or JobGraph.independent(len(gpus))
    with naming(f"job {job_id!r}"):
        if cluster.gpu_thousandths_of(job_id) != WHOLE_GPU or cluster.native.slices_of(job_id):
            raise ValueError("repairs do not move jobs that share GPUs")
        return job, gpus, HeldShares(job, gpus, cluster.hosts.held.get(job_id), cluster.topology)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Put the name of what is wrong before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def leave(job_id: str, cluster: Cluster, gpus: Iterable[int], gone: Iterable[int] = ()) -> None:
    """Release a job, take the GPUs that it lost out of service, and let it stay on its other ones.

    It may stay there even if these and their machines get no new jobs.
    """
    cluster.release(job_id)
    lost = set(gone)
    for gpu in lost:
        cluster.drain(gpu)
    kept = [gpu for gpu in gpus if gpu not in lost]
    machines = sorted(set(cluster.topology.machine_of[kept].tolist()))
    cluster.native.undrain(kept, machines)
    cluster.native.unhold(kept, machines)


def _soon(soon: Mapping[str, float] | None, cluster: Cluster, job_id: str) -> list[tuple[float, str]]:
    """Return when each job in `soon` ends, in seconds, the first one first."""
    if soon is None:
        return []
    _checks.instance(soon, Mapping, "soon", ValueError)
    for other, seconds in soon.items():
        _checks.real(seconds, f"soon[{other!r}]", ValueError)
        if other == job_id or not cluster.runs(other):
            raise ValueError(f"soon[{other!r}]: no other job of this id runs")
    return sorted((float(seconds), other) for other, seconds in soon.items())


def _later(
    search: RepairSearch, now: Found, awaited: Iterable[tuple[float, str]], cluster: Cluster
) -> tuple[Found | None, float]:
    """Return the first repair that is better than the present one as jobs end, and the seconds until then."""
    for seconds, other in awaited:
        cluster.release(other)
        found = search.again().first()
        fewer = len(found.unrepaired) - len(now.unrepaired) or search.moves(found.gpus) - search.moves(
            now.gpus
        )
        if fewer < 0 or (fewer == 0 and found.is_whole and found.seconds < now.seconds * SAME):
            return found, seconds
    return None, 0.0


def _lost(lost: Iterable[int] | None, gpus: tuple[int, ...], cluster: Cluster, job_id: str) -> frozenset[int]:
    """Return the GPUs that the job has lost: the given ones, and those that are unhealthy."""
    given: tuple[int, ...] = () if lost is None else _checks.sequence(lost, "lost", ValueError)
    last = cluster.topology.num_gpus - 1
    for i, gpu in enumerate(given):
        if _checks.integer(gpu, f"lost[{i}]", ValueError, low=0, high=last) not in gpus:
            raise ValueError(f"lost[{i}] = {gpu}: job {job_id!r} does not hold this GPU")
    gone = frozenset(given) | frozenset(cluster.topology.unhealthy_gpus).intersection(gpus)
    if not gone:
        raise ValueError(f"lost is empty, and no GPU of job {job_id!r} is unhealthy")
    return gone
