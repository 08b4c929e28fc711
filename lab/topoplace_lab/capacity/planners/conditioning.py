"""Rescaling of planning problems whose costs differ by many orders of magnitude.

Once a plan is known, no better plan contains a waiting job, node or idle GPU that costs more than the whole known plan.
Such costs can therefore be capped at twice the known plan's cost. Without caps, sums would lose small costs to rounding
in double precision, and solvers would treat them as zero.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from topoplace_lab.capacity.problem.problem import Floats, Problem

_MAX_RATIO: Final = 1e6
"""Largest ratio of any cost in a problem to the cost of a plan that needs no rescaling."""
_USUAL: Final = (1e-3, 1e9)
"""Range of plan costs in $ for which the tolerances of solvers are suitable."""
_DIGITS: Final = 7


def well_conditioned(problem: Problem, cost: float) -> bool:
    """Return True if the problem needs no rescaling, given the cost of a plan in the problem's unit of money.

    No rescaling is needed if `cost` is 0. Nor is it needed if `cost` is from 1e-3 to 1e9, and no cost of the problem is
    over a million times as large.
    """
    low, high = _USUAL
    return not cost or (low <= cost <= high and _largest(problem) <= _MAX_RATIO * cost)


def conditioned(problem: Problem, cost: float) -> tuple[Problem, float]:
    """Return the problem in another unit of money, with its costs capped at twice `cost`, and this unit in $.

    cost: the cost in $ of a known plan. Plans that cost at most this keep their cost; no other plan becomes as cheap.
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
