"""A planner with an objective of our own, which looks beyond the first job that ends.

(P1a) charges a node until its first job ends only, and (P1n) lets as many nodes as there are jobs: what it leaves on a
cheap and slow node for weeks costs nothing by the model, and much in the end. Here every job is charged its tardiness
and, until its own end, the share of its node's price that its GPUs have of the node's; every GPU that is let and not
used costs `idle`; and no node is let that does not pay. A job that waits costs its penalty (P1i), what it will cost at
least when it runs, and twice the idle GPUs of the largest node, so that none waits while a node is free.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks, _core
from topoplace.capacity.planners.local_search import SearchPlanner, found_by
from topoplace.capacity.planners.native_tables import from_native
from topoplace.capacity.problem.plan import Plan, plan_of
from topoplace.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Floats

_TOLD_APART = 1e-6
"""Of the cost of a job: less is lost in the rounding where it costs a great deal, and then it might wait for ever."""


class SharePlanner:
    """Native search for the cheapest shares of nodes; its plans are to be compared by what they cost online.

    idle: $ per GPU that is let and not used, in place of the problem's μ. rounds, seed, timeout: as for
    `SearchPlanner`. The cost and bound (0) of its plans are still by (P1a), which is not what it minimises.
    """

    name = "shares"

    def __init__(
        self, *, idle: float = 1.0, rounds: int | None = None, seed: int = 0, timeout: float | None = None
    ) -> None:
        self.idle = _checks.positive(idle, "idle", ValueError, high=1e9)
        self.search = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)

    def plan(self, problem: Problem) -> Plan:
        """The best plan found; it may let fewer nodes than there are."""
        _checks.instance(problem, Problem, "problem", ValueError)
        found = found_by(self.search, self._tables(problem), problem)
        let = [node for node in from_native(found.nodes) if node.vm_type < len(problem.catalogue)]
        return plan_of(problem, let, status=found.status)

    def _tables(self, problem: Problem) -> _core.CapacityTables:
        """With one more type, for nodes that are not let: each has a job of its own that runs nowhere else."""
        jobs, types, most = problem.hours.shape
        not_let = problem.used_nodes
        run = np.full((jobs + not_let, types + 1, most), math.inf)
        run[:jobs, :types] = self._shares(problem) - self.idle * np.arange(1, most + 1)
        run[jobs:, types, 0] = 0.0
        wait = np.zeros(jobs + not_let)
        least = run[:jobs].min(axis=(1, 2), initial=math.inf)
        wait[:jobs] = problem.waiting + least + np.maximum(self.idle * 2 * most, _TOLD_APART * abs(least))
        return _core.CapacityTables(
            np.append(problem.num_gpus, 1).astype(np.int32),
            np.append(self.idle * problem.num_gpus, 0.0),
            run,
            np.where(np.isfinite(run), 0.0, math.inf),
            wait,
        )

    def _shares(self, problem: Problem) -> Floats:
        """(jobs, types, most GPUs) $ for a job to its end."""
        most: int = problem.hours.shape[2]
        part: Floats = np.arange(1.0, most + 1) / problem.num_gpus[:, None]
        return problem.tardiness + problem.deployment * part
