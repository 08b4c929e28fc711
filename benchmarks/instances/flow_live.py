"""A scheduling graph whose tasks arrive and leave, which a scheduler re-solves ten times per second."""

from __future__ import annotations

import statistics
import time
from typing import NamedTuple

import numpy as np

from instances.flow_instances import RACK, Churn, Integers, Workload
from topoplace import kernels

SEED = 7


class Live:
    """The network of a workload, updated with its changes; nodes and arcs keep their numbers."""

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.network = kernels.FlowNetwork()
        nodes = self.network.add_nodes(np.zeros(workload.machines + workload.racks + 2, dtype=np.int64))
        machines, racks = nodes[: workload.machines], nodes[workload.machines : -2]
        self.machines, self.aggregator, self.sink = machines, nodes[-2], nodes[-1]
        above = racks[np.arange(workload.machines) // RACK] if workload.racks else self.aggregator
        self._arcs(machines, self.sink, workload.slots, 0)
        self._arcs(above, machines, workload.slots, workload.machine_cost)
        self._arcs(self.aggregator, racks, workload.slots * RACK, 0)
        self.jobs = self.unscheduled = self.tasks = self.waiting_arcs = np.zeros(0, dtype=np.int32)
        self._arrive(0)

    def change(self, churn: Churn) -> None:
        """Remove the tasks that leave, raise costs of waiting, add the tasks that arrive."""
        before, self.workload = self.workload, churn.after
        self.network.remove_nodes(self.tasks[churn.left])
        self.tasks, self.waiting_arcs = (
            np.delete(ids, churn.left) for ids in (self.tasks, self.waiting_arcs)
        )
        cost = self.workload.waiting_cost[: len(self.tasks)]
        dearer = np.flatnonzero(np.delete(before.waiting_cost, churn.left) != cost)
        self.network.set_cost(self.waiting_arcs[dearer], cost[dearer])
        empty = ~np.isin(self.jobs, self.workload.job)
        self.network.remove_nodes(self.unscheduled[empty])
        self.jobs, self.unscheduled = self.jobs[~empty], self.unscheduled[~empty]
        self._arrive(len(self.tasks))

    def solve(self) -> kernels.FlowSolution:
        return self.network.solve()

    def waiting(self, solution: kernels.FlowSolution) -> Integers:
        """Return the mask of the tasks without a place."""
        return solution.flow[self.waiting_arcs] > 0

    def _arcs(self, tail, head, capacity, cost) -> Integers:
        columns = np.broadcast_arrays(*map(np.atleast_1d, (tail, head, capacity, cost)))
        return self.network.add_arcs(*columns)

    def _arrive(self, first: int) -> None:
        """Add the tasks from position `first` on."""
        work = self.workload
        jobs, job, sizes = np.unique(work.job[first:], return_inverse=True, return_counts=True)
        unscheduled = self.network.add_nodes(np.zeros(len(jobs), dtype=np.int64))
        self._arcs(unscheduled, self.sink, sizes, 0)
        tasks = self.network.add_nodes(np.ones(len(job), dtype=np.int64))
        task, which = np.nonzero(work.preferred[first:] >= 0)
        machine, cost = work.preferred[first:][task, which], work.preferred_cost[first:][task, which]
        self._arcs(tasks[task], self.machines[machine], 1, cost)
        self._arcs(tasks, self.aggregator, 1, work.aggregator_cost[first:])
        waiting = self._arcs(tasks, unscheduled[job], 1, work.waiting_cost[first:])
        self.jobs, self.unscheduled = np.append(self.jobs, jobs), np.append(self.unscheduled, unscheduled)
        self.tasks, self.waiting_arcs = np.append(self.tasks, tasks), np.append(self.waiting_arcs, waiting)
        self.network.set_supply([self.sink], [-len(self.tasks)])


class Rounds(NamedTuple):
    """CPU milliseconds of this thread, one entry per round."""

    change: list[float]
    """Milliseconds to update the network."""
    solve: list[float]
    last: Workload
    cost: int
    """Cost of the last solution."""

    @property
    def milliseconds(self) -> float:
        """Return the median of both times together."""
        return statistics.median(map(sum, zip(self.change, self.solve, strict=True)))


def churned(workload: Workload, rounds: int) -> Rounds:
    """Measure `rounds` changes: 1 % of the tasks leave, as many arrive, waiting costs more; then re-solve."""
    live = Live(workload)
    solution = live.solve()
    change, solve = [], []
    for number in range(rounds):
        churn = live.workload.churn(live.waiting(solution), SEED + number)
        times = [time.thread_time()]
        live.change(churn)
        times.append(time.thread_time())
        solution = live.solve()
        times.append(time.thread_time())
        change.append(1e3 * (times[1] - times[0]))
        solve.append(1e3 * (times[2] - times[1]))
    return Rounds(change, solve, live.workload, solution.cost)
