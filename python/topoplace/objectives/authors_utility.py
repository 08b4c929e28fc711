"""Utility as SC'17's published code computes it, which differs from eq. 2 (github.com/HiEST/gpu-topo-aware).

Each of the three costs (communication, interference, fragmentation) is from 0.01, which means no cost, to about 1. The
utility of n costs is `n * 0.01**(1/n)` divided by the sum of the costs, each to the power of its weight. The utility is
1 if all costs are 0.01, and falls towards 0 as costs grow. Three points differ from the paper:

- The cost of interference is the run time alone divided by the run time next to other jobs. Worse interference
  therefore has a *smaller* cost, as in eq. 2. But no interference has cost 0.01 instead of 1. Light interference
  therefore scores far lower than none.
- The utility to a job omits fragmentation, and adds half of its weight to each of the other two costs.
- Communication is scaled by constants of one machine with two sockets of two GPUs. Its distances are 1 between GPUs of
  one socket and 20 between sockets.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from topoplace import _checks
from topoplace.jobs.requirements import MAX_TASKS
from topoplace.objectives.utility import Costs

MIN_COST: Final = 0.01
WEIGHT: Final = 0.3333333333333
"""The weight of each cost in the published configuration."""
LEAST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 1.0, 3: 41.0})
WORST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 40.0, 3: 60.0})
"""The divisor of the sum of pairwise distances less `LEAST_DISTANCE`, by number of GPUs."""


def communication_cost(
    num_gpus: int, distance: float, *, least: float | None = None, worst: float | None = None
) -> float:
    """Return the communication cost of a job: (distance - least) / worst, at least 0.01; always 0.01 for one GPU.

    distance: sum of the distances over all pairs of the job's GPUs. least, worst: optional only for 2 and 3 GPUs, where
    the defaults are those of the published code's machine; otherwise ValueError if one is missing. ValueError also if
    `worst` is not above 0.
    """
    num_gpus = _checks.integer(num_gpus, "num_gpus", ValueError, low=1, high=MAX_TASKS)
    distance = _checks.real(distance, "distance", ValueError)
    if num_gpus == 1:
        return MIN_COST
    least = LEAST_DISTANCE.get(num_gpus) if least is None else least
    worst = WORST_DISTANCE.get(num_gpus) if worst is None else worst
    if least is None or worst is None:
        raise ValueError(f"num_gpus = {num_gpus}: least and worst are known for 1, 2 and 3 GPUs only")
    least = _checks.real(least, "least", ValueError)
    worst = _checks.positive(worst, "worst", ValueError)
    rest = distance - least if distance > 0 else 0.0
    return max(rest / worst, MIN_COST)


def fragmentation_cost(shares: tuple[float, ...]) -> float:
    """Return the fragmentation cost: the mean of `shares`, but 0.01 (no cost) if this mean is below 0.01 or exactly 1.

    shares: the share of GPUs that stay free in each socket, 0..1, at least one.
    """
    given = _checks.sequence(shares, "shares", ValueError)
    if not given:
        raise ValueError("shares is empty")
    checked = (_checks.real(share, f"shares[{i}]", ValueError, high=1.0) for i, share in enumerate(given))
    mean = sum(checked, 0.0) / len(given)
    return MIN_COST if mean in (0.0, 1.0) else max(mean, MIN_COST)


def job_utility(communication: float, interference: float) -> float:
    """Return the utility of a placement to the job, 0..1, for comparison with its `min_utility`; 1 is best.

    The costs are from 0.01 (no cost) to about 1.
    """
    communication = _checks.real(communication, "communication", ValueError)
    interference = _checks.real(interference, "interference", ValueError)
    exponent = WEIGHT + WEIGHT / 2
    costs: float = communication**exponent + max(interference, MIN_COST) ** exponent
    return 1 / costs / _MOST_JOB


def system_utility(
    communication: float, interference: float, fragmentation: float, on_others: float | None = None
) -> float:
    """Return the utility of a placement to the cluster, 0..1, by which placements are compared; 1 is best.

    The costs are from 0.01 (no cost) to about 1. on_others: interference cost of the jobs that already run there,
    averaged with `interference`; None if there are none.
    """
    communication = _checks.real(communication, "communication", ValueError)
    fragmentation = _checks.real(fragmentation, "fragmentation", ValueError)
    interference = max(_checks.real(interference, "interference", ValueError), MIN_COST)
    if on_others is not None:
        on_others = _checks.real(on_others, "on_others", ValueError)
        interference = (interference + max(on_others, MIN_COST)) / 2
    # Terms are in the order of a Python 2 dictionary, as the last bit of the sum decides between equal candidates.
    costs: float = communication**WEIGHT + fragmentation**WEIGHT + interference**WEIGHT
    return 1 / costs / _MOST_SYSTEM


class AuthorsUtility:
    """The published code's formula as an `objectives.utility.Formula`, for `TopoAware(utility="authors")`.

    On machines other than that of the published code, the job's lowest communication cost is subtracted from its cost,
    and the difference is divided by its highest cost. The system utility includes the interference of other jobs by
    the mean of eq. 4. The published code uses a different mean, for which a `Formula` lacks the data.
    """

    def job(self, costs: Costs) -> float:
        """Return the utility to the job, 0..1, by `job_utility`."""
        _checks.instance(costs, Costs, "costs", ValueError)
        return job_utility(self._communication(costs), _interference(costs.suffered))

    def system(self, costs: Costs) -> float:
        """Return the utility to the cluster, 0..1, by `system_utility`."""
        _checks.instance(costs, Costs, "costs", ValueError)
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
    """Return `system_utility` (utility to the cluster) if `fragmentation` is given, else `job_utility` (to the job).

    The arguments are costs from 0.01 (no cost) to about 1; smaller ones are raised to 0.01. on_others: interference
    cost of the jobs that already run there; None if there are none. ValueError if one of the other costs is negative or
    not a number.
    """
    for name, cost in (("communication", communication), ("interference", interference)):
        _checks.real(cost, name, ValueError, low=0.0)
    communication = max(communication, MIN_COST)
    if fragmentation is None:
        return job_utility(communication, interference)
    _checks.real(fragmentation, "fragmentation", ValueError)
    return system_utility(communication, interference, max(fragmentation, MIN_COST), on_others)
