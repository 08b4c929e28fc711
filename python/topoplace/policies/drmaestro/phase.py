"""One phase of DRMaestro as a flow network (thesis, fig. 22), and what its minimum says. Arrays in, arrays out.

    sub-task ──▶ the places it prefers ──┐
        │ ──▶ aggregator X of its kind ──▶ place ──▶ sink
        └───▶ unscheduled U of its job ─────────────▶ sink

A sub-task is what one phase places at once: a process with its CPUs and memory, a GPU, or a drive. A place is where it
can go. Every sub-task ships one unit, so whatever the costs are, a minimum exists in which each is in one place or
waits. Sub-tasks of one kind cost the same on every place but those they prefer; X stands for all of these arcs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import kernels

Ints = NDArray[np.int64]
SCALE: Final = 1 << 20
"""What a cost of 1.0 is for the kernel, which counts in whole numbers; costs are rounded to the nearest."""
WAITS: Final = -1
"""The place of a sub-task that stays unscheduled."""


@dataclass(frozen=True, slots=True)
class Phase:
    """The sub-tasks of a phase and where they can go; costs in units of 1 / SCALE."""

    job: Ints
    """(t,) the job of each sub-task, 0..g - 1."""
    kind: Ints
    """(t,) its aggregator, 0..k - 1."""
    aggregated: Ints
    """(t,) what it costs to take a place through the aggregator, besides the aggregator's own arcs."""
    unscheduled: Ints
    """(g,) what every waiting sub-task of a job costs (eq. 13)."""
    room: Ints
    """(p,) how many sub-tasks a place takes."""
    preferred: tuple[Ints, Ints, Ints]
    """Sub-task, place and cost (eq. 12) of each preference arc."""
    offered: tuple[Ints, Ints, Ints, Ints]
    """Kind, place, capacity and cost of each arc of an aggregator."""

    def network(self) -> tuple[int, Ints, Ints, Ints, Ints, Ints]:
        """Number of nodes, and of each arc tail, head, capacity and cost, and the supply of each node.

        Nodes: sub-tasks, U of each job, X of each kind, places, the sink. Arcs: preferences, to X, to U, from X, from
        U to the sink, from places to the sink.
        """
        tasks, jobs, places = len(self.job), len(self.unscheduled), len(self.room)
        kinds = int(self.kind.max(initial=-1)) + 1
        first_x, first_place, sink = tasks + jobs, tasks + jobs + kinds, tasks + jobs + kinds + places
        numbers = np.arange(tasks)
        task, place, cost = self.preferred
        x, offered_place, capacity, offered_cost = self.offered
        ones = np.ones(len(task) + 2 * tasks, dtype=np.int64)
        tail = [task, numbers, numbers, first_x + x, np.arange(tasks, first_x), np.arange(first_place, sink)]
        head = [
            *(first_place + place, first_x + self.kind, tasks + self.job, first_place + offered_place),
            np.full(jobs + places, sink),
        ]
        waiting = np.bincount(self.job, minlength=jobs)
        free_of_cost = np.zeros(jobs + places, dtype=np.int64)
        costs = [cost, self.aggregated, self.unscheduled[self.job], offered_cost, free_of_cost]
        supply = np.zeros(sink + 1, dtype=np.int64)
        supply[:tasks], supply[sink] = 1, -tasks
        capacities = [ones, capacity, waiting, self.room]
        return sink + 1, _joined(tail), _joined(head), _joined(capacities), _joined(costs), supply

    def places(self, flow: Ints) -> Ints:
        """(t,) the place of each sub-task in a flow on `network()`, or WAITS.

        Units that pass an aggregator are alike: its sub-tasks take its places in ascending order.
        """
        tasks, (task, place, _) = len(self.job), self.preferred
        found = np.full(tasks, WAITS, dtype=np.int64)
        direct, by_x = flow[: len(task)] > 0, flow[len(task) : len(task) + tasks] > 0
        found[task[direct]] = place[direct]
        first = len(task) + 2 * tasks
        kind, offered = self.offered[0], self.offered[1]
        units = np.repeat(np.arange(len(kind)), flow[first : first + len(kind)])
        units = units[np.lexsort((offered[units], kind[units]))]
        takers = np.flatnonzero(by_x)
        takers = takers[np.argsort(self.kind[takers], kind="stable")]
        found[takers] = offered[units]
        return found

    def solve(self) -> Ints:
        """(t,) the place of each sub-task, or WAITS, at the least total cost."""
        if not len(self.job):
            return np.empty(0, dtype=np.int64)
        solution = kernels.min_cost_flow(*self.network())
        if solution.status != "optimal":  # every sub-task may wait, so there is always a flow
            raise RuntimeError(f"a phase of {len(self.job)} sub-tasks has no optimum: {solution.status}")
        return self.places(solution.flow)


def _joined(parts: Sequence[NDArray[np.signedinteger[Any]]]) -> Ints:
    return np.concatenate(parts).astype(np.int64)
