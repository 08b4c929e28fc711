"""What machines have besides GPUs: CPUs, memory and drives, and which job holds how much of them."""

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
"""The columns of `Hosts.free`; memory is counted in whole MB, so that what is taken and given back is the same."""
_MOST: Final = 1 << 30
_MANY: Final = 4
"""From so many processes on, they are counted in columns."""


@dataclass(frozen=True, slots=True)
class HostResources:
    """What one machine has."""

    cpus: int
    """Logical CPUs, as the operating system counts them."""
    memory_gb: float
    drives: int = 0
    """Storage devices (NVMe) that a job may have to itself, also from another machine."""
    pool: str | None = None
    """Machines of the same pool share all their GPUs by hardware (a rack node): each is local to all of them."""

    def __post_init__(self) -> None:
        for name in ("cpus", "drives"):
            _checks.integer(getattr(self, name), name, AllocationError, low=0, high=_MOST)
        _checks.real(self.memory_gb, "memory_gb", AllocationError, high=_MOST)
        if self.pool is not None:
            _checks.text(self.pool, "pool", AllocationError)


@dataclass(frozen=True, slots=True)
class HostAllocation:
    """What one job holds of machines: a share per process, the machine of each drive, and its remote GPUs."""

    shares: tuple[HostShare, ...] = ()
    drives: tuple[int, ...] = ()
    remote: tuple[int, ...] = ()

    def needs(self) -> Iterator[tuple[str, int, int, int]]:
        """(name for messages, machine, column of `Hosts.free`, amount) of all it takes."""
        for i, share in enumerate(self.shares):
            yield f"hosts[{i}]", share.machine, 0, share.cpus
            yield f"hosts[{i}]", share.machine, 1, megabytes(share.memory_gb)
        for i, machine in enumerate(self.drives):
            yield f"drives[{i}]", machine, 2, 1

    def to_dict(self) -> dict[str, Any]:
        """Return the allocation as JSON takes it."""
        shares = [asdict(share) for share in self.shares]
        return {"shares": shares, "storage": self.drives, "remote": self.remote}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read the result of `to_dict`; raise AllocationError, TypeError, KeyError or ValueError for anything else."""
        shares = tuple(HostShare(**share) for share in data["shares"])
        return cls(shares, tuple(data["storage"]), tuple(map(operator.index, data["remote"])))


class Hosts:
    """The host resources of a cluster's machines; to be read only, as `Cluster.allocate` is what changes them."""

    def __init__(self, names: Sequence[str], resources: Sequence[HostResources]) -> None:
        """names: of the machines. resources: one per machine, or none at all for no limits."""
        self.names = names
        self.resources = tuple(resources)
        self._held: dict[str, HostAllocation] = {}
        self._drained: set[int] = set()
        self._processes = np.zeros(len(names), dtype=np.int64)
        rows = [(r.cpus, int(r.memory_gb * 1000 + 1e-6), r.drives) for r in self.resources]
        self._free = np.array(rows, dtype=np.int64).reshape(-1, len(COLUMNS))

    # ---- what it says --------------------------------------------------------------------------------------

    @property
    def free(self) -> NDArray[np.int64]:
        """(machines, 3) what is left of each of `COLUMNS`, (0, 3) without limits; a read-only view."""
        view = self._free.view()
        view.flags.writeable = False
        return view

    @property
    def processes(self) -> NDArray[np.int64]:
        """(machines,) how many processes jobs have on each; a read-only view."""
        view = self._processes.view()
        view.flags.writeable = False
        return view

    @property
    def held(self) -> Mapping[str, HostAllocation]:
        """What each job holds: a read-only view."""
        return MappingProxyType(self._held)

    @property
    def drained(self) -> frozenset[int]:
        """The machines that take no processes."""
        return frozenset(self._drained)

    def pool_of(self) -> NDArray[np.int32]:
        """(machines,) the number of each machine's pool: equal where GPUs of one are local to the other."""
        number: dict[object, int] = {}
        pools = [r.pool for r in self.resources] or [None] * len(self.names)
        keys = (machine if pool is None else pool for machine, pool in enumerate(pools))
        return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int32)

    # ---- for the cluster -----------------------------------------------------------------------------------

    def check(self, held: HostAllocation) -> None:
        """AllocationError naming the first thing that is short, or a machine that is drained or not there."""
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
        """From now on the job holds this and nothing else; returns what undoes it. Needs `check` before."""
        before = self._held.pop(job_id, None)
        self._add(before, 1)
        self._add(held, -1)
        if held is not None:
            self._held[job_id] = held

        def undo() -> None:
            self.put(job_id, before)

        return undo

    def drain(self, machine: int, *, on: bool) -> Callable[[], None]:
        """Take no processes there, or take them again; returns what undoes it."""
        before = machine in self._drained
        (self._drained.add if on else self._drained.discard)(machine)

        def undo() -> None:
            self.drain(machine, on=before)

        return undo

    def copy(self) -> Self:
        """An independent copy."""
        other = type(self)(self.names, self.resources)
        other._held, other._drained, other._free = dict(self._held), set(self._drained), self._free.copy()
        other._processes = self._processes.copy()
        return other

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it, equal for equal states."""
        return {
            "resources": [asdict(r) for r in self.resources],
            "drained": sorted(self._drained),
            "held": {job_id: self._held[job_id].to_dict() for job_id in sorted(self._held)},
        }

    @classmethod
    def from_dict(cls, names: Sequence[str], data: Mapping[str, Any]) -> Self:
        """What `to_dict` gave; AllocationError, TypeError, KeyError or ValueError for anything else."""
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
        """Whether all is well; where False, `check` finds out, which is faster for a few."""
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
    """The machines of many processes, if they are all different and nothing else is held; else none."""
    if len(held.shares) < _MANY or held.drives:
        return []
    machines = [share.machine for share in held.shares]
    return machines if len(set(machines)) == len(machines) else []


def _amounts(held: HostAllocation) -> NDArray[np.int64]:
    """(shares, 3) what each takes of the `COLUMNS`."""
    rows = [(share.cpus, megabytes(share.memory_gb), 0) for share in held.shares]
    return np.array(rows, dtype=np.int64)


GivenHosts = HostResources | Sequence[HostResources] | Mapping[str, HostResources]
"""One for all machines, one per machine in their order, or by name."""


def resources_of(given: GivenHosts | None, names: Sequence[str]) -> tuple[HostResources, ...]:
    """One entry per machine, none for None; AllocationError where the machines and the entries do not match."""
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
    which = f"{strange[0]!r} is no machine" if strange else f"{lacking[0]!r} is missing"
    raise AllocationError(f"hosts: {which}")


@lru_cache(maxsize=1024)
def megabytes(memory_gb: float) -> int:
    """Memory as it is counted: whole MB, rounded up."""
    return -int(-(memory_gb * 1000 - 1e-6) // 1) if memory_gb > 0 else 0
