"""Free resources as numpy columns, for policies that compare all machines in one vector operation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import COLUMNS, Hosts
from topoplace.engine.admission import suits_model
from topoplace.engine.machines.machine_class import MachineClasses

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
        machines = topology.derived(MachineClasses)
        makes: dict[tuple[str | None, float | None], int] = {}
        self.make_of = np.empty(topology.num_gpus, dtype=np.int64)
        class_of = np.array(machines.class_of)
        for number in dict.fromkeys(machines.class_of):
            gpus = np.array([machines.gpus_of[machine] for machine in np.flatnonzero(class_of == number)])
            described = machines.classes[number].gpus
            self.make_of[gpus] = [
                makes.setdefault((gpu.model, gpu.memory_gb), len(makes)) for gpu in described
            ]
        self.makes = tuple(makes)
        memory_gb = [memory or 0.0 for _, memory in makes]
        self.memory_rank: Ints = np.unique(memory_gb, return_inverse=True)[1].astype(np.int64)
        """(makes,) rank of the make's GPU memory, smallest 0; unknown memory counts as 0 GB."""
        self.machine_of = topology.machine_of.astype(np.int64)
        self.machine_list: list[int] = self.machine_of.tolist()
        self.num_machines = topology.num_machines
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
        """Return the number of pairs of a machine and a make (GPU model and memory)."""
        return self.num_machines * len(self.makes)

    def at(self, place: int) -> Ints:
        """Return the GPUs of one place (machine and GPU make), ascending.

        GPUs that can only be allocated in fixed partitions are omitted.
        """
        return self._by_place[self._starts[place] : self._starts[place + 1]]

    def suits(self, job: JobGraph) -> NDArray[np.bool_]:
        """Return an array with True for each make (GPU model and memory) that meets the job's requirements."""
        return np.array([suits_model(job, model, memory) for model, memory in self.makes])


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
            *(self.gpus.copy(), self.num_free),
        )

    # ---- GPUs ----------------------------------------------------------------------------------------------

    def set_free(self, gpu: int, *, free: bool) -> None:
        """Mark a GPU as free or taken, and update the counts of free GPUs."""
        if self.is_free[gpu] != free:
            self.is_free[gpu] = free
            change = 1 if free else -1
            self.num_free += change
            if not self.columns.partitioned[gpu]:
                self.gpus[self.columns.machine_of[gpu], self.columns.make_of[gpu]] += change

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
    """The current free resources of a cluster. Each read updates only changed GPUs, but all host resources."""

    def __init__(self, cluster: Cluster) -> None:
        """Read the pools and host resources now; GPUs are read on first use."""
        self._cluster = cluster
        columns = cluster.topology.derived(TopologyColumns)
        gpus, machines = cluster.topology.num_gpus, columns.num_machines
        self._position: int | None = None
        """How many changes of the state the counts of GPUs include; None if all GPUs have to be read."""
        self._half_read = False
        """True while GPUs are read; an interrupt leaves it True, and all are read again."""
        pool_of = cluster.hosts.pool_of().astype(np.int64)
        self._free = FreeResources(
            *(columns, pool_of, len(np.unique(pool_of)) < machines),
            _host_columns(cluster.hosts, machines),
            bytearray(gpus),
            np.zeros((machines, len(columns.makes)), dtype=np.int64),
            0,
        )

    def free(self) -> FreeResources:
        """Return a copy of the resources that are free now; the caller may change it."""
        self._read_gpus()
        free = self._free
        free.hosts = _host_columns(self._cluster.hosts, free.columns.num_machines)
        return free.copy()

    def _read_gpus(self) -> None:
        """Update the counts of free and held GPUs for the GPUs that changed since the last call."""
        state = self._cluster.native
        now, position = state.num_changes, None if self._half_read else self._position
        changed: Sequence[int] | None = None if position is None else state.changed_since(position)
        if changed is None:
            self._forget_gpus()
            changed = range(len(self._free.is_free))
        if not changed:
            return
        gpus = np.unique(np.array(changed, dtype=np.int64))
        self._half_read = True
        columns, free = self._free.columns, self._free
        now_free, _ = self._cluster.occupants(gpus.tolist())
        change = _flagged(free.is_free, gpus, now_free)
        free.num_free += int(change.sum())
        if columns.partitions_of:
            change[columns.partitioned[gpus]] = 0
        np.add.at(free.gpus.ravel(), columns.place_of[gpus], change)
        self._position = now
        self._half_read = False

    def _forget_gpus(self) -> None:
        free = self._free
        free.is_free[:] = bytes(len(free.is_free))
        free.gpus[:] = 0
        free.num_free = 0


def _flagged(flags: bytearray, gpus: Ints, now: Sequence[int]) -> NDArray[np.int8]:
    """Set the flag of each of `gpus` to 1 if it is also in `now`, else to 0; return new minus old flags."""
    flag = np.frombuffer(flags, dtype=np.int8)
    before = flag[gpus]
    flag[gpus] = 0
    flag[list(now)] = 1
    changed: NDArray[np.int8] = flag[gpus] - before
    return changed


def _host_columns(hosts: Hosts, machines: int) -> Ints:
    """Return an array (machines, 3) with each machine's free CPUs, MB and drives; -1 for one out of service."""
    shape = (machines, len(COLUMNS))
    columns = hosts.free.copy() if hosts.resources else np.full(shape, PLENTY, dtype=np.int64)
    columns[list(hosts.out_of_service)] = -1
    return columns
