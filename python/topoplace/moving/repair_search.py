"""The search for a repair: which leaves of the tree of domains, by `kernels.repack_groups`, then which GPUs there."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import combinations, permutations
from operator import eq, ne
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.cluster.hosts import HostAllocation, host_shares, needs_hosts, shared_cpus
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.gangs.packing import DomainTree, Forest
from topoplace.engine.level_chain import required_of
from topoplace.engine.machines.machine_class import members
from topoplace.errors import DeadlineError
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
_SAME: Final = 1 - 1e-9
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

    @property
    def is_whole(self) -> bool:
        """Return True if all tasks have a GPU."""
        return not self.unrepaired


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
        self._kept = {task: gpu for task, gpu in enumerate(gpus) if gpu >= 0 and gpu not in lost}
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
        self._forest = Forest(required_of(job), self._domains.depth_of, range(job.num_tasks))

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
        lost = [task for task in range(self._job.num_tasks) if task not in self._kept]
        if not self._has_offers:
            return Found(self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, self._no_gpu))
        packing = self._repacked(lost)
        if packing is not None:
            return self._assigned(packing, {})
        left: list[int] = []
        unrepaired: dict[int, str] = {}
        for task in sorted(lost, key=self._moves_alone):
            if self._repacked([*left, task]) is None:
                unrepaired[task] = self._why(task)
            else:
                left.append(task)
        packing = self._repacked(left)
        if packing is None:  # not even the tasks on healthy GPUs can be as the groups require
            return Found(self._with(lost, [-1] * len(lost)), math.inf, 0, dict.fromkeys(lost, _TORN))
        return self._assigned(packing, unrepaired)

    def _moves_alone(self, task: int) -> float:
        """Return how many moves it takes to give this task alone a GPU; infinite if none do."""
        found = self._repacked([task])
        return found.moved if found else math.inf

    def _repacked(self, lost: Sequence[int]) -> kernels.GroupRepacking | None:
        """Return where all tasks go if, of those without a GPU, only `lost` get one; None if that is impossible."""
        inner, domains = self._forest.inner, self._domains
        placed = np.array([*self._kept, *lost], dtype=np.int64)
        own = np.bincount(inner[placed], minlength=len(self._forest.parent))
        shares: dict[tuple[int, int], int] = defaultdict(int)
        for task, gpu in self._kept.items():
            if (leaf := self._leaf_of.get(gpu)) is not None:
                shares[int(inner[task]), leaf] += 1
        kept = [[group, leaf, count] for (group, leaf), count in sorted(shares.items())]
        return kernels.repack_groups(
            domains.parent,
            domains.room,
            self._forest.parent,
            self._forest.depth,
            own,
            kept,
            timeout=max(1e-3, self._end - time.monotonic()),
        )

    @property
    def _no_gpu(self) -> str:
        return _NO_ROOM if self._has_shares else _NO_GPU

    def _why(self, task: int) -> str:
        """Return why a task gets no GPU: no place at all, or none where its group is."""
        group = int(self._forest.inner[task])
        if not group:
            return self._no_gpu
        depths = self._domains.depth_of
        level = next(name for name, depth in depths.items() if depth == self._forest.depth[group])
        beside = (self._kept[one] for one in self._kept if self._forest.inner[one] == group)
        leaf = next((self._leaf_of[gpu] for gpu in beside if gpu in self._leaf_of), None)
        if leaf is None:
            return f"no {level} has room for its group"
        number = int(self._domains.domains_of(level)[leaf - self._domains.first_leaf])
        name = self._domains.name(level, number, self._view)
        where = name if level == SOCKET else f"{level} {name}"
        return f"no GPU is left in {where}, where the rest of its group is; no other {level} has room for all"

    # ---- the GPUs of leaves --------------------------------------------------------------------------------

    @cached_property
    def _leaf_of(self) -> Mapping[int, int]:
        """The leaf of each GPU that the job may use."""
        found: dict[int, int] = {}
        for leaf in range(self._domains.first_leaf, len(self._domains.parent)):
            found.update(dict.fromkeys(self._gpus_of(leaf), leaf))
        return found

    def _gpus_of(self, leaf: int) -> list[int]:
        machine, mask = self._domains.usable(leaf)
        return [self._numbers[machine][local] for local in members(mask)]

    def _assigned(self, packing: kernels.GroupRepacking, unrepaired: Mapping[int, str]) -> Found:
        """Return the GPU of each task: tasks stay where the packing lets them, others get the fastest GPUs found."""
        room = {(group, leaf): tasks for group, leaf, tasks in packing.shares.tolist()}
        gpus = [-1] * self._job.num_tasks
        waiting: list[int] = []
        for task in range(self._job.num_tasks):
            where = int(self._forest.inner[task]), self._leaf_of.get(self._kept.get(task, -1), -1)
            if room.get(where, 0) > 0:
                room[where] -= 1
                gpus[task] = self._kept[task]
            elif task not in unrepaired:
                waiting.append(task)
        taken = set(gpus)
        leaves: dict[int, list[int]] = defaultdict(list)
        for (group, leaf), tasks in sorted(room.items()):
            leaves[group] += [leaf] * tasks
        for task in waiting:
            leaf = leaves[int(self._forest.inner[task])].pop(0)
            gpus[task] = next(gpu for gpu in self._gpus_of(leaf) if gpu not in taken)
            taken.add(gpus[task])
        if unrepaired:
            return Found(tuple(gpus), math.inf, 0, unrepaired)
        best = self._faster(gpus, waiting) if self._job.edges else tuple(gpus)
        bound = packing.bound if self._is_room_exact else len(self._lost)
        return Found(best, self.seconds(best), bound, unrepaired)

    def _faster(self, gpus: Sequence[int], moved: Sequence[int]) -> tuple[int, ...]:
        """Return GPUs of the shortest time that is found with as many moves; those given after the deadline."""
        with suppress(DeadlineError), self.limited():
            if self._are_few(len(moved)) and (found := self._fastest(len(moved))):
                return found
            return self._improved(gpus, moved)
        return tuple(gpus)

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

    def _improved(self, gpus: Sequence[int], moved: Sequence[int]) -> tuple[int, ...]:
        """Return GPUs of a shorter time: each moved task on other GPUs that its groups allow, until none is faster."""
        best = list(gpus)
        seconds, is_better = self.seconds(best), True
        while is_better:
            is_better = False
            for task in moved:
                before, found = best[task], seconds
                for gpu in self._near(best, task):
                    check_deadline()
                    best[task] = gpu
                    if self._is_hosted(best) and (tried := self.seconds(best)) < found * _SAME:
                        before, found, is_better = gpu, tried, True
                best[task], seconds = before, found
        return tuple(best)

    def _near(self, gpus: Sequence[int], task: int) -> list[int]:
        """Return the free GPUs that a task may have instead: of its machine, then of others that the job uses."""
        taken, machine_of = set(gpus), self._cluster.topology.machine_of
        own, used = machine_of[gpus[task]], {int(machine_of[gpu]) for gpu in gpus}
        leaves = self._leaves_for(gpus, task)
        free = [gpu for gpu, leaf in self._leaf_of.items() if leaf in leaves and gpu not in taken]
        free.sort(key=lambda gpu: (machine_of[gpu] != own, int(machine_of[gpu]) not in used, gpu))
        return free[:_MOST_SWAPPED]

    def _leaves_for(self, gpus: Sequence[int], task: int) -> frozenset[int]:
        """Return the leaves with room for a task, in the domains where the others of its groups are."""
        first = self._domains.first_leaf
        room = self._domains.left()
        leaves = np.array([self._leaf_of[gpu] for gpu in gpus]) - first
        has_room = np.bincount(np.delete(leaves, task), minlength=len(room)) < room
        for part_of, tasks in self._groups:
            if task in tasks:
                rest = next(one for one in tasks if one != task)
                has_room &= part_of == part_of[leaves[rest]]
        return frozenset((np.flatnonzero(has_room) + first).tolist())

    def _is_allowed(self, gpus: Sequence[int]) -> bool:
        """Return True if each required group is in one domain of its level, and no leaf has more tasks than room."""
        room = self._domains.left()
        leaves = np.array([self._leaf_of[gpu] for gpu in gpus]) - self._domains.first_leaf
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

    def further(self, first: Found) -> Iterator[Found]:
        """Yield repairs with more moves and a shorter time, in this order; raise DeadlineError after the deadline.

        For each number of moves, all assignments are compared if they are few. The last one is a fresh placement.
        """
        fresh = self.fresh if self._job.edges else None
        if fresh is None:
            return
        best, target = first, self.seconds(fresh.gpus)
        for moves in range(self.moves(first.gpus) + 1, self.moves(fresh.gpus)):
            if best.seconds * _SAME <= target or not self._are_few(moves):
                break
            gpus = self._fastest(moves)
            if gpus and (seconds := self.seconds(gpus)) < best.seconds * _SAME:
                best = first._replace(gpus=gpus, seconds=seconds)
                yield best
        if target < best.seconds * _SAME:
            yield first._replace(gpus=fresh.gpus, seconds=target)

    @cached_property
    def fresh(self) -> Placement | None:
        """The placement of the job if it had never run; None if nothing fits."""
        return self._policy.place(self._job, self._cluster)

    def moves(self, gpus: Sequence[int]) -> int:
        """Return how many tasks are not on the GPU that they had."""
        return sum(a != b for a, b in zip(self._old, gpus, strict=True))

    @cached_property
    def _free(self) -> list[int]:
        """The GPUs that the job may use and no healthy task of it has, ascending."""
        kept = set(self._kept.values())
        return sorted(gpu for gpu in self._leaf_of if gpu not in kept)

    @cached_property
    def _lost(self) -> list[int]:
        """The tasks that must move: on lost GPUs, and on those that the job may use no longer."""
        return [task for task in range(len(self._old)) if self._kept.get(task) not in self._leaf_of]

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
            if best is None or seconds < least * _SAME or (seconds * _SAME < least and key < least_key):
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
        staying = [task for task in self._kept if task not in lost]
        for others in combinations(staying, more):
            tasks, given_up = (*lost, *others), [self._kept[task] for task in others]
            stay = [-1] * len(lost) + given_up
            for chosen in permutations(sorted((*free, *given_up)), len(tasks)):
                if not any(map(eq, chosen, stay)):
                    yield self._with(tasks, chosen)

    def _with(self, tasks: Sequence[int], chosen: Sequence[int]) -> tuple[int, ...]:
        gpus = list(self._old)
        for task, gpu in zip(tasks, chosen, strict=True):
            gpus[task] = gpu
        return tuple(gpus)
