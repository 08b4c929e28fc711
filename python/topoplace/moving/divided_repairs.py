"""Repairs by how a gang is divided among machines: what one machine has of it tells how fast it can be at the most.

Rings leave a machine by the adapters of its tasks, and pass the links between them. So for each such limit, the repair
with the fewest moves in which no machine is slower is found, over all divisions. It is a candidate, and what it moves
tells how fast any repair with fewer moves can be.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace.kernels.limits import check_deadline
from topoplace.moving.replicas import roles_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from topoplace.engine.machines.machine_class import Mask
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.moving.repair_room import RepairRoom
    from topoplace.policies.least_time.bounds import MachineLimits

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
    """What each machine has in a repair with the fewest moves."""

    moves: int
    seconds: float
    """No machine takes longer."""
    parts: Mapping[int, tuple[int, Mask]]
    """The number of units of each machine that has some, and their GPUs; 0 for any."""


@dataclass(frozen=True, slots=True)
class DividedRepairs:
    """The repairs with the fewest moves for each time that no machine exceeds, the longest time first."""

    divisions: list[Division]
    below: float
    """The seconds that all are faster than."""
    are_all: bool
    """True if each repair is one of these divisions, or has more moves."""
    gpus: Callable[[Division], tuple[int, ...]]
    """Return the GPU of each task in a division."""

    def least(self, moves: float) -> float:
        """Return a lower bound on the seconds of repairs with fewer moves."""
        return min((one.seconds for one in self.divisions if one.moves < moves), default=self.below)

    def candidates(self) -> Iterator[tuple[int, ...]]:
        """Yield the GPU of each task in these divisions; of those with as many moves, in the fastest."""
        for one, following in pairwise([*self.divisions, None]):
            if one and (following is None or following.moves > one.moves):
                yield self.gpus(one)


def divided_repairs(room: RepairRoom, limits: MachineLimits, below: float) -> DividedRepairs | None:
    """Return the repairs that take less than some seconds as far as machines limit them; None if they are too many."""
    divider = Divider(room, limits)
    divisions = divider.divisions(below)
    if divisions is None:
        return None
    return DividedRepairs(divisions, below, limits.is_whole and room.is_exact, divider.gpus)


class Divider:
    """Divides a job that is repaired into units: a task, or the tasks of a group that must be on one machine."""

    def __init__(self, room: RepairRoom, limits: MachineLimits) -> None:
        """List the units that may stay on each machine."""
        self._room, self._limits, self._units, self._gpus_of = room, limits, limits.units, room.numbers
        self._by_replica = np.argsort(_first_places(room.job, self._units)).tolist()
        self._machine_of = np.empty(len(room.leaf_of), np.int64)
        for machine, gpus in enumerate(self._gpus_of):
            self._machine_of[list(gpus)] = machine
        old = np.array(room.old)
        self._known = set(self._machine_of[old[old >= 0]].tolist())
        """The machines of the job."""
        self._at_home: dict[int, list[tuple[int, int]]] = defaultdict(list)
        """The units of each machine, those of which most tasks may stay first: minus how many, and the unit."""
        for unit, tasks in enumerate(self._units.tolist()):
            homes = Counter(int(self._machine_of[room.old[task]]) for task in tasks if room.leaf[task] >= 0)
            for machine, stay in homes.most_common(1):
                self._at_home[machine].append((-stay, unit))
        for there in self._at_home.values():
            there.sort()

    # ---- what machines may have --------------------------------------------------------------------------------

    @cached_property
    def _options(self) -> dict[int, Options]:
        """The options of each machine that has some."""
        is_usable = self._room.leaf_of >= 0
        stays = {self._room.old[task] for task in np.flatnonzero(self._room.leaf >= 0).tolist()}
        found: dict[int, Options] = {}
        known: dict[tuple[object, ...], Options] = {}
        for machine, gpus in enumerate(self._gpus_of):
            usable = sum(1 << i for i, gpu in enumerate(gpus) if is_usable[gpu])
            kept = sum(1 << i for i, gpu in enumerate(gpus) if gpu in stays)
            home = tuple([-stay for stay, _ in self._at_home.get(machine, ())])
            key = self._limits.class_of(machine), usable, kept, home
            if usable and key not in known:
                known[key] = self._of_sets(machine, usable, kept) or self._of_counts(usable, home)
            if usable:
                found[machine] = known[key]
        return found

    def _of_sets(self, machine: int, usable: Mask, kept: Mask) -> Options | None:
        seconds = self._limits.of_sets(machine)
        if seconds is None:
            return None
        sets = np.arange(1, len(seconds))
        bits = np.arange(len(self._gpus_of[machine]))
        units, stay = ((of[:, None] >> bits & 1).sum(axis=1) for of in (sets, sets & kept))
        are_few = ((sets & ~usable) == 0) & (units <= len(self._units))
        sets, units, stay = sets[are_few], units[are_few], stay[are_few]
        order = np.lexsort((sets, seconds[sets], -stay, units))
        return Options(units[order], stay[order], seconds[sets][order], sets[order])

    def _of_counts(self, usable: Mask, home: Sequence[int]) -> Options:
        most = min(usable.bit_count() // self._units.shape[1], len(self._units))
        stay = np.cumsum([0, *home])
        units = np.arange(1, most + 1)
        seconds = np.array([self._limits.of_count(count) for count in range(1, most + 1)])
        return Options(units, stay[np.minimum(units, len(stay) - 1)], seconds, np.zeros(most, np.int64))

    # ---- divisions ---------------------------------------------------------------------------------------------

    def divisions(self, below: float) -> list[Division] | None:
        """Return the division with the fewest moves for each limit on the seconds of a machine, the largest first.

        below: what limits are less than. Return None if they are too many.
        """
        seconds = np.unique(np.concatenate([one.seconds for one in self._options.values()]))
        seconds = seconds[seconds < below]
        limits = seconds[np.diff(seconds, append=np.inf) > (_EQUAL - 1) * seconds]
        if (
            sum(len(one.units) for one in self._options.values()) * len(self._units) * len(limits)
            > _MOST_STEPS
        ):
            return None
        found: list[Division] = []
        for limit in limits[::-1].tolist():
            division = self.divided(limit)
            if division is None:
                break
            found.append(division)
        return found

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
        free: dict[int, list[int]] = {}
        homes: dict[int, int] = {}
        for machine, (count, mask) in division.parts.items():
            own = self._gpus_of[machine]
            free[machine] = [
                gpu for i, gpu in enumerate(own) if (mask >> i & 1 if mask else self._room.leaf_of[gpu] >= 0)
            ]
            staying = [
                unit
                for _, unit in self._at_home.get(machine, ())
                if not mask or self._room.old[self._units[unit, 0]] in free[machine]
            ]
            homes.update(dict.fromkeys(staying[:count], machine))
        left = Counter({machine: count for machine, (count, _) in division.parts.items()})
        left.subtract(homes.values())
        places = iter(sorted(left.elements()))
        homes |= {unit: next(places) for unit in self._by_replica if unit not in homes}
        for unit, tasks in enumerate(self._units.tolist()):
            for task in tasks:
                was = self._room.old[task]
                if self._room.leaf[task] >= 0 and was in free[homes[unit]]:
                    gpus[task] = was
                    free[homes[unit]].remove(was)
        for unit, tasks in enumerate(self._units.tolist()):
            for task in tasks:
                if gpus[task] < 0:
                    gpus[task] = free[homes[unit]].pop(0)
        return tuple(gpus)


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


def _first_places(job: JobGraph, units: Ints) -> Ints:
    """Return (units,) for each unit the place of its first task if the tasks of a replica follow each other."""
    place: Ints = np.empty(job.num_tasks, np.int64)
    place[list(chain.from_iterable(roles_of(job).replicas))] = np.arange(job.num_tasks)
    found: Ints = place[units].min(axis=1)
    return found
