"""Volcano and Kubernetes: pod after pod, each to the node of the highest score."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace.cluster.hosts import megabytes, millicpus
from topoplace.engine.machines.machine_conditions import Sight
from topoplace.jobs.groups import MACHINE, SOCKET
from topoplace_lab.policies.schedulers.scheduler_policy import Asked, SchedulerPolicy, Share

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace_lab.policies.schedulers.levels import Levels

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_LEAST_REQUEST: Final = (100.0, 200.0)
"""The thousandths of CPUs, and the MB, that a pod without requests counts as in Kubernetes' score."""
_FADING: Final = 0.8
"""The weight of a hypernode's fullness in Volcano, relative to one of the tier below."""


class Pods:
    """The equal pods of a job, the nodes, and the GPUs, CPUs and memory of both."""

    def __init__(self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView) -> None:
        """Take the pods of a job with the demands `asked`."""
        self.tasks = asked.per_pod
        """The number of tasks in a pod."""
        self.room = levels.room // self.tasks
        job, hosts = request.job, view.cluster.hosts
        part = self.tasks / asked.size
        self.needs = np.array(
            [self.tasks, millicpus(job.cpus or 0) * part, megabytes(job.memory_gb or 0.0) * part]
        )
        gpus = view.table(Pods, lambda: np.array([len(its) for its in view.classes.gpus_of]))
        self.capacity = np.zeros((len(gpus), 3))
        """(machines, resources) amounts of each machine of the cluster."""
        self.used = np.zeros_like(self.capacity)
        """(machines, resources) amounts that running jobs use, or that are out of service."""
        self.capacity[:, 0], self.used[:, 0] = gpus, gpus - _free_gpus(view)
        if hosts.resources:
            self.capacity[:, 1:] = hosts.capacity[:, :2]
            self.used[:, 1:] = self.capacity[:, 1:] - hosts.free[:, :2]


def _free_gpus(view: ClusterView) -> Ints:
    """Return the number of free GPUs of each machine."""
    conditions = view.conditions(Sight())
    numbers = list(conditions.native.present())
    free = np.zeros(max(numbers, default=0) + 1, dtype=np.int64)
    free[numbers] = [state.free.bit_count() for state in conditions.states(numbers)]
    found: Ints = free[conditions.native.of_machines()]
    return found


class KubernetesDefault(SchedulerPolicy):
    """Kubernetes' default scheduler: pod after pod to the node with the most left, and with balanced resources.

    A task is a pod, or each of equal groups of `machine` for all tasks; a job with `single_machine` is one pod. The
    first part of a node's score is the mean share of CPUs and memory that the pod leaves (NodeResourcesFit,
    LeastAllocated). For pods that request CPUs or memory, the second part is how equal the used shares of both are
    (NodeResourcesBalancedAllocation). Each part is 0 to 100 and rounded down; ties go to the lowest node. GPUs only
    have to be free; if the hosts are unknown, GPUs are scored instead.

    Source: the plugins and default weights of Kubernetes 1.35 (commit 02d7708af661). Not modelled: the sample of nodes
    in large clusters, image locality, taints, spreading of the pods of a service, preemption. A job starts whole or
    not at all, as with a gang plugin. The original draws among equal nodes.
    """

    name = "kubernetes-default"
    honours = frozenset(("groups",))

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return a requirement other than equal pods or a single pod, which Kubernetes lacks."""
        if asked.parts or asked.prefer or set(asked.within) - {MACHINE}:
            return "groups", "knows equal pods only"
        return None

    def order(self, machine_class: MachineClass, state: MachineState, free: Mask) -> tuple[float, ...]:
        """Return the share of the GPUs in use, as the sort key."""
        return (1 - state.free.bit_count() / len(machine_class.gpus),)

    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Sequence[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait."""
        pods = Pods(asked, request, levels, view)
        need = asked.size // pods.tasks
        if pods.room.sum() < need:
            return None
        nodes = np.flatnonzero(pods.room)
        first = _left_and_balanced(pods, levels.machines[nodes], 1)[:, 0]
        nodes = nodes[np.lexsort((levels.machines[nodes], -first))][:need]  # others are never better
        most = min(need, int(pods.room[nodes].max()))
        scores: list[list[float]] = _left_and_balanced(pods, levels.machines[nodes], most).tolist()
        room: list[int] = pods.room[nodes].tolist()
        heap = [
            (-row[0], machine, i)
            for i, (row, machine) in enumerate(zip(scores, levels.machines[nodes].tolist(), strict=True))
        ]
        heapq.heapify(heap)
        pods_of = [0] * len(nodes)
        for _ in range(need):
            _, machine, i = heap[0]
            pods_of[i] += 1
            if pods_of[i] < min(room[i], most):
                heapq.heapreplace(heap, (-scores[i][pods_of[i]], machine, i))
            else:
                heapq.heappop(heap)
        return [
            [
                (node, number * pods.tasks)
                for node, number in zip(nodes.tolist(), pods_of, strict=True)
                if number
            ]
        ]


def _left_and_balanced(pods: Pods, machines: Ints, most: int) -> Floats:
    """Return (machines, most): the score of each one for the first pod there, for the second, and so on."""
    knows_hosts = bool(pods.capacity[:, 1:].any())
    columns = slice(1, 3) if knows_hosts else slice(0, 1)
    capacity = pods.capacity[machines, None, columns]
    before, needs = pods.used[machines, None, columns], pods.needs[columns]
    number = np.arange(1, most + 1)[:, None]
    counted = np.where(needs, needs, _LEAST_REQUEST) if knows_hosts else needs
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.floor(np.maximum(capacity - before - number * counted, 0) * 100 / capacity)
        shares = np.minimum((before + number * needs) / capacity, 1)
    has = capacity > 0
    score = np.floor(np.where(has, left, 0).sum(axis=2) / np.maximum(has.sum(axis=2), 1))
    if knows_hosts and needs.any():
        deviation = np.where(has.all(axis=2), np.abs(shares[:, :, 0] - shares[:, :, 1]) / 2, 0)
        score += np.floor((1 - deviation) * 100)
    found: Floats = score
    return found


class VolcanoBinpack(SchedulerPolicy):
    """Volcano's binpack and network-topology-aware plugins: pod after pod to the fullest node, near the others.

    A task is a pod, or each of equal groups of `machine` for all tasks; a job with `single_machine` is one pod. The
    levels of the fabric are tiers of hypernodes, and all machines are one more tier. `within` is the highest tier
    allowed in hard mode: the lowest tier with room is used, and there the hypernode that the job fills most. `groups`
    are subgroups with a highest tier, each placed like this inside the job's hypernode. `prefer`, of any level, is soft
    mode.

    A node's score is the share of it that is used with the pod: the mean over GPUs and, if requested, CPUs and memory
    (binpack). For jobs with a tier or in soft mode, it grows with how low a tier the node shares with earlier pods. For
    others, it grows with how full the node's hypernodes are. Ties go to the lowest node.

    Source: the plugins and the allocate action of Volcano at commit ed72c7c815a9, each resource with weight 1, as
    `binpack.resources: nvidia.com/gpu` sets it. Not modelled: pods that run already, jobs that start with fewer pods,
    queues, preemption. The original draws among equal nodes.
    """

    name = "volcano-binpack"
    honours = frozenset(("within", "prefer", "groups"))

    def order(self, machine_class: MachineClass, state: MachineState, free: Mask) -> tuple[float, ...]:
        """Return the share of the GPUs that are free, as the sort key."""
        return (state.free.bit_count() / len(machine_class.gpus),)

    def lacks(self, asked: Asked, job: JobGraph, cluster: Cluster) -> tuple[str, str] | None:
        """Return a requirement that Volcano lacks: nested or preferred groups, or groups below hypernodes."""
        if asked.within and asked.prefer:
            return "prefer", "takes a job in hard mode or in soft mode"
        tasks = [task for group in asked.parts for task in group.tasks]
        inner = {SOCKET, MACHINE}.intersection(group.within or SOCKET for group in asked.parts)
        if inner or SOCKET in (*asked.within, *asked.prefer) or len(set(tasks)) < len(tasks):
            return "groups", "knows equal pods, and separate subgroups of them within levels of the fabric"
        return None

    def groups_of(self, asked: Asked) -> Sequence[Sequence[int]]:
        """Return the tasks of each subgroup, then the others."""
        others = set(range(asked.size)).difference(*(group.tasks for group in asked.parts))
        every = [*(group.tasks for group in asked.parts), *([sorted(others)] if others else [])]
        return [asked.in_pods(tasks) for tasks in every]

    def shares(
        self, asked: Asked, request: JobRequest, levels: Levels, view: ClusterView
    ) -> Sequence[Sequence[Share]] | None:
        """Return the number of tasks of each machine; None if the job has to wait."""
        pods = Pods(asked, request, levels, view)
        depths = [levels.depth_of[level] for level in asked.within if level != MACHINE]
        highest, is_aware = max(depths, default=0), bool(depths or asked.prefer)
        parts = [
            (len(group.tasks) // pods.tasks, levels.depth_of[str(group.within)], True)
            for group in asked.parts
        ]
        if rest := asked.size // pods.tasks - sum(number for number, *_ in parts):
            parts.append((rest, 0 if parts else highest, is_aware))
        for depth in _tiers(levels, highest) if asked.parts else (0,):
            room = levels.totals(pods.room)[depth] * pods.tasks
            for_job = [(depth, domain) for domain in np.flatnonzero(room >= asked.size).tolist()]
            tried = [Nodes(pods, levels).with_all(parts, hypernode) for hypernode in for_job]
            if found := max(filter(None, tried), key=lambda nodes: nodes.filled_by_parts, default=None):
                return [[(node, number * pods.tasks) for node, number in its] for its in found.shares]
        return None


def _tiers(levels: Levels, highest: int, lowest_inside: int = 0) -> range | tuple[int]:
    """Return the depths of the tiers up to the highest one, the lowest first; only that of all machines for 0."""
    return range(levels.last - 1, max(highest, lowest_inside) - 1, -1) if highest else (lowest_inside,)


class Nodes:
    """The nodes while the subgroups of a job are placed."""

    def __init__(self, pods: Pods, levels: Levels) -> None:
        """Start with the resources that running jobs use."""
        self.shares: list[list[Share]] = []
        """The nodes of each subgroup, with their pods."""
        self.filled_by_parts = 0.0
        """The sum, over the subgroups, of the used share of their hypernodes."""
        self.levels = levels
        self._asks = np.flatnonzero(pods.needs)
        self._needs = pods.needs[self._asks]
        self._room = pods.room.copy()
        self._used, self._capacity = (levels.whole(one[:, self._asks]) for one in (pods.used, pods.capacity))

    def with_all(self, parts: Sequence[tuple[int, int, bool]], inside: tuple[int, int]) -> Nodes | None:
        """Return the nodes after placing all subgroups in a hypernode; None if one finds no room."""
        for number, highest, is_aware in parts:
            filled = self.place(number, highest, inside, is_aware=is_aware)
            if filled is None:
                return None
            self.filled_by_parts += filled
        return self

    def place(self, number: int, highest: int, inside: tuple[int, int], *, is_aware: bool) -> float | None:
        """Place a subgroup in the hypernode of the lowest tier that it fills most; return its fullness, or None.

        number: the subgroup's pods. highest: the depth of the highest tier allowed; 0 for all of `inside`, a hypernode.
        is_aware: nodes near those that the subgroup has score higher.
        """
        room = self.levels.totals(self._room)
        for depth in _tiers(self.levels, highest, inside[0]):
            within = self.levels.inside(*inside, depth)
            domains = np.flatnonzero(room[depth][within] >= number) + within.start
            if domains.size:
                filled = self.filled(depth, number)[domains]
                best = int(filled.argmax())
                self._fill(
                    number,
                    self.levels.inside(depth, int(domains[best]), self.levels.last),
                    is_aware=is_aware,
                )
                return float(filled[best])
        return None

    def filled(self, depth: int, number: int, domains: slice | Ints = slice(None)) -> Floats:
        """Return the share of each domain in use with `number` more pods; 0 if they do not fit."""
        capacity = np.maximum(self._capacity[depth][domains], 1e-9)
        shares = (self._used[depth][domains] + number * self._needs) / capacity
        found: Floats = np.where((shares <= 1 + 1e-9).all(axis=1), shares.mean(axis=1), 0.0)
        return found

    def _fill(self, number: int, inside: slice, *, is_aware: bool) -> None:
        """Place pods on nodes of a hypernode, on the one of the highest score until it is full.

        A pod makes its node score more and no other node as much, so that the next one goes there too.
        """
        own, lowest = self.filled(self.levels.last, 1), self.levels.last - 1
        nodes: Ints = np.flatnonzero(self._room[inside]) + inside.start
        of = self.levels.above[-1][nodes] if lowest else np.zeros(len(nodes), dtype=np.int64)
        order = np.lexsort((self.levels.machines[nodes], -own[nodes], of))
        nodes, of = nodes[order], of[order]
        next_of = np.searchsorted(of, np.arange(int(of[-1]) + 2))
        ends = next_of[1:].copy()
        best = np.full(len(ends), -np.inf)
        has_some = next_of[:-1] < ends
        best[has_some] = own[nodes[next_of[:-1][has_some]]]
        shares: list[Share] = []
        near = _Near(self.levels, len(ends), number) if is_aware else _Fullness(self, len(ends))
        while number:
            worth = near.scores(best)
            domain = int((best + worth).argmax())
            node = int(nodes[next_of[domain]])
            taken = min(number, int(self._room[node]))
            self._take(node, taken)
            near.add(domain, taken)
            shares.append((node, taken))
            number -= taken
            next_of[domain] += 1
            left = next_of[domain] < ends[domain]
            best[domain] = own[nodes[next_of[domain]]] if left else -np.inf
        self.shares.append(shares)

    def _take(self, node: int, number: int) -> None:
        self._room[node] -= number
        for depth in range(self.levels.last, -1, -1):
            self._used[depth][node] += number * self._needs
            node = int(self.levels.above[depth][node])


class _Near:
    """How near the lowest hypernodes are to the one that has all pods of a subgroup so far."""

    def __init__(self, levels: Levels, count: int, number: int) -> None:
        self._pods = np.zeros(count)
        self._number = number
        self._above = [np.arange(count)]
        for depth in range(levels.last - 1, 0, -1):
            self._above.insert(0, levels.above[depth][self._above[0]])
        self._around: tuple[int, int] | None = None
        """The depth and number of the lowest hypernode that has all pods."""

    def add(self, domain: int, taken: int) -> None:
        """Note pods in a lowest hypernode."""
        self._pods[domain] += taken
        depth = len(self._above) - 1 if self._around is None else self._around[0]
        around = int(self._above[depth][domain]) if self._around is None else self._around[1]
        while depth and self._above[depth][domain] != around:
            first = int(np.argmax(self._above[depth] == around))
            depth -= 1
            around = int(self._above[depth][first])
        self._around = depth, around

    def scores(self, best: Floats) -> Floats:
        """Return the scores of the lowest hypernodes. best: minus infinity where no node has room."""
        if self._around is None:
            return np.zeros(len(best))
        depth, around = self._around
        inside = int(np.argmax(self._above[depth] == around))
        worth = np.zeros(len(best))
        for above in range(1, depth + 1):
            worth[self._above[above] == self._above[above][inside]] = above / (len(self._above) - 1)
        nearest = (worth == worth[best > -np.inf].max()) & (best > -np.inf)
        worth[nearest] += self._pods[nearest] / self._number
        found: Floats = worth
        return found


class _Fullness:
    """How full the hypernodes of each lowest one are with another pod, tier by tier."""

    def __init__(self, nodes: Nodes, count: int) -> None:
        self._nodes, at = nodes, np.arange(count)
        self._tiers: list[tuple[int, Ints, Floats]] = []
        for depth in range(nodes.levels.last - 1, -1, -1):
            self._tiers.append((depth, at, nodes.filled(depth, 1)))
            at = nodes.levels.above[depth][at]
        self._weights = _FADING ** np.arange(len(self._tiers))
        self._weights /= self._weights.sum()

    def add(self, domain: int, taken: int) -> None:
        """Note pods in a lowest hypernode."""
        for depth, at, filled in self._tiers:
            changed = at[domain : domain + 1]
            filled[changed] = self._nodes.filled(depth, 1, changed)

    def scores(self, best: Floats) -> Floats:
        """Return the scores of the lowest hypernodes."""
        found: Floats = sum(
            (weight * filled[at] for weight, (_, at, filled) in zip(self._weights, self._tiers, strict=True)),
            np.zeros(len(best)),
        )
        return found
