"""What DRMaestro reads off a cluster, in columns by machine: kept up to date change by change, at O(1) per GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile, traffic
from topoplace.policies.bounded import Bounded
from topoplace.policies.drmaestro.phase import Ints

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

PLENTY: Final = 1 << 40
"""More of a resource than anybody asks for: what machines have whose resources nobody told."""


class Layout:
    """What stays as it is about a topology's GPUs. A make is a model and a size of memory."""

    def __init__(self, topology: Topology) -> None:
        makes: dict[tuple[str | None, float | None], int] = {}
        self.make_of = np.array(
            [makes.setdefault((gpu.model, gpu.memory_gb), len(makes)) for gpu in topology.gpus],
            dtype=np.int64,
        )
        self.makes = tuple(makes)
        self.machine_of = topology.machine_of.astype(np.int64)
        self.machine_list: list[int] = self.machine_of.tolist()
        self.num_machines = topology.num_machines
        self.place_of = self.machine_of * len(makes) + self.make_of
        """(n,) GPUs of one place, a machine's GPUs of one make, are alike to the flow."""
        self.partitioned = np.zeros(topology.num_gpus, dtype=np.bool_)
        """(n,) which can be given as partitions only, and are no matter of a flow."""
        self.partitioned[list(topology.partitioned_gpus)] = True
        order = np.argsort(self.place_of, kind="stable")
        self._by_place = order[~self.partitioned[order]]
        self._starts = np.searchsorted(self.place_of[self._by_place], np.arange(self.num_places + 1))

    @property
    def num_places(self) -> int:
        """How many pairs of a machine and a make there are."""
        return self.num_machines * len(self.makes)

    def at(self, place: int) -> Ints:
        """The GPUs of a place, ascending, but for those of partitions."""
        return self._by_place[self._starts[place] : self._starts[place + 1]]

    def suits(self, job: JobGraph) -> NDArray[np.bool_]:
        """(makes,) which of them meet the job's requirements."""
        return np.array(
            [
                (not job.gpu_model or model == job.gpu_model)
                and (not job.gpu_memory_gb or (memory or 0.0) >= job.gpu_memory_gb)
                for model, memory in self.makes
            ]
        )


@dataclass(slots=True)
class Room:
    """What is free, and how much traffic there is; a decision works on a copy of its own."""

    layout: Layout
    pool_of: Ints
    pooled: bool
    """Whether any machines share a pool."""
    hosts: Ints
    """(m, 3) CPUs, MB and drives; below 0 on a machine that takes no processes."""
    is_free: NDArray[np.bool_]
    """(n,) of each GPU."""
    gpus: Ints
    """(m, makes) how many free GPUs, but for those of partitions."""
    load: NDArray[np.float64]
    """(m,) of the network of each machine."""
    minds: NDArray[np.float64]
    """(m,) the sensitivities of the jobs that use it, added up: what full load there would cost them."""

    def copy(self) -> Self:
        """An independent copy, but for what never changes."""
        return type(self)(
            *(self.layout, self.pool_of, self.pooled, self.hosts.copy(), self.is_free.copy()),
            *(self.gpus.copy(), self.load.copy(), self.minds.copy()),
        )

    def set_free(self, gpu: int, *, free: bool) -> None:
        """Note whether a GPU is free."""
        if bool(self.is_free[gpu]) != free:
            self.is_free[gpu] = free
            if self.layout.partitioned[gpu]:
                return
            self.gpus[self.layout.machine_of[gpu], self.layout.make_of[gpu]] += 1 if free else -1

    def send(self, sent: Iterable[tuple[int, float]], sensitivity: float, sign: int = 1) -> None:
        """Add a job's traffic, or take it away."""
        for machine, load in sent:
            self.load[machine] += sign * load
            self.minds[machine] += sign * sensitivity

    def pool(self, machine: int) -> list[int]:
        """The machines whose GPUs are local to this one, itself first."""
        if not self.pooled:
            return [machine]
        others: list[int] = np.flatnonzero(self.pool_of == self.pool_of[machine]).tolist()
        return [machine, *(other for other in others if other != machine)]

    def lowest(self, place: int, count: int) -> list[int]:
        """The free GPUs of a place with the lowest numbers, so many at most."""
        found = self.layout.at(place)
        lowest: list[int] = found[self.is_free[found]][:count].tolist()
        return lowest

    def near(self) -> Ints:
        """(m, makes) the free GPUs that are local to each machine: its own, or those of its pool."""
        if not self.pooled:
            return self.gpus
        by_pool = np.zeros((int(self.pool_of.max()) + 1, self.gpus.shape[1]), dtype=np.int64)
        np.add.at(by_pool, self.pool_of, self.gpus)
        return by_pool[self.pool_of]


class State:
    """A view of a cluster (`Cluster.view`): its room, kept as GPUs change hands."""

    def __init__(self, cluster: Cluster, profiles: Mapping[str, NetworkProfile]) -> None:
        self._cluster = cluster
        self._profiles = profiles
        topology = cluster.topology
        layout = topology.derived(Layout)
        machines = layout.num_machines
        pool_of = cluster.hosts.pool_of().astype(np.int64)
        self._traffic: dict[str, tuple[list[tuple[int, float]], float]] = {}
        self._owner: dict[int, str] = {}
        self._senders = np.zeros(machines, dtype=np.int64)
        self._room = Room(
            *(layout, pool_of, len(np.unique(pool_of)) < machines, np.zeros((machines, 3), dtype=np.int64)),
            np.zeros(topology.num_gpus, dtype=np.bool_),
            np.zeros((machines, len(layout.makes)), dtype=np.int64),
            *(np.zeros(machines), np.zeros(machines)),
        )
        self.kept: Bounded[Any, Any] = Bounded()
        """For answers that depend on the topology and the machines' resources only."""
        self.changed(range(topology.num_gpus))

    def changed(self, gpus: Sequence[int]) -> None:
        """Read anew who holds these GPUs."""
        free, owners = self._cluster.occupants(gpus)
        available = set(free)
        for job_id in {self._owner.pop(gpu) for gpu in gpus if gpu in self._owner}:
            self._send(*self._traffic.pop(job_id), -1)
        for gpu in gpus:
            self._room.set_free(gpu, free=gpu in available)
        for job_id in owners:
            if job_id not in self._traffic:
                self._count(job_id)

    @property
    def layout(self) -> Layout:
        """What stays as it is about the GPUs."""
        return self._room.layout

    def room(self) -> Room:
        """What is free now, to work on."""
        room, hosts = self._room.copy(), self._cluster.hosts
        room.hosts = hosts.free.copy() if hosts.resources else np.full_like(room.hosts, PLENTY)
        room.hosts[sorted(hosts.drained)] = -1
        return room

    def _count(self, job_id: str) -> None:
        """Add a job's traffic."""
        held = self._cluster.hosts.held.get(job_id)
        gpus = self._cluster.gpus_of(job_id)
        for gpu in gpus:
            self._owner[gpu] = job_id
        graph = self._cluster.jobs.get(job_id)
        profile = self._profiles.get((graph.profile if graph else None) or "", NEUTRAL)
        shares, remote = (held.shares, held.remote) if held else ((), ())
        sent = list(traffic(profile, gpus, shares, remote, self._room.layout.machine_list))
        self._traffic[job_id] = sent, profile.sensitivity(remote=bool(remote))
        self._send(*self._traffic[job_id], 1)

    def _send(self, sent: Sequence[tuple[int, float]], sensitivity: float, sign: int) -> None:
        self._room.send(sent, sensitivity, sign)
        for machine, _ in sent:
            self._senders[machine] += sign
            if not self._senders[machine]:  # and not what rounding has left
                self._room.load[machine] = self._room.minds[machine] = 0.0
