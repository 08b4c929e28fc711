"""One online controller: its nodes, the jobs in its system, and a new decision after each event.

An event is the arrival or the end of a job and, with `periodic`, H hours without a decision. At an event the planner
plans all jobs in the system again, with the fractions left, and its plan takes effect at once. Preempting, moving and
resizing jobs and renting nodes are free; the paper also neglects them (minutes compared with hours).

Without preemption a node stays as it is until all its jobs have ended. The planner then gets only the jobs that have
not started and the free nodes. All times are in hours.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from topoplace import _checks
from topoplace.capacity.problem.catalogue import Catalogue
from topoplace.capacity.problem.job import CapacityJob
from topoplace.capacity.problem.plan import Node, Plan, Planner, plan_of
from topoplace.capacity.problem.problem import Problem

SAME_TIME: Final = 1e-9
"""Tolerance in hours: a job that ends this soon after an event ends with it."""
_MAX_IDLE_DECISIONS: Final = 1000
"""Limit on consecutive decisions after which no job runs."""


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """Options of a controller's decisions. `interval`, `postponement` and `idle` are defined in `Problem`."""

    periodic: bool
    preemptive: bool
    max_decisions: int
    interval: float
    postponement: float
    idle: float


@dataclass(slots=True)
class _Active:
    """A job in the system."""

    index: int
    job: CapacityJob
    left: float = 1.0
    """Fraction left at the time of the last decision."""
    end: float = math.inf
    """Time at which the job ends if nothing changes; infinite while it waits."""


@dataclass(slots=True)
class _RentedNode:
    """A rented node."""

    vm_type: int
    jobs: dict[int, int] = field(default_factory=dict[int, int])
    """GPUs of each job that runs there."""


class Controller:
    """A local controller of `num_nodes` nodes. `advance` moves its clock; between calls it can be pickled."""

    def __init__(
        self, number: int, catalogue: Catalogue, num_nodes: int, planner: Planner, settings: OnlineSettings
    ) -> None:
        self.number = number
        self.catalogue = catalogue
        self.planner = planner
        self.settings = settings
        self.arrivals: deque[tuple[int, CapacityJob]] = deque()
        self.active: dict[int, _Active] = {}
        self.nodes: list[_RentedNode | None] = [None] * num_nodes
        self.decided = 0.0
        """Time of the last decision, hours."""
        self.vm_cost = 0.0
        self.tardiness_cost = 0.0
        self.events: list[tuple[object, ...]] = []
        self.decisions: list[tuple[object, ...]] = []
        self.num_decisions = 0
        self.idle_decisions = 0

    def submit(self, index: int, job: CapacityJob) -> None:
        """Schedule the arrival of `job` at its submission time, which must not precede a handled event."""
        self.arrivals.append((index, job))

    def next_event(self) -> float:
        """Return the time of the next event; infinite if there is none."""
        times = [active.end for active in self.active.values()]
        if self.arrivals:
            times.append(self.arrivals[0][1].submit)
        if self.settings.periodic and self.active:
            times.append(self.decided + self.settings.interval)
        return min(times, default=math.inf)

    def advance(self, until: float) -> Controller:
        """Handle all events before `until`, and return the controller, as executors may work on a copy."""
        while (now := self.next_event()) < until:
            self._happen(now)
        if until == math.inf and self.active:
            raise RuntimeError(
                f"planner {self.planner.name!r} leaves {len(self.active)} jobs waiting for ever"
            )
        return self

    def remaining(self, now: float) -> list[tuple[CapacityJob, float]]:
        """Return (job, fraction left at `now`) of the jobs in the system, submitted jobs included.

        There must be no event between the last decision and `now`.
        """
        jobs = [(active.job, self._left(active, now)) for active in self.active.values()]
        return [*(one for one in jobs if one[1] > 0.0), *((job, 1.0) for _, job in self.arrivals)]

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
            index, job = self.arrivals.popleft()
            self.active[index] = _Active(index, job)
            self._note(now, "submit", job=index)
        self._decide(now)
        for _, vm_type, index, gpus in _placed(self.nodes):
            active = self.active[index]
            active.end = now + active.left * float(active.job.hours[vm_type, gpus - 1])

    def _end(self, active: _Active, now: float) -> None:
        place, node = next((place, node) for place, node in self._rented() if active.index in node.jobs)
        self._note(now, "end", place, node.vm_type, active.index, node.jobs.pop(active.index))
        del self.active[active.index]
        self.tardiness_cost += active.job.weight * max(0.0, now - active.job.due)

    def _decide(self, now: float) -> None:
        """Ask the planner for a plan, and change nodes and jobs accordingly."""
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
        """Count this decision, even if the planner is not asked; RuntimeError above `max_decisions`."""
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
        """Stop jobs, then change nodes, then start jobs. In this order everything always fits."""
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
    """Return (node, VM type, job, GPUs) of all jobs that run."""
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
    """Give each node a place in `after`, if possible one of its type with most of its jobs, so that few jobs move."""
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
