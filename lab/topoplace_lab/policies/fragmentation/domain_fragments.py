"""FGD's expected fragments of a fabric's domains: GPUs that typical jobs, which need one domain, cannot use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace.engine.level_chain import required_of
from topoplace.jobs.groups import INNER_LEVELS
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace_lab.sharing.sharing_policy import suitable_gpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import Conditions
    from topoplace.engine.machines.machine_options import Choice
    from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
    from topoplace_lab.sharing.ranked_machines import RankedForJob

    Ints = NDArray[np.int64]
    Reals = NDArray[np.float64]


class _Need(NamedTuple):
    """What a typical job needs of one domain of a level."""

    share: float
    """The share of the job among all typical ones."""
    gpus: int
    """Free GPUs of the domain: one for each task of the job's largest group there."""
    suits: NDArray[np.int32]
    """(classes, g) 1 for each GPU of a class of machines that suits the job, else 0."""


class DomainFragments:
    """The expected fragment of each domain, computed as FGD does for a machine.

    A domain's fragment for a typical job is all that is left of its GPUs, if the job needs more free GPUs in one
    domain. Otherwise it is 0. Jobs that need no domain of a level do not count there.
    """

    def __init__(self, typical: TypicalJobs, view: ClusterView) -> None:
        needs: dict[str, list[_Need]] = {}
        for job, share in typical.weights.items():
            sizes: dict[str, int] = {}
            for together in required_of(job):
                sizes[together.level] = max(sizes.get(together.level, 0), len(together.tasks))
            for level in sizes.keys() - set(INNER_LEVELS):
                request = view.request(job)
                suits = suitable_gpus(request, view, request.memory_limits[-1])
                needs.setdefault(level, []).append(_Need(share, sizes[level], suits))
        levels = [level for level in view.cluster.topology.levels if level.name in needs and not level.rail]
        self._levels = [(level.codes, needs[level.name]) for level in levels]

    def __bool__(self) -> bool:
        return bool(self._levels)

    def scores(self, share: int, conditions: Conditions, chosen: Mapping[int, tuple[int, ...]]) -> Reals:
        """Return (m,) the sum over the levels of logistic(fragment before - after) of the machine's domain, in GPUs.

        share: thousandths that the job takes of each of its GPUs. chosen: for each condition with room, the job's GPUs
        on such a machine.
        """
        numbers, place = np.unique(conditions.native.of_machines(), return_inverse=True)
        classes, _, left = conditions.native.left_of(numbers.tolist())
        taken = np.zeros_like(left)
        for row, number in enumerate(numbers.tolist()):
            taken[row, list(chosen.get(number, ()))] = 1
        whole = left == WHOLE_GPU
        found = np.zeros(len(place))
        for codes, needs in self._levels:
            less = np.zeros(len(place))
            for need in needs:
                suits = need.suits[classes, : left.shape[1]]
                free, amounts = (_in_domain((suits * one).sum(1)[place], codes) for one in (whole, left))
                opened, used = (suits * taken * whole).sum(1), (suits * taken).sum(1) * share
                before = np.where(free >= need.gpus, 0, amounts)
                after = np.where(free - opened[place] >= need.gpus, 0, amounts - used[place])
                less += need.share * (before - after) / WHOLE_GPU
            found += np.where(codes >= 0, 1 / (1 + np.exp(-less)), 0)
        return found


def _in_domain(amounts: Ints, codes: Ints) -> Reals:
    """Return (m,) the sum of the amounts of all machines in each machine's domain; what is in none does not matter."""
    sums: Reals = np.bincount(codes + 1, amounts).astype(float)
    return sums[codes + 1]


class RankedByDomain:
    """The machines of `RankedForJob`, ordered by their own scores plus those of their domains."""

    def __init__(
        self, ranked: RankedForJob, scores: Callable[[Mapping[int, tuple[int, ...]]], Reals]
    ) -> None:
        """ranked: the machines by their own scores. scores: returns those of domains, see `DomainFragments.scores`."""
        self._ranked, self._scores = ranked, scores

    def best(self, least_utility: float = -math.inf) -> tuple[int, Choice] | None:
        """Return (machine, choice) of the best placement; None if there is none, or a utility above 0 is required."""
        return None if least_utility > 0 else next(self.ranked(), None)

    def ranked(self) -> Iterator[tuple[int, Choice]]:
        """Yield (machine, choice) of the best placement on every machine, best first, ties by machine."""
        machines, conditions, _ = self._ordered()
        for machine, condition in zip(machines.tolist(), conditions.tolist(), strict=True):
            yield machine, self._ranked.choice(condition)

    def ranked_machines(self, least_utility: float) -> Iterator[list[int]]:
        """Yield groups of machines with equally good best placements, best first; none if a utility above 0 is
        required."""
        if least_utility > 0:
            return
        machines, _, keys = self._ordered()
        ends = np.flatnonzero((keys[1:] != keys[:-1]).any(axis=1)) + 1
        for equal in np.split(machines, ends) if len(machines) else ():
            yield equal.tolist()

    def _ordered(self) -> tuple[Ints, Ints, Reals]:
        """Return (n,) the machines with room, best first, (n,) their conditions, and (n, 2) their sort keys."""
        machines, conditions = np.array(self._ranked.machines(), np.int64).reshape(-1, 2).T
        numbers, place = np.unique(conditions, return_inverse=True)
        options = {number: self._ranked.choice(number).option for number in numbers.tolist()}
        keys = np.array([option.order for option in options.values()]).reshape(-1, 2)[place]
        keys[:, 1] -= self._scores({number: option.gpus for number, option in options.items()})[machines]
        order = np.lexsort((machines, *keys.T[::-1]))
        return machines[order], conditions[order], keys[order]
