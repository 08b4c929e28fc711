"""Utility as SC'17's published code computes it, which is not eq. 2 of the paper (github.com/HiEST/gpu-topo-aware).

Each of the three costs is at least 0.01 and at most about 1; 0.01 means there is none. A utility is
`n * 0.01**(1/n)` over the sum of every cost to the power of its weight: 1 where all costs are least, and towards 0 as
they grow. What a reader of the paper would not expect:

- Interference is the time alone over the time beside the others, so the worse it is the *smaller* the cost, as in eq.
  2; without any it is 0.01, not 1. So light interference scores far below none at all, and a little above heavy one.
- The utility of a job leaves fragmentation out and adds half of its own weight to each of the two others.
- Communication is scaled by constants of one machine, two sockets of two GPUs: 1 between GPUs of a socket, else 20.
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
"""The weight of each cost, as written in the published configuration."""
LEAST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 1.0, 3: 41.0})
WORST_DISTANCE: Final[Mapping[int, float]] = MappingProxyType({2: 40.0, 3: 60.0})
"""By number of GPUs: what is taken off the sum over their pairs, and what the rest is divided by."""


def communication_cost(
    num_gpus: int, distance: float, *, least: float | None = None, worst: float | None = None
) -> float:
    """Return the cost of a sum of distances over all pairs of GPUs; for one GPU always the least.

    least, worst: of such a sum; known for 2 and 3 GPUs of the published code's machine, needed for others.
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
    """Return the cost of the shares of free GPUs that remain in each socket; the least for all or none of them."""
    mean = sum(shares, 0.0) / len(shares)
    return MIN_COST if mean in (0.0, 1.0) else max(mean, MIN_COST)


def job_utility(communication: float, interference: float) -> float:
    """Return the utility of a placement to the job, 0..1; `min_utility` is compared with it."""
    exponent = WEIGHT + WEIGHT / 2
    costs: float = communication**exponent + max(interference, MIN_COST) ** exponent
    return 1 / costs / _MOST_JOB


def system_utility(
    communication: float, interference: float, fragmentation: float, on_others: float | None = None
) -> float:
    """Return the utility of a placement to the cluster, 0..1; candidates are compared by it.

    on_others: the interference that the jobs already there would suffer; None where there are none.
    """
    interference = max(interference, MIN_COST)
    if on_others is not None:
        interference = (interference + max(on_others, MIN_COST)) / 2
    # In the order of a Python 2 dictionary: the last bit of a sum decides between equal candidates.
    costs: float = communication**WEIGHT + fragmentation**WEIGHT + interference**WEIGHT
    return 1 / costs / _MOST_SYSTEM


class AuthorsUtility:
    """The published formula as an `objectives.utility.Formula`, for `TopoAware(utility="authors")`.

    Of other machines than the published code's, communication is scaled by what the job can cost there. The harm to
    others enters by eq. 4's mean, for the code's own mean over them needs more than a formula is given.
    """

    def job(self, costs: Costs) -> float:
        """`job_utility` of the costs."""
        return job_utility(self._communication(costs), _interference(costs.suffered))

    def system(self, costs: Costs) -> float:
        """`system_utility` of the costs."""
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
"""The least and the most of `Costs` on the published code's machine."""
_MOST_JOB: Final = 1 / (2 * MIN_COST ** (1.0 / 2))
_MOST_SYSTEM: Final = 1 / (3 * MIN_COST ** (1.0 / 3))


def authors_utility(
    communication: float,
    interference: float,
    fragmentation: float | None = None,
    *,
    on_others: float | None = None,
) -> float:
    """`system_utility` where `fragmentation` is given, else `job_utility`; costs of 0.01 up to about 1, checked."""
    for name, cost in (("communication", communication), ("interference", interference)):
        _checks.real(cost, name, ValueError, low=0.0)
    communication = max(communication, MIN_COST)
    if fragmentation is None:
        return job_utility(communication, interference)
    _checks.real(fragmentation, "fragmentation", ValueError)
    return system_utility(communication, interference, max(fragmentation, MIN_COST), on_others)
