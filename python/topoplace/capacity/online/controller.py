"""One controller on line: its nodes, the jobs in its system, and a decision whenever something happens.

Something happens when jobs arrive or end, and, with `periodic`, when the last decision is H hours old. Then the planner
is asked again over all jobs in the system with the fractions left, and what it says is done at once: preempting, moving
and resizing jobs and letting nodes cost nothing, which the paper neglects, too (minutes beside hours). Not preemptive
means that a node stays as it is until all its jobs have ended: the planner is asked about the jobs that have not begun
and the nodes that are free. All times are hours.
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
"""Hours: what ends within them of an event ends with it."""
_PATIENCE: Final = 1000
"""Decisions in a row after which no job runs."""


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """How decisions are made; the last three are as in `Problem`, which is where the defaults come from."""

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
    """At the time of the last decision."""
    end: float = math.inf
    """When it will, if nothing changes."""


@dataclass(slots=True)
class _RentedNode:
    """A node that is let."""

    vm_type: int
    jobs: dict[int, int] = field(default_factory=dict[int, int])
    """GPUs by job."""


class Controller:
    """A local controller of `num_nodes` nodes, to be moved on in time by `advance`; may be pickled in between."""

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
        """When last."""
        self.vm_cost = 0.0
        self.tardiness_cost = 0.0
        self.events: list[tuple[object, ...]] = []
        self.decisions: list[tuple[object, ...]] = []
        self.num_decisions = 0
        self.idle_decisions = 0

    def submit(self, index: int, job: CapacityJob) -> None:
        """`job` will arrive at the time it says, which must not be before any that was handled."""
        self.arrivals.append((index, job))

    def next_event(self) -> float:
        """When something happens next; infinite for never."""
        times = [active.end for active in self.active.values()]
        if self.arrivals:
            times.append(self.arrivals[0][1].submit)
        if self.settings.periodic and self.active:
            times.append(self.decided + self.settings.interval)
        return min(times, default=math.inf)

    def advance(self, until: float) -> Controller:
        """Handle whatever happens before `until`; itself, for executors that work on copies."""
        while (now := self.next_event()) < until:
            self._happen(now)
        if until == math.inf and self.active:
            raise RuntimeError(
                f"planner {self.planner.name!r} leaves {len(self.active)} jobs waiting for ever"
            )
        return self

    def remaining(self, now: float) -> list[tuple[CapacityJob, float]]:
        """Jobs in the system with the fraction left of each at `now`, where nothing has happened since the last
        decision; those that were submitted and not yet handled are among them."""
        jobs = [(active.job, self._left(active, now)) for active in self.active.values()]
        return [*(one for one in jobs if one[1] > 0.0), *((job, 1.0) for _, job in self.arrivals)]

    def _left(self, active: _Active, now: float) -> float:
        if active.end == math.inf:
            return active.left
        if active.end <= self.decided:  # less than the clock can tell
            return 0.0
        return active.left * max(0.0, active.end - now) / (active.end - self.decided)

    def _happen(self, now: float) -> None:
        passed = now - self.decided
        self.vm_cost += passed * sum(self.catalogue[node.vm_type].cost_per_hour for _, node in self._let())
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
        place, node = next((place, node) for place, node in self._let() if active.index in node.jobs)
        self._note(now, "end", place, node.vm_type, active.index, node.jobs.pop(active.index))
        del self.active[active.index]
        self.tardiness_cost += active.job.weight * max(0.0, now - active.job.due)

    def _decide(self, now: float) -> None:
        """Ask the planner, and change nodes and jobs into what it says."""
        self._count_decision(now)
        kept = [] if self.settings.preemptive else [(place, node) for place, node in self._let() if node.jobs]
        fixed = {index for _, node in kept for index in node.jobs}
        asked = [active for active in self.active.values() if active.index not in fixed]
        free = len(self.nodes) - len(kept)
        wanted: list[_RentedNode] = []
        if asked and free:
            plan = self._plan(asked, free, now)
            wanted = [_named(node, asked) for node in plan.nodes]
        after: list[_RentedNode | None] = [None] * len(self.nodes)
        for place, node in kept:
            after[place] = node
        _settle(wanted, self.nodes, after)
        self._change(after, now)
        self._check_patience()

    def _count_decision(self, now: float) -> None:
        """One more, whether or not there is anything to ask the planner about."""
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
        """Stop what does not go on, change nodes, start the rest: in this order, so that all always fits."""
        before, wanted = _placed(self.nodes), _placed(after)
        for place, vm_type, index, gpus in sorted(before - wanted):
            self._note(now, "stop", place, vm_type, index, gpus)
            self.active[index].end = math.inf
        for place, (old, new) in enumerate(zip(self.nodes, after, strict=True)):
            self._relet(place, old, new, now)
        self.nodes = after
        for place, vm_type, index, gpus in sorted(wanted - before):
            self._note(now, "start", place, vm_type, index, gpus)

    def _relet(self, place: int, old: _RentedNode | None, new: _RentedNode | None, now: float) -> None:
        if old and new and old.vm_type == new.vm_type:
            return
        if old:
            self._note(now, "shutdown", place, old.vm_type)
        if new:
            self._note(now, "boot", place, new.vm_type)

    def _check_patience(self) -> None:
        waits = self.active and not _placed(self.nodes)
        self.idle_decisions = self.idle_decisions + 1 if waits else 0
        if self.idle_decisions > _PATIENCE:
            raise RuntimeError(
                f"planner {self.planner.name!r} let no job run in {_PATIENCE} decisions, the last at "
                f"{self.decided:g} h with {len(self.active)} jobs waiting"
            )

    def _let(self) -> Iterator[tuple[int, _RentedNode]]:
        return ((place, node) for place, node in enumerate(self.nodes) if node)

    def _note(
        self, now: float, event: str, node: int = -1, vm_type: int = -1, job: int = -1, gpus: int = -1
    ) -> None:
        self.events.append((now, event, self.number, node, vm_type, job, gpus))


def _placed(nodes: list[_RentedNode | None]) -> set[tuple[int, int, int, int]]:
    """(node, VM type, job, GPUs) of all jobs that run."""
    return {
        (place, node.vm_type, index, gpus)
        for place, node in enumerate(nodes)
        if node
        for index, gpus in node.jobs.items()
    }


def _named(node: Node, asked: list[_Active]) -> _RentedNode:
    return _RentedNode(node.vm_type, {asked[job].index: gpus for job, gpus in node.jobs})


def _settle(
    wanted: list[_RentedNode], before: list[_RentedNode | None], after: list[_RentedNode | None]
) -> None:
    """Give each node a place in `after`: one of its type with most of its jobs, so that few have to move."""
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
