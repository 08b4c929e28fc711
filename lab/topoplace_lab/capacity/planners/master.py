"""The master problem of column generation in HiGHS; a column is a rented node (VM) with its VM type and its jobs."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace_lab.capacity.planners.highs_model import highs, run
from topoplace_lab.capacity.planners.native_tables import NativeNode, from_native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace_lab.capacity.problem.plan import Node
    from topoplace_lab.capacity.problem.problem import Floats, Problem

Limits = tuple[tuple[int, int], ...]
"""For each VM type, the least and the largest number of rented nodes."""
_WHOLE = 1e-6


class Duals(NamedTuple):
    """Dual prices of the linear relaxation's constraints.

    jobs: each job runs at most once (at most 0). node: the number of rented nodes. types: the number of nodes of each
    VM type.
    """

    jobs: Floats
    node: float
    types: Floats


class Master:
    """The master problem: choose columns, which are nodes (VMs) with their jobs, of least total cost.

    It is solved as a linear relaxation for dual prices, or in integers for a plan. Rows (constraints): each job runs at
    most once; the number of nodes is `used_nodes`; the number of nodes of each VM type is within limits.
    """

    def __init__(self, problem: Problem, nodes: Sequence[tuple[float, NativeNode]], dear: float) -> None:
        """Create the problem with the columns of a plan, given as (cost, node) pairs.

        dear: a cost above that of any plan, for dummy nodes without jobs that keep the relaxation feasible.
        """
        self._jobs, self._types = problem.num_jobs, len(problem.catalogue)
        self._solver = highs()
        self._columns: list[NativeNode] = []
        self._known: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
        empty = np.array([], dtype=np.int32), np.array([])
        for _ in range(self._jobs):
            self._solver.addRow(-math.inf, 1.0, 0, *empty)
        for low in (problem.used_nodes, *[0] * self._types):
            self._solver.addRow(low, problem.used_nodes, 0, *empty)
        self.add([*nodes, *((dear, (vm_type, [])) for vm_type in range(self._types))])

    @property
    def num_columns(self) -> int:
        """Return the number of columns (nodes to choose from) added so far."""
        return len(self._columns)

    def add(self, nodes: list[tuple[float, NativeNode]]) -> bool:
        """Add columns given as (cost, node) pairs, except known ones; return True if any was new."""
        new: list[tuple[float, NativeNode]] = []
        for cost, (vm_type, jobs) in nodes:
            key = vm_type, tuple(jobs)
            if key not in self._known:
                self._known.add(key)
                new.append((cost, (vm_type, jobs)))
        if new:
            self._add_to_solver(new)
        return bool(new)

    def _add_to_solver(self, new: list[tuple[float, NativeNode]]) -> None:
        rows = [
            [*(job for job, _ in jobs), self._jobs, self._jobs + 1 + vm_type] for _, (vm_type, jobs) in new
        ]
        starts = np.cumsum([0, *map(len, rows)])
        self._solver.addCols(
            len(new),
            np.array([cost for cost, _ in new]),
            np.zeros(len(new)),
            np.full(len(new), math.inf),
            int(starts[-1]),
            starts[:-1].astype(np.int32),
            np.concatenate(rows).astype(np.int32),
            np.ones(int(starts[-1])),
        )
        self._columns += [node for _, node in new]

    def limit(self, limits: Limits) -> None:
        """Set the smallest and largest number of nodes of each VM type, replacing earlier limits."""
        for vm_type, (low, high) in enumerate(limits):
            self._solver.changeRowBounds(self._jobs + 1 + vm_type, low, high)

    def prices(self) -> Duals:
        """Solve the linear relaxation with the current columns and limits, and return its dual prices."""
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual)
        count = self._jobs
        return Duals(np.minimum(duals[:count], 0.0), float(duals[count]), duals[count + 1 :])

    def split(self) -> tuple[int, int] | None:
        """Return the VM type to branch on, and its number of nodes in the last relaxation, rounded down.

        It is the type whose number of nodes is furthest from an integer; None if all numbers are integers.
        """
        counts = np.array(self._solver.getSolution().row_value)[self._jobs + 1 :]
        vm_type = int(np.argmax(np.abs(counts - np.round(counts))))
        count = float(counts[vm_type])
        return None if abs(count - round(count)) <= _WHOLE else (vm_type, math.floor(count))

    def choose(self, deadline: float) -> tuple[list[Node], float] | None:
        """Solve the master problem in integers; return the nodes of the cheapest plan found, and a lower bound.

        deadline: value of `time.monotonic()`, after which the master problem must not be used again. The bound holds
        for plans of the known columns, relative to the cost of all jobs waiting. Returns None if no plan was found.
        """
        import highspy

        solver, count = self._solver, len(self._columns)
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
        solver.setOptionValue("time_limit", max(deadline - time.monotonic(), 0.0))
        solver.setOptionValue("mip_rel_gap", 0.0)
        solution = run(solver, deadline)
        if solution.values is None:
            return None
        chosen = [self._columns[i] for i in np.flatnonzero(solution.values > 0.5).tolist()]
        return (from_native(chosen), solution.bound) if all(jobs for _, jobs in chosen) else None
