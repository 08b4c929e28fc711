"""Planners with the other objectives of the paper: those of section IV, and that of the authors' earlier model.

All keep the constraints of (P1), its penalties for waiting and for idle GPUs, and its number of rented nodes. They
differ in what a running job costs:

- `linear`, the earlier model [10]: its tardiness, and its GPUs' part of the node's price until its own end. GPUs count
  as if rented one by one. The paper describes this approximation and does not print the model.
- `earliness`: its weight times the hours between its end and its due date, on either side, and the node's price until
  its own end. That charges a node once for each of its jobs, an upper bound, as the whole set of jobs is considered.
- `convex`: a convex combination of that and of (P2), where a node's price counts until its first job ends.

The paper states the last two in words only; the weights are a reading of ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks, _core
from topoplace_lab.capacity.planners.local_search import SearchPlanner, found_by
from topoplace_lab.capacity.planners.native_tables import from_native
from topoplace_lab.capacity.problem.plan import Plan, plan_of
from topoplace_lab.capacity.problem.problem import Problem

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Floats

OBJECTIVES: Final = ("linear", "earliness", "convex")


class VariantPlanner:
    """A planner by C++ search that minimises one of `OBJECTIVES` instead of the paper's (P1a).

    The `cost` of a plan is still that of (P1a), which this planner does not minimise, and its `bound` is 0. Compare
    plans by the cost of whole simulations instead.

    Args:
        share: Weight of (P2) in the objective `convex`, 0 to 1.
        rounds: See `SearchPlanner`.
        seed: See `SearchPlanner`.
        timeout: See `SearchPlanner`.

    Raises:
        ValueError: For an argument out of range.
    """

    def __init__(
        self,
        objective: str,
        *,
        share: float = 0.5,
        rounds: int | None = None,
        seed: int = 0,
        timeout: float | None = None,
    ) -> None:
        self.objective = _checks.one_of(objective, "objective", OBJECTIVES, ValueError)
        self.share = _checks.real(share, "share", ValueError, high=1.0)
        self.search = SearchPlanner(rounds=rounds, seed=seed, timeout=timeout)

    @property
    def name(self) -> str:
        """Return the name of the objective."""
        return self.objective

    def plan(self, problem: Problem) -> Plan:
        """Return the best plan found by the objective."""
        _checks.instance(problem, Problem, "problem", ValueError)
        found = found_by(self.search, self._tables(problem), problem)
        return plan_of(problem, from_native(found.nodes), status=found.status)

    def _tables(self, problem: Problem) -> _core.CapacityTables:
        run, pay = self._costs(problem)
        used = problem.idle * np.arange(1.0, problem.hours.shape[2] + 1)
        return _core.CapacityTables(
            problem.num_gpus,
            problem.idle * problem.num_gpus.astype(np.float64),
            np.ascontiguousarray(run - used),
            np.ascontiguousarray(pay),
            problem.waiting,
        )

    def _costs(self, problem: Problem) -> tuple[Floats, Floats]:
        """Return what each job costs by VM type and number of GPUs, and what its node costs if it ends first."""
        whole = problem.deployment
        nothing = np.where(np.isfinite(whole), 0.0, np.inf)
        if self.objective == "linear":
            part = np.arange(1.0, whole.shape[2] + 1) / problem.num_gpus[:, None]
            return problem.tardiness + whole * part, nothing
        conservative = problem.tardiness + _early(problem) + whole
        if self.objective == "earliness":
            return conservative, nothing
        first = self.share
        return first * problem.tardiness + (1 - first) * conservative, first * whole + nothing


def _early(problem: Problem) -> Floats:
    """Return the cost of each job's end before its due date, by VM type and number of GPUs; 0 where it cannot run."""
    runs = np.isfinite(problem.hours)
    hours = np.where(runs, problem.hours, 0.0)
    early = np.maximum(np.maximum(problem.due, 0.0)[:, None, None] - hours, 0.0)
    cost: Floats = np.where(runs, early * problem.weight[:, None, None], 0.0)
    return cost
