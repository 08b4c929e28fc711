"""The search for a repair: which leaves of the tree of domains, by `kernels.repack_groups`, then which GPUs there."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property, lru_cache
from itertools import combinations, islice, permutations
from operator import eq, ne
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.cluster.hosts import HostAllocation, host_shares, needs_hosts, shared_cpus
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.gangs.packing import DomainTree, Forest
from topoplace.engine.level_chain import required_of
from topoplace.engine.machines.machine_class import members
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.jobs.groups import SOCKET
from topoplace.kernels.limits import check_deadline, deadline
from topoplace.objectives.communication import communication_time
from topoplace.policies.least_time.policy import LeastTime

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.gangs.offers import Offers
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement

    Ints = NDArray[np.int64]

HONOURED: Final = frozenset(
    (
        *("gpu_memory_gb", "gpu_model", "single_machine", "anti_affinity", "within", "prefer", "groups"),
        *("cpus", "memory_gb", "processes"),
    )
)
"""The requirements that repairs honour; `prefer` and preferred groups only as far as they shorten communication."""
_MOST_TRIED: Final = 20_000
"""Largest number of assignments of moved tasks to GPUs that are all compared, for each number of moves."""
_MOST_SWAPPED: Final = 64
"""Largest number of GPUs that are tried for one task after another."""
_MOST_ALIKE: Final = 4
"""Largest number of leaves that are tried for tasks that move together, of those equally near."""
SAME: Final = 1 - 1e-9
"""A time is shorter than another only if it is less than this share of it."""
_NONE: Final = (math.inf, ())
_NO_GPU: Final = "no GPU that it may use is left"
_NO_ROOM: Final = "no GPU that it may use is left on a machine with the CPUs and memory of a task"
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


@lru_cache(maxsize=8)
def _forest_of(job: JobGraph, depths: tuple[tuple[str, int], ...]) -> Forest:
    """Return the required groups of a job, by the depth of each level; one that fails often is asked for often."""
    return Forest(required_of(job), dict(depths), range(job.num_tasks))


_locals = lru_cache(maxsize=1024)(lambda mask: tuple(members(mask)))


class RepairSearch:
    """A job that has left a cluster, where its tasks were, and the tree of the domains that offer it GPUs."""

    def __init__(
        self,
        job: JobGraph,
        gpus: Sequence[int],
        cluster: Cluster,
        end: float,
        lost: Collection[int] = (),
        policy: LeastTime | None = None,
    ) -> None:
        """Store the arguments.

        gpus: the former GPU of each task; -1 for a task without one. end: when the search ends, in seconds of
        `time.monotonic`. lost: the GPUs that tasks must leave; they leave those that the cluster does not offer, too.
        policy: that of a fresh placement, by default the default one. Raise ValueError for a requirement that is not
        honoured, a machine that allocates its GPUs only in fixed partitions, or levels of groups that cross.
        """
        for name in job.requirements:
            if name not in HONOURED:
                raise ValueError(f"repairs do not honour {name}")
        policy = policy or LeastTime()
        self._job, self._old, self._cluster, self._policy, self._end = job, tuple(gpus), cluster, policy, end
        self._gone = lost
        view = policy.checked_view(job, cluster)
        request = view.request(job)
        offers = offers_of(policy.max_tasks, request, view)
        if not offers.is_simple:
            offers = self._without_partitions(offers)
        self._numbers = view.classes.gpus_of
        self._has_offers = len(offers) > 0
        self._domains = DomainTree(request, offers, view)
        if self._domains.apart:
            raise ValueError("repairs do not honour groups of levels that cross")
        self._view = view
        self._has_shares = bool(cluster.hosts.resources) and needs_hosts(job)
        self._forest = _forest_of(job, tuple(self._domains.depth_of.items()))
        self._leaf_of = self._leaves(offers)
        old = np.array(gpus, dtype=np.int64)
        may_stay = (old >= 0) & ~np.isin(old, list(lost))
        self._leaf = np.where(may_stay, self._leaf_of[old], -1)
        """(tasks,) the leaf on which each task may stay; -1 if it must move."""
        self._lost: list[int] = np.flatnonzero(self._leaf < 0).tolist()
        """The tasks that must move: on lost GPUs, and on those that the job may use no longer."""
        self.is_complete = False
        """True if it is proven that all repairs that no other one surpasses were found."""

    def _without_partitions(self, offers: Offers) -> Offers:
        """Return the offers of machines without fixed partitions; ValueError if the job is on one that has them."""
        simple = offers.at(
            np.array([i for i, one in enumerate(offers) if not one.partitions], dtype=np.int64)
        )
        left = set(offers.machines.tolist()) - set(simple.machines.tolist())
        if left.intersection(self._cluster.topology.machine_of[list(self._old)].tolist()):
            raise ValueError("repairs do not choose fixed partitions of GPUs")
        return simple

    def limited(self) -> AbstractContextManager[None]:
        """Open a `with` block in which DeadlineError is raised after the end."""
        return deadline(max(0.0, self._end - time.monotonic()))

    # ---- the fewest moves ----------------------------------------------------------------------------------

    def first(self) -> Found:
        """Return the repair with the fewest moves; if not all tasks can get a GPU, one for as many as are found."""
        lost = self._lost
        if not self._has_offers:
            return Found(self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, self._no_gpu))
        if whole := self.whole():
            return whole
        packing: kernels.GroupRepacking | None = None
        left: list[int] = []
        unrepaired: dict[int, str] = {}
        for task in sorted(lost, key=self._moves_alone):
            found = self._in_part([*left, task])
            if found is None:
                unrepaired[task] = self._why(task)
            else:
                left.append(task)
                packing = found
        packing = packing or self._in_part([])
        if packing is None:  # not even the tasks on healthy GPUs can be as the groups require
            return Found(self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, _TORN))
        return self._assigned(packing, unrepaired)

    def whole(self) -> Found | None:
        """Return the repair of all tasks with the fewest moves; None if there is none."""
        packing = self._repacked(self._lost) if self._has_offers else None
        return None if packing is None else self._assigned(packing, {})

    def _moves_alone(self, task: int) -> float:
        """Return how many moves it takes to give this task alone a GPU; infinite if none do."""
        found = self._in_part([task])
        return found.moved if found else math.inf

    def _in_part(self, lost: Sequence[int]) -> kernels.GroupRepacking | None:
        """Return `_repacked` of some of the tasks; None also if it takes more than their part of the time."""
        with suppress(SearchTimeoutError):
            return self._repacked(lost, parts=2 * len(self._lost))
        return None

    def _repacked(self, lost: Sequence[int], parts: int = 1) -> kernels.GroupRepacking | None:
        """Return where all tasks go if, of those without a GPU, only `lost` get one; None if that is impossible.

        parts: how many such searches share the time that is left.
        """
        inner, domains = self._forest.inner, self._domains
        own = np.bincount(inner[self._leaf >= 0], minlength=len(self._forest.parent))
        own += np.bincount(inner[lost], minlength=len(own))
        keys, counts = np.unique(self._share_of(), return_counts=True)
        kept = np.column_stack((*divmod(keys, len(domains.parent)), counts))[keys >= 0]
        return kernels.repack_groups(
            domains.parent,
            domains.room,
            self._forest.parent,
            self._forest.depth,
            own,
            kept,
            timeout=max(1e-3, (self._end - time.monotonic()) / parts),
        )

    @property
    def _no_gpu(self) -> str:
        return _NO_ROOM if self._has_shares else _NO_GPU

    def _number(self, group: Ints, leaf: Ints) -> Ints:
        """Return one number for a group and a leaf."""
        return group * len(self._domains.parent) + leaf

    def _share_of(self) -> Ints:
        """Return (tasks,) the number of the group and the leaf of each task; -1 for one that must move."""
        return np.where(self._leaf >= 0, self._number(self._forest.inner, self._leaf), -1)

    def _why(self, task: int) -> str:
        """Return why a task gets no GPU: no place at all, or none where its group is."""
        group = int(self._forest.inner[task])
        if not group:
            return self._no_gpu
        depths = self._domains.depth_of
        level = next(name for name, depth in depths.items() if depth == self._forest.depth[group])
        beside = self._leaf[(self._forest.inner == group) & (self._leaf >= 0)]
        if not beside.size:
            return f"no {level} has room for its group"
        number = int(self._domains.domains_of(level)[beside[0] - self._domains.first_leaf])
        name = self._domains.name(level, number, self._view)
        where = name if level == SOCKET else f"{level} {name}"
        return f"no GPU is left in {where}, where the rest of its group is; no other {level} has room for all"

    # ---- the GPUs of leaves --------------------------------------------------------------------------------

    def _leaves(self, offers: Offers) -> Ints:
        """Return (GPUs,) the leaf of each GPU that the job may use; -1 for others."""
        domains, numbers = self._domains, self._numbers
        found = np.full(self._cluster.topology.num_gpus, -1)
        if not self._has_offers:
            return found
        if SOCKET in domains.depth_of:
            for leaf in range(domains.first_leaf, len(domains.parent)):
                found[self._gpus_of(leaf)] = leaf
            return found
        leaf_of = np.zeros(len(numbers), dtype=np.int64)
        leaf_of[domains.leaf_machines] = np.arange(domains.first_leaf, len(domains.parent))
        for mask, places in offers.by_usable():
            machines, inside = offers.machines[places], _locals(mask)
            gpus = [numbers[machine][local] for machine in machines.tolist() for local in inside]
            found[gpus] = np.repeat(leaf_of[machines], len(inside))
        return found

    def _gpus_of(self, leaf: int) -> list[int]:
        machine, mask = self._domains.usable(leaf)
        numbers = self._numbers[machine]
        return [numbers[local] for local in _locals(mask)]

    def _assigned(self, packing: kernels.GroupRepacking, unrepaired: Mapping[int, str]) -> Found:
        """Return the GPU of each task: tasks stay where the packing lets them, others get the fastest GPUs found."""
        group, leaf, tasks = packing.shares.T.astype(np.int64)
        room: dict[int, int] = dict(zip(self._number(group, leaf).tolist(), tasks.tolist(), strict=True))
        waiting = sorted(self._surplus(room))
        gpus = list(self._old)
        for task in waiting:
            gpus[task] = -1
        moved = [task for task in waiting if task not in unrepaired]
        self._fill(gpus, moved, room)
        if unrepaired:
            return Found(tuple(gpus), math.inf, 0, unrepaired)
        lost = sum(gpu < 0 or gpu in self._gone for gpu in self._old)
        return self._fast(gpus, moved, packing.bound if self._is_room_exact else lost)

    def _surplus(self, room: dict[int, int]) -> Iterator[int]:
        """Yield the tasks that cannot stay; room: the tasks of each share, from which those that stay are taken."""
        share_of = self._share_of()
        order = np.argsort(share_of, kind="stable")
        shares, firsts, counts = np.unique(share_of[order], return_index=True, return_counts=True)
        for share, first, count in zip(shares.tolist(), firsts.tolist(), counts.tolist(), strict=True):
            stay = min(count, room.get(share, 0))
            if stay:
                room[share] -= stay
            yield from order[first + stay : first + count].tolist()

    def _fill(self, gpus: list[int], moved: Sequence[int], room: Mapping[int, int]) -> None:
        """Give tasks GPUs of the leaves where their groups have room."""
        taken = set(gpus)
        leaves: dict[int, list[int]] = defaultdict(list)
        for share, tasks in sorted(room.items()):
            group, leaf = divmod(share, len(self._domains.parent))
            leaves[group] += [leaf] * tasks
        for task in moved:
            leaf = leaves[int(self._forest.inner[task])].pop(0)
            gpus[task] = next(gpu for gpu in self._gpus_of(leaf) if gpu not in taken)
            taken.add(gpus[task])

    def _fast(self, gpus: Sequence[int], moved: Sequence[int], bound: int) -> Found:
        """Return the fastest repair that is found with as many moves; after the deadline, that which is given."""
        if not self._job.edges:
            return Found(tuple(gpus), 0.0, bound, {}, is_fastest=True)
        with suppress(DeadlineError), self.limited():
            if self._are_few(len(moved)) and (best := self._fastest(len(moved))):
                return Found(best, self.seconds(best), bound, {}, is_fastest=True)
            best, seconds = self._improved(gpus, moved)
            return Found(best, seconds, bound, {})
        return Found(tuple(gpus), self.seconds(gpus), bound, {})

    @property
    def _is_room_exact(self) -> bool:
        """True if the room of each machine counts tasks of equal shares; else it may be too small for some of them."""
        return not self._has_shares or shared_cpus(self._job)[0] % self._job.num_tasks == 0

    def _is_hosted(self, gpus: Sequence[int]) -> bool:
        """Return True if each machine has the CPUs and memory of the tasks there."""
        if not self._has_shares:
            return True
        hosts = self._cluster.hosts
        needed = np.zeros_like(hosts.free)
        for _, machine, column, amount in HostAllocation(
            host_shares(self._job, gpus, self._cluster.topology)
        ).needs():
            needed[machine, column] += amount
        return bool((needed <= hosts.free).all())

    def seconds(self, gpus: Sequence[int]) -> float:
        """Return how long the job communicates in a step on these GPUs."""
        return communication_time(self._job, gpus, self._cluster.topology, cluster=self._cluster).seconds

    def _improved(self, gpus: Sequence[int], moved: Sequence[int]) -> tuple[tuple[int, ...], float]:
        """Return GPUs of a shorter time: first tasks that move together, then each one, until none is faster.

        Tasks go near to where they were. The search ends once the job is as fast as it was.
        """
        best = list(gpus)
        enough = self.seconds(self._old) if min(self._old) >= 0 else 0.0
        seconds = math.inf
        for unit in self._units(gpus, moved):
            for there in self._elsewhere(best, unit):
                seconds = self._tried(best, unit, there, seconds)
                if seconds * SAME <= enough:
                    return tuple(best), seconds
        return self._one_by_one(best, moved, min(seconds, self.seconds(best)), enough)

    def _one_by_one(
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
        if self._is_hosted(gpus) and (tried := self.seconds(gpus)) < seconds * SAME:
            return tried
        self._put(gpus, tasks, here)
        return seconds

    @staticmethod
    def _put(gpus: list[int], tasks: Sequence[int], there: Sequence[int]) -> None:
        for task, gpu in zip(tasks, there, strict=True):
            gpus[task] = gpu

    def _units(self, gpus: Sequence[int], moved: Sequence[int]) -> list[list[int]]:
        """Return the tasks that move together, to leaves on which the job has no other tasks."""
        leaf = self._leaf_of[list(gpus)]
        others = np.setdiff1d(np.arange(len(gpus)), moved)
        units: dict[int, list[int]] = defaultdict(list)
        for task in moved:
            units[int(leaf[task])].append(task)
        used = set(leaf[others].tolist())
        return [tasks for there, tasks in units.items() if there not in used]

    def _elsewhere(self, gpus: Sequence[int], unit: Sequence[int]) -> Iterator[list[int]]:
        """Yield GPUs of other leaves for tasks that move together, the leaves nearest to where they were first.

        Of the leaves that are equally near, only a few are tried.
        """
        domains = self._domains
        anchor = next((self._old[task] for task in unit if self._old[task] >= 0), self._peer(gpus, unit))
        near = np.zeros(len(domains.parent) - domains.first_leaf, dtype=np.int64)
        if anchor >= 0:
            machine = int(self._cluster.topology.machine_of[anchor])
            for level in domains.levels:
                near += level.codes[domains.leaf_machines] == level.codes[machine]
        leaves = self._leaf_of[list(gpus)] - domains.first_leaf
        free = np.bincount(np.delete(leaves, unit), minlength=len(near)) == 0
        free &= (domains.left() >= len(unit)) & self._beside_groups(leaves, unit)
        for closeness in range(int(near.max(initial=0)), -1, -1):
            for leaf in np.flatnonzero(free & (near == closeness))[:_MOST_ALIKE].tolist():
                there = self._gpus_of(leaf + domains.first_leaf)[: len(unit)]
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
        domains, machine_of = self._domains, self._cluster.topology.machine_of
        leaves = self._leaf_of[list(gpus)] - domains.first_leaf
        room = domains.left()
        has_room = np.bincount(np.delete(leaves, task), minlength=len(room)) < room
        has_room &= self._beside_groups(leaves, [task])
        allowed = self._leaf_of >= 0
        allowed[allowed] = has_room[self._leaf_of[allowed] - domains.first_leaf]
        allowed[list(gpus)] = False
        free = np.flatnonzero(allowed)
        is_used = np.isin(machine_of[free], machine_of[list(gpus)])
        order = np.lexsort((free, ~is_used, machine_of[free] != machine_of[gpus[task]]))
        found: list[int] = free[order[:_MOST_SWAPPED]].tolist()
        return found

    def _beside_groups(self, leaves: Ints, unit: Sequence[int]) -> NDArray[np.bool_]:
        """Return the leaves in the domains where the other tasks of the unit's groups are."""
        found = np.ones(len(self._domains.parent) - self._domains.first_leaf, dtype=np.bool_)
        for group in {group for task in unit for group in self._around(task)}:
            rest = np.setdiff1d(self._tasks_in(group), unit)
            if rest.size:
                depth = self._forest.depth[group]
                level = next(name for name, its in self._domains.depth_of.items() if its == depth)
                part_of = self._domains.part_of(level)
                found &= part_of == part_of[leaves[rest[0]]]
        return found

    def _around(self, task: int) -> Iterator[int]:
        """Yield the groups of a task, the innermost first."""
        group = int(self._forest.inner[task])
        while group:
            yield group
            group = self._forest.parent[group]

    def _tasks_in(self, group: int) -> Ints:
        """Return the tasks of a group."""
        parent = self._forest.parent
        is_inside = np.zeros(len(parent), dtype=np.bool_)
        is_inside[group] = True
        for inner in range(group + 1, len(parent)):
            is_inside[inner] = is_inside[parent[inner]]
        return np.flatnonzero(is_inside[self._forest.inner])

    def _is_allowed(self, gpus: Sequence[int]) -> bool:
        """Return True if each required group is in one domain of its level, and no leaf has more tasks than room."""
        room = self._domains.left()
        leaves = self._leaf_of[list(gpus)] - self._domains.first_leaf
        if (np.bincount(leaves, minlength=len(room)) > room).any() or not self._is_hosted(gpus):
            return False
        return all(len(set(part_of[leaves[list(tasks)]].tolist())) == 1 for part_of, tasks in self._groups)

    @cached_property
    def _groups(self) -> Sequence[tuple[Ints, tuple[int, ...]]]:
        """For each required group, the domain of each leaf at the depth of its level, and its tasks."""
        required = required_of(self._job)
        parts = {level: self._domains.part_of(level) for level in {one.level for one in required}}
        return [(parts[one.level], one.tasks) for one in required]

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
        found.sort(key=lambda one: (self.moves(one.gpus), one.seconds))
        front = found[:1]
        for one in found[1:]:
            if one.seconds < front[-1].seconds * SAME:
                front.append(one)
        return front

    def _further(self, first: Found) -> Iterator[Found]:
        """Yield repairs with more moves than the first.

        For each number of moves, all assignments are compared if they are few; else neighbours of the lost tasks move
        along. The last one is a fresh placement.
        """
        fresh = self.fresh if self._job.edges else None
        if fresh is None:
            self.is_complete = not self._job.edges and self._is_room_exact
            return
        target, best = self.seconds(fresh.gpus), first.seconds
        moves, last = self.moves(first.gpus) + 1, self.moves(fresh.gpus)
        while moves < last and target < best * SAME and self._are_few(moves):
            if gpus := self._fastest(moves):
                yield first._replace(gpus=gpus, seconds=self.seconds(gpus))
                best = min(best, self.seconds(gpus))
            moves += 1
        is_open = moves < last and target < best * SAME
        if is_open:
            yield from self._with_neighbours(first)
        yield first._replace(gpus=fresh.gpus, seconds=target)
        least = (fresh.bound or 0.0) * (1 + self._policy.slack)
        is_first_least = first.is_fastest or first.seconds <= least
        self.is_complete = (
            is_first_least and not is_open and min(target, best) <= least and self._is_room_exact
        )

    def _with_neighbours(self, first: Found) -> Iterator[Found]:
        """Yield repairs in which more and more tasks of the machines that lost a GPU move along to one machine."""
        machine_of = self._cluster.topology.machine_of
        units: dict[int, list[int]] = defaultdict(list)
        for task in self._lost:
            if self._old[task] >= 0:
                units[int(machine_of[self._old[task]])].append(task)
        others: dict[int, list[int]] = defaultdict(list)
        for task in np.flatnonzero(self._leaf >= 0).tolist():
            if (machine := int(machine_of[self._old[task]])) in units:
                others[machine].append(task)
        for count in range(1, max(map(len, others.values()), default=0) + 1):
            gpus, seconds = list(first.gpus), first.seconds
            for machine, unit in units.items():
                for there in islice(
                    self._elsewhere(gpus, along := unit + others[machine][-count:]), _MOST_ALIKE
                ):
                    seconds = self._tried(gpus, along, there, seconds)
            yield first._replace(gpus=tuple(gpus), seconds=seconds)

    @cached_property
    def fresh(self) -> Placement | None:
        """The placement of the job if it had never run; None if nothing fits."""
        return self._policy.place(self._job, self._cluster)

    def moves(self, gpus: Sequence[int]) -> int:
        """Return how many tasks are not on the GPU that they had."""
        return sum(a != b for a, b in zip(self._old, gpus, strict=True))

    @cached_property
    def _free(self) -> list[int]:
        """The GPUs that the job may use and no task of it has that may stay, ascending."""
        usable = np.flatnonzero(self._leaf_of >= 0)
        free: list[int] = np.setdiff1d(usable, np.array(self._old)[self._leaf >= 0]).tolist()
        return free

    def _are_few(self, moves: int) -> bool:
        """Return True if all assignments with this number of moves can be compared."""
        more = moves - len(self._lost)
        if more < 0 or len(self._free) + more < moves:
            return True
        stay = len(self._old) - len(self._lost)
        return math.comb(stay, more) * math.perm(len(self._free) + more, moves) <= _MOST_TRIED

    def _fastest(self, moves: int) -> tuple[int, ...] | None:
        """Return the fastest GPUs with exactly this number of moves; None if the groups allow none.

        Of times that count as equal, the fewest new machines come first, then the fewest tasks that change machine.
        """
        more = moves - len(self._lost)
        best: tuple[int, ...] | None = None
        least, least_key = math.inf, (0, 0)
        for tried in self._all_of(self._lost, self._free, more) if more >= 0 else ():
            check_deadline()
            if not self._is_allowed(tried):
                continue
            seconds, key = self.seconds(tried), self._upheaval(tried)
            if best is None or seconds < least * SAME or (seconds * SAME < least and key < least_key):
                best, least, least_key = tried, min(seconds, least), key
        return best

    def _upheaval(self, gpus: Sequence[int]) -> tuple[int, int]:
        """Return how many machines the job uses that it did not use, and how many tasks change machine."""
        machine_of = self._cluster.topology.machine_of
        pairs = zip(self._old, machine_of[list(gpus)].tolist(), strict=True)
        old, new = zip(
            *((int(machine_of[gpu]) if gpu >= 0 else -1, there) for gpu, there in pairs), strict=True
        )
        return len(set(new) - set(old)), sum(map(ne, old, new))

    def _all_of(self, lost: Sequence[int], free: Sequence[int], more: int) -> Iterator[tuple[int, ...]]:
        """Yield all GPUs of the tasks if the lost ones and `more` others move."""
        staying: list[int] = np.flatnonzero(self._leaf >= 0).tolist()
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
