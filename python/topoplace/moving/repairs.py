"""`repair`: new GPUs for the tasks of a running job that lost theirs, with few moves; and what further moves gain."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.spares import SPARE
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.moving.broken_jobs import BrokenJob
from topoplace.moving.held_shares import HeldShares
from topoplace.moving.move_costs import MoveCosts

if TYPE_CHECKING:
    from topoplace.moving.reassignment import Reassignment


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
    making_way: Reassignment | None = None
    """If tasks are in `unrepaired`: the cheapest plan that is found within `budget` in which one or two other jobs make
    way.
    """
    stay: float = math.inf
    """Seconds a step that the job communicates if it stays on the GPUs in `lost`; infinite if one of them is unhealthy.
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
        self._refuse_part()
        return min(self.plans, key=lambda plan: self._cost(plan, costs) + left * plan.time)

    def pays_after(self, *, costs: MoveCosts | None = None) -> float:
        """Return the number of steps after which the first plan has saved as many seconds as its moves cost.

        It is infinite if the plan saves none in a step, and 0 if the job cannot stay.

        Args:
            costs: As for `best`.

        Raises:
            ValueError: Names a wrong argument, or there is no plan for all tasks.
        """
        self._refuse_part()
        cost, saved = self._cost(self.plans[0], costs), self.stay - self.plans[0].time
        return math.ceil(cost / saved) if saved > 0 else math.inf

    def _cost(self, plan: Reassignment, costs: MoveCosts | None) -> float:
        costs = MoveCosts() if costs is None else costs
        _checks.instance(costs, MoveCosts, "costs", ValueError)
        return costs.of(plan.job_id, plan.moved.all)[0]

    def _refuse_part(self) -> None:
        if not self.plans or self.unrepaired:
            raise ValueError("there is no plan for all tasks")


def repair(
    job_id: str,
    cluster: Cluster,
    *,
    lost: Iterable[int] | None = None,
    soon: Mapping[str, float] | None = None,
    budget: float = 0.0,
    costs: MoveCosts | None = None,
    further: bool = True,
    timeout: float = 10.0,
) -> RepairFront:
    """Return plans that give tasks of a running job other GPUs in place of lost ones; the cluster is not changed.

    The first plan moves the fewest tasks. Tasks on healthy GPUs move only if they must: to keep a required group in one
    domain of its level, one of its tasks, the whole group, or a task in its way may move. Each further plan moves more
    tasks so that the job communicates less. The last one may be a fresh placement by the default policy. Before it, all
    assignments of a number of moves are compared, as long as they are at most 20,000; else more and more tasks of the
    machines that lost a GPU move along. Other jobs stay where they are, and held GPUs stay held; spares
    (`Cluster.hold_spares`) are used if not all tasks can be repaired without.

    Args:
        lost: The job's GPUs that it can use no longer; None for those that are unhealthy.
        soon: Other jobs that end, with the seconds until then; see `RepairFront.waiting`.
        budget: Largest cost of other jobs that move or stop; see `RepairFront.making_way`.
        costs: What it costs to move or stop them. None means `MoveCosts()`.
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
    allowed = _checks.real(budget, "budget", ValueError, high=math.inf)
    costs = MoveCosts() if costs is None else costs
    _checks.instance(costs, MoveCosts, "costs", ValueError)
    job, gpus, shares = running(job_id, cluster)
    spares = [gpu for gpu, reason in cluster.held_gpus().items() if reason == SPARE]
    gone, closed = _lost(lost, gpus, cluster, job_id), set(gpus).intersection(cluster.out_of_service())
    broken = BrokenJob(job_id, job, gpus, gone, shares, cluster, end, spares, closed)
    ending = _soon(soon, cluster, job_id)
    with cluster.what_if():
        leave(job_id, cluster, gpus, broken.lost)
        with naming(f"job {job_id!r}"):
            search = broken.search()
        found = search.front(further=further)
        if not found[0].is_whole and spares:
            search = broken.with_spares()
            found = search.front(further=further)
        first = found[0]
        smaller = None if first.is_whole else broken.smaller()
        making_way = None if first.is_whole or not allowed else broken.others(allowed, costs)
        waiting = broken.later(first, ending)
        stay = math.inf if set(broken.lost) & set(cluster.topology.unhealthy_gpus) else search.seconds(gpus)
    plans = [plan for one in found if (plan := broken.plan(one)).replaced]
    return RepairFront(
        tuple(plans), first.bound, first.unrepaired, search.is_complete, smaller, waiting, making_way, stay
    )


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
def naming(what: str) -> Generator[None]:
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
    lost = list(gone)
    cluster.native.drain(lost)
    kept: list[int] = np.setdiff1d(list(gpus), lost).tolist()
    machines: list[int] = np.unique(cluster.topology.machine_of[kept]).tolist()
    cluster.native.undrain(kept, machines)
    cluster.native.unhold(kept, machines)


def _soon(soon: Mapping[str, float] | None, cluster: Cluster, job_id: str) -> list[tuple[float, str]]:
    """Return when each job in `soon` ends, in seconds, the first one first."""
    if soon is None:
        return []
    _checks.instance(soon, Mapping, "soon", ValueError)
    for other, seconds in soon.items():
        _checks.text(other, "a job in soon", ValueError)
        _checks.real(seconds, f"soon[{other!r}]", ValueError)
        if other == job_id or not cluster.runs(other):
            raise ValueError(f"soon[{other!r}]: no other job of this id runs")
    return sorted((float(seconds), other) for other, seconds in soon.items())


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
