"""The tightest model: a column for each node that could be let, with its type and jobs, made as they are needed.

As many columns are chosen as there are nodes, at most one of them with any job. Equal nodes are one column, so there is
no symmetry left, and the relaxation, solved by column generation (Gilmore and Gomory, 1961), is close to the best plan.
Its dual prices bound every plan from below: the prices of all jobs, and the best node's reduced cost once per node.

Where plans are further from it than asked for, the search goes on for longer, and the columns there are combine to a
plan. Then all columns are listed that a better plan could have - the reduced cost of none is above that of the best
node by more than plan and bound differ - and the best choice of them is the optimum. Where they are too many, as with
jobs that may as well wait, the compact model has to prove it.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _core
from topoplace.capacity.model import highs, run, solve
from topoplace.capacity.plan import Plan, plan_of
from topoplace.capacity.search import SearchPlanner, search
from topoplace.capacity.tables import NativeNode, from_native, tables_of, to_native
from topoplace.capacity.tight import TightModel

if TYPE_CHECKING:
    from topoplace.capacity.plan import Node
    from topoplace.capacity.problem import Floats, Problem

_ROUNDING = 1e-9
_MOST_LISTED = 20_000


class ColumnGeneration:
    """One problem under solution. `best` is always a plan with a valid bound."""

    def __init__(self, problem: Problem, gap: float, timeout: float, seed: int) -> None:
        self.problem = problem
        self.gap = gap
        self._seed = seed
        self._deadline = time.monotonic() + timeout
        self._tables = tables_of(problem)
        first = SearchPlanner(seed=seed, timeout=None if timeout == math.inf else timeout)
        self.best = search(problem, self._tables, first)
        self._waiting = float(problem.waiting.sum())
        self._prices: Floats = np.zeros(problem.num_jobs)

    def solve(self) -> Plan:
        """To the gap, or until time is up."""
        for improve in (self._relax, self._search_on, self._choose, self._list, self._compact):
            if self._done() or self._late():
                break
            improve()
        return replace(self.best, status="optimal" if self._done() else "timeout")

    def _done(self) -> bool:
        return self.best.gap <= max(self.gap, _ROUNDING)

    def _late(self) -> bool:
        return self._left() <= 0

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _relax(self) -> None:
        """Solve the relaxation, as far as the gap needs."""
        self._master = _Master(self.problem, to_native(self.best.nodes), self._cost)
        while not self._done() and not self._late():
            duals, per_node = self._master.prices()
            found = _core.price_nodes(self._tables, duals)
            self._bound(duals, min(reduced for _, reduced, _, _ in found))
            useful = [
                (cost, (vm_type, jobs))
                for cost, reduced, vm_type, jobs in found
                if reduced < per_node - _ROUNDING * (1 + abs(per_node))
            ]
            if not self._master.add(useful):
                break

    def _bound(self, prices: Floats, reduced: float) -> None:
        """Note the bound of these prices, where the best node has this reduced cost."""
        bound = self._waiting + float(prices.sum()) + self.problem.used_nodes * reduced
        if bound > self.best.bound or not self._prices.any():
            self._prices, self._least = prices, reduced
            self._tightest = bound
        self.best = self.best.with_bound(bound)

    def _search_on(self) -> None:
        """A search twenty times as long, for plans."""
        timeout = None if self._deadline == math.inf else self._left()
        rounds = 1000 * self.problem.used_nodes
        longer = SearchPlanner(rounds=rounds, seed=self._seed, timeout=timeout)
        plan = search(self.problem, self._tables, longer, self.best.nodes)
        self._keep(plan)
        self._master.add([(self._cost(node), node) for node in to_native(plan.nodes)])

    def _choose(self) -> None:
        """The best plan from the columns there are."""
        self._offer(self._master.choose(self._left()))

    def _list(self) -> None:
        """The best plan from all the columns that it could have, which proves it."""
        slack = max(self.best.cost.total * (1 + _ROUNDING) - self._tightest, 0.0)
        listed = _core.list_nodes(
            self._tables, self._prices, self._least + slack, _MOST_LISTED, min(self._left(), 1e9)
        )
        if listed is None:
            return
        self._master.add([(cost, (vm_type, jobs)) for cost, _, vm_type, jobs in listed])
        proven = self._offer(self._master.choose(self._left()))
        if proven is not None:
            self.best = self.best.with_bound(self._waiting + proven)

    def _compact(self) -> None:
        """The compact model, from the best plan."""
        compact = TightModel(self.problem)
        solution = solve(compact.model, self.gap, self._left(), compact.values(self.best.nodes))
        if solution.values is not None:
            self._keep(plan_of(self.problem, compact.nodes(solution.values)))
        self.best = replace(self.best.with_bound(solution.bound), num_variables=compact.model.num_columns)

    def _offer(self, chosen: tuple[list[Node], float] | None) -> float | None:
        """Keep nodes that make a better plan; gives back the bound."""
        if chosen is None:
            return None
        nodes, bound = chosen
        self._keep(plan_of(self.problem, nodes))
        self.best = replace(self.best, num_variables=self._master.num_columns)
        return bound

    def _keep(self, plan: Plan) -> None:
        """Take a plan that is better."""
        if plan.cost.total < self.best.cost.total:
            self.best = plan.with_bound(self.best.bound)

    def _cost(self, node: NativeNode) -> float:
        """What a node adds to the cost of all jobs waiting."""
        plan = plan_of(self.problem, from_native([node]))
        return plan.cost.total - self._waiting


class _Master:
    """The columns there are, in HiGHS."""

    def __init__(self, problem: Problem, nodes: list[NativeNode], cost: Any) -> None:
        self._jobs = problem.num_jobs
        self._solver = highs()
        self._columns: list[NativeNode] = []
        self._known: set[tuple[int, tuple[tuple[int, int], ...]]] = set()
        empty = np.array([], dtype=np.int32), np.array([])
        for _ in range(problem.num_jobs):
            self._solver.addRow(-math.inf, 1.0, 0, *empty)
        self._solver.addRow(problem.used_nodes, problem.used_nodes, 0, *empty)
        self.add([(cost(node), node) for node in nodes])

    @property
    def num_columns(self) -> int:
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
        rows = [[*(job for job, _ in jobs), self._jobs] for _, (_, jobs) in new]
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

    def prices(self) -> tuple[Floats, float]:
        """Of each job, never above 0, and of a node."""
        self._solver.run()
        duals = np.array(self._solver.getSolution().row_dual)
        return np.minimum(duals[: self._jobs], 0.0), float(duals[self._jobs])

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
        chosen = np.flatnonzero(solution.values > 0.5).tolist()
        return from_native(self._columns[i] for i in chosen), solution.bound
