"""An independent check of a simulation's event log: that every event was possible, and what it cost.

The audit reads only the log and shares no code with the simulation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from topoplace_lab.capacity.online.result import Table
from topoplace_lab.capacity.problem.catalogue import Catalogue
from topoplace_lab.capacity.problem.job import CapacityJob, same_shape

_ROUNDING = 1e-6
"""Tolerance in hours; for a job longer than an hour, as a fraction of its work."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Costs in $, and GPU hours, computed from an event log.

    Args:
        gpu_hours_let: GPU hours of all rented nodes, used or not.
        gpu_hours_used: GPU hours that jobs held.
    """

    vm_cost: float
    tardiness_cost: float
    gpu_hours_let: float
    gpu_hours_used: float


def audit_events(events: Table, jobs: Sequence[CapacityJob], catalogue: Catalogue, num_nodes: int) -> Audit:
    """Check the event log `CapacityResult.events` and return the costs computed from it.

    Raises ValueError if jobs do not fit the catalogue, a job does not end, or a node is not returned, and for the first
    impossible event:
    - a time before that of the event above, an unknown event, job or VM type;
    - a node that is rented twice, or returned while jobs run; more than `num_nodes` nodes at a time;
    - a job that starts before its submission, in two places, where it cannot run, or on more GPUs than are free;
    - a job that ends with more or less than all of its work done.
    """
    same_shape(jobs, catalogue)
    books = _Books(jobs, catalogue, num_nodes)
    for row, event in enumerate(events):
        try:
            books.enter(*event.item())
        except ValueError as error:
            raise ValueError(f"events[{row}]: {error}") from None
    return books.close()


@dataclass(slots=True)
class _AuditedNode:
    since: float
    vm_type: int
    free: int


class _Books:
    def __init__(self, jobs: Sequence[CapacityJob], catalogue: Catalogue, num_nodes: int) -> None:
        self.jobs, self.catalogue, self.num_nodes = jobs, catalogue, num_nodes
        self.clock = -math.inf
        self.rented: dict[tuple[int, int], _AuditedNode] = {}
        self.done: dict[int, float] = {}
        """Fraction of its work done, for each job that was submitted and has not ended."""
        self.running: dict[int, tuple[tuple[int, int], int, float]] = {}
        """(node, number of GPUs, start time) of each running job."""
        self.ended: set[int] = set()
        self.vm_cost = self.tardiness_cost = self.hours_rented = self.hours_used = 0.0

    def enter(
        self, time: float, event: str, controller: int, node: int, vm_type: int, job: int, gpus: int
    ) -> None:
        _need(time >= self.clock, f"time {time:g} is before {self.clock:g}, the time of the row above")
        self.clock = time
        where = (controller, node)
        if event == "submit":
            self._submit(job)
        elif event == "boot":
            self._boot(where, vm_type)
        elif event == "shutdown":
            self._shutdown(where)
        elif event == "start":
            self._start(where, job, gpus)
        elif event in ("stop", "end"):
            self._leave(where, job, gpus, ends=event == "end")
        else:
            raise ValueError(f"event {event!r} is unknown")

    def close(self) -> Audit:
        missing = [job.job_id for i, job in enumerate(self.jobs) if i not in self.ended]
        _need(not missing, f"events: job {missing[:1]} does not end")
        _need(not self.rented, f"events: nodes {list(self.rented)} are not returned")
        return Audit(self.vm_cost, self.tardiness_cost, self.hours_rented, self.hours_used)

    def _submit(self, job: int) -> None:
        _need(0 <= job < len(self.jobs), f"job {job} is unknown: there are {len(self.jobs)}")
        _need(job not in self.done and job not in self.ended, f"job {job} is submitted twice")
        early = self.jobs[job].submit - self.clock
        _need(early <= _ROUNDING, f"job {job} is submitted {early:g} h before its time")
        self.done[job] = 0.0

    def _boot(self, where: tuple[int, int], vm_type: int) -> None:
        _need(where not in self.rented, f"node {where} is already rented")
        known = 0 <= vm_type < len(self.catalogue)
        _need(known, f"VM type {vm_type} is unknown: there are {len(self.catalogue)}")
        self.rented[where] = _AuditedNode(self.clock, vm_type, self.catalogue[vm_type].num_gpus)
        count = len(self.rented)
        _need(count <= self.num_nodes, f"{count} nodes are rented: must be at most {self.num_nodes}")

    def _shutdown(self, where: tuple[int, int]) -> None:
        _need(where in self.rented, f"node {where} is not rented")
        node = self.rented.pop(where)
        kind = self.catalogue[node.vm_type]
        _need(node.free == kind.num_gpus, f"jobs run on node {where}")
        self.vm_cost += kind.cost_per_hour * (self.clock - node.since)
        self.hours_rented += kind.num_gpus * (self.clock - node.since)

    def _start(self, where: tuple[int, int], job: int, gpus: int) -> None:
        _need(job in self.done, f"job {job} is not in the system")
        _need(job not in self.running, f"job {job} is already running")
        _need(where in self.rented, f"node {where} is not rented")
        node = self.rented[where]
        _need(
            1 <= gpus <= node.free, f"{gpus} GPUs on node {where}: must be in 1..{node.free}, the free ones"
        )
        _need(math.isfinite(self.jobs[job].hours[node.vm_type, gpus - 1]), f"job {job} cannot run there")
        node.free -= gpus
        self.running[job] = (where, gpus, self.clock)

    def _leave(self, where: tuple[int, int], job: int, gpus: int, *, ends: bool) -> None:
        _need(job in self.running and self.running[job][:2] == (where, gpus), f"job {job} does not run there")
        spent = self.clock - self.running.pop(job)[2]
        node = self.rented[where]
        node.free += gpus
        self.hours_used += gpus * spent
        hours = float(self.jobs[job].hours[node.vm_type, gpus - 1])
        self.done[job] += spent / hours
        if ends:
            done = self.done.pop(job)
            off = abs(done - 1.0) * min(hours, 1.0)
            _need(off <= _ROUNDING, f"job {job} ends with {done:.6f} of its work done")
            self.ended.add(job)
            self.tardiness_cost += self.jobs[job].weight * max(0.0, self.clock - self.jobs[job].due)


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(what)
