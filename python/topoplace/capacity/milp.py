"""The planner that solves a model with HiGHS, to a proven gap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.capacity.columns import ColumnGeneration
from topoplace.capacity.model import solve
from topoplace.capacity.plan import Plan, plan_of
from topoplace.capacity.printed import PrintedModel
from topoplace.capacity.search import SearchPlanner
from topoplace.capacity.tight import TightModel

if TYPE_CHECKING:
    from topoplace.capacity.problem import Problem

FORMULATIONS: Final = ("columns", "tight", "printed")


class CapacityPlanner:
    """Filippini et al.'s local controller: the joint capacity allocation and scheduling problem, solved with HiGHS.

    formulation: `columns`, column generation over whole nodes, in milliseconds; `tight`, a compact model without big-M;
    `printed`, the paper's (P2), whose big-M keeps open solvers from proving what they find beyond a few jobs. All have
    the same optimum. gap: (cost - bound) / cost at which a plan is good enough, the paper's 5 %. timeout: seconds,
    after which the best plan so far is returned with its bound and status `timeout`; there is always one.
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
        if not problem.num_jobs:
            return plan_of(problem, [], status="optimal")
        if self.formulation == "columns":
            return ColumnGeneration(problem, self.gap, self.timeout, self.seed).solve()
        return self._compact(problem)

    def _compact(self, problem: Problem) -> Plan:
        compact = (TightModel if self.formulation == "tight" else PrintedModel)(problem)
        solution = solve(compact.model, self.gap, self.timeout)
        bound = max(solution.bound, 0.0)
        if solution.values is None:
            nodes = SearchPlanner(seed=self.seed).plan(problem).nodes
        else:
            nodes = tuple(compact.nodes(solution.values))
        status = "optimal" if solution.proven else "timeout"
        plan = plan_of(problem, nodes, status=status, num_variables=compact.model.num_columns)
        return plan.with_bound(bound)
