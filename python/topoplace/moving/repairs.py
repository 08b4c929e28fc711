"""`repair`: new GPUs for the tasks of a running job that lost theirs, with few moves; and what further moves gain."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.spares import SPARES
from topoplace.moving.broken_jobs import BrokenJob
from topoplace.moving.leaving import leave, naming, running
from topoplace.moving.move_costs import MoveCosts

if TYPE_CHECKING:
    from topoplace.moving.reassignment import Reassignment
    from topoplace.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class RepairFront:
    """The plans for a job, fewest moves first: each further plan moves more tasks for a shorter communication time.

    The time of a job whose graph is unknown counts as 0.
    """

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
    it has no data replicas to give up, divides experts among them, a host divided its CPUs, or `elastic` forbids it.
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
    lost: Iterable[int | str] | None = None,
    soon: Mapping[str, float] | None = None,
    budget: float = 0.0,
    costs: MoveCosts | None = None,
    further: bool = True,
    timeout: float = 10.0,
) -> RepairFront:
    """Return plans that give tasks of a running job other GPUs in place of lost ones; the cluster is not changed.

    The first plan moves the fewest tasks. Tasks on healthy GPUs move only if they must: to keep a required group in one
    domain of its level, one of its tasks, the whole group, or a task in its way may move. Each further plan moves more
    tasks so that the job communicates less: in another division among machines, or in a placement by the default policy
    in which tasks that do the same swap places. Unless these are proven to be all, the assignments of each number of
    moves are compared, as long as they are at most 20,000. Other jobs stay where they are, and held GPUs stay held;
    spares (`Cluster.hold_spares`) are used if not all tasks can be repaired without: first the idle ones, then those on
    which pre-emptible jobs run, which stop (`Reassignment.others`).

    Args:
        lost: The job's GPUs that it can use no longer, or names of machines for all that it has there; None for those
            that are unhealthy. Mark what is broken (`Topology.with_unhealthy`), or drain it: else other jobs get it.
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
    allowed = _checks.real(budget, "budget", ValueError)
    costs = MoveCosts() if costs is None else costs
    _checks.instance(costs, MoveCosts, "costs", ValueError)
    job, gpus, shares = running(job_id, cluster)
    spares = {gpu: reason for gpu, reason in cluster.held_gpus().items() if reason in SPARES}
    gone, closed = _lost(lost, gpus, cluster, job_id), set(gpus).intersection(cluster.out_of_service())
    graph = cluster.jobs.get(job_id)
    broken = BrokenJob(job_id, graph, job, gpus, gone, shares, cluster, end, spares, closed)
    ending = _soon(soon, cluster, job_id)
    with cluster.what_if():
        leave(job_id, cluster, gpus, gone)
        return _front(broken, ending, allowed, costs, further=further)


def _front(
    broken: BrokenJob, ending: Sequence[tuple[float, str]], budget: float, costs: MoveCosts, *, further: bool
) -> RepairFront:
    """Return the plans for a job that has left the cluster."""
    with naming(f"job {broken.job_id!r}"):
        search = broken.search()
    found = search.front(further=further)
    if not found[0].is_whole and broken.spares:
        search = broken.with_spares()
        found = search.front(further=further)
    if not found[0].is_whole and (leaving := broken.to_stop()):
        broken = broken.stopping(leaving)
        search = broken.search()
        found = search.front(further=further)
    first = found[0]
    is_gone = not set(broken.lost).isdisjoint(broken.cluster.topology.unhealthy_gpus)
    return RepairFront(
        plans=tuple([plan for one in found if (plan := broken.plan(one)).replaced]),
        bound=first.bound,
        unrepaired=first.unrepaired,
        complete=search.is_complete and broken.graph is not None,
        smaller=None if first.is_whole else broken.smaller(),
        waiting=broken.later(first, ending),
        making_way=None if first.is_whole or not budget else broken.others(budget, costs),
        stay=math.inf if is_gone else search.stay,
    )


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


def _lost(
    lost: Iterable[int | str] | None, gpus: tuple[int, ...], cluster: Cluster, job_id: str
) -> frozenset[int]:
    """Return the GPUs that the job has lost: the given ones, those of machines, and those that are unhealthy."""
    given: tuple[int | str, ...] = () if lost is None else _checks.sequence(lost, "lost", ValueError)
    found = set(cluster.topology.unhealthy_gpus).intersection(gpus)
    for i, one in enumerate(given):
        found |= _named(one, f"lost[{i}]", gpus, cluster.topology, job_id)
    if not found:
        raise ValueError(f"lost is empty, and no GPU of job {job_id!r} is unhealthy")
    return frozenset(found)


def _named(one: object, what: str, gpus: tuple[int, ...], topology: Topology, job_id: str) -> set[int]:
    """Return the job's GPUs that a number or the name of a machine means; ValueError if there are none."""
    if isinstance(one, str):
        own, missing = topology.gpus_of.get(one, ()), f"no GPU of a machine {one!r}"
    else:
        own, missing = (
            (_checks.integer(one, what, ValueError, low=0, high=topology.num_gpus - 1),),
            "this GPU",
        )
    if not set(own).intersection(gpus):
        raise ValueError(f"{what} = {_checks.shown(one)}: job {job_id!r} does not hold {missing}")
    return set(own).intersection(gpus)
