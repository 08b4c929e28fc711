"""A rule's answers for the conditions of machines, computed once for each condition and ranked natively."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from topoplace._core import MachineRanking
from topoplace.engine.machines.machine_conditions import ConditionMemo

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState

Answer = TypeVar("Answer")


class ConditionTable(ConditionMemo[Answer]):
    """A rule's answer for each condition of machines, computed from their class and state."""

    def __init__(self, conditions: Conditions, rule: Callable[[MachineClass, MachineState], Answer]) -> None:
        """Start without answers. rule: returns the answer for a machine of the given class and state."""
        super().__init__(conditions.native, lambda condition: rule(*conditions.of(condition)))


class RankedMachines(Generic[Answer]):
    """The machines of a cluster in the order of a key of the rule's answers, ties by machine number."""

    def __init__(
        self, table: ConditionTable[Answer], key: Callable[[Answer], tuple[float, ...] | None]
    ) -> None:
        """Store the arguments. key: returns the sort key of machines with an answer; None leaves them out."""
        self._table = table
        self._key = key
        self._ranking = MachineRanking(table.native)

    def now(self) -> MachineRanking:
        """Return the native ranking of the machines in their present conditions."""
        ranking = self._ranking
        for condition in ranking.unknown():
            ranking.set(condition, self._key(self._table.of(condition)))
        return ranking

    def so_far(self) -> MachineRanking:
        """Return the native ranking of the machines in present conditions, without those for which the rule has no
        answer yet.
        """
        self._ranking.unknown()  # follows the changes
        return self._ranking
