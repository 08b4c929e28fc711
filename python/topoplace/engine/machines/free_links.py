"""The bandwidth among the free GPUs of all machines, kept up to date as machines change."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_conditions import ConditionTable, RankedMachines
from topoplace.engine.memo import Memo
from topoplace.objectives.links import remaining_bandwidth

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState


class FreeLinks:
    """The links among the free GPUs of each machine, which `objectives.preserved_bandwidth` sums over a cluster.

    Machines in one condition share one computation, and only new conditions are computed.
    """

    def __init__(self, conditions: Conditions, free_on: Callable[[MachineClass, MachineState], Mask]) -> None:
        """Store the arguments. free_on: returns the GPUs that count as free on a machine of a class and state."""
        self._conditions = conditions
        self._free_on = free_on
        self._known: Memo[tuple[MachineClass, Mask], float] = Memo()
        self._table = ConditionTable(conditions, lambda one, state: self._among(one, free_on(one, state)))
        self._ranked = RankedMachines(self._table, lambda gb_per_s: (gb_per_s,))

    def without(self, taken: Mapping[int, Mask]) -> float:
        """Return the GB/s of the links inside all machines among the GPUs that are free and not in `taken`.

        taken: for each machine, its GPUs as a bit mask of local numbers.
        """
        total = [key[0] * machines for key, machines in self._ranked.now().counts()]
        return math.fsum([*total, *self._changes(taken.items())])

    def _changes(self, taken: Iterable[tuple[int, Mask]]) -> Iterable[float]:
        for machine, gpus in taken:
            machine_class, state = self._conditions.of_machine(machine)
            yield -self._table.of_machine(machine)
            yield self._among(machine_class, self._free_on(machine_class, state) & ~gpus)

    def _among(self, machine_class: MachineClass, gpus: Mask) -> float:
        def build() -> float:
            return remaining_bandwidth((), machine_class.alone, list(members(gpus)))

        return self._known.get_or_build((machine_class, gpus), build)
