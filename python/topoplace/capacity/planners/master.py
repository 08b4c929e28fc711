"""The columns there are, as HiGHS has them: one per node that could be let."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace.capacity.planners.highs_model import highs, run
from topoplace.capacity.planners.native_tables import NativeNode, from_native

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.capacity.problem.plan import Node
    from topoplace.capacity.problem.problem import Floats, Problem

Limits = tuple[tuple[int, int], ...]
"""Of each type, how many nodes are let: at least, at most."""
_WHOLE = 1e-6


class Duals(NamedTuple):
    """Of the relaxation: each job's price, never above 0; a node's; and what a limit adds to it, by type."""

    jobs: Floats
    node: float
    types: Floats


class Master:
    """The relaxation and the choice of whole columns. Rows: a job at most once, the nodes, the nodes of each type."""

    def __init__(self, problem: Problem, nodes: Sequence[tuple[float, NativeNode]], dear: float) -> None:
        """nodes: (cost, node) to begin with, a plan. dear: above the cost of any plan, for a node that there is not."""
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
        """How many there are."""
        return len(self._columns)

    def add(self, nodes: list[tuple[float, NativeNode]]) -> bool:
        """Add (cost, node) that are new; whether any is."""
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
        """Allow so many nodes of each type from now on."""
        for vm_type, (low, high) in enumerate(limits):
            self._solver.changeRowBounds(self._jobs + 1 + vm_type, low, high)

    def prices(self) -> Duals:
        """Of the relaxation with the columns there are."""
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual)
        count = self._jobs
        return Duals(np.minimum(duals[:count], 0.0), float(duals[count]), duals[count + 1 :])

    def split(self) -> tuple[int, int] | None:
        """A type of which the relaxation last solved lets no whole number of nodes, and that number cut; or None."""
        counts = np.array(self._solver.getSolution().row_value)[self._jobs + 1 :]
        vm_type = int(np.argmax(np.abs(counts - np.round(counts))))
        count = float(counts[vm_type])
        return None if abs(count - round(count)) <= _WHOLE else (vm_type, math.floor(count))

    def choose(self, seconds: float) -> tuple[list[Node], float] | None:
        """The best whole choice found in so many seconds, and what no choice costs less than; None for none."""
        import highspy

        solver, count = self._solver, len(self._columns)
        kinds = np.full(count, highspy.HighsVarType.kInteger)
        solver.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)
        solver.setOptionValue("time_limit", seconds)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solution = run(solver)
        if solution.values is None:
            return None
        chosen = [self._columns[i] for i in np.flatnonzero(solution.values > 0.5).tolist()]
        return (from_native(chosen), solution.bound) if all(jobs for _, jobs in chosen) else None
