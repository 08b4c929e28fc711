"""The state that the API server shows: nodes, bound pods, and which of their GPUs are taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.cluster import Cluster
from topoplace.topology.topology import Topology
from topoplace_hosts.free_sockets import fragmentation
from topoplace_hosts.kubernetes.claims.allocation_json import Planned
from topoplace_hosts.kubernetes.claims.claim import Claim, DeviceClass
from topoplace_hosts.kubernetes.claims.claim_table import ClaimTable
from topoplace_hosts.kubernetes.claims.pools import Slice
from topoplace_hosts.kubernetes.objects.annotations import GPUS, group_name, written
from topoplace_hosts.kubernetes.objects.node import Node
from topoplace_hosts.kubernetes.objects.pod import GPU, Pod
from topoplace_hosts.kubernetes.scheduler.allowed_rows import MachineMask, Mask
from topoplace_hosts.kubernetes.scheduler.claiming.claimed_gpus import ClaimedGpus
from topoplace_hosts.kubernetes.scheduler.node_table import NodeTable

_RESERVED = "reserved/"


class ClusterState:
    """Nodes and bound pods as the API server shows them, and the cluster of their GPUs.

    A node where a pod holds unknown GPUs gets no more pods with GPUs until that pod ends. A pod's GPUs are unknown if
    its annotation is missing, does not match its request, or names GPUs that another pod holds.
    """

    def __init__(self, topology: Topology, gpu_resource: str = GPU) -> None:
        """Start without nodes and pods. topology: its machines have the names of nodes."""
        self.topology = topology
        self.gpu_resource = gpu_resource
        self.cluster = Cluster(topology)
        self.table = NodeTable(topology.machine_names)
        self.pods: dict[str, Pod] = {}
        """The bound pods that are not finished, by uid, including those that were just bound."""
        self.freed = 0
        """Grows when a pod may fit that did not before: a pod left, a node changed, or a reservation ended."""
        self.groups: Counter[tuple[str, str]] = Counter()
        """The number of bound pods of each group, by namespace and name."""
        self.lost: dict[tuple[str, str], dict[str, Pod]] = {}
        """The pods with GPUs that have left groups of which others are bound, by rank, until others have replaced them.
        """
        self.priorities: Counter[int] = Counter()
        """The number of bound pods with GPUs, by priority."""
        self.claims = ClaimTable(topology)
        self._claimed_gpus = ClaimedGpus(self.claims, self._hold_gpus, self._release_gpus)
        self._assumed: set[str] = set()
        self._gpus = [topology.gpus_of[name] for name in topology.machine_names]
        self._unhealthy = frozenset(topology.unhealthy_gpus)
        self._free = np.array(
            [sum(gpu not in self._unhealthy for gpu in gpus) for gpus in self._gpus], np.int64
        )
        self._healthy = self._free.copy()
        self._offers_all = np.zeros(len(self._gpus), np.bool_)
        self._closed = np.ones(len(self._gpus), np.bool_)
        self._untold: dict[int, set[str]] = {}
        self._unread: dict[str, int] = {}
        self._reserved: dict[int, str] = {}
        for name in topology.machine_names:
            self.cluster.drain(name)

    # ---- what the API server says ----------------------------------------------------------------------------

    def set_node(self, node: Node) -> None:
        """Record the present state of a node."""
        if self.table.nodes[self.table.row(node.name)] == node:
            return  # a sign of life
        self.freed += 1
        self.table.set_node(node)
        self._note_offer(node.name, node.allocatable.get(self.gpu_resource, 0))

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self.freed += 1
        self.table.remove_node(name)
        self._note_offer(name, 0)

    def _note_offer(self, name: str, thousandths: int) -> None:
        row = self.table.row(name)
        if row < len(self._gpus):
            self._offers_all[row] = thousandths == 1000 * self._healthy[row]

    def set_pod(self, pod: Pod) -> None:
        """Record the present state of a pod; it counts if it is bound and not finished."""
        known = self.pods.get(pod.uid)
        if pod.ended or not pod.node:
            if pod.ended or pod.uid not in self._assumed:
                self.remove_pod(pod.uid)
            return
        is_news = pod.uid in self._assumed and pod.gpus != (known and known.gpus)
        if known is None or known.node != pod.node or is_news:
            self.remove_pod(pod.uid)
            self._hold(pod)
        else:  # it holds what it was given: a later change of its annotation is no decision
            self.pods[pod.uid] = replace(pod, annotations=known.annotations)
        if known is None or pod.uid in self._assumed:
            self._note_replaced(pod)
        self._assumed.discard(pod.uid)

    def close_for(self, uid: str, node: str) -> None:
        """Give a node no more pods while an unreadable pod runs there."""
        self._unread[uid] = self.table.row(node)
        self._untold.setdefault(self._unread[uid], set()).add(uid)

    def remove_pod(self, uid: str) -> None:
        """Forget a pod that is gone."""
        if uid in self._unread:
            self.freed += 1
            self._untold[self._unread.pop(uid)].discard(uid)
        pod = self.pods.pop(uid, None)
        if pod is None:
            self._assumed.discard(uid)
            return
        self.freed += 1
        self._count(pod, -1)
        self._note_lost(pod)
        self._assumed.discard(uid)
        self.table.release(pod, self.table.row(pod.node))
        self._release_gpus(pod.job_id, pod.node)

    def _note_lost(self, pod: Pod) -> None:
        key = pod.namespace, group_name(pod.labels)
        if not self.groups[key]:
            self.lost.pop(key, None)
        elif pod.uid not in self._assumed and self.cluster.gpus_of(pod.job_id):
            self.lost.setdefault(key, {})[pod.rank_name] = pod

    def _note_replaced(self, pod: Pod) -> None:
        """Forget the lost pod of the same rank; a pod without a rank replaces the one that was lost first."""
        if lost := self.lost.get((pod.namespace, group_name(pod.labels))):
            del lost[pod.rank_name if pod.rank_name in lost else next(iter(lost))]

    def _hold(self, pod: Pod) -> None:
        self.pods[pod.uid] = pod
        self._count(pod, 1)
        self.table.hold(pod, self.table.row(pod.node))
        if pod.requests.gpus:
            self._hold_gpus(pod.job_id, pod.node, pod.gpus)

    def _hold_gpus(self, key: str, node: str, numbers: Sequence[int] | None) -> None:
        """Hold GPUs of a node by their numbers there; close the node if it is not known which, or they are taken."""
        row = self.table.row(node)
        if row >= len(self._gpus):
            return
        gpus = self._free_gpus(row, numbers)
        if gpus is None:
            self._untold.setdefault(row, set()).add(key)
            return
        self._open(row)
        self.cluster.allocate(key, gpus)
        self._free[row] -= len(gpus)

    def _release_gpus(self, key: str, node: str) -> None:
        """Give back what `_hold_gpus` took."""
        row = self.table.row(node)
        if untold := self._untold.get(row):
            untold.discard(key)
        if gpus := self.cluster.gpus_of(key):
            self.cluster.release(key)
            self._free[row] += len(gpus)
            self._take_reserved(gpus)

    def _count(self, pod: Pod, sign: int) -> None:
        if name := group_name(pod.labels):
            self.groups[pod.namespace, name] += sign
        if pod.requests.gpus:
            self.priorities[pod.priority] += sign

    def _free_gpus(self, row: int, numbers: Sequence[int] | None) -> tuple[int, ...] | None:
        """Return these GPUs of a machine if they are there and free, else None."""
        there = self._gpus[row]
        if numbers is None or any(number >= len(there) for number in numbers):
            return None
        gpus = tuple([there[number] for number in numbers])
        taken = any(self.cluster.owner(gpu) is not None or gpu in self._unhealthy for gpu in gpus)
        return None if taken else gpus

    # ---- devices and claims ----------------------------------------------------------------------------------

    def set_slice(self, one: Slice) -> None:
        """Record the present state of a ResourceSlice."""
        self.freed += 1
        for claim in self.claims.set_slice(one):
            self._claimed_gpus.renew(claim.uid, claim)

    def remove_slice(self, name: str) -> None:
        """Forget a ResourceSlice."""
        self.freed += 1
        for claim in self.claims.remove_slice(name):
            self._claimed_gpus.renew(claim.uid, claim)

    def set_classes(self, classes: dict[str, DeviceClass]) -> None:
        """Record the present DeviceClasses."""
        self.freed += 1
        self.claims.classes = classes

    def set_claim(self, claim: Claim) -> None:
        """Record the present state of a claim."""
        before = self.claims.claims.get(claim.key)
        self.claims.set_claim(claim)
        self._take_claim(before, self.claims.claims.get(claim.key))

    def remove_claim(self, key: tuple[str, str]) -> None:
        """Forget a claim that is gone."""
        before = self.claims.claims.get(key)
        self.claims.remove_claim(key)
        self._take_claim(before, None)

    def settle_claims(self, pod_uid: str) -> None:
        """Take back the allocations assumed for a pod that the API server has not shown."""
        for claim in self.claims.assumed_for(pod_uid):
            self.claims.settle(claim)
            self._take_claim(claim, self.claims.claims[claim.key])

    def _take_claim(self, before: Claim | None, after: Claim | None) -> None:
        had, has = (one.allocation if one else None for one in (before, after))
        if before and after and before.uid == after.uid:
            gave_up = had is not None and had != has
            self.freed += gave_up or len(after.reserved_for) < len(before.reserved_for)
            if had == has:
                return  # something else has changed
        else:
            self.freed += 1
        if before is not None:
            self._claimed_gpus.renew(before.uid, None)
        if after is not None:
            self._claimed_gpus.renew(after.uid, after)

    def is_free(self, row: int, number: int) -> bool:
        """Return True if the GPU with this number on a node's machine is free and healthy."""
        gpu = self._gpus[row][number]
        return self.cluster.owner(gpu) is None and gpu not in self._unhealthy

    def is_offered(self, row: int) -> bool:
        """Return True if a node offers GPUs by a device plugin."""
        node = self.table.nodes[row]
        return node is not None and node.allocatable.get(self.gpu_resource, 0) > 0

    def only_accounted_nodes(self, mask: Mask) -> MachineMask:
        """Return the part of a mask with machines of which it is known who holds which GPU."""
        machines = MachineMask(mask[: len(self._gpus)].copy())
        machines[[row for row, keys in self._untold.items() if keys and row < len(machines)]] = False
        return machines

    # ---- decisions -------------------------------------------------------------------------------------------

    def assume(self, pod: Pod, node: str, gpus: Sequence[int], claims: Sequence[Planned] = ()) -> Pod:
        """Hold a node, GPUs and devices for a pod that is about to be bound; return the pod as it will be.

        gpus: numbers in the topology. GPUs of a claim are held for the claim, not for the pod.
        """
        annotations = {}
        if pod.requests.gpus:
            numbers = [self.topology.gpus_of[node].index(gpu) for gpu in gpus]
            annotations = {GPUS: written(pod.requests, numbers)}
        bound = replace(pod, node=node, annotations={**pod.annotations, **annotations})
        self.remove_pod(pod.uid)
        self._hold(bound)
        self._assumed.add(pod.uid)
        for one in claims:
            if one.written is not None:
                self.claims.assume(pod.uid, one.claim, one.allocation)
                self._claimed_gpus.renew(one.claim.uid, self.claims.claims[one.claim.key])
        return bound

    def is_confirmed(self, uid: str) -> bool:
        """Return True if the API server has shown the pod bound."""
        return uid in self.pods and uid not in self._assumed

    def known_uids(self) -> list[str]:
        """Return the uids of all pods that count."""
        return [*self.pods, *self._unread]

    def eligible(self, pod: Pod) -> Mask:
        """Return True for each row of the table where the pod may run now, regardless of GPUs."""
        mask = self.table.mask(pod)
        mask[list(self._unread.values())] = False  # what is left there is unknown
        return mask

    def eligible_machines(self, pod: Pod) -> MachineMask:
        """Return True for each machine where a pod that needs GPUs may run now."""
        return self._with_known_gpus(self.eligible(pod))

    def may_run_on(self, pod: Pod, node: str) -> bool:
        """Return True if the pod may run on a node now."""
        row = self.table.row(node)
        allowed = self.eligible_machines(pod) if pod.requests.gpus else self.eligible(pod)
        return row < len(allowed) and bool(allowed[row])

    def eligible_but_for_gpus(self, pod: Pod) -> MachineMask:
        """Return True for each machine where a pod with GPUs may run if enough of them become free."""
        return self._with_known_gpus(self.table.mask(pod, ignored=self.gpu_resource))

    def known_gpus(self) -> MachineMask:
        """Return True for each machine of which it is known which GPUs are free."""
        return self._with_known_gpus(np.ones(len(self.table.nodes), np.bool_))

    def _with_known_gpus(self, mask: Mask) -> MachineMask:
        return self.only_accounted_nodes(
            mask[: len(self._gpus)] & self._offers_all
        )  # else it is unknown which are broken

    def free_by_row(self) -> NDArray[np.int64]:
        """Return the number of free GPUs of each row, 0 for nodes that are not in the topology."""
        free = np.zeros(len(self.table.nodes), np.int64)
        free[: len(self._free)] = self._free
        return free

    def fragmentation(self) -> float:
        """Return the fragmentation of the GPUs that no pod holds over sockets (SC'17, eq. 5), 0..1."""
        held = [gpu for gpus in self.cluster.allocations.values() for gpu in gpus]
        return fragmentation(self.topology, [*held, *self._unhealthy])

    def closed_nodes(self) -> int:
        """Return the number of nodes that get no pods with GPUs because it is unknown which of theirs are taken."""
        return sum(map(bool, self._untold.values()))

    @contextmanager
    def trial(self) -> Generator[list[Pod]]:
        """Yield a list; at the end of the block, release the pods that were put into it."""
        assumed: list[Pod] = []
        freed = self.freed
        try:
            yield assumed
        finally:
            for pod in reversed(assumed):
                self.remove_pod(pod.uid)
                self.settle_claims(pod.uid)
            self.freed = freed

    def focus(self, mask: MachineMask) -> Cluster:
        """Drain the machines with free GPUs outside `mask`, reopen those inside, and return the cluster."""
        differ = (self._closed == mask) & (self._free > 0)
        for row in np.flatnonzero(differ).tolist():
            if mask[row]:
                self._open(row)
            else:
                self.cluster.drain(self.topology.machine_names[row])
                self._closed[row] = True
        return self.cluster

    @contextmanager
    def only(self, usable: Mapping[int, frozenset[int]]) -> Generator[Cluster]:
        """Yield the cluster with only these machines open, and on each only the GPUs of these numbers."""
        mask = MachineMask(np.zeros(len(self._gpus), np.bool_))
        mask[list(usable)] = True
        cluster = self.focus(mask)
        closed = [
            gpu
            for row, numbers in usable.items()
            for number, gpu in enumerate(self._gpus[row])
            if number not in numbers and self.is_free(row, number)
        ]
        for gpu in closed:
            cluster.drain(gpu)
        try:
            yield cluster
        finally:
            for gpu in closed:
                cluster.undrain(gpu)

    def held_on(self, row: int) -> dict[str, tuple[int, ...]]:
        """Return the GPUs of a machine by who holds them, as numbers on the machine."""
        found: dict[str, tuple[int, ...]] = {}
        for number, gpu in enumerate(self._gpus[row]):
            if owner := self.cluster.owner(gpu):
                found[owner] = (*found.get(owner, ()), number)
        return found

    @contextmanager
    def all_open(self, mask: MachineMask) -> Generator[Cluster]:
        """Yield the cluster with exactly the machines of `mask` open, even those without free GPUs."""
        free = self._free
        self._free = np.ones_like(free)
        try:
            yield self.focus(mask)
        finally:
            self._free = free

    def _open(self, row: int) -> None:
        if self._closed[row]:
            self.cluster.undrain(self.topology.machine_names[row])
            self._closed[row] = False

    # ---- reservations ----------------------------------------------------------------------------------------

    def reserve(self, key: str, gpus: Sequence[int]) -> None:
        """Reserve GPUs for `key`; those that pods hold are reserved once the pods leave."""
        self._reserved.update(dict.fromkeys(gpus, key))
        self._take_reserved(gpus)

    def unreserve(self, key: str) -> None:
        """Give up all reservations of `key`."""
        self.freed += 1
        for gpu in [gpu for gpu, whose in self._reserved.items() if whose == key]:
            del self._reserved[gpu]
            if self.cluster.gpus_of(f"{_RESERVED}{gpu}"):
                self.cluster.release(f"{_RESERVED}{gpu}")
                self._free[self.topology.machine_of[gpu]] += 1

    def is_there(self, key: str) -> bool:
        """Return True if no pod holds a GPU that is reserved for `key`."""
        mine = [gpu for gpu, whose in self._reserved.items() if whose == key]
        return all(self.cluster.owner(gpu) == f"{_RESERVED}{gpu}" for gpu in mine)

    def _take_reserved(self, gpus: Sequence[int]) -> None:
        for gpu in gpus:
            if gpu in self._reserved and self.cluster.owner(gpu) is None:
                row = int(self.topology.machine_of[gpu])
                self._open(row)
                self.cluster.allocate(f"{_RESERVED}{gpu}", [gpu])
                self._free[row] -= 1
