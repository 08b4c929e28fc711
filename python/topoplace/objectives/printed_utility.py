"""Utility by eq. 2 of Amaral et al. (SC'17) as it is printed."""

from __future__ import annotations

from typing import Final

from topoplace import _checks
from topoplace.objectives.utility import Costs

_LEAST: Final = 0.01


class PrintedUtility:
    """Eq. 2 as a `Formula`, for `TopoAware(utility="printed")`: U = (1/t + 1/I + 1/omega) / 3, over its largest value.

    t is the communication cost divided by the worst one (eq. 1). I is the run time alone divided by that next to other
    jobs (eq. 4). omega is the share of free GPUs (eq. 5, to the letter). Each is at least 0.01, the lowest cost of the
    published code; without it, the equation divides by zero. The utility to the job has no omega. As 1/I grows with
    interference, the formula prefers GPUs next to jobs that slow the job down.
    """

    def job(self, costs: Costs) -> float:
        """Return the utility to the job, above 0 and up to 1."""
        _checks.instance(costs, Costs, "costs", ValueError)
        return _mean_inverse(costs.communication_share, costs.suffered)

    def system(self, costs: Costs) -> float:
        """Return the utility to the system, above 0 and up to 1."""
        _checks.instance(costs, Costs, "costs", ValueError)
        return _mean_inverse(costs.communication_share, costs.shared, costs.unused)


def _mean_inverse(*costs: float) -> float:
    return sum(_LEAST / max(cost, _LEAST) for cost in costs) / len(costs)
