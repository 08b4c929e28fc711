"""Column generation for the planning problem: a column is a rented node (VM) with its VM type and its jobs.

A plan chooses `used_nodes` columns, with each job in at most one of them. Equal nodes are the same column, so there is
no symmetry. The linear relaxation is solved by column generation (Gilmore and Gomory, 1961) and is close to the best
plan. Its dual prices give a lower bound on every plan's cost, relative to deferring all jobs. The bound is the sum of
all jobs' prices, plus the least reduced cost of any node times the number of nodes.

If the gap is still too large, these steps follow until it is small enough:
1. The local search runs again, for longer.
2. The relaxation may rent 3.7 nodes of one type and 1.3 of another. Branch and bound on the number of nodes of each
   type excludes this; the pricing of nodes does not change.
3. The best plan from the known columns is chosen.
4. All columns that a plan cheaper than the best one could contain are listed. Their reduced cost exceeds the least one
   by at most the difference between the best plan's cost and the bound. The best choice of them is the optimum.
5. If there are too many such columns, for instance because jobs may equally well wait, the compact model is solved.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _core
from topoplace_lab.capacity.planners.compact_model import CompactModel
from topoplace_lab.capacity.planners.highs_model import OutOfTimeError, solve
from topoplace_lab.capacity.planners.local_search import SearchPlanner, in_dollars, search, search_conditioned
from topoplace_lab.capacity.planners.master import Limits, Master
from topoplace_lab.capacity.planners.native_tables import NativeNode, from_native, to_native
from topoplace_lab.capacity.problem.plan import Plan, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from topoplace_lab.capacity.problem.plan import Node
    from topoplace_lab.capacity.problem.problem import Floats, Problem

_ROUNDING = 1e-9
_MAX_LISTED = 20_000
_MAX_BRANCHES = 300


class ColumnGeneration:
    """The solver of one problem by column generation; `best` is the best plan so far, with a valid lower bound.

    gap: stop once (cost - bound) / cost is at most this. timeout: seconds.
    """

    def __init__(self, problem: Problem, gap: float, timeout: float, seed: int) -> None:
        self._asked = problem
        self.gap = gap
        self._seed = seed
        self._deadline = time.monotonic() + timeout
        first = SearchPlanner(seed=seed, timeout=None if timeout == math.inf else timeout)
        self.problem, self._unit, self._tables, self.best = search_conditioned(problem, first)
        self._waiting = float(self.problem.waiting.sum())
        self._prices: Floats = np.zeros(problem.num_jobs)
        self._least = self._tightest = -math.inf

    def solve(self) -> Plan:
        """Improve the plan and its bound until the gap is reached or time is up, and return the plan."""
        for improve in (
            self._relax,
            self._search_on,
            self._branch,
            self._choose,
            self._enumerate_columns,
            self._compact,
        ):
            if self._done() or self._late():
                break
            improve()
        plan = replace(self.best, status="optimal" if self._done() else "timeout")
        return in_dollars(self._asked, plan, self._unit)

    def _done(self) -> bool:
        return self.best.gap <= max(self.gap, _ROUNDING)

    def _late(self) -> bool:
        return self._left() <= 0

    def _left(self) -> float:
        return max(self._deadline - time.monotonic(), 0.0)

    def _relax(self) -> None:
        """Solve the linear relaxation, until it proves the gap or no further column improves it."""
        nodes = [(self._cost(node), node) for node in to_native(self.best.nodes)]
        dear = 2 * (self._waiting + sum(abs(cost) for cost, _ in nodes) + 1)
        self._master = Master(self.problem, nodes, dear)
        self._generate(self._no_limits(), self._note)

    def _no_limits(self) -> Limits:
        return ((0, self.problem.used_nodes),) * len(self.problem.catalogue)

    def _generate(self, limits: Limits, note: Callable[[Floats, Floats], None] | None = None) -> float:
        """Solve the linear relaxation with limits on the number of nodes of each VM type; return its lower bound.

        It stops early once the bound proves the gap. note: is called with the jobs' prices and each VM type's least
        reduced cost after every round.
        """
        self._master.limit(limits)
        highest = -math.inf
        while highest < self._target() and not self._late():
            duals = self._master.prices()
            found = _core.price_nodes(self._tables, duals.jobs)
            least = np.full(len(limits), math.inf)
            for _, reduced, vm_type, _ in found:
                least[vm_type] = min(least[vm_type], reduced)
            highest = max(
                highest,
                self._waiting + float(duals.jobs.sum()) + cheapest(self.problem.used_nodes, limits, least),
            )
            if note:
                note(duals.jobs, least)
            rounding = _ROUNDING * (1 + abs(duals.node))
            useful = [
                (cost, (vm_type, jobs))
                for cost, reduced, vm_type, jobs in found
                if reduced - duals.types[vm_type] < duals.node - rounding
            ]
            if not self._master.add(useful):
                break
        return highest

    def _target(self) -> float:
        """Return the lower bound in the problem's unit of money that would prove the best plan within the gap."""
        return self.best.cost.total * (1 - max(self.gap, _ROUNDING))

    def _note(self, prices: Floats, least: Floats) -> None:
        """Update the lower bound on all plans, and keep the jobs' dual prices that gave the highest bound.

        least: least reduced cost of any node, by VM type.
        """
        reduced = float(least.min())
        bound = self._waiting + float(prices.sum()) + self.problem.used_nodes * reduced
        if bound > self._tightest:
            self._prices, self._least, self._tightest = prices, reduced, bound
        self.best = self.best.with_bound(bound)

    def _branch(self) -> None:
        """Raise the lower bound by branch and bound on the number of nodes of each VM type, lowest bound first."""
        left = [(self._tightest, 0, self._no_limits())]
        closed = math.inf
        for number in range(1, _MAX_BRANCHES):
            if not left or self._late():
                break
            bound, _, limits = heapq.heappop(left)
            self.best = self.best.with_bound(min(bound, closed))
            if self._done():
                return
            bound = max(bound, self._generate(limits))
            split = self._master.split()
            if bound >= self._target() or split is None:
                closed = min(closed, bound)
                continue
            vm_type, count = split
            low, high = limits[vm_type]
            for side, part in enumerate(((low, count), (count + 1, high))):
                branch = (*limits[:vm_type], part, *limits[vm_type + 1 :])
                heapq.heappush(left, (bound, 2 * number + side, branch))
        self.best = self.best.with_bound(min([closed, *(bound for bound, *_ in left)]))
        self._master.limit(self._no_limits())

    def _search_on(self) -> None:
        """Run the local search again with twenty times as many rounds, and add the nodes of its plan as columns."""
        timeout = None if self._deadline == math.inf else self._left()
        rounds = 1000 * self.problem.used_nodes
        seed = (self._seed + 1) % (1 << 60)  # other random draws than in the first search
        longer = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)
        plan = search(self.problem, self._tables, longer, self.best.nodes)
        self._keep(plan)
        self._master.add([(self._cost(node), node) for node in to_native(plan.nodes)])

    def _choose(self) -> None:
        """Solve for the cheapest plan that consists of known columns, and keep it if it is the best so far."""
        self._offer(self._master.choose(self._deadline))

    def _enumerate_columns(self) -> None:
        """List all columns that a plan cheaper than the best one could contain, and solve for the cheapest choice.

        This choice is a proven optimum if the time suffices. Nothing happens if there are too many columns to list.
        """
        slack = max(self.best.cost.total * (1 + _ROUNDING) - self._tightest, 0.0)
        listed = _core.list_nodes(
            self._tables, self._prices, self._least + slack, _MAX_LISTED, min(self._left(), 1e9)
        )
        if listed is None:
            return
        self._master.add([(cost, (vm_type, jobs)) for cost, _, vm_type, jobs in listed])
        proven = self._offer(self._master.choose(self._deadline))
        if proven is not None:
            self.best = self.best.with_bound(self._waiting + proven)

    def _compact(self) -> None:
        """Solve the compact mixed-integer model, starting from the best plan so far, if the time suffices to begin."""
        try:
            compact = CompactModel(self.problem, self._deadline)
            solution = solve(compact.model, self.gap, compact.values(self.best.nodes))
        except OutOfTimeError:
            return
        if solution.values is not None:
            self._keep(plan_of(self.problem, compact.nodes(solution.values)))
        self.best = replace(self.best.with_bound(solution.bound), num_variables=compact.model.num_columns)

    def _offer(self, chosen: tuple[list[Node], float] | None) -> float | None:
        """Keep the plan of the chosen nodes if it is the best so far; return the lower bound on choices of columns.

        chosen: (nodes, lower bound), or None, for which the result is None.
        """
        if chosen is None:
            return None
        nodes, bound = chosen
        self._keep(plan_of(self.problem, nodes))
        self.best = replace(self.best, num_variables=self._master.num_columns)
        return bound

    def _keep(self, plan: Plan) -> None:
        """Make `plan` the best plan if it is cheaper; the known lower bound stays."""
        if plan.cost.total < self.best.cost.total:
            self.best = plan.with_bound(self.best.bound)

    def _cost(self, node: NativeNode) -> float:
        """Return the objective coefficient of a column.

        It is the cost of the plan with only this node, minus the cost of the plan in which all jobs wait.
        """
        plan = plan_of(self.problem, from_native([node]))
        return plan.cost.total - self._waiting


def cheapest(count: int, limits: Limits, least: Floats) -> float:
    """Return the least total reduced cost of `count` nodes with numbers of each VM type within `limits`.

    least: least reduced cost of a node, by VM type. The result is infinite if the limits do not allow `count` nodes.
    """
    rest = count - sum(low for low, _ in limits)
    total = sum(low * float(least[vm_type]) for vm_type, (low, _) in enumerate(limits) if low)
    order: list[int] = np.argsort(least, kind="stable").tolist()
    for vm_type in order:
        low, high = limits[vm_type]
        more = min(high - low, max(rest, 0))
        total += more * float(least[vm_type]) if more else 0.0
        rest -= more
    return total if rest == 0 else math.inf
