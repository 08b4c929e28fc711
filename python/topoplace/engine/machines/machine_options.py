"""The options of one job request on all machines, computed once for each condition of machines and ranked natively."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from topoplace import _checks
from topoplace._core import MachineRanking
from topoplace.engine.machines.machine_conditions import ConditionMemo, ConditionTable, set_keys

if TYPE_CHECKING:
    from topoplace._core import DomainFill
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.machines.machine_conditions import Conditions, MachineState

_FIRST_CONDITIONS = 8
"""The number of conditions that are first searched for an option of enough utility."""


class Option(NamedTuple):
    """One way to place a whole job on one machine."""

    order: tuple[float, ...]
    """Sort key; smaller is better."""
    gpus: tuple[int, ...]
    """The GPU of each task, by its local number on the machine."""
    utility: float
    """The utility to the job; larger is better."""
    details: Any
    """Policy-specific data, later passed to `MachinePolicy.scores`."""

    def checked(self) -> Option:
        """Return the option with its sort key and utility as floats, by which machines are compared.

        Raise ValueError unless both are numbers that can be compared.
        """
        try:
            order, utility = tuple(map(float, self.order)), float(self.utility)
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(f"{self._compared()}: {error}") from None
        if math.isnan(utility) or any(map(math.isnan, order)):
            raise ValueError(f"{self._compared()}: NaN cannot be compared")
        return Option(order, self.gpus, utility, self.details)

    def _compared(self) -> str:
        return f"order = {_checks.shown(self.order)}, utility = {_checks.shown(self.utility)} of an option"


Options = Sequence[Option]
"""The ways to place a whole job on one machine, best first."""


class Choice(NamedTuple):
    """An option together with the scores of a placement by it."""

    option: Option
    scores: Mapping[str, float]


class DomainOrder(NamedTuple):
    """Order by domain: of machines whose sort keys begin equally, those in the fullest domains come first."""

    domains: DomainFill
    """The domains of all levels."""
    after: int
    """The count of numbers of an option's sort key that precede the domains; the others follow them."""


class OptionTable(Protocol):
    """The options of machines in each condition, best first."""

    def rank(self, ranking: MachineRanking) -> None:
        """Set the sort key of the first option of all conditions that a ranking does not know yet."""
        ...

    def first(self, condition: int) -> Option:
        """Return the first option of a condition that has one."""
        ...

    def options(self, condition: int) -> Options:
        """Return all options of a condition, best first; () if there are none."""
        ...


class RuleOptions:
    """The options by a rule in Python, which is evaluated once for each condition."""

    def __init__(
        self, conditions: Conditions, evaluate: Callable[[MachineClass, MachineState], Options]
    ) -> None:
        """Start with no condition evaluated.

        evaluate: returns the options of a machine of the given class and state, best first; () if there are none.
        """
        self.options = ConditionTable(conditions, evaluate).of

    def first(self, condition: int) -> Option:
        """Return the first option of a condition that has one."""
        return self.options(condition)[0]

    def rank(self, ranking: MachineRanking) -> None:
        """Set the sort key of the first option of all conditions that a ranking does not know yet."""
        set_keys(ranking, self._first_order)

    def _first_order(self, condition: int) -> tuple[float, ...] | None:
        options = self.options(condition)
        return options[0].order if options else None


class MachineOptions:
    """The options of every machine for one job request.

    Machines that change move to another condition, and only new conditions are evaluated.
    """

    def __init__(
        self,
        conditions: Conditions,
        needs: tuple[int, int],
        table: OptionTable,
        scores: Callable[[MachineClass, Option], Mapping[str, float]],
        domains: DomainOrder | None = None,
    ) -> None:
        """Store the arguments.

        needs: CPUs and MB that the whole job needs on one machine; (-1, -1) if it needs none. scores: returns the
        scores of a placement by an option. domains: the place of domains in the order; None ignores them.
        """
        self.domains = domains
        """The place of domains in the order; None if they do not count."""
        self.conditions = conditions
        """The conditions that are evaluated."""
        self._needs, self._scores = needs, scores
        self.table = table
        """The options in each condition."""
        self.by_order = MachineRanking(conditions.native)
        """The machines, ordered by their best options."""
        self._by_utility = MachineRanking(conditions.native)
        self.choice_in = ConditionMemo(conditions.native, self._first_choice).of
        """Returns the best choice on the machines in a condition, which must have an option."""

    def best(self, least_utility: float = -math.inf) -> tuple[int, Choice] | None:
        """Return (machine, choice) of the best option with a utility of at least `least_utility`, else None.

        Ties go to the machine in the fullest domains, if these count, then to that with the lowest number.
        """
        self.table.rank(self.by_order)
        found = self._first_of()
        if found is None or found[1].option.utility >= least_utility:
            return found
        return self._best_above(least_utility)

    def known_best(self) -> tuple[int, int] | None:
        """Return (machine, condition) of the result of `best`; None if there is none, or a condition is not evaluated
        yet.
        """
        ranking, domains = self.by_order, self.domains
        if domains is None:
            found = ranking.known_best(*self._needs)
        else:
            found = ranking.known_best_by_domain(*domains, *self._needs)
        return None if found is None or found[0] < 0 else found

    def best_so_far(self) -> tuple[int, Choice] | None:
        """Return the result of `best` among machines in conditions that are already evaluated."""
        self.by_order.unknown()  # follows the changes
        return self._first_of()

    def _first_of(self) -> tuple[int, Choice] | None:
        if self.domains is None:
            machine, condition = self.by_order.best(*self._needs)
        else:
            machine, condition = self.by_order.best_by_domain(*self.domains, *self._needs)
        if machine < 0:
            return None
        return machine, self.choice_in(condition)

    def _best_above(self, least_utility: float) -> tuple[int, Choice] | None:
        set_keys(self._by_utility, self._most_utility_first)
        machine, condition = self._by_utility.best(*self._needs)
        if machine < 0 or max(option.utility for option in self.table.options(condition)) < least_utility:
            return None
        count = _FIRST_CONDITIONS
        while True:
            entries = self.by_order.first(count, *self._needs)
            found, is_best = self._best_among(entries, least_utility)
            if found is not None and (is_best or len(entries) < count):
                _, machine, condition, option = found
                return machine, self._choice(condition, option)
            count *= 4

    def _best_among(
        self, entries: Sequence[tuple[int, int]], least_utility: float
    ) -> tuple[tuple[tuple[float, ...], int, int, Option] | None, bool]:
        """Return the best option of enough utility in `entries`, and True if no entry after them can be better.

        entries: pairs of machine and condition, in the order of the conditions' first options.
        """
        found: tuple[tuple[float, ...], int, int, Option] | None = None
        for machine, condition in entries:
            options = self.table.options(condition)
            if found is not None and options[0].order > found[0]:
                return found, True
            good = next((option for option in options if option.utility >= least_utility), None)
            if good is not None and (found is None or (good.order, machine) < found[:2]):
                found = good.order, machine, condition, good
        return found, False

    def ranked(self) -> Iterator[tuple[int, Choice]]:
        """Yield (machine, choice) of every option of every machine: best first, ties by machine, then by option."""
        entries = [
            (option.order, condition, number, option)
            for condition in self.conditions.native.present()
            for number, option in enumerate(self.table.options(condition))
        ]
        entries.sort(key=lambda entry: entry[0])
        for _, group in groupby(entries, key=lambda entry: entry[0]):
            ways = [
                [(machine, number, condition, option) for machine in self._hosting(condition)]
                for _, condition, number, option in group
            ]
            for machine, _, condition, option in heapq.merge(*ways, key=lambda way: way[:2]):
                yield machine, self._choice(condition, option)

    def ranked_machines(self, least_utility: float) -> Iterator[list[int]]:
        """Yield lists of machines whose best options, of at least this utility, are equally good; best first."""
        conditions: dict[tuple[float, ...], list[int]] = {}
        for condition in self.conditions.native.present():
            options = self.table.options(condition)
            good = next((option for option in options if option.utility >= least_utility), None)
            if good is not None:
                conditions.setdefault(good.order, []).append(condition)
        for order in sorted(conditions):
            machines = sorted(machine for one in conditions[order] for machine in self._hosting(one))
            if machines:
                yield machines

    def _hosting(self, condition: int) -> list[int]:
        """Return the machines in a condition that have the CPUs and memory of the whole job, ascending."""
        return self.conditions.native.machines(condition, *self._needs)

    def _most_utility_first(self, condition: int) -> tuple[float, ...] | None:
        options = self.table.options(condition)
        return (-max(option.utility for option in options),) if options else None

    def _first_choice(self, condition: int) -> Choice:
        return self._choice(condition, self.table.first(condition))

    def _choice(self, condition: int, option: Option) -> Choice:
        machine_class, _ = self.conditions.of(condition)
        return Choice(option, self._scores(machine_class, option))
