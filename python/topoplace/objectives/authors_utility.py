"""Utility as SC'17's published code computes it, which differs from eq. 2 (github.com/HiEST/gpu-topo-aware).

Each of the three costs is at least 0.01, which means no cost, and at most about 1. A utility is `n * 0.01**(1/n)`
divided by the sum of all costs, each to the power of its weight. It is 1 if all costs are least, and approaches 0 as
they grow. Three points differ from the paper:

- The cost of interference is the time alone divided by the time beside other jobs. So worse interference has a
  *smaller* cost, as in eq. 2, but no interference has the cost 0.01, not 1. Light interference therefore scores far
  lower than none.
- The utility of a job omits fragmentation and adds half of its weight to each of the other two.
- Communication is scaled by constants of one machine with two sockets of two GPUs. The distance is 1 between GPUs of a
  socket, else 20.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from topoplace import _checks

if TYPE_CHECKING:
    from topoplace.objectives.utility import Costs

MIN_COST: Final = 0.01
WEIGHT: Final = 0.3333333333333
"""The weight of each cost in the published configuration."""
LEAST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 1.0, 3: 41.0})
WORST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 40.0, 3: 60.0})
"""The divisor of the sum of distances over pairs after subtracting `LEAST_DISTANCE`, by number of GPUs."""


def communication_cost(
    num_gpus: int, distance: float, *, least: float | None = None, worst: float | None = None
) -> float:
    """Return the communication cost of a sum of distances over all pairs of GPUs; for one GPU always the least.

    least: subtracted from the sum. worst: divisor of the rest. Both are required except for 2 and 3 GPUs of the
    published code's machine.
    """
    if num_gpus == 1:
        return MIN_COST
    least = LEAST_DISTANCE.get(num_gpus) if least is None else least
    worst = WORST_DISTANCE.get(num_gpus) if worst is None else worst
    if least is None or worst is None:
        raise ValueError(f"num_gpus = {num_gpus}: least and worst are known for 1, 2 and 3 GPUs only")
    worst = _checks.positive(worst, "worst", ValueError)
    rest = distance - least if distance > 0 else 0.0
    return max(rest / worst, MIN_COST)


def fragmentation_cost(shares: tuple[float, ...]) -> float:
    """Return the cost of the shares of GPUs that stay free in each socket; the least if all or none do."""
    mean = sum(shares, 0.0) / len(shares)
    return MIN_COST if mean in (0.0, 1.0) else max(mean, MIN_COST)


def job_utility(communication: float, interference: float) -> float:
    """Return the utility of a placement to the job, 0..1, for comparison with `min_utility`."""
    exponent = WEIGHT + WEIGHT / 2
    costs: float = communication**exponent + max(interference, MIN_COST) ** exponent
    return 1 / costs / _MOST_JOB


def system_utility(
    communication: float, interference: float, fragmentation: float, on_others: float | None = None
) -> float:
    """Return the utility of a placement to the cluster, 0..1, by which candidates are compared.

    on_others: the interference cost of the jobs that already run there; None if there are none.
    """
    interference = max(interference, MIN_COST)
    if on_others is not None:
        interference = (interference + max(on_others, MIN_COST)) / 2
    # Terms are in the order of a Python 2 dictionary, as the last bit of the sum decides between equal candidates.
    costs: float = communication**WEIGHT + fragmentation**WEIGHT + interference**WEIGHT
    return 1 / costs / _MOST_SYSTEM


class AuthorsUtility:
    """The published formula as an `objectives.utility.Formula`, for `TopoAware(utility="authors")`.

    On machines other than the published code's, communication is scaled by the job's least and worst cost there. The
    interference that other jobs suffer is included by the mean of eq. 4. The code's own mean needs data that a formula
    does not get.
    """

    def job(self, costs: Costs) -> float:
        """Return `job_utility` of the costs."""
        return job_utility(self._communication(costs), _interference(costs.suffered))

    def system(self, costs: Costs) -> float:
        """Return `system_utility` of the costs."""
        fragmentation = fragmentation_cost((costs.fragmentation,))
        return system_utility(self._communication(costs), _interference(costs.shared), fragmentation)

    def _communication(self, costs: Costs) -> float:
        size = costs.num_gpus
        if (costs.least, costs.most) == _PUBLISHED_MACHINE.get(size):
            return communication_cost(size, costs.communication)
        worst = costs.most if costs.most > 0 else 1.0
        return communication_cost(size, costs.communication, least=costs.least, worst=worst)


def _interference(ratio: float) -> float:
    return MIN_COST if ratio >= 1 else ratio


_PUBLISHED_MACHINE: Final = {2: (1.0, 20.0), 3: (41.0, 60.0)}
"""(`least`, `most`) of `Costs` on the published code's machine, by number of GPUs."""
_MOST_JOB: Final = 1 / (2 * MIN_COST ** (1.0 / 2))
_MOST_SYSTEM: Final = 1 / (3 * MIN_COST ** (1.0 / 3))


def authors_utility(
    communication: float,
    interference: float,
    fragmentation: float | None = None,
    *,
    on_others: float | None = None,
) -> float:
    """Check the costs, and return `system_utility` if `fragmentation` is given, else `job_utility`.

    Costs are from 0.01 to about 1; smaller ones are raised to 0.01.
    """
    for name, cost in (("communication", communication), ("interference", interference)):
        _checks.real(cost, name, ValueError, low=0.0)
    communication = max(communication, MIN_COST)
    if fragmentation is None:
        return job_utility(communication, interference)
    _checks.real(fragmentation, "fragmentation", ValueError)
    return system_utility(communication, interference, max(fragmentation, MIN_COST), on_others)
