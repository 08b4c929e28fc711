"""Rescale problems whose costs differ by many orders of magnitude, so that sums keep their digits.

Once a plan is known, no better plan contains a waiting job, node or idle GPU that costs more than that whole plan.
Costs above the plan's can therefore be capped at twice its cost. Uncapped, they would swamp double precision, and
solvers would treat the rest as zero.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Floats, Problem

_MAX_RATIO: Final = 1e6
"""Largest well-conditioned ratio of any cost to that of a plan."""
_USUAL: Final = (1e-3, 1e9)
"""Costs of plans, in $, for which the tolerances of solvers are suitable."""
_DIGITS: Final = 7


def well_conditioned(problem: Problem, cost: float) -> bool:
    """Return True if all costs of the problem are comparable with `cost`, the cost of a plan ($)."""
    low, high = _USUAL
    return not cost or (low <= cost <= high and _largest(problem) <= _MAX_RATIO * cost)


def conditioned(problem: Problem, cost: float) -> tuple[Problem, float]:
    """Rescale the problem to another unit of money and cap its costs at twice `cost`, the cost of a plan.

    Returns the new problem and its unit in $. Plans that cost at most `cost` keep their cost, and no other plan becomes
    as cheap.
    """
    unit = math.ldexp(1.0, max(math.frexp(cost)[1] - _DIGITS, -1000))
    most = 2 * cost

    def capped(costs: Floats) -> Floats:
        return np.where(np.isfinite(costs), np.minimum(costs, most) / unit, math.inf)

    easier = copy(problem)
    vars(easier).update(
        tardiness=capped(problem.tardiness),
        deployment=capped(problem.deployment),
        waiting=capped(problem.waiting),
        idle=min(problem.idle, most) / unit,
    )
    return easier, unit


def _largest(problem: Problem) -> float:
    tables = problem.tardiness, problem.deployment, problem.waiting
    return max(problem.idle, *(float(table[np.isfinite(table)].max(initial=0.0)) for table in tables))
