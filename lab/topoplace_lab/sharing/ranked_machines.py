"""The machines of a cluster, ranked for one job request by a rule that rates many conditions at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace._core import MachineRanking
from topoplace.engine.machines.machine_conditions import ConditionMemo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.engine.machines.machine_conditions import Conditions
    from topoplace.engine.machines.machine_options import Choice


class Machines(NamedTuple):
    """The remaining resources of some machines, one row for each condition of machines."""

    conditions: Sequence[int]
    """(n,) the number of each condition."""
    classes: NDArray[np.int32]
    """(n,) the number of each machine's class, the index in `MachineClasses.classes`."""
    millicpus: NDArray[np.int64]
    """(n,) free thousandths of CPUs; 0 unless the rule sees CPUs."""
    left: NDArray[np.int32]
    """(n, g) thousandths left of each GPU; 0 for GPUs unsuitable for the job, and beyond a machine's last GPU."""


class RankedForJob:
    """The machines in the order of their keys for one job request; ties go to the lowest machine number."""

    def __init__(
        self,
        conditions: Conditions,
        needs: tuple[int, int],
        keys: Callable[[Sequence[int]], NDArray[np.float64]],
        choose: Callable[[int, Sequence[float]], Choice],
        *,
        keeps_choices: bool,
    ) -> None:
        """Start without rated conditions.

        needs: thousandths of CPUs and MB that the whole job needs on one machine; (-1, -1) if it needs none.
        keys: returns an array (n, k): the sort key of the best placement in each of these conditions, smaller is
        better; infinite if none fits.
        choose: returns the best placement for a condition and its key, which is finite.
        keeps_choices: True if `choose` is called once for each condition; False if its answers depend on more.
        """
        self._conditions = conditions
        self._needs = needs
        self._keys = keys
        self._choose = choose
        self._ranking = MachineRanking(conditions.native)
        self._kept = ConditionMemo(conditions.native, self._chosen) if keeps_choices else None

    def best(self, least_utility: float = -math.inf) -> tuple[int, Choice] | None:
        """Return (machine, choice) of the best placement; None if there is none, or a utility above 0 is required."""
        machine, condition = self._now().best(*self._needs)
        return None if machine < 0 or least_utility > 0 else (machine, self.choice(condition))

    def choice(self, condition: int) -> Choice:
        """Return the best placement on machines in a condition, which must have room."""
        return self._kept.of(condition) if self._kept else self._chosen(condition)

    def choice_on(self, machine: int) -> Choice:
        """Return the best placement on a machine, which must have room."""
        return self.choice(self._conditions.native.condition_of(machine))

    def able(self) -> NDArray[np.int32]:
        """Return (n,) the machines with room in the best tier, ascending.

        A tier is all machines whose sort keys begin with the same number; the smallest number is the best tier.
        """
        ranking = self._now()
        _, condition = ranking.best(*self._needs)
        key = ranking.key(condition) if condition >= 0 else None
        return ranking.up_to((key[0], math.inf) if key else (), *self._needs)

    def ranked(self) -> Iterator[tuple[int, Choice]]:
        """Yield (machine, choice) of the best placement on every machine, best first, ties by machine."""
        for machine, condition in self.machines():
            yield machine, self.choice(condition)

    def ranked_machines(self, least_utility: float) -> Iterator[list[int]]:
        """Yield groups of machines with equally good best placements, best first; none if a utility above 0 is
        required."""
        if least_utility > 0:
            return
        for _, group in groupby(self.machines(), key=lambda one: self._ranking.key(one[1])):
            yield [machine for machine, _ in group]

    def machines(self) -> list[tuple[int, int]]:
        """Return (machine, condition) of every machine with room, best first."""
        count = len(self._conditions.native.of_machines())
        return self._now().in_order(count, (math.inf,), *self._needs)

    def _chosen(self, condition: int) -> Choice:
        key = self._ranking.key(condition)
        assert key is not None
        return self._choose(condition, key)

    def _now(self) -> MachineRanking:
        ranking = self._ranking
        if unknown := ranking.unknown():
            for condition, key in zip(unknown, self._keys(unknown).tolist(), strict=True):
                ranking.set(condition, None if key[0] == math.inf else key)
        return ranking
