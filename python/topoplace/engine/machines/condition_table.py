"""What a rule says of the conditions of machines: asked once for each condition, and ranked natively."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from topoplace._core import MachineRanking

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState

Answer = TypeVar("Answer")
_MIN_KEPT = 256
"""Conditions without machines whose answers are kept, besides as many as have machines."""


class ConditionMemo(Generic[Answer]):
    """An answer for each condition of machines, computed on first use."""

    def __init__(self, conditions: Conditions, rule: Callable[[int], Answer]) -> None:
        """Start with no answer. rule: returns the answer for a condition, by its number."""
        self.conditions = conditions
        self._rule = rule
        self._answers: dict[int, Answer] = {}
        self._generation: int | None = None
        self._most_kept = _MIN_KEPT

    def of(self, condition: int) -> Answer:
        """Return the answer for machines in a condition."""
        if self._generation != self.conditions.native.generation:
            self._answers.clear()
            self._generation = self.conditions.native.generation
        answer = self._answers.get(condition)
        if answer is None:
            answer = self._answers[condition] = self._rule(condition)
            if len(self._answers) > self._most_kept:
                self._forget()
        return answer

    def of_machine(self, machine: int) -> Answer:
        """Return the answer for machine number `machine`."""
        return self.of(self.conditions.native.condition_of(machine))

    def _forget(self) -> None:
        """Drop the answers for conditions without machines."""
        present = set(self.conditions.native.present())
        self._answers = {one: answer for one, answer in self._answers.items() if one in present}
        self._most_kept = 2 * len(present) + _MIN_KEPT


class ConditionTable(ConditionMemo[Answer]):
    """A rule's answer for each condition of machines, which it gives by their class and state."""

    def __init__(self, conditions: Conditions, rule: Callable[[MachineClass, MachineState], Answer]) -> None:
        """Start with no answer. rule: returns the answer for a machine of the given class and state."""
        super().__init__(conditions, lambda condition: rule(*conditions.of(condition)))


class RankedMachines(Generic[Answer]):
    """The machines of a cluster in the order of a key of the rule's answers, ties by machine number."""

    def __init__(
        self, table: ConditionTable[Answer], key: Callable[[Answer], tuple[float, ...] | None]
    ) -> None:
        """key: returns the sort key of machines with this answer; None for machines that are left out."""
        self._table = table
        self._key = key
        self._ranking = MachineRanking(table.conditions.native)

    def now(self) -> MachineRanking:
        """Return the native ranking of the machines in their present conditions."""
        ranking = self._ranking
        for condition in ranking.unknown():
            ranking.set(condition, self._key(self._table.of(condition)))
        return ranking
