"""Free resources as numpy columns, for policies that compare all machines in one vector operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import COLUMNS, Hosts
from topoplace.engine.admission import suits_model

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]
PLENTY: Final = 1 << 40
"""The amount assumed for a resource that is unknown: more than any job needs."""


class TopologyColumns:
    """The constant properties of a topology of n GPUs on m machines, as numpy columns.

    A *make* is a pair of GPU model and memory size. A *place* is a pair of machine and make; its GPUs are
    interchangeable. A *partition* is a fixed GPU set that can only be allocated as a whole.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        makes: dict[tuple[str | None, float | None], int] = {}
        self.make_of = np.array(
            [makes.setdefault((gpu.model, gpu.memory_gb), len(makes)) for gpu in topology.gpus],
            dtype=np.int64,
        )
        self.makes = tuple(makes)
        self.memory_gb = np.array([memory or 0.0 for _, memory in makes])
        """(makes,) GB; 0 if unknown."""
        self.machine_of = topology.machine_of.astype(np.int64)
        self.machine_list: list[int] = self.machine_of.tolist()
        self.num_machines = topology.num_machines
        self.gpus_of: list[Sequence[int]] = [topology.gpus_of[name] for name in topology.machine_names]
        self.place_of = self.machine_of * len(makes) + self.make_of
        """(n,) the place of each GPU: its machine times the number of makes, plus its make."""
        self.partitioned = np.zeros(topology.num_gpus, dtype=np.bool_)
        """(n,) True for GPUs that can only be allocated as whole partitions; counts of GPUs by machine exclude them."""
        self.partitioned[list(topology.partitioned_gpus)] = True
        self.partitions_of: dict[int, list[tuple[int, ...]]] = {}
        """The partitions of each machine that has any: tuples of GPUs that are only allocated together."""
        for part in topology.partitions:
            self.partitions_of.setdefault(self.machine_list[part[0]], []).append(tuple(part))
        order = np.argsort(self.place_of, kind="stable")
        self._by_place = order[~self.partitioned[order]]
        self._starts = np.searchsorted(self.place_of[self._by_place], np.arange(self.num_places + 1))

    @property
    def num_places(self) -> int:
        """Number of pairs of a machine and a make (GPU model and memory)."""
        return self.num_machines * len(self.makes)

    def at(self, place: int) -> Ints:
        """Return the GPUs of one place (machine and GPU make), ascending.

        GPUs that can only be allocated in fixed partitions are omitted.
        """
        return self._by_place[self._starts[place] : self._starts[place + 1]]

    def suits(self, job: JobGraph) -> NDArray[np.bool_]:
        """Return an array with True for each make (GPU model and memory) that meets the job's requirements."""
        return np.array([suits_model(job, model, memory) for model, memory in self.makes])

    def whole(self, gpus: Ints) -> Ints:
        """Return the elements of `gpus` that belong to no partition (fixed GPU set that is allocated as a whole)."""
        return gpus[~self.partitioned[gpus]] if self.partitions_of else gpus


@dataclass(slots=True)
class FreeResources:
    """The free GPUs, CPUs, memory and drives of a cluster of n GPUs on m machines; policies change their own copies."""

    columns: TopologyColumns
    pool_of: Ints
    """(m,) the GPU pool of each machine; the GPUs of all machines in one pool count as local to each of them."""
    pooled: bool
    """True if at least two machines share a pool."""
    hosts: Ints
    """(m, 3) free CPUs, MB of memory and drives; below 0 on a machine that accepts no processes."""
    is_free: bytearray
    """(n,) 1 for a free GPU, else 0."""
    gpus: Ints
    """(m, makes) number of free GPUs by machine and make, without GPUs that belong to partitions."""
    has_job: NDArray[np.bool_]
    """(m,) True if a job runs a process on the machine or holds one of its GPUs, locally or over the network."""
    num_free: int
    """Number of free GPUs of all machines, including GPUs that belong to partitions."""
    free_mask: NDArray[np.bool_] = field(init=False)
    """(n,) a boolean view of the memory of `is_free`."""

    def __post_init__(self) -> None:
        self.free_mask = np.frombuffer(self.is_free, dtype=np.bool_)

    def copy(self) -> Self:
        """Return an independent copy; data that never changes is shared with this object."""
        return type(self)(
            *(self.columns, self.pool_of, self.pooled, self.hosts.copy(), self.is_free.copy()),
            *(self.gpus.copy(), self.has_job.copy(), self.num_free),
        )

    def has_more_than(self, other: FreeResources) -> bool:
        """Return True if any GPU, host resource or machine without jobs is free here that `other` lacks."""
        return bool(
            (self.free_mask > other.free_mask).any()
            or (self.hosts > other.hosts).any()
            or (self.has_job < other.has_job).any()
        )

    @property
    def num_unused(self) -> int:
        """Number of machines on which no job runs a process or holds a GPU."""
        return len(self.has_job) - int(np.count_nonzero(self.has_job))

    # ---- GPUs ----------------------------------------------------------------------------------------------

    def set_free(self, gpu: int, *, free: bool) -> None:
        """Mark a GPU as free or taken, and update the counts of free GPUs, but not `has_job`."""
        if self.is_free[gpu] != free:
            self.is_free[gpu] = free
            change = 1 if free else -1
            self.num_free += change
            if not self.columns.partitioned[gpu]:
                self.gpus[self.columns.machine_of[gpu], self.columns.make_of[gpu]] += change

    def take(self, gpus: Iterable[int]) -> None:
        """Mark free GPUs as taken and their machines as having a job."""
        taken = np.fromiter(gpus, dtype=np.int64)
        self.free_mask[taken] = False
        self.num_free -= len(taken)
        self.has_job[self.columns.machine_of[taken]] = True
        np.subtract.at(self.gpus.reshape(-1), self.columns.place_of[self.columns.whole(taken)], 1)

    def pool(self, machine: int) -> list[int]:
        """Return `machine`, followed by the other machines of its pool, whose GPUs are local to it."""
        if not self.pooled:
            return [machine]
        others: list[int] = np.flatnonzero(self.pool_of == self.pool_of[machine]).tolist()
        return [machine, *(other for other in others if other != machine)]

    def lowest(self, place: int, count: int) -> list[int]:
        """Return the lowest-numbered free GPUs of one place (machine and GPU make), at most `count`."""
        found = self.columns.at(place)
        lowest: list[int] = found[self.free_mask[found]][:count].tolist()
        return lowest

    def local_gpus(self) -> Ints:
        """Return an array (machines, makes) with the number of free GPUs local to each machine, by make.

        A make is a GPU model and memory size. The GPUs of all machines in one pool are local to each of them. GPUs that
        belong to partitions are not counted. Do not change the result: without pools, it is `gpus` itself.
        """
        if not self.pooled:
            return self.gpus
        by_pool = np.zeros((int(self.pool_of.max()) + 1, self.gpus.shape[1]), dtype=np.int64)
        np.add.at(by_pool, self.pool_of, self.gpus)
        return by_pool[self.pool_of]


class FreeColumns:
    """The current free resources of a cluster. Only GPUs that changed are read again, but all host resources are."""

    def __init__(self, cluster: Cluster) -> None:
        """Read the pools and host resources now; GPUs are read on first use."""
        self._cluster = cluster
        columns = cluster.topology.derived(TopologyColumns)
        gpus, machines = cluster.topology.num_gpus, columns.num_machines
        self.stale: set[int] = set(range(gpus))
        """The GPUs whose state may have changed since they were last read."""
        self._half_read = False
        """True while GPUs are read; an interrupt leaves it True, and all are read again."""
        self._is_held = bytearray(gpus)
        self._num_held = np.zeros(machines, dtype=np.int64)
        pool_of = cluster.hosts.pool_of().astype(np.int64)
        self._free = FreeResources(
            *(columns, pool_of, len(np.unique(pool_of)) < machines),
            _host_columns(cluster.hosts, machines),
            bytearray(gpus),
            np.zeros((machines, len(columns.makes)), dtype=np.int64),
            np.zeros(machines, dtype=np.bool_),
            0,
        )
        self._idle: FreeResources | None = None

    @property
    def fixed(self) -> TopologyColumns:
        """The constant properties of the cluster's topology, as numpy columns."""
        return self._free.columns

    def free(self) -> FreeResources:
        """Return a copy of the resources that are free now; the caller may change it."""
        self._read_gpus()
        free, hosts = self._free, self._cluster.hosts
        free.hosts = _host_columns(hosts, free.columns.num_machines)
        free.has_job = (self._num_held > 0) | (hosts.processes > 0)
        return free.copy()

    def idle(self) -> FreeResources:
        """Return the resources of the cluster if no job ran and nothing was drained; read-only."""
        if self._idle is None:
            hosts, free = self._cluster.hosts, self._free
            columns = free.columns
            every_gpu = np.arange(len(free.is_free))
            counts = np.bincount(columns.place_of[columns.whole(every_gpu)], minlength=columns.num_places)
            self._idle = FreeResources(
                *(columns, free.pool_of, free.pooled),
                _capacities(hosts, columns.num_machines),
                bytearray([1]) * len(every_gpu),
                counts.reshape(free.gpus.shape),
                np.zeros(columns.num_machines, dtype=np.bool_),
                len(every_gpu),
            )
        return self._idle

    def _read_gpus(self) -> None:
        """Update the counts of free and held GPUs for the GPUs that changed since the last call."""
        if self._half_read:
            self._forget_gpus()
        gpus = np.array(sorted(self.stale), dtype=np.int64)
        if not len(gpus):
            return
        self._half_read = True
        columns, free = self._free.columns, self._free
        now_free, owners = self._cluster.occupants(gpus.tolist())
        change = _flagged(free.is_free, gpus, now_free)
        free.num_free += int(change.sum())
        if columns.partitions_of:
            change[columns.partitioned[gpus]] = 0
        np.add.at(free.gpus.reshape(-1), columns.place_of[gpus], change)
        change = _flagged(self._is_held, gpus, tuple(chain.from_iterable(owners.values())))
        np.add.at(self._num_held, columns.machine_of[gpus], change)
        self.stale.clear()
        self._half_read = False

    def _forget_gpus(self) -> None:
        free, gpus = self._free, len(self._is_held)
        self.stale.update(range(gpus))
        free.is_free[:] = self._is_held[:] = bytes(gpus)
        free.gpus[:] = 0
        free.num_free = 0
        self._num_held[:] = 0
        self._half_read = False


def _flagged(flags: bytearray, gpus: Ints, now: Sequence[int]) -> NDArray[np.int8]:
    """Set the flag of each of `gpus` to 1 if it is also in `now`, else to 0; return new minus old flags."""
    flag = np.frombuffer(flags, dtype=np.int8)
    before = flag[gpus]
    flag[gpus] = 0
    flag[list(now)] = 1
    changed: NDArray[np.int8] = flag[gpus] - before
    return changed


def _capacities(hosts: Hosts, machines: int) -> Ints:
    """Return (m, 3) the CPUs, MB and drives of each machine."""
    return hosts.capacity.copy() if hosts.resources else np.full((machines, len(COLUMNS)), PLENTY)


def _host_columns(hosts: Hosts, machines: int) -> Ints:
    """Return an array (machines, 3) with each machine's free CPUs, MB and drives; -1 for a drained machine."""
    shape = (machines, len(COLUMNS))
    columns = hosts.free.copy() if hosts.resources else np.full(shape, PLENTY, dtype=np.int64)
    columns[list(hosts.drained)] = -1
    return columns
