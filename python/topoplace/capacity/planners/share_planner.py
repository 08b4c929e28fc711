"""A planner with our own objective, which looks beyond the first job that ends.

(P1a) charges a node only until its first job ends, and (P1n) rents as many nodes as there are jobs. A job left on a
cheap, slow node for weeks is then free in the model but expensive in the end.

Here every job is charged its tardiness and, until its own end, its GPUs' share of the node's price. Every rented but
unused GPU costs `idle`, and only nodes that pay are rented. A waiting job costs its penalty (P1i), its least cost once
it runs, and twice the idle cost of the largest node's GPUs. So no job waits while a node is free.
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

_WAIT_MARGIN = 1e-6
"""Relative margin by which waiting costs more than running despite rounding; without it a job might wait for ever."""


class SharePlanner:
    """Plan by native search for the cheapest shares of nodes; compare its plans by their cost online.

    idle: $ per rented but unused GPU, instead of the problem's μ. rounds, seed, timeout: as for `SearchPlanner`. The
    cost of its plans is still computed by (P1a), which it does not minimise, and their bound is 0.
    """

    name = "shares"

    def __init__(
        self, *, idle: float = 1.0, rounds: int | None = None, seed: int = 0, timeout: float | None = None
    ) -> None:
        self.idle = _checks.positive(idle, "idle", ValueError, high=1e9)
        self.search = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)

    def plan(self, problem: Problem) -> Plan:
        """Return the best plan found; it may rent fewer than `num_nodes` nodes."""
        _checks.instance(problem, Problem, "problem", ValueError)
        found = found_by(self.search, self._tables(problem), problem)
        rented = [node for node in from_native(found.nodes) if node.vm_type < len(problem.catalogue)]
        return plan_of(problem, rented, status=found.status)

    def _tables(self, problem: Problem) -> _core.CapacityTables:
        """Build cost tables with one more VM type for nodes that are not rented; each runs a dummy job of its own."""
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
        """Return the cost in $ of running each job to its end, (jobs, types, max GPUs)."""
        most: int = problem.hours.shape[2]
        part: Floats = np.arange(1.0, most + 1) / problem.num_gpus[:, None]
        return problem.tardiness + problem.deployment * part
