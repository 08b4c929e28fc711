"""What is free on each machine, in columns, for the queues of TSUBAME."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import Hosts
from topoplace.policies.bounded import Bounded
from topoplace.policies.rcuda.request import Refused, Request, request_key

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
PLENTY: Final = 1 << 40
"""More of a resource than anybody asks for: what machines have whose resources nobody told."""


class Layout:
    """What stays as it is about a topology."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.machine_of = topology.machine_of.astype(np.int64)
        self.machine_list: list[int] = self.machine_of.tolist()
        self.num_machines = topology.num_machines
        self.gpus_of: list[Sequence[int]] = [topology.gpus_of[name] for name in topology.machine_names]
        self.bound = np.zeros(topology.num_gpus, dtype=np.bool_)
        """(n,) which are given as partitions only, and are not lent."""
        self.bound[list(topology.partitioned_gpus)] = True
        self.parts_of: dict[int, list[tuple[int, ...]]] = {}
        """The partitions of each machine that has some."""
        for part in topology.partitions:
            self.parts_of.setdefault(self.machine_list[part[0]], []).append(tuple(part))


@dataclass(slots=True)
class Room:
    """What is free; each decision works on one of its own."""

    layout: Layout
    pool_of: Ints
    is_free: bytearray
    """Of each GPU, 1 or 0."""
    gpus: Ints
    """(m,) free GPUs."""
    cpus: Ints
    """(m,) below 0 on a machine that takes no processes."""
    megabytes: Ints
    has_job: NDArray[np.bool_]
    """(m,) whether a job has a process or a GPU there, be it a lent one."""
    num_free: int
    """Free GPUs of all machines."""
    num_unused: int
    """Machines without a job."""

    def copy(self) -> Room:
        """An independent copy, but for what never changes."""
        amounts = self.gpus.copy(), self.cpus.copy(), self.megabytes.copy(), self.has_job.copy()
        free = self.is_free.copy()
        return Room(self.layout, self.pool_of, free, *amounts, self.num_free, self.num_unused)

    def has_more_than(self, other: Room) -> bool:
        """Whether anything is free here that is not free there."""
        free, others_free = (np.frombuffer(room.is_free, dtype=np.bool_) for room in (self, other))
        return bool(
            (free > others_free).any()
            or (self.cpus > other.cpus).any()
            or (self.megabytes > other.megabytes).any()
            or (self.has_job < other.has_job).any()
        )

    def hosting(self, request: Request) -> NDArray[np.bool_]:
        """(m,) the machines with the CPUs and memory for a node of the request."""
        fits: NDArray[np.bool_] = (self.cpus >= request.cpus) & (self.megabytes >= request.megabytes)
        return fits

    def suitable(self, request: Request) -> Ints:
        """(m,) the free GPUs a node of the request could have of each machine; where these are given as partitions
        only, as many as it asks for or none.
        """
        if request.suits is None and not self.layout.parts_of:
            return self.gpus
        free = np.frombuffer(self.is_free, dtype=np.bool_) & ~self.layout.bound
        found = self._count(free if request.suits is None else free & request.suits)
        for machine in self.layout.parts_of:
            found[machine] = request.gpus if self._part(machine, request) else 0
        return found

    def can_lend(self, request: Request, hosts: Ints, count: int) -> bool:
        """Whether so many GPUs are left to be borrowed where these machines take what they can of their own."""
        return count <= 0 or count <= int(self._lendable(request, hosts).sum())

    def take(self, request: Request, hosts: list[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Take a node on each of these machines: the GPUs of one after the other, and those of them that are remote.

        They must be different, and have what it needs with what they can borrow.
        """
        self.cpus[hosts] -= request.cpus
        self.megabytes[hosts] -= request.megabytes
        self.has_job[hosts] = True
        blocks = [self._take_gpus(request, host, request.gpus) for host in hosts]
        missing = request.total_gpus - self._count_taken(blocks)
        remote = self._fill(request, hosts, blocks, self._borrow(request, missing)) if missing else []
        self.count_unused()
        return tuple(chain.from_iterable(blocks)), tuple(remote)

    def _borrow(self, request: Request, count: int) -> list[int]:
        """So many GPUs of others: of machines with jobs first, then of those with the fewest, then by number."""
        counts: list[int] = (lendable := self._lendable(request)).tolist()
        blocks: list[list[int]] = []
        for machine in np.lexsort((lendable, ~self.has_job)).tolist():  # sorting is stable
            if count and counts[machine]:
                blocks.append(self._take_gpus(request, machine, count))
                count -= len(blocks[-1])
        self._count_taken(blocks)
        return list(chain.from_iterable(blocks))

    def _fill(
        self, request: Request, hosts: list[int], blocks: list[list[int]], borrowed: list[int]
    ) -> list[int]:
        """Deal borrowed GPUs out to the blocks of hosts that lack some; those that are remote."""
        rest, remote = iter(borrowed), list[int]()
        for host, block in zip(hosts, blocks, strict=True):
            more = list(islice(rest, request.gpus - len(block)))
            block += more
            remote += (
                gpu for gpu in more if self.pool_of[self.layout.machine_list[gpu]] != self.pool_of[host]
            )
        return remote

    def count_unused(self) -> None:
        """Bring `num_unused` up to date."""
        self.num_unused = self.layout.num_machines - int(np.count_nonzero(self.has_job))

    def _lendable(self, request: Request, hosts: Ints | None = None) -> Ints:
        """(m,) the GPUs that may be lent; less what these hosts would take of their own."""
        counts = self.suitable(request).copy()
        counts[list(self.layout.parts_of)] = 0
        if hosts is not None:
            counts[hosts] = np.maximum(counts[hosts] - request.gpus, 0)
        return counts

    def _take_gpus(self, request: Request, machine: int, count: int) -> list[int]:
        """So many free GPUs of a machine at most, the lowest that suit; they are free no longer."""
        bound = machine in self.layout.parts_of
        among = (self._part(machine, request) or ()) if bound else self.layout.gpus_of[machine]
        suits = request.suits
        taken = [gpu for gpu in among if self.is_free[gpu] and (suits is None or suits[gpu])][:count]
        for gpu in taken:
            self.is_free[gpu] = 0
        return taken

    def _count_taken(self, blocks: list[list[int]]) -> int:
        """Note that these GPUs are free no longer; how many they are."""
        gpus = list(chain.from_iterable(blocks))
        machines = self.layout.machine_of[np.array(gpus, dtype=np.int64)]
        np.subtract.at(self.gpus, machines, 1)
        self.has_job[machines] = True
        self.num_free -= len(gpus)
        return len(gpus)

    def _part(self, machine: int, request: Request) -> tuple[int, ...] | None:
        """The first free partition that is just what a node of the request asks for."""
        for part in self.layout.parts_of[machine]:
            suits = request.suits is None or all(request.suits[gpu] for gpu in part)
            if len(part) == request.gpus and suits and all(self.is_free[gpu] for gpu in part):
                return part
        return None

    def _count(self, which: NDArray[np.bool_]) -> Ints:
        return np.bincount(self.layout.machine_of[which], minlength=self.layout.num_machines)


class Nodes:
    """A view of a cluster (`Cluster.view`): its room, and the requests known to find none."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        topology = cluster.topology
        layout = topology.derived(Layout)
        machines = layout.num_machines
        self._changed: set[int] = set(range(topology.num_gpus))
        self._is_held = bytearray(topology.num_gpus)
        self._num_held = np.zeros(machines, dtype=np.int64)
        pools, none_free = cluster.hosts.pool_of().astype(np.int64), bytearray(topology.num_gpus)
        nothing = (np.zeros(machines, dtype=np.int64), *_amounts(cluster.hosts, machines))
        self._room = Room(layout, pools, none_free, *nothing, np.ones(machines, dtype=np.bool_), 0, 0)
        self._idle: Room | None = None
        self._refused: dict[str, tuple[Refused, Room]] = {}
        """By policy, and what it has left of the room it was shown last."""
        self._possible: dict[str, Bounded[Request, bool]] = {}
        self._requests: Bounded[Hashable, Request] = Bounded()
        self._request_of: Bounded[int, tuple[JobGraph, Request]] = Bounded()

    def changed(self, gpus: Sequence[int]) -> None:
        """Read anew who holds these GPUs, when next asked."""
        self._changed.update(gpus)

    def room(self) -> Room:
        """What is free now, to work on."""
        self._read_gpus()
        self._read_hosts()
        return self._room.copy()

    def idle(self) -> Room:
        """All there is, were no job running and nothing drained."""
        if self._idle is None:
            hosts, room = self._cluster.hosts, self._room
            machines, gpus = room.layout.num_machines, len(room.is_free)
            counts = np.bincount(room.layout.machine_of, minlength=machines)
            amounts = _amounts(Hosts(hosts.names, hosts.resources), machines)
            unused = np.zeros(machines, dtype=np.bool_)
            self._idle = Room(
                room.layout, room.pool_of, bytearray([1]) * gpus, counts, *amounts, unused, gpus, machines
            )
        return self._idle

    def refused(self, policy: str, room: Room) -> Refused:
        """The requests that a policy knows to have no place in a room, which it is going to fill."""
        known, before = self._refused.get(policy, (Refused(), room))
        if room.has_more_than(before):
            known = Refused()
        self._refused[policy] = known, room
        return known

    def possible(self, policy: str) -> Bounded[Request, bool]:
        """Whether a policy has a place for requests on the idle cluster, as far as it has found out."""
        return self._possible.setdefault(policy, Bounded())

    def request(self, job: JobGraph) -> Request:
        """What a job asks for, the same object for all that ask for the same."""
        known = self._request_of.get(id(job))  # holds the job, so that no other gets its id
        if known is None:
            key = request_key(job)
            if key not in self._requests:
                self._requests[key] = Request(job, self._cluster.topology)
            known = self._request_of[id(job)] = (job, self._requests[key])
        return known[1]

    def _read_gpus(self) -> None:
        """Take over what has changed of the GPUs."""
        room, gpus = self._room, sorted(self._changed)
        self._changed.clear()
        if not gpus:
            return
        free, owners = self._cluster.occupants(gpus)
        machines = room.layout.machine_of[gpus]
        for flags, counts, now in (
            (room.is_free, room.gpus, free),
            (self._is_held, self._num_held, tuple(chain.from_iterable(owners.values()))),
        ):
            flag = np.frombuffer(flags, dtype=np.int8)
            before = flag[gpus]
            flag[gpus] = 0
            flag[list(now)] = 1
            np.add.at(counts, machines, flag[gpus] - before)
        room.num_free = int(room.gpus.sum())

    def _read_hosts(self) -> None:
        """Take over the CPUs and memory that are left, and which machines have jobs."""
        hosts, room = self._cluster.hosts, self._room
        room.cpus, room.megabytes = _amounts(hosts, room.layout.num_machines)
        room.has_job = (self._num_held > 0) | (hosts.processes > 0)
        room.count_unused()


def _amounts(hosts: Hosts, machines: int) -> tuple[Ints, Ints]:
    """The CPUs and MB that are left on each machine; CPUs below 0 where it takes no processes."""
    cpus = hosts.free[:, 0].copy() if hosts.resources else np.full(machines, PLENTY, dtype=np.int64)
    megabytes = hosts.free[:, 1].copy() if hosts.resources else cpus.copy()
    cpus[list(hosts.drained)] = -1
    return cpus, megabytes
