"""The GPUs that a job may use to which tasks come back, and what its groups, CPUs and memory allow."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import kernels
from topoplace.cluster.hosts import HostAllocation, host_shares, needs_hosts, shared_cpus
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.deciding.divisions import Divider
from topoplace.deciding.gangs import machine_limits
from topoplace.engine.gangs.offers import offers_of
from topoplace.engine.gangs.packing import DomainTree, Forest, forest_of
from topoplace.engine.gangs.rules import one_per_domain
from topoplace.engine.level_chain import required_of
from topoplace.engine.machines.machine_class import members
from topoplace.jobs.groups import SOCKET
from topoplace.moving.replicas import roles_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.deciding.least_time import LeastTime
    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machines.machine_class import Mask
    from topoplace.jobs.job_graph import JobGraph

    Ints = NDArray[np.int64]

HONOURED: Final = frozenset(
    (
        *("gpu_memory_gb", "gpu_model", "single_machine", "anti_affinity", "within", "prefer", "spread"),
        *("groups", "cpus", "memory_gb", "processes"),
    )
)
"""The requirements that repairs honour; `prefer` and preferred groups only as far as they shorten communication."""
_NO_GPU: Final = "no GPU that it may use is left"
_NO_ROOM: Final = "no GPU that it may use is left on a machine with the CPUs and memory of a task"


@lru_cache(maxsize=8)
def _forest_of(job: JobGraph, depths: tuple[tuple[str, int], ...]) -> Forest:
    """Return the required groups of a job, by the depth of each level; one that fails often is asked for often."""
    return forest_of(required_of(job), dict(depths), job.num_tasks)


@lru_cache(maxsize=1024)
def _locals(mask: Mask) -> tuple[int, ...]:
    """Return the members of a mask."""
    return tuple(members(mask))


class RepairRoom:
    """Where the tasks of a job that has left a cluster may go: the GPUs of the leaves of the tree of domains."""

    def __init__(
        self,
        job: JobGraph,
        gpus: Sequence[int],
        cluster: Cluster,
        lost: Collection[int],
        policy: LeastTime,
    ) -> None:
        """Store the arguments, which are as for `RepairSearch`."""
        for name in job.requirements:
            if name not in HONOURED:
                raise ValueError(f"repairs do not honour {name}")
        self.old, self.policy = tuple(gpus), policy
        self.rates = DEFAULT_RATES if policy.rates is None else policy.rates
        self._job, self._cluster = job, cluster
        view = policy.checked_view(job, cluster)
        request = view.request(job)
        offers = offers_of(policy.max_tasks, request, view)
        if not offers.is_simple:
            offers = self._without_partitions(offers)
        self._is_spread = request.spread is not None
        if request.spread:
            stay = cluster.topology.machine_of[[gpu for gpu in gpus if gpu >= 0 and gpu not in lost]]
            level = next(one for one in cluster.topology.levels if one.name == request.spread)
            offers = one_per_domain(offers, level, stay.tolist())
        self._numbers = view.classes.gpus_of
        self.has_offers = len(offers) > 0
        self.domains = DomainTree(request, offers, view)
        if self.domains.apart:
            raise ValueError("repairs do not honour groups of levels that cross")
        self._view, self._request, self._offers = view, request, offers
        self._has_shares = bool(cluster.hosts.resources) and needs_hosts(job)
        self._forest = _forest_of(job, tuple(self.domains.depth_of.items()))
        self.leaf_of = self._leaves(offers)
        old = np.array(gpus, dtype=np.int64)
        may_stay = (old >= 0) & ~np.isin(old, list(lost))
        self.leaf = np.where(may_stay, self.leaf_of[old], -1)
        """(tasks,) the leaf on which each task may stay; -1 if it must move."""
        self.lost: list[int] = np.flatnonzero(self.leaf < 0).tolist()
        """The tasks that must move: on lost GPUs, and on those that the job may use no longer."""
        self.least_moves = int(((old < 0) | np.isin(old, list(lost))).sum())
        """The number of tasks without a GPU, whatever the room of machines."""

    def _without_partitions(self, offers: Offers) -> Offers:
        """Return the offers of machines without fixed partitions; ValueError if the job is on one that has them."""
        simple = offers.at(
            np.array([i for i, one in enumerate(offers) if not one.partitions], dtype=np.int64)
        )
        left = set(offers.machines.tolist()) - set(simple.machines.tolist())
        if left.intersection(self._cluster.topology.machine_of[list(self.old)].tolist()):
            raise ValueError("repairs do not choose fixed partitions of GPUs")
        return simple

    @cached_property
    def divider(self) -> Divider | None:
        """What divides the job into units that no placement divides; None if it has none, or not `is_exact`."""
        limits = machine_limits(self._request, self._view, self._offers, self.rates)
        if limits is None or not limits.is_whole or not self.is_exact:
            return None
        machine_of = self._cluster.topology.machine_of
        most = np.bincount(machine_of[self.leaf_of >= 0], minlength=len(self._numbers))
        old = np.array(self.old)
        known = np.unique(machine_of[old[old >= 0]]).tolist()
        place = np.empty(len(old), np.int64)
        place[list(chain.from_iterable(roles_of(self._job).replicas))] = np.arange(len(old))
        order = np.argsort(place[limits.units].min(axis=1)).tolist()
        return Divider(
            limits, self.leaf_of >= 0, most, np.where(self.leaf >= 0, old, -1).tolist(), known, order
        )

    def packed(self, lost: Sequence[int], seconds: float) -> kernels.GroupRepacking | None:
        """Return where all tasks go if, of those without a GPU, only `lost` get one; None if that is impossible.

        Raise SearchTimeoutError if none is found in so many seconds.
        """
        inner, domains = self._forest.inner, self.domains
        own = np.bincount(inner[self.leaf >= 0], minlength=len(self._forest.parent))
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
            timeout=max(1e-3, seconds),
        )

    @property
    def no_gpu(self) -> str:
        """Return why a task in no group gets no GPU."""
        return _NO_ROOM if self._has_shares else _NO_GPU

    def _number(self, group: Ints, leaf: Ints) -> Ints:
        """Return one number for a group and a leaf."""
        return group * len(self.domains.parent) + leaf

    def _share_of(self) -> Ints:
        """Return (tasks,) the number of the group and the leaf of each task; -1 for one that must move."""
        return np.where(self.leaf >= 0, self._number(self._forest.inner, self.leaf), -1)

    def why(self, task: int) -> str:
        """Return why a task gets no GPU: no place at all, or none where its group is."""
        group = int(self._forest.inner[task])
        if not group:
            return self.no_gpu
        depths = self.domains.depth_of
        level = next(name for name, depth in depths.items() if depth == self._forest.depth[group])
        beside = self.leaf[(self._forest.inner == group) & (self.leaf >= 0)]
        if not beside.size:
            return f"no {level} has room for its group"
        number = int(self.domains.domains_of(level)[beside[0] - self.domains.first_leaf])
        name = self.domains.name(level, number)
        where = name if level == SOCKET else f"{level} {name}"
        return f"no GPU is left in {where}, where the rest of its group is; no other {level} has room for all"

    def _leaves(self, offers: Offers) -> Ints:
        """Return (GPUs,) the leaf of each GPU that the job may use; -1 for others."""
        domains, numbers = self.domains, self._numbers
        found = np.full(self._cluster.topology.num_gpus, -1)
        if not self.has_offers:
            return found
        if SOCKET in domains.depth_of:
            for leaf in range(domains.first_leaf, len(domains.parent)):
                found[self.gpus_of(leaf)] = leaf
            return found
        leaf_of = np.zeros(len(numbers), dtype=np.int64)
        leaf_of[domains.leaf_machines] = np.arange(domains.first_leaf, len(domains.parent))
        for mask, places in offers.by_usable():
            machines, inside = offers.machines[places], _locals(mask)
            gpus: list[int] = [numbers[machine][local] for machine in machines.tolist() for local in inside]
            found[gpus] = np.repeat(leaf_of[machines], len(inside))
        return found

    def gpus_of(self, leaf: int) -> list[int]:
        """Return the GPUs of a leaf that the job may use."""
        machine, mask = self.domains.usable(leaf)
        numbers = self._numbers[machine]
        return [numbers[local] for local in _locals(mask)]

    def spread(
        self, packing: kernels.GroupRepacking, left_out: Collection[int]
    ) -> tuple[list[int], list[int]]:
        """Return the GPU of each task, -1 for those in `left_out`, and the tasks that move."""
        group, leaf, tasks = packing.shares.T.astype(np.int64)
        room: dict[int, int] = dict(zip(self._number(group, leaf).tolist(), tasks.tolist(), strict=True))
        waiting = sorted(self._surplus(room))
        gpus = list(self.old)
        for task in waiting:
            gpus[task] = -1
        moved = [task for task in waiting if task not in left_out]
        self._fill(gpus, moved, room)
        return gpus, moved

    def _surplus(self, room: dict[int, int]) -> Iterator[int]:
        """Yield the tasks that cannot stay; room: the tasks of each share, from which those that stay are taken."""
        share_of = self._share_of()
        order = np.argsort(share_of, kind="stable")
        firsts = np.flatnonzero(np.diff(share_of[order], prepend=-2))
        shares, counts = share_of[order[firsts]], np.diff(firsts, append=len(order))
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
            group, leaf = divmod(share, len(self.domains.parent))
            leaves[group] += [leaf] * tasks
        for task in moved:
            leaf = leaves[int(self._forest.inner[task])].pop(0)
            gpus[task] = next(gpu for gpu in self.gpus_of(leaf) if gpu not in taken)
            taken.add(gpus[task])

    @property
    def is_exact(self) -> bool:
        """True if the room of each machine counts tasks of equal shares; else it may be too small for some of them.

        It is not for jobs that are spread: of each domain, only one machine is considered.
        """
        if self._is_spread:
            return False
        return not self._has_shares or shared_cpus(self._job)[0] % self._job.num_tasks == 0

    def is_hosted(self, gpus: Sequence[int]) -> bool:
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

    def beside_groups(self, leaves: Ints, unit: Sequence[int]) -> NDArray[np.bool_]:
        """Return the leaves in the domains where the other tasks of the unit's groups are."""
        found = np.ones(len(self.domains.parent) - self.domains.first_leaf, dtype=np.bool_)
        for group in {group for task in unit for group in self._around(task)}:
            rest = np.setdiff1d(self._tasks_in(group), unit)
            if rest.size:
                depth = self._forest.depth[group]
                level = next(name for name, its in self.domains.depth_of.items() if its == depth)
                part_of = self.domains.part_of(level)
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

    def is_allowed(self, gpus: Sequence[int]) -> bool:
        """Return True if each required group is in one domain of its level, and no leaf has more tasks than room."""
        room = self.domains.left()
        leaves = self.leaf_of[list(gpus)] - self.domains.first_leaf
        if (leaves < 0).any():
            return False
        if (np.bincount(leaves, minlength=len(room)) > room).any() or not self.is_hosted(gpus):
            return False
        return all(len(set(part_of[leaves[list(tasks)]].tolist())) == 1 for part_of, tasks in self._groups)

    @cached_property
    def _groups(self) -> Sequence[tuple[Ints, tuple[int, ...]]]:
        """For each required group, the domain of each leaf at the depth of its level, and its tasks."""
        required = required_of(self._job)
        parts = {level: self.domains.part_of(level) for level in {one.level for one in required}}
        return [(parts[one.level], one.tasks) for one in required]
