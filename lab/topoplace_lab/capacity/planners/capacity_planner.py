"""The planner that solves a mixed-integer program with the solver HiGHS, to a proven gap."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Final

from topoplace import _checks
from topoplace.errors import require_package
from topoplace_lab.capacity.planners.column_generation import ColumnGeneration
from topoplace_lab.capacity.planners.compact_model import CompactModel
from topoplace_lab.capacity.planners.conditioning import well_conditioned
from topoplace_lab.capacity.planners.highs_model import OutOfTimeError, solve
from topoplace_lab.capacity.planners.local_search import SearchPlanner, in_dollars, search_conditioned
from topoplace_lab.capacity.planners.paper_model import PaperModel
from topoplace_lab.capacity.problem.plan import Plan, plan_of
from topoplace_lab.capacity.problem.problem import Problem

FORMULATIONS: Final = ("columns", "tight", "printed")


class CapacityPlanner:
    """A planner that minimises the cost of a plan with the solver HiGHS and proves how close it is to the optimum.

    The problem is defined by Filippini et al.

    formulation: one of three models with the same optimum.
    - `columns`: column generation, in which a column is a VM with its jobs; it takes milliseconds.
    - `tight`: a compact mixed-integer program without big-M constraints.
    - `printed`: the paper's mixed-integer program (P2). Because of its big-M, open solvers cannot prove plans of more
      than a few jobs. If costs differ by more than a factor of a million, results are unreliable, so the status is
      `heuristic`.

    gap: the planner stops at a plan once (cost - bound) / cost is not above it; the paper uses 5 %. timeout: seconds
    after which the best known plan is returned, with its bound and status `timeout`. seed: seed of `SearchPlanner`,
    which finds the first plan.
    """

    def __init__(
        self,
        formulation: str = "columns",
        *,
        gap: float = 0.05,
        timeout: float | None = None,
        seed: int = 0,
    ) -> None:
        self.formulation = _checks.one_of(formulation, "formulation", FORMULATIONS, ValueError)
        self.gap = _checks.real(gap, "gap", ValueError, high=1.0)
        self.timeout = math.inf if timeout is None else _checks.real(timeout, "timeout", ValueError)
        self.seed = _checks.integer(seed, "seed", ValueError, low=0, high=1 << 60)

    @property
    def name(self) -> str:
        """Return the planner's name: `milp`, followed by the formulation if it is not the default."""
        return "milp" if self.formulation == "columns" else f"milp-{self.formulation}"

    def plan(self, problem: Problem) -> Plan:
        """Return a plan proven to be within the gap, or else the best plan found; `Plan.status` says which.

        Raises:
            ImportError: If HiGHS is needed and not installed.
        """
        _checks.instance(problem, Problem, "problem", ValueError)
        require_package("highspy", "planning by a model")
        if not problem.num_jobs:
            return plan_of(problem, [], status="optimal")
        if self.formulation == "columns":
            return ColumnGeneration(problem, self.gap, self.timeout, self.seed).solve()
        deadline = time.monotonic() + self.timeout
        planner = SearchPlanner(seed=self.seed, timeout=None if self.timeout == math.inf else self.timeout)
        easier, unit, _, known = search_conditioned(problem, planner)
        if self.formulation == "tight":
            return in_dollars(problem, self._solve(CompactModel, easier, known, deadline), unit)
        plan = self._solve(PaperModel, problem, in_dollars(problem, known, unit), deadline)
        if easier is problem and well_conditioned(problem, plan.cost.total):
            return plan
        # With the paper's big-M, a solver's tolerances admit wrong plans if some costs are far above others.
        return replace(plan, bound=0.0, status="heuristic")

    def _solve(
        self, formulation: type[CompactModel | PaperModel], problem: Problem, known: Plan, deadline: float
    ) -> Plan:
        """Return the better of the model's plan and the `known` one, with the bound of the model."""
        try:
            compact = formulation(problem, deadline)
            solution = solve(compact.model, self.gap)
        except OutOfTimeError:
            return replace(known, status="timeout")
        found = known if solution.values is None else plan_of(problem, compact.nodes(solution.values))
        best = found if found.cost.total < known.cost.total else known
        status = "optimal" if solution.proven else "timeout"
        plan = replace(best, status=status, bound=known.bound, num_variables=compact.model.num_columns)
        return plan.with_bound(max(solution.bound, 0.0))
