"""The mixed-integer program (P2) of Filippini et al. as printed: constraints (P1b) to (P1r) and (P2b) to (P2g)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from topoplace_lab.capacity.planners.highs_model import Ints, Model
from topoplace_lab.capacity.planners.run_options import RunOptions

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.plan import Node
    from topoplace_lab.capacity.problem.problem import Floats, Problem


class PaperModel:
    """The paper's mixed-integer program (P2) of one planning problem; attributes are variables with the paper's names.

    x[n, w] = 1 if node n runs option w, which is a job with a VM type and a number of GPUs. The printed objective also
    counts tardiness that jobs already have (see `Problem`); `model.offset` subtracts it. deadline: as in `Model`.
    """

    def __init__(self, problem: Problem, deadline: float = math.inf) -> None:
        self.problem = problem
        self.model = model = Model(deadline)
        self.ways = ways = RunOptions.of(problem)
        jobs, nodes, types = problem.num_jobs, problem.num_nodes, len(problem.catalogue)
        self.x = model.add_columns((nodes, len(ways)), -problem.idle * ways.gpus, binary=True)
        self.y = model.add_columns((nodes, types), problem.idle * problem.num_gpus, binary=True)
        self.z = model.add_columns((nodes, jobs), binary=True)
        self.w = model.add_columns((nodes,), binary=True)
        self.alpha = model.add_columns((nodes, jobs), binary=True)
        self.pi = model.add_columns((nodes, jobs), binary=False)
        self.tau = model.add_columns((jobs,), problem.weight, binary=False)
        self.tau_hat = model.add_columns((jobs,), problem.postponement * problem.weight, binary=False)
        self.xi = model.add_columns((nodes,), 1.0, binary=False)
        self.gamma = model.add_columns((nodes, jobs), binary=False)
        late = float((problem.weight * np.maximum(-problem.due, 0.0)).sum())
        model.offset = -(1 + problem.postponement) * late
        for n in range(nodes):
            self._types(n)
            self._jobs(n)
            self._costs(n)
        self._due_dates()
        self._totals()

    def nodes(self, values: Floats) -> list[Node]:
        """Return the rented nodes and their jobs that the values of all variables stand for."""
        return self.ways.nodes(values[self.x] > 0.5)

    def _types(self, n: int) -> None:
        """Add node n's constraints: one VM type if it is rented, options of this type only, and enough GPUs.

        In the paper these are (P1b), (P1c) and (P1g).
        """
        model, ways, y = self.model, self.ways, self.y[n]
        one = model.add_rows(1, at_least=0.0, at_most=0.0)
        model.add(one, y)
        model.add(one, self.w[n], -1.0)
        self._less(self.x[n], y[ways.vm_type])
        room = model.add_rows(len(y), at_most=self.problem.num_gpus)
        model.add(room[ways.vm_type], self.x[n], ways.gpus)

    def _jobs(self, n: int) -> None:
        """Add node n's constraints: an option only for jobs assigned to the node, and one of them as the first to end.

        In the paper these are (P1d), (P1e), (P1k) and (P1l).
        """
        model, ways = self.model, self.ways
        self._less(self.x[n], self.z[n][ways.job])
        once = model.add_rows(self.problem.num_jobs, at_most=0.0)
        model.add(once[ways.job], self.x[n])
        model.add(once, self.w[n], -1.0)
        first = model.add_rows(1, at_least=0.0, at_most=0.0)
        model.add(first, self.alpha[n])
        model.add(first, self.w[n], -1.0)
        self._less(self.alpha[n], self.z[n])

    def _costs(self, n: int) -> None:
        """Add node n's constraints on its price: that of the node until its first job ends, linearised with big-M.

        In the paper these are (P1j) and (P2b) to (P2e).
        """
        model, ways, jobs = self.model, self.ways, self.problem.num_jobs
        dearest = np.zeros(jobs)
        np.maximum.at(dearest, ways.job, ways.deployment)
        cost = model.add_rows(jobs, at_most=0.0)
        model.add(cost[ways.job], self.x[n], ways.deployment)
        model.add(cost, self.pi[n], -1.0)
        total = model.add_rows(1, at_most=0.0)
        model.add(total, self.gamma[n])
        model.add(total, self.xi[n], -1.0)
        self._less(self.gamma[n], self.pi[n])
        self._less(self.gamma[n], self.alpha[n], dearest)
        least = model.add_rows(jobs, at_most=dearest)
        model.add(least, self.pi[n])
        model.add(least, self.alpha[n], dearest)
        model.add(least, self.gamma[n], -1.0)

    def _due_dates(self) -> None:
        """Add the constraints that define the tardiness of running jobs and the worst-case tardiness of waiting jobs.

        In the paper these are (P1h) and (P1i).
        """
        model, ways, problem = self.model, self.ways, self.problem
        tardy = model.add_rows(problem.num_jobs, at_most=problem.due)
        model.add(tardy[ways.job], self.x, ways.hours)
        model.add(tardy, self.tau, -1.0)
        longest = np.zeros(problem.num_jobs)
        np.maximum.at(longest, ways.job, ways.hours)
        worst = problem.interval + longest
        postponed = model.add_rows(problem.num_jobs, at_most=problem.due - worst)
        model.add(postponed, self.z, -worst)
        model.add(postponed, self.tau_hat, -1.0)

    def _totals(self) -> None:
        """Add the constraints that assigned jobs run, a job has at most one node, and `used_nodes` nodes are rented.

        In the paper these are (P1f), (P1m) and (P1n).
        """
        model, problem = self.model, self.problem
        runs = model.add_rows(problem.num_jobs, at_least=0.0, at_most=0.0)
        model.add(runs[self.ways.job], self.x)
        model.add(runs, self.z, -1.0)
        once = model.add_rows(problem.num_jobs, at_most=1.0)
        model.add(once, self.z)
        used = model.add_rows(1, at_least=problem.used_nodes, at_most=problem.used_nodes)
        model.add(used, self.w)

    def _less(self, left: Ints, right: Ints, factor: Floats | float = 1.0) -> None:
        """Add a constraint left ≤ factor * right for each pair of variables (column numbers) in `left` and `right`."""
        rows = self.model.add_rows(len(left), at_most=0.0)
        self.model.add(rows, left)
        self.model.add(rows, right, -np.asarray(factor))
