"""The CPUs, memory and drives of machines, and the amounts of them that each job holds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.errors import AllocationError
from topoplace.placement import HostShare

COLUMNS: Final = ("CPUs", "MB of memory", "drives")
"""The columns of `Hosts.free`. Memory is counted in whole MB, so that allocating and releasing is exact."""
_LIMIT: Final = 1 << 30
_MANY: Final = 4
"""Number of processes from which array operations are faster than a loop."""


@dataclass(frozen=True, slots=True)
class HostResources:
    """The CPUs, memory and drives of one machine, and its GPU pool."""

    cpus: int
    """Logical CPUs, as the operating system counts them."""
    memory_gb: float
    drives: int = 0
    """Number of storage devices (NVMe) that a job can get exclusively, even from another machine."""
    pool: str | None = None
    """Name of the machine's pool. Machines of a pool share their GPUs by hardware, so each GPU is local to all."""

    def __post_init__(self) -> None:
        for name in ("cpus", "drives"):
            _checks.integer(getattr(self, name), name, AllocationError, low=0, high=_LIMIT)
        _checks.real(self.memory_gb, "memory_gb", AllocationError, high=_LIMIT)
        if self.pool is not None:
            _checks.text(self.pool, "pool", AllocationError)


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

        column: 0 for CPUs, 1 for MB of memory, 2 for drives.
        """
        for i, share in enumerate(self.shares):
            yield f"hosts[{i}]", share.machine, 0, share.cpus
            yield f"hosts[{i}]", share.machine, 1, megabytes(share.memory_gb)
        for i, machine in enumerate(self.drives):
            yield f"drives[{i}]", machine, 2, 1

    def to_dict(self) -> dict[str, Any]:
        """Convert the allocation to a dictionary that JSON can represent."""
        shares = [asdict(share) for share in self.shares]
        return {"shares": shares, "storage": self.drives, "remote": self.remote}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Build an allocation from the result of `to_dict`.

        Raises AllocationError, TypeError, KeyError or ValueError for other data.
        """
        shares = tuple(HostShare(**share) for share in data["shares"])
        return cls(shares, tuple(data["storage"]), tuple(map(operator.index, data["remote"])))


class Hosts:
    """The host resources (CPUs, memory, drives) of a cluster's machines, and which job holds which of them.

    Objects are read-only for users: only `Cluster` changes them.
    """

    def __init__(self, names: Sequence[str], resources: Sequence[HostResources]) -> None:
        """Start with all resources free. names: names of the machines. resources: one per machine; () for no limits."""
        self.names = names
        self.resources = tuple(resources)
        self._held: dict[str, HostAllocation] = {}
        self._drained: set[int] = set()
        self._processes = np.zeros(len(names), dtype=np.int64)
        rows = [(r.cpus, int(r.memory_gb * 1000 + 1e-6), r.drives) for r in self.resources]
        self.capacity: NDArray[np.int64] = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))
        """The amount of each of `COLUMNS` that each machine has, (machines, 3), or (0, 3) without limits; read-only."""
        self.capacity.flags.writeable = False
        self._free = self.capacity.copy()

    # ---- queries -------------------------------------------------------------------------------------------

    @property
    def free(self) -> NDArray[np.int64]:
        """Return the free CPUs, MB of memory and drives of each machine as a read-only array (machines, 3).

        Without limits the shape is (0, 3).
        """
        view = self._free.view()
        view.flags.writeable = False
        return view

    @property
    def processes(self) -> NDArray[np.int64]:
        """Return the number of processes on each machine as a read-only array (machines,)."""
        view = self._processes.view()
        view.flags.writeable = False
        return view

    @property
    def held(self) -> Mapping[str, HostAllocation]:
        """Return a read-only view of each job's host resources, by job id."""
        return MappingProxyType(self._held)

    @property
    def drained(self) -> frozenset[int]:
        """Return the machines that accept no new processes."""
        return frozenset(self._drained)

    def pool_of(self) -> NDArray[np.int32]:
        """Return an array (machines,) of pool numbers; machines with equal numbers share a pool of local GPUs.

        A machine without a pool has a number of its own.
        """
        number: dict[object, int] = {}
        pools = [r.pool for r in self.resources] or [None] * len(self.names)
        keys = (machine if pool is None else pool for machine, pool in enumerate(pools))
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int32)

    # ---- for the cluster -----------------------------------------------------------------------------------

    def check(self, held: HostAllocation) -> None:
        """Check that the resources of `held` are free.

        AllocationError names the first resource that is too scarce, or a machine that is drained or unknown.
        """
        if self._fits(held):
            return
        taken: dict[tuple[int, int], int] = {}
        for what, machine, column, amount in held.needs():
            if machine >= len(self.names):
                raise AllocationError(f"{what}: machine {machine} is not in 0..{len(self.names) - 1}")
            if machine in self._drained:
                raise AllocationError(f"{what}: machine {self.names[machine]!r} is drained")
            free = int(self._free[machine, column]) if self.resources else amount
            before = taken.get((machine, column), 0) if self.resources else 0
            if before + amount > free:
                raise AllocationError(
                    f"{what}: {amount} {COLUMNS[column]} on machine {self.names[machine]!r}, "
                    f"which has {free - before} free"
                )
            taken[machine, column] = before + amount

    def put(self, job_id: str, held: HostAllocation | None) -> Callable[[], None]:
        """Set the host resources that a job holds (None removes them), and return a function that undoes this.

        The resources are not checked; call `check` before.
        """
        before = self._held.pop(job_id, None)
        self._add(before, 1)
        self._add(held, -1)
        if held is not None:
            self._held[job_id] = held

        def undo() -> None:
            self.put(job_id, before)

        return undo

    def drain(self, machine: int, *, on: bool) -> Callable[[], None]:
        """Stop (`on=True`) or resume accepting processes on a machine, and return a function that undoes this."""
        before = machine in self._drained
        (self._drained.add if on else self._drained.discard)(machine)

        def undo() -> None:
            self.drain(machine, on=before)

        return undo

    def copy(self) -> Self:
        """Return an independent copy of the host resources and allocations."""
        other = type(self)(self.names, self.resources)
        other._held, other._drained, other._free = dict(self._held), set(self._drained), self._free.copy()
        other._processes = self._processes.copy()
        return other

    def to_dict(self) -> dict[str, Any]:
        """Convert all host resources to a dictionary that JSON can represent; equal states give equal dictionaries."""
        return {
            "resources": [asdict(r) for r in self.resources],
            "drained": sorted(self._drained),
            "held": {job_id: self._held[job_id].to_dict() for job_id in sorted(self._held)},
        }

    @classmethod
    def from_dict(cls, names: Sequence[str], data: Mapping[str, Any]) -> Self:
        """Build the host resources of the machines called `names` from the result of `to_dict`.

        Raises AllocationError, TypeError, KeyError or ValueError for other data.
        """
        hosts = cls(names, resources_of([HostResources(**r) for r in data["resources"]] or None, names))
        for job_id, held in data["held"].items():
            known = HostAllocation.from_dict(held)
            hosts.check(known)
            hosts.put(_checks.text(job_id, "job", AllocationError), known)
        for machine in data["drained"]:
            hosts.drain(
                _checks.integer(machine, "drained", AllocationError, low=0, high=len(names) - 1), on=True
            )
        return hosts

    def _fits(self, held: HostAllocation) -> bool:
        """Return True if a fast test on arrays shows that `held` fits; on False, `check` has to test it in detail."""
        machines = _machines(held)
        if not machines or max(machines) >= len(self.names) or not self._drained.isdisjoint(machines):
            return False
        return not self.resources or bool((self._free[machines] >= _amounts(held)).all())

    def _add(self, held: HostAllocation | None, sign: int) -> None:
        if held is None:
            return
        if machines := _machines(held):
            self._processes[machines] -= sign
            if self.resources:
                self._free[machines] += sign * _amounts(held)
            return
        for share in held.shares:
            self._processes[share.machine] -= sign
        if self.resources:
            for _, machine, column, amount in held.needs():
                self._free[machine, column] += sign * amount


def _machines(held: HostAllocation) -> list[int]:
    """Return the machine of each process if array operations apply, else [].

    They apply to a job of at least 4 processes, all on different machines, without drives.
    """
    if len(held.shares) < _MANY or held.drives:
        return []
    machines = [share.machine for share in held.shares]
    return machines if len(set(machines)) == len(machines) else []


def _amounts(held: HostAllocation) -> NDArray[np.int64]:
    """Return an array (processes, 3) with the CPUs, MB of memory and drives (0) that each process takes."""
    rows = [(share.cpus, megabytes(share.memory_gb), 0) for share in held.shares]
    return np.array(rows, dtype=np.int64)


GivenHosts = HostResources | Sequence[HostResources] | Mapping[str, HostResources]
"""Resources of machines as an argument: one object for all, a sequence in machine order, or a mapping by name."""


def resources_of(given: GivenHosts | None, names: Sequence[str]) -> tuple[HostResources, ...]:
    """Return the resources of each machine, or () for None; AllocationError if `given` does not match the machines.

    names: names of the machines.
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


@lru_cache(maxsize=1024)
def megabytes(memory_gb: float) -> int:
    """Convert GB of memory to whole MB, rounded up; allocations are counted in MB."""
    return -int(-(memory_gb * 1000 - 1e-6) // 1) if memory_gb > 0 else 0
