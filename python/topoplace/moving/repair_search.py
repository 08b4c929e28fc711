"""The search for repairs: the fewest moves, then the fastest GPUs, then what further moves gain."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import combinations, permutations
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.deciding.least_time import LeastTime
from topoplace.engine.confined import confined
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.kernels.limits import check_deadline, deadline
from topoplace.moving.fewer_moves import nearer
from topoplace.moving.reassignment import moves_of
from topoplace.moving.repair_room import RepairRoom
from topoplace.objectives.communication import communication_time

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.deciding.divisions import Divisions
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement

    Ints = NDArray[np.int64]

_MOST_TRIED: Final = 20_000
"""Largest number of assignments of moved tasks to GPUs that are all compared, for each number of moves."""
_MOST_PLACED: Final = 64 * _MOST_TRIED
"""Largest number of tasks in all of these."""
_MOST_SWAPPED: Final = 64
"""Largest number of GPUs that are tried for one task after another."""
_MOST_ALIKE: Final = 4
"""Largest number of leaves that are tried for tasks that move together, of those equally near."""
SAME: Final = 1 - 1e-9
"""A time is shorter than another only if it is less than this share of it."""
_TORN: Final = "groups of the job are already in several domains, and no domain has room for them"


class Found(NamedTuple):
    """GPUs for the tasks of a job."""

    gpus: tuple[int, ...]
    """The GPU of each task; -1 for a task without one."""
    seconds: float
    """Communication time of a step; infinite if a task has no GPU."""
    bound: int
    """No repair moves fewer tasks; 0 if tasks are left without a GPU."""
    unrepaired: Mapping[int, str]
    """The tasks without a GPU, with the reason."""
    is_fastest: bool = False
    """True if it is proven that no repair with as many moves is faster."""

    @property
    def is_whole(self) -> bool:
        """Return True if all tasks have a GPU."""
        return not self.unrepaired


class RepairSearch:
    """The search for GPUs for the tasks of a job that has left a cluster, near to where they were."""

    def __init__(
        self,
        job: JobGraph,
        gpus: Sequence[int],
        cluster: Cluster,
        end: float,
        lost: Collection[int] = (),
        policy: LeastTime | None = None,
        *,
        one_by_one: bool = True,
    ) -> None:
        """Store the arguments.

        gpus: the former GPU of each task; -1 for none. end: when the search ends, in seconds of `time.monotonic`. lost:
        the GPUs that tasks must leave; they leave those that the cluster does not offer, too. policy: that of a fresh
        placement, by default the default one. one_by_one: False compares no assignments task by task. Raise ValueError
        for a requirement that is not honoured, a machine with GPUs in fixed partitions, or levels of groups that cross.
        """
        self._room = RepairRoom(job, gpus, cluster, lost, policy or LeastTime())
        self._one_by_one = one_by_one
        self._job, self._old, self._cluster, self._end = job, tuple(gpus), cluster, end
        self._held = [gpu for gpu in gpus if gpu >= 0]
        self._is_open = False
        self.is_complete = False
        """True if it is proven that all repairs that no other one surpasses were found."""

    def limited(self) -> AbstractContextManager[None]:
        """Open a `with` block in which DeadlineError is raised after the end."""
        return deadline(max(0.0, self._end - time.monotonic()))

    # ---- the fewest moves ----------------------------------------------------------------------------------

    def first(self) -> Found:
        """Return the repair with the fewest moves; if not all tasks can get a GPU, one for as many as are found."""
        lost = self._room.lost
        if not self._room.has_offers:
            return Found(
                self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, self._room.no_gpu)
            )
        if whole := self.whole():
            return whole
        packing: kernels.GroupRepacking | None = None
        left: list[int] = []
        unrepaired: dict[int, str] = {}
        for task in sorted(lost, key=self._moves_alone):
            found = self._in_part([*left, task])
            if found is None:
                unrepaired[task] = self._room.why(task)
            else:
                left.append(task)
                packing = found
        packing = packing or self._in_part([])
        if packing is None:  # not even the tasks on healthy GPUs can be as the groups require
            return Found(self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, _TORN))
        return self._assigned(packing, unrepaired)

    def whole(self) -> Found | None:
        """Return the repair of all tasks with the fewest moves; None if there is none."""
        if not self._room.has_offers:
            return None
        with suppress(SearchTimeoutError):
            packing = self._room.packed(self._room.lost, self._seconds_left() / 10)
            if packing is None:
                return None
            if packing.optimal:
                return self._assigned(packing, {})
        if found := self._by_units():
            return found
        packing = self._room.packed(self._room.lost, self._seconds_left() / 2)
        return None if packing is None else self._assigned(packing, {})

    def _by_units(self) -> Found | None:
        """Return the repair with the fewest moves if equal units of the job are on machines; None if they are not."""
        divider = self._room.divider
        division = divider and divider.least_moves()
        if not division or division.gpus is None:
            return None
        gpus = tuple(division.gpus.tolist())
        if not self._room.is_allowed(gpus):
            return None
        return self._fast(
            gpus, [task for task, gpu in enumerate(gpus) if gpu != self._old[task]], division.moves
        )

    def _moves_alone(self, task: int) -> float:
        """Return how many moves it takes to give this task alone a GPU; infinite if none do."""
        found = self._in_part([task])
        return found.moved if found else math.inf

    def _in_part(self, lost: Sequence[int]) -> kernels.GroupRepacking | None:
        """Return `RepairRoom.packed` of some of the tasks; None also if it takes more than their part of the time."""
        with suppress(SearchTimeoutError):
            return self._room.packed(lost, self._seconds_left() / (2 * len(self._room.lost)))
        return None

    def _seconds_left(self) -> float:
        return max(1e-3, self._end - time.monotonic())

    # ---- the GPUs of leaves --------------------------------------------------------------------------------

    def _assigned(self, packing: kernels.GroupRepacking, unrepaired: Mapping[int, str]) -> Found:
        """Return the GPU of each task: tasks stay where the packing lets them, others get the fastest GPUs found."""
        gpus, moved = self._room.spread(packing, unrepaired)
        if unrepaired:
            return Found(tuple(gpus), math.inf, 0, unrepaired)
        return self._fast(gpus, moved, packing.bound if self._room.is_exact else self._room.least_moves)

    def _fast(self, gpus: Sequence[int], moved: Sequence[int], bound: int) -> Found:
        """Return the fastest repair that is found with as many moves; after the deadline, that which is given."""
        if not self._job.edges:
            return Found(tuple(gpus), 0.0, bound, {}, is_fastest=True)
        with suppress(DeadlineError), self.limited():
            if self._one_by_one and self._are_few(len(moved)) and (best := self._fastest(len(moved))):
                return Found(best, self.seconds(best), bound, {}, is_fastest=True)
            best, seconds = self._improved(gpus, moved)
            return Found(best, seconds, bound, {})
        return Found(tuple(gpus), self.seconds(gpus), bound, {})

    def seconds(self, gpus: Sequence[int]) -> float:
        """Return how long the job communicates in a step on these GPUs."""
        cluster, rates = self._cluster, self._room.rates
        return communication_time(self._job, gpus, cluster.topology, cluster=cluster, rates=rates).seconds

    def _improved(self, gpus: Sequence[int], moved: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """Return GPUs of a shorter time: first tasks that move together, then each one, until none is faster.

        Tasks go near to where they were. The search ends once the job is as fast as it was.
        """
        best = list(gpus)
        enough = self.stay if min(self._old) >= 0 else 0.0
        seconds = math.inf
        for unit in self._units(gpus, moved):
            for there in self._elsewhere(best, unit):
                seconds = self._tried(best, unit, there, seconds)
                if seconds * SAME <= enough:
                    return tuple(best), seconds
        seconds = min(seconds, self.seconds(best))
        return self._alone(best, moved, seconds, enough) if self._one_by_one else (tuple(best), seconds)

    def _alone(
        self, best: list[int], moved: Sequence[int], seconds: float, enough: float
    ) -> tuple[tuple[int, ...], float]:
        """Move each task to another GPU while that is faster, until the time is `enough`; return GPUs and time."""
        is_better = bool(moved)
        while is_better and seconds * SAME > enough:
            before = seconds
            for task in moved:
                for gpu in self._near(best, task):
                    seconds = self._tried(best, [task], [gpu], seconds)
            is_better = seconds < before
        return tuple(best), seconds

    def _tried(self, gpus: list[int], tasks: Sequence[int], there: Sequence[int], seconds: float) -> float:
        """Put tasks on other GPUs, or leave them where they are if this takes no less than `seconds`; return the time.

        Raise DeadlineError after the deadline.
        """
        check_deadline()
        here = [gpus[task] for task in tasks]
        self._put(gpus, tasks, there)
        if self._room.is_hosted(gpus) and (tried := self.seconds(gpus)) < seconds * SAME:
            return tried
        self._put(gpus, tasks, here)
        return seconds

    @staticmethod
    def _put(gpus: list[int], tasks: Sequence[int], there: Sequence[int]) -> None:
        for task, gpu in zip(tasks, there, strict=True):
            gpus[task] = gpu

    def _units(self, gpus: Sequence[int], moved: Sequence[int]) -> list[list[int]]:
        """Return the tasks that move together, to leaves on which the job has no other tasks."""
        leaf = self._room.leaf_of[list(gpus)]
        is_used = np.zeros(int(leaf.max()) + 1, np.bool_)
        is_used[np.delete(leaf, moved)] = True
        units: dict[int, list[int]] = defaultdict(list)
        for task in moved:
            units[int(leaf[task])].append(task)
        return [tasks for there, tasks in units.items() if not is_used[there]]

    def _elsewhere(self, gpus: Sequence[int], unit: Sequence[int]) -> Iterator[list[int]]:
        """Yield GPUs of other leaves for tasks that move together, the leaves nearest to where they were first.

        Of the leaves that are equally near, only a few are tried.
        """
        domains = self._room.domains
        anchor = next((self._old[task] for task in unit if self._old[task] >= 0), self._peer(gpus, unit))
        near = np.zeros(len(domains.parent) - domains.first_leaf, dtype=np.int64)
        if anchor >= 0:
            machine = int(self._cluster.topology.machine_of[anchor])
            for level in domains.levels:
                near += level.codes[domains.leaf_machines] == level.codes[machine]
        leaves = self._room.leaf_of[list(gpus)] - domains.first_leaf
        free = np.bincount(np.delete(leaves, unit), minlength=len(near)) == 0
        free &= (domains.left() >= len(unit)) & self._room.beside_groups(leaves, unit)
        for closeness in range(int(near.max(initial=0)), -1, -1):
            for leaf in np.flatnonzero(free & (near == closeness))[:_MOST_ALIKE].tolist():
                there = self._room.gpus_of(leaf + domains.first_leaf)[: len(unit)]
                if len(there) == len(unit):
                    yield there

    def _peer(self, gpus: Sequence[int], unit: Sequence[int]) -> int:
        """Return the GPU of a task outside the unit with which its tasks communicate; -1 for none."""
        edges = self._job.edge_array[:, :2].astype(np.int64)
        inside = np.isin(edges, unit)
        peers = edges[inside.any(axis=1) & ~inside.all(axis=1)]
        return gpus[next((task for task in peers[0].tolist() if task not in unit), 0)] if len(peers) else -1

    def _near(self, gpus: Sequence[int], task: int) -> list[int]:
        """Return the free GPUs that a task may have instead: of its machine, then of others that the job uses."""
        domains, machine_of = self._room.domains, self._cluster.topology.machine_of
        leaves = self._room.leaf_of[list(gpus)] - domains.first_leaf
        room = domains.left()
        has_room = np.bincount(np.delete(leaves, task), minlength=len(room)) < room
        has_room &= self._room.beside_groups(leaves, [task])
        allowed = self._room.leaf_of >= 0
        allowed[allowed] = has_room[self._room.leaf_of[allowed] - domains.first_leaf]
        allowed[list(gpus)] = False
        free = np.flatnonzero(allowed)
        is_used = np.isin(machine_of[free], machine_of[list(gpus)])
        order = np.lexsort((free, ~is_used, machine_of[free] != machine_of[gpus[task]]))
        found: list[int] = free[order[:_MOST_SWAPPED]].tolist()
        return found

    # ---- further moves -------------------------------------------------------------------------------------

    def front(self, *, further: bool = True) -> list[Found]:
        """Return repairs, fewest moves first, each faster than those before it; `is_complete` says if they are all.

        further: False returns the first alone.
        """
        found = [self.first()]
        if further and found[0].is_whole:
            with suppress(DeadlineError), self.limited():
                for one in self._further(found[0]):
                    found.append(one)  # noqa: PERF402 - what is found before the deadline counts
        front = self._best(found)
        self.is_complete = self.is_complete and self.moves(front[0].gpus) == front[0].bound
        return front

    def _best(self, found: Sequence[Found]) -> list[Found]:
        """Return those that no other one surpasses, fewest moves first."""
        ordered = sorted(found, key=lambda one: (self.moves(one.gpus), one.seconds))
        front = ordered[:1]
        for one in ordered[1:]:
            if one.seconds < front[-1].seconds * SAME:
                front.append(one)
        return front

    def _divided(self, first: Found) -> tuple[Divisions | None, list[Found]]:
        """Return the divisions of the job among machines, and the repairs with the fewest moves that have them."""
        divider = self._room.divider
        divisions = divider.divisions(first.seconds) if divider else None
        found: list[Found] = []
        for gpus in divisions.candidates() if divisions else ():
            check_deadline()
            if self._room.is_allowed(gpus):
                found.append(first._replace(gpus=gpus, seconds=self.seconds(gpus)))
        return divisions, found

    def _are_all(self, divisions: Divisions | None, front: Sequence[Found]) -> bool:
        """Return True if it is proven that repairs with fewer moves than each one are no faster than that before it."""
        moves = [self.moves(one.gpus) for one in front]
        if divisions is None:
            return False
        return all(
            one.seconds <= divisions.least(following) * (1 + self._room.policy.slack)
            for one, following in zip(front, [*moves[1:], math.inf], strict=True)
        )

    def _further(self, first: Found) -> Iterator[Found]:
        """Yield repairs with more moves than the first.

        They are placements by the policy, on the machines of the job and on all, and divisions of the job among
        machines. Unless these are proven to be all, the assignments of each number of moves are compared if they are
        few.
        """
        fresh = self.fresh if self._job.edges else None
        if fresh is None:
            self.is_complete = not self._job.edges and self._room.is_exact
            return
        found = [self._nearer(first, one.gpus) for one in (self._beside(first), fresh) if one]
        divisions, divided = self._divided(first)
        found += divided
        yield from found
        if not self._are_all(divisions, self._best([first, *found])):
            for one in self._all_few(first, found):
                found.append(one)
                yield one
            least = (fresh.bound or 0.0) * (1 + self._room.policy.slack)
            is_last_least = not self._is_open and min(one.seconds for one in found) <= least
            if not (is_last_least and self._room.is_exact and (first.is_fastest or first.seconds <= least)):
                self.is_complete = self._are_all(divisions, self._best([first, *found]))
                return
        self.is_complete = True

    def _beside(self, first: Found) -> Placement | None:
        """Return the placement of the job if it may use the machines of a repair alone; None if nothing fits."""
        names = self._cluster.topology.machine_names
        machines: list[int] = self._cluster.topology.machine_of[list(first.gpus)].tolist()
        used = {names[machine] for machine in machines}
        return confined(self._room.policy, set(names) - used).place(self._job, self._cluster)

    def _nearer(self, first: Found, gpus: tuple[int, ...]) -> Found:
        """Return the placement with the fewest moves of those that are found to be as fast as this one."""
        seconds, stay = self.seconds(gpus), {self._old[task] for task in np.flatnonzero(self._room.leaf >= 0)}
        for one in nearer(self._job, self._old, gpus, self._cluster.topology.machine_of, stay):
            check_deadline()
            if self._room.is_allowed(one) and (tried := self.seconds(one)) * SAME <= seconds:
                return first._replace(gpus=one, seconds=tried)
        return first._replace(gpus=gpus, seconds=seconds)

    def _all_few(self, first: Found, others: Sequence[Found]) -> Iterator[Found]:
        """Yield the fastest repair of each number of moves, until one takes no more than the fastest of others.

        They end where assignments are too many to compare; the search is then open.
        """
        target = min(one.seconds for one in others)
        last = min(self.moves(one.gpus) for one in others if one.seconds * SAME <= target)
        moves, best = self.moves(first.gpus) + 1, first.seconds
        while moves < last and target < best * SAME and self._are_few(moves):
            if gpus := self._fastest(moves):
                seconds = self.seconds(gpus)
                yield first._replace(gpus=gpus, seconds=seconds)
                best = min(best, seconds)
            moves += 1
        self._is_open = moves < last and target < best * SAME

    @cached_property
    def stay(self) -> float:
        """How long the job communicates in a step on the GPUs that it had."""
        return self.seconds(self._old)

    @cached_property
    def fresh(self) -> Placement | None:
        """The placement of the job if it had never run; None if nothing fits."""
        return self._room.policy.place(self._job, self._cluster)

    def moves(self, gpus: Sequence[int]) -> int:
        """Return how many tasks are not on the GPU that they had."""
        return sum(a != b for a, b in zip(self._old, gpus, strict=True))

    @cached_property
    def _free(self) -> list[int]:
        """The GPUs that the job may use and no task of it has that may stay, ascending."""
        is_free = self._room.leaf_of >= 0
        is_free[np.array(self._old)[self._room.leaf >= 0]] = False
        free: list[int] = np.flatnonzero(is_free).tolist()
        return free

    def _are_few(self, moves: int) -> bool:
        """Return True if all assignments with this number of moves can be compared."""
        more = moves - len(self._room.lost)
        if more < 0 or len(self._free) + more < moves:
            return True
        most = min(_MOST_TRIED, _MOST_PLACED // len(self._old))
        stay = len(self._old) - len(self._room.lost)
        return math.comb(stay, more) * math.perm(len(self._free) + more, moves) <= most

    def _fastest(self, moves: int) -> tuple[int, ...] | None:
        """Return the fastest GPUs with exactly this number of moves; None if the groups allow none.

        Of times that count as equal, the fewest new machines come first, then the fewest tasks that change machine,
        then those that stay near.
        """
        more = moves - len(self._room.lost)
        best: tuple[int, ...] | None = None
        least, least_key = math.inf, (0, 0, 0)
        for tried in self._all_of(self._room.lost, self._free, more) if more >= 0 else ():
            check_deadline()
            if not self._room.is_allowed(tried):
                continue
            seconds = self.seconds(tried)
            machines, tasks, _ = moves_of(self._old, tried, self._held, self._cluster.topology)
            key = machines, tasks, self._away(tried)
            if best is None or seconds < least * SAME or (seconds * SAME < least and key < least_key):
                best, least, least_key = tried, min(seconds, least), key
        return best

    def _away(self, gpus: Sequence[int]) -> int:
        """Return how many tasks are in another domain than they were, over all levels."""
        machine_of, old = self._cluster.topology.machine_of, np.array(self._old)
        was, now = machine_of[old], machine_of[list(gpus)]
        levels = self._room.domains.levels
        return sum(int(((one.codes[was] != one.codes[now]) & (old >= 0)).sum()) for one in levels)

    def _all_of(self, lost: Sequence[int], free: Sequence[int], more: int) -> Iterator[tuple[int, ...]]:
        """Yield all GPUs of the tasks if the lost ones and `more` others move."""
        staying: list[int] = np.flatnonzero(self._room.leaf >= 0).tolist()
        for others in combinations(staying, more):
            tasks, given_up = (*lost, *others), [self._old[task] for task in others]
            stay = [-1] * len(lost) + given_up
            for chosen in permutations(sorted((*free, *given_up)), len(tasks)):
                if not any(map(eq, chosen, stay)):
                    yield self._with(tasks, chosen)

    def _with(self, tasks: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
        gpus = list(self._old)
        for task, gpu in zip(tasks, chosen, strict=True):
            gpus[task] = gpu
        return tuple(gpus)
