"""Problems whose costs are of very different sizes, in a form in which sums keep their digits.

Where a plan is known, none that is better has a job that waits, a node, or an idle GPU that costs more than all of that
plan. So it does not matter whether such a thing costs twice as much or a billion times as much - but added to the rest,
the latter leaves nothing of it, and solvers count what is below their tolerances as nothing.
"""

from __future__ import annotations

import math
from copy import copy
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from topoplace.capacity.problem.problem import Floats, Problem

_MOST: Final = 1e6
"""How often the cost of a plan any other cost may be."""
_USUAL: Final = (1e-3, 1e9)
"""$ of a plan that tolerances of solvers are made for."""
_DIGITS: Final = 7


def well_conditioned(problem: Problem, cost: float) -> bool:
    """Whether all costs are comparable with that of a plan."""
    low, high = _USUAL
    return not cost or (low <= cost <= high and _largest(problem) <= _MOST * cost)


def conditioned(problem: Problem, cost: float) -> tuple[Problem, float]:
    """The problem in another unit of money, with nothing dearer than twice a plan of this cost; and the unit in $.

    Plans that cost at most as much cost the same, and there is no new one.
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
