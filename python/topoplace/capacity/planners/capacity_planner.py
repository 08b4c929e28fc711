"""The planner that solves a model with HiGHS, to a proven gap."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Final

from topoplace import _checks
from topoplace.capacity.planners.column_generation import ColumnGeneration
from topoplace.capacity.planners.compact_model import CompactModel
from topoplace.capacity.planners.highs_model import solve
from topoplace.capacity.planners.local_search import SearchPlanner, in_dollars, search_conditioned
from topoplace.capacity.planners.paper_model import PaperModel
from topoplace.capacity.planners.rescale import well_conditioned
from topoplace.capacity.problem.plan import Plan, plan_of
from topoplace.capacity.problem.problem import Problem

FORMULATIONS: Final = ("columns", "tight", "printed")


class CapacityPlanner:
    """Filippini et al.'s local controller: the joint capacity allocation and scheduling problem, solved with HiGHS.

    formulation: `columns`, column generation over whole nodes, in milliseconds; `tight`, a compact model without
    big-M; `printed`, the paper's (P2), whose big-M keeps open solvers from proving what they find beyond a few jobs,
    and from being right where costs differ by more than a million: then its status is `heuristic`. All have the same
    optimum. gap: (cost - bound) / cost at which a plan is good enough, the paper's 5 %. timeout: seconds, after which
    the best plan so far, or the search's where that is better, is returned with its bound and status `timeout`; there
    is always one.
    """

    def __init__(
        self,
        formulation: str = "columns",
        *,
        gap: float = 0.05,
        timeout: float | None = None,
        seed: int = 0,
    ) -> None:
        if formulation not in FORMULATIONS:
            raise ValueError(
                f"formulation = {_checks.shown(formulation)} is not one of {', '.join(FORMULATIONS)}"
            )
        self.formulation = formulation
        self.gap = _checks.real(gap, "gap", ValueError, high=1.0)
        self.timeout = math.inf if timeout is None else _checks.real(timeout, "timeout", ValueError)
        self.seed = _checks.integer(seed, "seed", ValueError, low=0, high=1 << 60)

    @property
    def name(self) -> str:
        """`milp`, with the formulation where it is not the default."""
        return "milp" if self.formulation == "columns" else f"milp-{self.formulation}"

    def plan(self, problem: Problem) -> Plan:
        """The best plan to within the gap; ImportError where HiGHS is not installed."""
        _checks.instance(problem, Problem, "problem", ValueError)
        if not problem.num_jobs:
            return plan_of(problem, [], status="optimal")
        if self.formulation == "columns":
            return ColumnGeneration(problem, self.gap, self.timeout, self.seed).solve()
        deadline = time.monotonic() + self.timeout
        planner = SearchPlanner(seed=self.seed, timeout=None if self.timeout == math.inf else self.timeout)
        easier, unit, _, known = search_conditioned(problem, planner)
        if self.formulation == "tight":
            return in_dollars(problem, self._compact(CompactModel(easier), easier, known, deadline), unit)
        plan = self._compact(PaperModel(problem), problem, in_dollars(problem, known, unit), deadline)
        if easier is problem and well_conditioned(problem, plan.cost.total):
            return plan
        # Where some costs are far above others, the paper's big-M lets a solver's tolerances through.
        return replace(plan, bound=0.0, status="heuristic")

    def _compact(
        self, compact: CompactModel | PaperModel, problem: Problem, known: Plan, deadline: float
    ) -> Plan:
        solution = solve(compact.model, self.gap, max(deadline - time.monotonic(), 0.0))
        found = known if solution.values is None else plan_of(problem, compact.nodes(solution.values))
        best = found if found.cost.total < known.cost.total else known
        status = "optimal" if solution.proven else "timeout"
        plan = replace(best, status=status, bound=0.0, num_variables=compact.model.num_columns)
        return plan.with_bound(max(solution.bound, 0.0))
