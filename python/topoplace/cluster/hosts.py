"""The CPUs, memory and drives of machines, the amounts that each job holds, and the share of each of its processes.

The processes of a job have equal shares. If the tasks of any process are on several machines, or the number of tasks is
not divisible by that of processes, the job has one process per task instead. Whole CPUs, or else thousandths of a CPU,
that do not divide evenly go to the first processes, so that the shares add up to the job's CPUs. Memory is counted in
whole MB, rounded up for each process.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks, _core
from topoplace.cluster.job_data import HOSTS, JobNotes
from topoplace.errors import AllocationError
from topoplace.placement import HostShare, keep_amounts

if TYPE_CHECKING:
    from topoplace._core import ClusterState
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

COLUMNS: Final = ("CPUs", "MB of memory", "drives")
"""The columns of `Hosts.free`. CPUs are counted in thousandths and memory in whole MB, so that allocating and releasing
is exact."""


@dataclass(frozen=True, slots=True)
class HostResources:
    """The CPUs, memory and drives of one machine, and its GPU pool; AllocationError if a field is out of range."""

    cpus: float
    """Logical CPUs, as the operating system counts them, in steps of 0.001."""
    memory_gb: float
    drives: int = 0
    """Number of storage devices (NVMe) that a job can get exclusively, even from another machine."""
    pool: str | None = None
    """Name of the machine's pool; None for no pool. Machines of a pool share their GPUs by hardware, so each GPU is
    local to all machines of the pool.
    """

    def __post_init__(self) -> None:
        keep_amounts(self, "drives")
        if self.pool is not None:
            _checks.text(self.pool, "pool", AllocationError)


_RESOURCES = [field.name for field in fields(HostResources)]
"""The names of the fields, for snapshots: `asdict` would look them up, and copy the values, for every machine."""


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """The host resources that one job holds.

    shares: machine, CPUs and memory of each process. drives: machine of each drive. remote: the job's remote GPUs.
    """

    shares: tuple[HostShare, ...] = ()
    drives: tuple[int, ...] = ()
    remote: tuple[int, ...] = ()

    def needs(self) -> Iterator[tuple[str, int, int, int]]:
        """Yield (name for messages, machine, column, amount) for each resource of the allocation.

        column: 0 for thousandths of a CPU, 1 for MB of memory, 2 for drives.
        """
        for i, share in enumerate(self.shares):
            yield f"hosts[{i}]", share.machine, 0, millicpus(share.cpus)
            yield f"hosts[{i}]", share.machine, 1, megabytes(share.memory_gb)
        for i, machine in enumerate(self.drives):
            yield f"drives[{i}]", machine, 2, 1

    def amounts(self) -> tuple[Sequence[tuple[int, int, int]], Sequence[int]]:
        """Return machine, thousandths of CPUs and MB of each process, and the machine of each drive."""
        processes = [(one.machine, millicpus(one.cpus), megabytes(one.memory_gb)) for one in self.shares]
        return processes, self.drives

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as a dictionary that JSON can represent."""
        shares = [asdict(share) for share in self.shares]
        return {"shares": shares, "drives": self.drives, "remote": self.remote}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build an allocation from the result of `to_dict`.

        Raise AllocationError, TypeError, KeyError or ValueError for other data.
        """
        shares = tuple(HostShare(**share) for share in data["shares"])
        return cls(shares, tuple(data["drives"]), tuple(map(operator.index, data["remote"])))


class Hosts:
    """The host resources of a cluster's machines. Read-only: `Cluster` changes them and the GPUs in one step."""

    def __init__(self, names: Sequence[str], resources: Sequence[HostResources], state: ClusterState) -> None:
        """Read the resources of a cluster.

        names: names of the machines. resources: one per machine; () for no limits. state: the state of the cluster.
        """
        self.names = names
        self.resources = tuple(resources)
        self.capacity: NDArray[np.int64] = np.array(amounts(self.resources), dtype=np.int64).reshape(
            -1, len(COLUMNS)
        )
        """The thousandths of CPUs, MB of memory and drives of each machine, (machines, 3), or (0, 3) without limits.
        Read-only."""
        self.capacity.flags.writeable = False
        self.free: NDArray[np.int64] = state.host_free
        """The free amount of each of `COLUMNS`, (machines, 3), or (0, 3) without limits; read-only, always current."""
        self.processes: NDArray[np.int64] = state.num_processes
        """The number of processes on each machine, (machines,); read-only, always current."""
        self.held: Mapping[str, HostAllocation] = JobNotes[HostAllocation](state, HOSTS)
        """The host resources of each job that has some, by job id; read-only, always current."""
        self._state = state

    @property
    def drained(self) -> frozenset[int]:
        """Return the numbers of the drained machines."""
        return frozenset(self._state.drained_machines())

    @property
    def held_back(self) -> Mapping[int, str]:
        """Return a mapping from the numbers of held machines to the reasons; it does not follow later changes."""
        return MappingProxyType(self._state.held()[1])

    @property
    def out_of_service(self) -> frozenset[int]:
        """Return the numbers of the drained and held machines, which accept no new processes and give no drives."""
        return frozenset(self._state.withdrawn_machines())

    def is_drained(self, machine: int) -> bool:
        """Return True if the machine with this number is drained; AllocationError if there is none."""
        _checks.integer(machine, "machine", AllocationError, low=0, high=len(self.names) - 1)
        return machine in self.drained

    def left(self, machine: int) -> HostResources:
        """Return the free resources of a machine, given by number; none if it is out of service. `resources` must be
        known.
        """
        _checks.integer(machine, "machine", AllocationError, low=0, high=len(self.names) - 1)
        accepts = self._state.accepts_processes(machine)
        free_millicpus, free_megabytes, drives = self.free[machine].tolist() if accepts else (0, 0, 0)
        cpus = cpus_of(free_millicpus)
        return replace(self.resources[machine], cpus=cpus, memory_gb=free_megabytes / 1000, drives=drives)

    def pool_of(self) -> NDArray[np.int32]:
        """Return (m,) the pool number of each machine: equal if the GPUs of machines are local to each other."""
        number: dict[object, int] = {}
        pools = [r.pool for r in self.resources] or [None] * len(self.names)
        keys = (machine if pool is None else pool for machine, pool in enumerate(pools))
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int32)

    def check(self, held: HostAllocation, *, runs: bool = False) -> None:
        """Check that the resources of `held` are free; without known resources, check only its machines.

        runs: True for a job that already runs, also on machines out of service. Raise AllocationError for the first
        resource that does not suffice, or a machine that is unknown, drained or held.
        """
        _checks.instance(held, HostAllocation, "held", AllocationError)
        drained = frozenset[int]() if runs else self.drained
        kept = dict[int, str]() if runs else self.held_back
        taken: dict[tuple[int, int], int] = {}
        for what, machine, column, amount in held.needs():
            if machine >= len(self.names):
                raise AllocationError(f"{what}: machine {machine} is not in 0..{len(self.names) - 1}")
            if machine in drained:
                raise AllocationError(f"{what}: machine {self.names[machine]!r} is drained")
            if machine in kept:
                raise AllocationError(f"{what}: machine {self.names[machine]!r} is held: {kept[machine]}")
            free = int(self.free[machine, column]) if self.resources else amount
            before = taken.get((machine, column), 0) if self.resources else 0
            if before + amount > free:
                asked, left = (amount, free - before) if column else map(cpus_of, (amount, free - before))
                raise AllocationError(
                    f"{what}: {asked} {COLUMNS[column]} on machine {self.names[machine]!r}, which has {left} free"
                )
            taken[machine, column] = before + amount

    def to_dict(self) -> dict[str, Any]:
        """Return resources, drained machines and jobs' host allocations as a dictionary that JSON can represent.

        Equal states give equal dictionaries.
        """
        return {
            "resources": [{key: getattr(one, key) for key in _RESOURCES} for one in self.resources],
            "drained": sorted(self.drained),
            "held": {job_id: held.to_dict() for job_id, held in sorted(self.held.items())},
        }


def first_gpus(topology: Topology) -> list[int]:
    """Return the first GPU of each machine, in machine order."""
    return [topology.gpus_of[name][0] for name in topology.machine_names]


def amounts(resources: Sequence[HostResources]) -> list[tuple[int, int, int]]:
    """Return, for each machine, its thousandths of CPUs, whole MB of memory (rounded down) and drives."""
    return [(millicpus(r.cpus), int(r.memory_gb * 1000 + 1e-6), r.drives) for r in resources]


GivenHosts = HostResources | Sequence[HostResources] | Mapping[str, HostResources]
"""Resources of machines as an argument: one object for all, a sequence in machine order, or a mapping by name."""


def resources_of(given: GivenHosts | None, names: Sequence[str]) -> tuple[HostResources, ...]:
    """Return the resources of each machine in the order of `names`, or () if `given` is None.

    names: names of the machines. Raise AllocationError if `given` does not match them.
    """
    if given is None:
        return ()
    if isinstance(given, HostResources):
        return (given,) * len(names)
    if isinstance(given, Mapping):
        if set(given) != set(names):
            _refuse_names(given, names)
        listed = tuple(given[name] for name in names)
    else:
        listed = _checks.sequence(given, "hosts", AllocationError)
    if len(listed) != len(names):
        raise AllocationError(f"hosts: {len(listed)} entries for {len(names)} machines")
    for i, entry in enumerate(listed):
        _checks.instance(entry, HostResources, f"hosts[{i}]", AllocationError)
    return listed


def _refuse_names(given: Mapping[str, HostResources], names: Sequence[str]) -> NoReturn:
    strange = sorted(map(str, given.keys() - set(names)))
    lacking = [name for name in names if name not in given]
    which = f"{strange[0]!r} is not a machine" if strange else f"{lacking[0]!r} is missing"
    raise AllocationError(f"hosts: {which}")


def millicpus(cpus: float) -> int:
    """Return CPUs in whole thousandths of a CPU, the unit of allocations."""
    return cpus * 1000 if type(cpus) is int else round(cpus * 1000)


def cpus_of(thousandths: int) -> float:
    """Return thousandths of a CPU as CPUs: an int if they are whole, else a float."""
    return thousandths // 1000 if thousandths % 1000 == 0 else thousandths / 1000


@lru_cache(maxsize=1024)
def megabytes(memory_gb: float) -> int:
    """Return GB of memory in whole MB, rounded up, the unit of allocations."""
    return -int(-(memory_gb * 1000 - 1e-6) // 1)


Ints = NDArray[np.int64]


def needs_hosts(job: JobGraph) -> bool:
    """Return True if the job requires CPUs or host memory; 0 CPUs do not count."""
    return bool(job.cpus or job.memory_gb)


def shared_cpus(job: JobGraph) -> tuple[int, int]:
    """Return (units, unit): a job's CPUs as a number of units, and the thousandths of a CPU in a unit.

    Processes get whole units: whole CPUs, or thousandths of a CPU if the CPUs of the job are not whole.
    """
    cpus = job.cpus or 0
    return (cpus, 1000) if type(cpus) is int else (millicpus(cpus), 1)


def whole_job(job: JobGraph) -> tuple[int, int]:
    """Return the thousandths of CPUs and the MB that all processes of a job need together on one machine."""
    processes = _num_processes(job)
    return millicpus(job.cpus or 0), megabytes((job.memory_gb or 0.0) / processes) * processes


def host_demand(job: JobGraph) -> tuple[int, int, int, int, int, int, int]:
    """Return what a job needs of its machines, for the kernels (`host_demand.hpp`)."""
    memory_gb = (job.memory_gb or 0.0) / job.num_tasks
    return job.num_tasks, *shared_cpus(job), megabytes(memory_gb), int(memory_gb * 1000), *whole_job(job)


def tasks_hosted(job: JobGraph, free: Ints, *, at_best: bool) -> Ints:
    """Return (m,) the number of the job's tasks for which each machine has enough free CPUs and memory.

    free: (m, 2 or more) free thousandths of CPUs and MB of each machine; below 0 on a machine that accepts no
    processes. For less than the whole job, each task counts as one process, and tasks with more CPUs than others count
    first. The number may therefore be too small for other tasks of the job. at_best: True counts tasks with more CPUs
    last, and rounds memory down, so that the number is never too small.
    """
    return _core.tasks_hosted(host_demand(job), free, at_best)


def host_shares(job: JobGraph, gpus: Sequence[int], topology: Topology) -> tuple[HostShare, ...]:
    """Return the machine, CPUs and memory of each process of a job; () if the job needs neither CPUs nor memory.

    gpus: the GPU of each task; a process is on the machine of its GPUs. If the GPUs of any process are on several
    machines, the job has one process per task instead.
    """
    if not needs_hosts(job):
        return ()
    machines: list[int] = topology.machine_of[list(gpus)].tolist()
    processes = _num_processes(job)
    block = len(machines) // processes
    if block > 1 and any(len(set(machines[at : at + block])) > 1 for at in range(0, len(machines), block)):
        processes, block = len(machines), 1
    return _equal_shares(job, machines[::block])


def shares_on(job: JobGraph, machine: int) -> tuple[HostShare, ...]:
    """Return the machine, CPUs and memory of each process of a job that runs on one machine, with or without GPUs."""
    return _equal_shares(job, [machine] * _num_processes(job))


def _equal_shares(job: JobGraph, machines: Sequence[int]) -> tuple[HostShare, ...]:
    """Divide a job's CPUs and memory among its processes. machines: the machine of each process."""
    units, unit = shared_cpus(job)
    each, more = divmod(units, len(machines))
    memory = (job.memory_gb or 0.0) / len(machines)
    made: dict[tuple[int, bool], HostShare] = {}
    shares: list[HostShare] = []
    for i, machine in enumerate(machines):
        has_more = i < more
        share = made.get((machine, has_more))
        if share is None:
            cpus = cpus_of((each + has_more) * unit)
            share = made[machine, has_more] = HostShare(machine, cpus, memory)
        shares.append(share)
    return tuple(shares)


def _num_processes(job: JobGraph) -> int:
    return job.num_tasks if job.num_tasks % job.processes else job.processes
