"""`repair`: new GPUs for the tasks of a running job that lost theirs, with few moves; and what further moves gain."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from topoplace import _checks, policies
from topoplace.cluster.cluster import Cluster
from topoplace.errors import AllocationError, DeadlineError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.kernels.limits import deadline
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.repair_search import HONOURED, RepairSearch
from topoplace.placement import Placement

if TYPE_CHECKING:
    from topoplace.moving.repair_search import Found
    from topoplace.topology.topology import Topology


class Moved(NamedTuple):
    """How much a repair moves, in the order of what it costs a job."""

    machines: int
    """Machines with tasks of the job that had none before."""
    tasks: int
    """Tasks that change machine: what they stored there is lost."""
    gpus: int
    """Tasks that change GPU inside their machine."""

    @property
    def all(self) -> int:
        """Return the number of tasks that move."""
        return self.tasks + self.gpus


@dataclass(frozen=True, slots=True)
class Repair:
    """A plan that moves tasks of a running job; all other tasks keep their GPUs, and all keep their ranks."""

    job_id: str
    gpus: tuple[int, ...]
    """The GPU of each task before."""
    replaced: Mapping[int, tuple[int, int]] = field(hash=False)
    """The GPU before and after of each task that moves."""
    moved: Moved
    time: float
    """Seconds a step that the job communicates after the repair; infinite while a task has no GPU."""
    placement: Placement | None
    """The job after the repair; None if tasks remain without a GPU."""

    def carry_out(self, cluster: Cluster) -> None:
        """Give the job its new GPUs, all at once: no other job can get one of them in between.

        Raises:
            AllocationError: The job does not hold the GPUs that the plan expects, another job has one of the new ones,
                or tasks remain without a GPU; nothing changes then.
        """
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        if self.placement is None:
            raise AllocationError(f"job {self.job_id!r}: tasks remain without a GPU, so that it cannot go on")
        if cluster.gpus_of(self.job_id) != self.gpus:
            raise AllocationError(f"job {self.job_id!r} does not hold the GPUs of this plan any more")
        closed = set(cluster.out_of_service())
        for _, new in self.replaced.values():
            if new in closed:
                raise AllocationError(f"GPU {new} is out of service")
        job = cluster.jobs.get(self.job_id)
        with cluster.transaction():
            cluster.release(self.job_id)
            cluster.record(self.job_id, self.placement.gpus, job)  # it may stay on GPUs that get no new jobs


@dataclass(frozen=True, slots=True)
class RepairFront:
    """The plans for a job, fewest moves first: each further plan moves more tasks for a shorter communication time."""

    plans: tuple[Repair, ...]
    """Empty if no task can be repaired."""
    bound: int
    """No repair of all tasks moves fewer tasks; 0 if tasks are in `unrepaired`."""
    unrepaired: Mapping[int, str] = field(default_factory=dict[int, str], hash=False)
    """The tasks for which no GPU was found, with the reason."""

    @property
    def fewest(self) -> bool:
        """Return True if it is proven that no repair moves fewer tasks than the first plan."""
        return bool(self.plans) and not self.unrepaired and self.plans[0].moved.all == self.bound

    def best(self, *, steps_left: float, costs: MoveCosts | None = None) -> Repair:
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
    job_id: str, cluster: Cluster, *, lost: Iterable[int] | None = None, timeout: float = 10.0
) -> RepairFront:
    """Return plans that give tasks of a running job other GPUs in place of lost ones; the cluster is not changed.

    The first plan moves the fewest tasks. Tasks on healthy GPUs move only if they must: to keep a required group in one
    domain of its level, one of its tasks, the whole group, or a task in its way may move. Each further plan moves more
    tasks so that the job communicates less. The last one may be a fresh placement by the default policy; before it, all
    assignments of a number of moves are compared, as long as they are at most 20,000. Other jobs stay where they are,
    and held GPUs stay held.

    Args:
        lost: The job's GPUs that it can use no longer; None for those that are unhealthy.
        timeout: Seconds after which the plans found so far are returned.

    Raises:
        ValueError: Names a wrong argument: a GPU in `lost` that the job does not hold, no lost GPU at all, or a
            requirement of the job that repairs do not honour.
        AllocationError: No job of this id runs.
        SearchTimeoutError: `timeout` has passed before any plan was found.
    """
    end = time.monotonic() + _checks.positive(timeout, "timeout", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    gpus = cluster.gpus_of(job_id)
    if not gpus:
        raise AllocationError(f"no job {job_id!r} with GPUs runs")
    gone = _lost(lost, gpus, cluster, job_id)
    job = cluster.jobs.get(job_id) or JobGraph.independent(len(gpus))
    _refuse(job, job_id, cluster)
    with cluster.what_if():
        cluster.release(job_id)
        _close(cluster, gone, set(gpus) - set(gone))
        search = RepairSearch(job, gpus, gone, cluster, policies.get(policies.DEFAULT), end)
        with deadline(max(1e-3, end - time.monotonic())):
            found = [search.first()]
        with suppress(DeadlineError), deadline(max(0.0, end - time.monotonic())):
            for one in search.further(found[0]) if found[0].is_whole else ():
                if search.moves(one.gpus) <= search.moves(
                    found[-1].gpus
                ):  # a fresh placement may move as few
                    found.pop()
                found.append(one)
        plans = tuple([plan for one in found if (plan := _plan(job_id, job, gpus, one, cluster)).replaced])
    return RepairFront(plans, found[0].bound, found[0].unrepaired)


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


def _close(cluster: Cluster, gone: Iterable[int], kept: Iterable[int]) -> None:
    """Take the lost GPUs out of service, and let the job stay on its other ones, whether they get new jobs or not."""
    for gpu in gone:
        cluster.drain(gpu)
    held = set(cluster.held_gpus())
    for gpu in kept:
        cluster.undrain(gpu)
        if gpu in held:
            cluster.unhold([gpu])


def _refuse(job: JobGraph, job_id: str, cluster: Cluster) -> None:
    """Raise ValueError for a requirement that repairs do not honour."""
    for name in job.requirements:
        if name not in HONOURED:
            raise ValueError(f"job {job_id!r}: repairs do not honour {name}")
    if cluster.gpu_thousandths_of(job_id) != WHOLE_GPU or cluster.native.slices_of(job_id):
        raise ValueError(f"job {job_id!r}: repairs do not move jobs that share GPUs")
    if job_id in cluster.hosts.held:
        raise ValueError(f"job {job_id!r}: repairs do not move CPUs, host memory or drives")


def _plan(job_id: str, job: JobGraph, gpus: tuple[int, ...], found: Found, cluster: Cluster) -> Repair:
    pairs = enumerate(zip(gpus, found.gpus, strict=True))
    replaced = {task: (old, new) for task, (old, new) in pairs if new not in (old, -1)}
    moved = _moved(replaced, gpus, cluster.topology)
    if not found.is_whole:
        return Repair(job_id, gpus, replaced, moved, math.inf, None)
    placement = Placement(found.gpus, topology=cluster.topology, job=job)
    return Repair(job_id, gpus, replaced, moved, found.seconds, placement)


def _moved(replaced: Mapping[int, tuple[int, int]], gpus: tuple[int, ...], topology: Topology) -> Moved:
    machine_of = topology.machine_of.tolist()
    used = {machine_of[gpu] for gpu in gpus}
    opened = {machine_of[new] for _, new in replaced.values()} - used
    tasks = sum(machine_of[old] != machine_of[new] for old, new in replaced.values())
    return Moved(len(opened), tasks, len(replaced) - tasks)
