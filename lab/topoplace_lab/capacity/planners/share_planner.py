"""A planner with an objective of our own: every job pays for its GPUs until its own end.

The paper's objective (P1a) charges a node (VM) only until its first job ends, and its (P1n) rents as many nodes as
there are jobs. A job left on a cheap, slow node for weeks is then free in the model but expensive in the end.

Here a job costs its tardiness and, until its own end, its GPUs' fraction of the node's price. Every rented but unused
GPU costs `idle`. A node is rented only if that lowers the total cost. A waiting job costs the paper's penalty (P1i),
and more than its cheapest run on its own node. No job therefore waits while a node is free.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks, _core
from topoplace_lab.capacity.planners.local_search import SearchPlanner, found_by
from topoplace_lab.capacity.planners.native_tables import from_native
from topoplace_lab.capacity.problem.plan import Plan, plan_of
from topoplace_lab.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Floats

_WAIT_MARGIN = 1e-6
"""Relative margin by which waiting costs more than running, despite rounding; without it, a job might never start."""


class SharePlanner:
    """A planner by C++ search in which every job pays for its GPUs until its own end, plus its tardiness.

    The `cost` of a plan is still that of the paper (P1a), which this planner does not minimise, and its `bound` is 0.
    Compare plans by the cost of whole simulations instead.

    Args:
        idle: See `Problem`, which has its own value for other planners.
        rounds: See `SearchPlanner`.
        seed: See `SearchPlanner`.
        timeout: See `SearchPlanner`.
    """

    name = "shares"

    def __init__(
        self, *, idle: float = 1.0, rounds: int | None = None, seed: int = 0, timeout: float | None = None
    ) -> None:
        self.idle = _checks.positive(idle, "idle", ValueError, high=1e9)
        self.search = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)

    def plan(self, problem: Problem) -> Plan:
        """Return the best plan found by our own objective; it may rent fewer nodes than the paper requires."""
        _checks.instance(problem, Problem, "problem", ValueError)
        found = found_by(self.search, self._tables(problem), problem)
        rented = [node for node in from_native(found.nodes) if node.vm_type < len(problem.catalogue)]
        return plan_of(problem, rented, status=found.status)

    def _tables(self, problem: Problem) -> _core.CapacityTables:
        """Return the cost tables for the C++ search, with one more VM type that stands for not renting a node.

        Each node that is not rented runs a dummy job of cost 0.
        """
        jobs, types, most = problem.hours.shape
        not_rented = problem.used_nodes
        run = np.full((jobs + not_rented, types + 1, most), math.inf)
        run[:jobs, :types] = self._shares(problem) - self.idle * np.arange(1, most + 1)
        run[jobs:, types, 0] = 0.0
        wait = np.zeros(jobs + not_rented)
        least = run[:jobs].min(axis=(1, 2), initial=math.inf)
        wait[:jobs] = problem.waiting + least + np.maximum(self.idle * 2 * most, _WAIT_MARGIN * abs(least))
        return _core.CapacityTables(
            np.append(problem.num_gpus, 1).astype(np.int32),
            np.append(self.idle * problem.num_gpus, 0.0),
            run,
            np.where(np.isfinite(run), 0.0, math.inf),
            wait,
        )

    def _shares(self, problem: Problem) -> Floats:
        """Return each job's cost in $ until its own end, (jobs, types, max GPUs): tardiness, and price of its GPUs."""
        most: int = problem.hours.shape[2]
        part: Floats = np.arange(1.0, most + 1) / problem.num_gpus[:, None]
        return problem.tardiness + problem.deployment * part
