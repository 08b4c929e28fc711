"""One online controller, which rents nodes (VMs) for its jobs and asks a planner for a new plan after each event.

An event is the arrival or the end of a job. With the option `periodic` there is also one after `interval` hours without
a decision, while a job runs or waits. At an event, the planner plans all unfinished jobs that have arrived, with the
remaining fraction of each one's work. The plan takes effect at once. Preempting, moving and resizing jobs and renting
nodes cost no time, as in the paper.

Without preemption, a node keeps its jobs until all of them are finished. The planner then gets only the jobs that have
not started and the number of free nodes. All times are in hours.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace_lab.capacity.problem.catalogue import Catalogue
from topoplace_lab.capacity.problem.job import CapacityJob
from topoplace_lab.capacity.problem.plan import Node, Plan, Planner, plan_of
from topoplace_lab.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Floats

SAME_TIME: Final = 1e-9
"""Tolerance in hours: jobs that end or arrive within this time after an event are handled together with it."""
_MAX_IDLE_DECISIONS: Final = 1000
"""Largest number of consecutive decisions that leave all jobs waiting; beyond it, the planner is faulty."""


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """Options of a controller.

    periodic: also decide every `interval` hours. preemptive: plans may stop, move and resize running jobs.
    max_decisions: limit on the number of decisions. interval, postponement, idle: as in `Problem`.
    """

    periodic: bool
    preemptive: bool
    max_decisions: int
    interval: float
    postponement: float
    idle: float


@dataclass(slots=True)
class _Active:
    """A job that has arrived at the controller and not ended: it runs or waits."""

    index: int
    job: CapacityJob
    """The job as planners see it."""
    hours: Floats
    """Its true run times, of the shape of `job.hours`."""
    left: float = 1.0
    """Fraction of the job's work left at the time of the last decision."""
    end: float = math.inf
    """Time at which the job ends if nothing changes; infinite while it waits."""


@dataclass(slots=True)
class _RentedNode:
    """A rented node (VM) with the jobs that run there."""

    vm_type: int
    jobs: dict[int, int] = field(default_factory=dict[int, int])
    """Number of GPUs of each job that runs there, by job index."""


class Controller:
    """A controller that may rent up to `num_nodes` nodes (VMs) and runs its jobs there by its planner's plans.

    `advance` moves its clock; between calls of `advance` it can be pickled. number: its position among all controllers.
    """

    def __init__(
        self, number: int, catalogue: Catalogue, num_nodes: int, planner: Planner, settings: OnlineSettings
    ) -> None:
        self.number = number
        self.catalogue = catalogue
        self.planner = planner
        self.settings = settings
        self.arrivals: deque[tuple[int, CapacityJob, Floats]] = deque()
        self.active: dict[int, _Active] = {}
        self.nodes: list[_RentedNode | None] = [None] * num_nodes
        self.decided = 0.0
        """Time of the last decision, in hours."""
        self.vm_cost = 0.0
        self.tardiness_cost = 0.0
        self.events: list[tuple[object, ...]] = []
        self.decisions: list[tuple[object, ...]] = []
        self.num_decisions = 0
        self.idle_decisions = 0

    def submit(self, index: int, job: CapacityJob, hours: Floats) -> None:
        """Schedule the arrival of `job` at its submission time, which must not be before an event already handled.

        index: the job's number in the log of events. hours: the run times that it really has; planners are shown those
        of `job`.
        """
        self.arrivals.append((index, job, hours))

    def next_event(self) -> float:
        """Return the time in hours of the next event: an arrival, a job's end or a periodic decision; else infinity."""
        times = [active.end for active in self.active.values()]
        if self.arrivals:
            times.append(self.arrivals[0][1].submit)
        if self.settings.periodic and self.active:
            times.append(self.decided + self.settings.interval)
        return min(times, default=math.inf)

    def advance(self, until: float) -> Controller:
        """Handle all events before the time `until` (hours) and return this controller.

        It is returned because an executor may have changed a copy in another process. Raises RuntimeError if the
        planner leaves jobs waiting for ever or after too many decisions, and ValueError for an impossible plan.
        """
        while (now := self.next_event()) < until:
            self._happen(now)
        if until == math.inf and self.active:
            raise RuntimeError(
                f"planner {self.planner.name!r} leaves {len(self.active)} jobs waiting for ever"
            )
        return self

    def remaining(self, now: float) -> list[tuple[CapacityJob, float]]:
        """Return (job, fraction of its work left at time `now`) of each job that runs, waits, or is yet to arrive.

        There must be no event between the last decision and `now`.
        """
        jobs = [(active.job, self._left(active, now)) for active in self.active.values()]
        return [*(one for one in jobs if one[1] > 0.0), *((job, 1.0) for _, job, _ in self.arrivals)]

    def _left(self, active: _Active, now: float) -> float:
        if active.end == math.inf:
            return active.left
        if active.end <= self.decided:  # shorter than the clock can resolve
            return 0.0
        return active.left * max(0.0, active.end - now) / (active.end - self.decided)

    def _happen(self, now: float) -> None:
        passed = now - self.decided
        self.vm_cost += passed * sum(self.catalogue[node.vm_type].cost_per_hour for _, node in self._rented())
        for active in list(self.active.values()):
            active.left = self._left(active, now)
            if active.end <= now + SAME_TIME:
                self._end(active, now)
        self.decided = now
        while self.arrivals and self.arrivals[0][1].submit <= now + SAME_TIME:
            index, job, hours = self.arrivals.popleft()
            self.active[index] = _Active(index, job, hours)
            self._note(now, "submit", job=index)
        self._decide(now)
        for _, vm_type, index, gpus in _placed(self.nodes):
            active = self.active[index]
            active.end = now + active.left * float(active.hours[vm_type, gpus - 1])

    def _end(self, active: _Active, now: float) -> None:
        place, node = next((place, node) for place, node in self._rented() if active.index in node.jobs)
        self._note(now, "end", place, node.vm_type, active.index, node.jobs.pop(active.index))
        del self.active[active.index]
        self.tardiness_cost += active.job.weight * max(0.0, now - active.job.due)

    def _decide(self, now: float) -> None:
        """Ask the planner for a plan, then rent and return nodes and start and stop jobs accordingly."""
        self._count_decision(now)
        kept = [] if self.settings.preemptive else [pair for pair in self._rented() if pair[1].jobs]
        fixed = {index for _, node in kept for index in node.jobs}
        asked = [active for active in self.active.values() if active.index not in fixed]
        free = len(self.nodes) - len(kept)
        wanted: list[_RentedNode] = []
        if asked and free:
            plan = self._plan(asked, free, now)
            wanted = [_with_job_indices(node, asked) for node in plan.nodes]
        after: list[_RentedNode | None] = [None] * len(self.nodes)
        for place, node in kept:
            after[place] = node
        _assign_places(wanted, self.nodes, after)
        self._change(after, now)
        self._check_progress()

    def _count_decision(self, now: float) -> None:
        """Count this decision, even if the planner is not asked; raise RuntimeError above `max_decisions`."""
        self.num_decisions += 1
        if self.num_decisions > self.settings.max_decisions:
            raise RuntimeError(
                f"more than max_decisions = {self.settings.max_decisions} decisions, at {now:g} h"
            )

    def _plan(self, asked: list[_Active], free: int, now: float) -> Plan:
        settings = self.settings
        problem = Problem.of(
            [active.job for active in asked],
            self.catalogue,
            free,
            now,
            [active.left for active in asked],
            interval=settings.interval,
            postponement=settings.postponement,
            idle=settings.idle,
        )
        begin = time.process_time()
        plan = self.planner.plan(problem)
        seconds = time.process_time() - begin
        try:
            _checks.instance(plan, Plan, "plan", ValueError)
            cost = plan_of(problem, plan.nodes).cost.total
        except ValueError as error:
            raise ValueError(f"planner {self.planner.name!r} at {now:g} h: {error}") from None
        counts = (len(self.active), len(plan.nodes), len(plan.postponed), plan.num_variables)
        self.decisions.append((now, self.number, *counts, seconds, cost, plan.gap))
        return plan

    def _change(self, after: list[_RentedNode | None], now: float) -> None:
        """Replace the nodes and their jobs by `after` and log the events.

        Jobs are stopped first, then nodes change, then jobs start, so that GPUs are free before they are used again.
        """
        before, wanted = _placed(self.nodes), _placed(after)
        for place, vm_type, index, gpus in sorted(before - wanted):
            self._note(now, "stop", place, vm_type, index, gpus)
            self.active[index].end = math.inf
        for place, (old, new) in enumerate(zip(self.nodes, after, strict=True)):
            self._replace_node(place, old, new, now)
        self.nodes = after
        for place, vm_type, index, gpus in sorted(wanted - before):
            self._note(now, "start", place, vm_type, index, gpus)

    def _replace_node(self, place: int, old: _RentedNode | None, new: _RentedNode | None, now: float) -> None:
        if old and new and old.vm_type == new.vm_type:
            return
        if old:
            self._note(now, "shutdown", place, old.vm_type)
        if new:
            self._note(now, "boot", place, new.vm_type)

    def _check_progress(self) -> None:
        waits = self.active and not _placed(self.nodes)
        self.idle_decisions = self.idle_decisions + 1 if waits else 0
        if self.idle_decisions > _MAX_IDLE_DECISIONS:
            raise RuntimeError(
                f"planner {self.planner.name!r} ran no job in {_MAX_IDLE_DECISIONS} decisions, the last at "
                f"{self.decided:g} h with {len(self.active)} jobs waiting"
            )

    def _rented(self) -> Iterator[tuple[int, _RentedNode]]:
        return ((place, node) for place, node in enumerate(self.nodes) if node)

    def _note(
        self, now: float, event: str, node: int = -1, vm_type: int = -1, job: int = -1, gpus: int = -1
    ) -> None:
        self.events.append((now, event, self.number, node, vm_type, job, gpus))


def _placed(nodes: list[_RentedNode | None]) -> set[tuple[int, int, int, int]]:
    """Return (node, VM type, job, number of GPUs) of every job that runs on the given nodes."""
    return {
        (place, node.vm_type, index, gpus)
        for place, node in enumerate(nodes)
        if node
        for index, gpus in node.jobs.items()
    }


def _with_job_indices(node: Node, asked: list[_Active]) -> _RentedNode:
    return _RentedNode(node.vm_type, {asked[job].index: gpus for job, gpus in node.jobs})


def _assign_places(
    wanted: list[_RentedNode], before: list[_RentedNode | None], after: list[_RentedNode | None]
) -> None:
    """Give each node of a new plan a position in the list `after`, such that few jobs change their node.

    A node preferably gets the position of a node in `before` of the same VM type that shares most jobs with it.
    """
    pairs = [
        (-len(node.jobs.items() & old.jobs.items()), place, i)
        for place, old in enumerate(before)
        if old and after[place] is None
        for i, node in enumerate(wanted)
        if node.vm_type == old.vm_type
    ]
    settled: set[int] = set()
    for _, place, i in sorted(pairs):
        if after[place] is None and i not in settled:
            after[place] = wanted[i]
            settled.add(i)
    free = (place for place, node in enumerate(after) if node is None)
    for place, node in zip(
        list(free), (node for i, node in enumerate(wanted) if i not in settled), strict=False
    ):
        after[place] = node
