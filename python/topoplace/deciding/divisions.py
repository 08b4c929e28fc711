"""Divisions of a gang among machines: what one machine has of it tells how fast it can be at the most.

Rings leave a machine by the adapters of its tasks, and pass the links between them (`bounds.MachineLimits`). So for
each such limit, the division in which no machine is slower and the most tasks stay where they were is found, over all
divisions. It is a candidate, and no placement in which more tasks stay is within the limit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace.kernels.limits import check_deadline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from topoplace.deciding.bounds import MachineLimits
    from topoplace.engine.machines.machine_class import Mask

    Ints = NDArray[np.int64]
    Reals = NDArray[np.float64]

_MOST_STEPS: Final = 100_000_000
"""Limit on units x options of machines x limits that are gone through."""
_NONE: Final = -(1 << 60)
_EQUAL: Final = 1 + 1e-9


class Options(NamedTuple):
    """What a machine may have of a job: of equal units, that with which the most tasks stay comes first."""

    units: Ints
    """(o,) ascending"""
    stay: Ints
    """(o,) the tasks that need not move."""
    seconds: Reals
    """(o,) the least seconds of the job."""
    gpus: Ints
    """(o,) the GPUs as a bit mask; 0 for any."""

    def within(self, limit: float) -> Options:
        """Return the best option for each number of units, of those that take no longer than `limit`."""
        left = np.flatnonzero(self.seconds <= limit * _EQUAL)
        _, firsts = np.unique(self.units[left], return_index=True)
        best = left[firsts]
        return Options(self.units[best], self.stay[best], self.seconds[best], self.gpus[best])


class Division(NamedTuple):
    """What each machine has."""

    moves: int
    """Tasks that do not stay where they were."""
    seconds: float
    """No machine takes longer."""
    parts: Mapping[int, tuple[int, Mask]]
    """The number of units of each machine that has some, and their GPUs; 0 for any."""


@dataclass(frozen=True, slots=True)
class Divisions:
    """The divisions with the fewest moves for each time that no machine exceeds, the longest time first."""

    found: list[Division]
    below: float
    """The seconds that all are faster than."""
    gpus: Callable[[Division], tuple[int, ...]]
    """Return the GPU of each task in a division."""

    def least(self, moves: float) -> float:
        """Return a lower bound on the seconds of placements with fewer moves that divide no unit."""
        return min((one.seconds for one in self.found if one.moves < moves), default=self.below)

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield the GPU of each task in these divisions; of those with as many moves, in the fastest."""
        for one, following in pairwise([*self.found, None]):
            if one and (following is None or following.moves > one.moves):
                yield self.gpus(one)


class Divider:
    """Divides a job by its units: tasks, or the tasks of each group that must be on one machine."""

    def __init__(
        self,
        limits: MachineLimits,
        usable: NDArray[np.bool_],
        most: Ints,
        stays: Sequence[int] | None = None,
        known: Collection[int] = (),
        order: Sequence[int] | None = None,
    ) -> None:
        """List the units that may stay on each machine.

        Args:
            usable: (GPUs,) True for GPUs that the job may use.
            most: (machines,) the most tasks of each machine.
            stays: The GPU on which each task may stay; -1 for none. None if no task was anywhere.
            known: The machines of the job; of divisions with as few moves, that with the fewest others is found.
            order: The units in the order in which those that move get their places; None for ascending.
        """
        self._limits, self._units, self._gpus_of = limits, limits.units, limits.gpus_of
        self._usable, self._most, self._known, self._machine_of = usable, most, set(known), limits.machine_of
        self._stays = [-1] * self._units.size if stays is None else stays
        self._order = range(len(self._units)) if order is None else order
        self._at_home: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """The units of each machine, those of which most tasks may stay first: minus how many, and the unit."""
        rows: list[list[int]] = self._units.tolist() if stays else []
        for unit, tasks in enumerate(rows):
            homes = Counter(int(self._machine_of[gpu]) for task in tasks if (gpu := self._stays[task]) >= 0)
            for machine, stay in homes.most_common(1):
                self._at_home[machine].append((-stay, unit))
        for there in self._at_home.values():
            there.sort()

    # ---- what machines may have --------------------------------------------------------------------------------

    @cached_property
    def _options(self) -> dict[int, Options]:
        """The options of each machine that has some."""
        stays = set(self._stays)
        found: dict[int, Options] = {}
        known: dict[tuple[object, ...], Options] = {}
        for machine in np.flatnonzero(self._most >= self._units.shape[1]).tolist():
            gpus, most = self._gpus_of[machine], int(self._most[machine]) // self._units.shape[1]
            usable = sum(1 << i for i, gpu in enumerate(gpus) if self._usable[gpu])
            kept = sum(1 << i for i, gpu in enumerate(gpus) if gpu in stays)
            home = tuple([-stay for stay, _ in self._at_home.get(machine, ())])
            key = self._limits.class_of(machine), usable, kept, home, most
            if key not in known:
                known[key] = self._of_sets(machine, usable, kept, most) or self._of_counts(home, most)
            found[machine] = known[key]
        return found

    def _of_sets(self, machine: int, usable: Mask, kept: Mask, most: int) -> Options | None:
        seconds = self._limits.of_sets(machine)
        if seconds is None:
            return None
        sets = np.arange(1, len(seconds))
        bits = np.arange(len(self._gpus_of[machine]))
        units, stay = ((of[:, None] >> bits & 1).sum(axis=1) for of in (sets, sets & kept))
        are_allowed = ((sets & ~usable) == 0) & (units <= min(most, len(self._units)))
        sets, units, stay = sets[are_allowed], units[are_allowed], stay[are_allowed]
        order = np.lexsort((sets, seconds[sets], -stay, units))
        return Options(units[order], stay[order], seconds[sets][order], sets[order])

    def _of_counts(self, home: Sequence[int], most: int) -> Options:
        units = np.arange(1, min(most, len(self._units)) + 1)
        stay = np.cumsum([0, *home])
        seconds = np.array([self._limits.of_count(count) for count in units.tolist()])
        return Options(units, stay[np.minimum(units, len(stay) - 1)], seconds, np.zeros(len(units), np.int64))

    # ---- divisions ---------------------------------------------------------------------------------------------

    def divisions(self, below: float) -> Divisions | None:
        """Return the division with the fewest moves for each limit on the seconds of a machine; None for too many.

        below: what limits are less than.
        """
        limits = self._limits_below(below)
        found: list[Division] = []
        for limit in limits or ():
            division = self.divided(limit)
            if division is None:
                break
            found.append(division)
        return None if limits is None else Divisions(found, below, self.gpus)

    def fastest(self) -> Divisions | None:
        """Return the division with the least limit alone; None if limits are too many, or there is no room."""
        limits = self._limits_below(np.inf) or []
        best, low, high = None, 0, len(limits)
        while low < high:
            middle = (low + high) // 2
            if (division := self.divided(limits[middle])) is None:
                high = middle
            else:
                best, low = division, middle + 1
        return best and Divisions([best], np.inf, self.gpus)

    def _limits_below(self, below: float) -> list[float] | None:
        """Return the seconds that machines take, the most first; None if they are too many."""
        every = np.unique(np.concatenate([np.empty(0), *(one.seconds for one in self._options.values())]))
        seconds = every[every < below]
        limits: list[float] = seconds[np.diff(seconds, append=np.inf) > (_EQUAL - 1) * seconds][::-1].tolist()
        work = sum(len(one.units) for one in self._options.values()) * len(self._units) * len(limits)
        return limits if work <= _MOST_STEPS else None

    def divided(self, limit: float) -> Division | None:
        """Return the division with the fewest moves in which no machine takes longer; None if there is none.

        Of those, it has the fewest new machines.
        """
        count, scale = len(self._units), len(self._gpus_of) + 1
        best = np.full(count + 1, _NONE, np.int64)
        best[0] = 0
        within: dict[int, Options] = {}
        picked: list[tuple[int, Options, Ints]] = []
        for machine, options in self._options.items():
            check_deadline()
            if id(options) not in within:
                within[id(options)] = options.within(limit)
            best, pick = _with_machine(best, within[id(options)], scale, machine not in self._known)
            picked.append((machine, within[id(options)], pick))
        if best[count] <= -scale:
            return None
        parts: dict[int, tuple[int, Mask]] = {}
        left = count
        for machine, options, pick in reversed(picked):
            if (option := int(pick[left])) >= 0:
                parts[machine] = int(options.units[option]), int(options.gpus[option])
                left -= parts[machine][0]
        return Division(self._units.size - -(-int(best[count]) // scale), limit, parts)

    # ---- their GPUs --------------------------------------------------------------------------------------------

    def gpus(self, division: Division) -> tuple[int, ...]:
        """Return the GPU of each task in a division."""
        gpus = [-1] * self._units.size
        free = {machine: self._allowed(machine, mask) for machine, (_, mask) in division.parts.items()}
        homes = self._homes(division, free)
        units: list[list[int]] = self._units.tolist()
        for unit, tasks in enumerate(units):
            for task in tasks:
                if (was := self._stays[task]) in free[homes[unit]]:
                    gpus[task] = was
                    free[homes[unit]].remove(was)
        for unit, tasks in enumerate(units):
            for task in tasks:
                if gpus[task] < 0:
                    gpus[task] = free[homes[unit]].pop(0)
        return tuple(gpus)

    def _allowed(self, machine: int, mask: Mask) -> list[int]:
        """Return the GPUs of a machine that are in a mask, or all that the job may use for 0."""
        own = self._gpus_of[machine]
        return [gpu for i, gpu in enumerate(own) if (mask >> i & 1 if mask else self._usable[gpu])]

    def _homes(self, division: Division, free: Mapping[int, Sequence[int]]) -> dict[int, int]:
        """Return the machine of each unit: those that may stay do, others follow each other."""
        homes: dict[int, int] = {}
        left: Counter[int] = Counter()
        for machine, (count, mask) in division.parts.items():
            there = [unit for _, unit in self._at_home.get(machine, ())]
            if mask:  # a unit is a task
                there = [unit for unit in there if self._stays[self._units[unit, 0]] in free[machine]]
            homes.update(dict.fromkeys(there[:count], machine))
            left[machine] = count - len(there[:count])
        places = iter(sorted(left.elements()))
        return homes | {unit: next(places) for unit in self._order if unit not in homes}


def _with_machine(best: Ints, options: Options, scale: int, is_new: bool) -> tuple[Ints, Ints]:
    """Return `best` if a machine is added, and its option; -1 for none.

    best: for each number of units, the most tasks that stay, times `scale`, less the number of new machines.
    """
    found, pick = best.copy(), np.full(len(best), -1)
    for option, (units, stay) in enumerate(zip(options.units.tolist(), options.stay.tolist(), strict=True)):
        tried = best[: len(best) - units] + (stay * scale - is_new)
        is_better = tried > found[units:]
        found[units:][is_better] = tried[is_better]
        pick[units:][is_better] = option
    return found, pick
