"""The tightest model: a column for each node that could be let, with its type and jobs, made as they are needed.

As many columns are chosen as there are nodes, at most one of them with any job. Equal nodes are one column, so there is
no symmetry left, and the relaxation, solved by column generation (Gilmore and Gomory, 1961), is close to the best plan.
Its dual prices bound every plan from below: the prices of all jobs, and the best node's reduced cost once per node.

Where plans are further from it than asked for, the search goes on for longer. Then the relaxation, which likes to let
3.7 nodes of one type and 1.3 of another, is branched on how many nodes of each type there are, which changes nothing in
how a node is priced, and the columns there are combine to a plan. Then all columns are listed that a better plan could
have - the reduced cost of none is above that of the best node by more than plan and bound differ - and the best choice
of them is the optimum. Where they are too many, as with jobs that may as well wait, the compact model has to prove it.
"""

from __future__ import annotations

import heapq
import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from topoplace import _core
from topoplace.capacity.planners.compact_model import CompactModel
from topoplace.capacity.planners.highs_model import solve
from topoplace.capacity.planners.local_search import SearchPlanner, in_dollars, search, search_conditioned
from topoplace.capacity.planners.master import Limits, Master
from topoplace.capacity.planners.native_tables import NativeNode, from_native, to_native
from topoplace.capacity.problem.plan import Plan, plan_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from topoplace.capacity.problem.plan import Node
    from topoplace.capacity.problem.problem import Floats, Problem

_ROUNDING = 1e-9
_MOST_LISTED = 20_000
_MOST_BRANCHES = 300


class ColumnGeneration:
    """One problem under solution. `best` is always a plan with a valid bound."""

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
        """To the gap, or until time is up."""
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
        """Solve the relaxation, as far as the gap needs."""
        nodes = [(self._cost(node), node) for node in to_native(self.best.nodes)]
        dear = 2 * (self._waiting + sum(abs(cost) for cost, _ in nodes) + 1)
        self._master = Master(self.problem, nodes, dear)
        self._generate(self._no_limits(), self._note)

    def _no_limits(self) -> Limits:
        return ((0, self.problem.used_nodes),) * len(self.problem.catalogue)

    def _generate(self, limits: Limits, note: Callable[[Floats, Floats], None] | None = None) -> float:
        """Solve the relaxation under limits, as far as the gap needs; gives back its bound."""
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
        """The bound that would do."""
        return self.best.cost.total * (1 - max(self.gap, _ROUNDING))

    def _note(self, prices: Floats, least: Floats) -> None:
        """Keep the prices that bound all plans best: `least` is each type's least reduced cost."""
        reduced = float(least.min())
        bound = self._waiting + float(prices.sum()) + self.problem.used_nodes * reduced
        if bound > self._tightest:
            self._prices, self._least, self._tightest = prices, reduced, bound
        self.best = self.best.with_bound(bound)

    def _branch(self) -> None:
        """Let a whole number of nodes of each type: best first over limits, until the worst of what is left will do."""
        left = [(self._tightest, 0, self._no_limits())]
        closed = math.inf
        for number in range(1, _MOST_BRANCHES):
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
        """A search twenty times as long, for plans."""
        timeout = None if self._deadline == math.inf else self._left()
        rounds = 1000 * self.problem.used_nodes
        seed = (self._seed + 1) % (1 << 60)  # not the draws of the first search again
        longer = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)
        plan = search(self.problem, self._tables, longer, self.best.nodes)
        self._keep(plan)
        self._master.add([(self._cost(node), node) for node in to_native(plan.nodes)])

    def _choose(self) -> None:
        """The best plan from the columns there are."""
        self._offer(self._master.choose(self._left()))

    def _enumerate_columns(self) -> None:
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
        compact = CompactModel(self.problem)
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


def cheapest(count: int, limits: Limits, least: Floats) -> float:
    """The least sum of `least` over `count` nodes, as many of each type as the limits allow; infinite for none."""
    rest = count - sum(low for low, _ in limits)
    total = sum(low * float(least[vm_type]) for vm_type, (low, _) in enumerate(limits) if low)
    order: list[int] = np.argsort(least, kind="stable").tolist()
    for vm_type in order:
        low, high = limits[vm_type]
        more = min(high - low, max(rest, 0))
        total += more * float(least[vm_type]) if more else 0.0
        rest -= more
    return total if rest == 0 else math.inf
