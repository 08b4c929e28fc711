"""The GPUs that machines offer to a job on several machines, computed once for each condition of machines."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.engine.admission import tasks_per_machine
from topoplace.engine.machines.machine_class import MachineClass, Mask, as_bytes, mask_of, members
from topoplace.engine.machines.machine_conditions import ConditionTable, MachineState, Sight
from topoplace.mig import Reslicing

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_conditions import Conditions
    from topoplace.engine.request import JobRequest

Ints = NDArray[np.int64]
_partitions = attrgetter("partitions")
MaxTasks = Callable[["JobRequest", MachineState], int]
"""Function that returns the largest number of a job's tasks that a machine in a given state may have."""


class MachineOffer(NamedTuple):
    """A machine that can take a part of a job, with the GPUs it offers."""

    machine: int
    usable: Mask
    """The machine's GPUs that are free and meet the job's requirements."""
    partitions: tuple[Mask, ...]
    """The machine's partitions whose GPUs are all usable; () for a machine without partitions."""
    max_tasks: int
    """Largest number of GPUs that the job may get on the machine, limited by usable GPUs, CPUs, memory and memory
    bandwidth; the size of a machine without partitions.
    """

    @property
    def size(self) -> int:
        """Return the largest number of GPUs that the machine offers together."""
        if self.partitions:
            return self.gpus_for(self.max_tasks).bit_count()
        return min(self.max_tasks, self.usable.bit_count())

    def gpus_for(self, count: int) -> Mask:
        """Return the GPUs offered to up to `count` tasks, as a bit mask; there may be more GPUs than tasks.

        If the machine's GPUs are only allocated in fixed partitions, the result is the largest partition of at most
        `count` GPUs, or 0 if all are larger.
        """
        if self.partitions:
            fitting = (part for part in self.partitions if part.bit_count() <= min(count, self.max_tasks))
            return max(fitting, key=int.bit_count, default=0)
        few = count == 1 or self.max_tasks < self.usable.bit_count()
        return mask_of(islice(members(self.usable), min(count, self.max_tasks))) if few else self.usable

    @property
    def single_gpus(self) -> Mask:
        """Return the GPUs that a job may get without any others."""
        return (
            sum(part for part in self.partitions if part & part - 1 == 0) if self.partitions else self.usable
        )


class FreeKinds(Sequence[MachineOffer]):
    """Kinds of offers of whole free GPUs of machines without partitions; each is built on access."""

    def __init__(self, usable: NDArray[np.uint8], max_tasks: int) -> None:
        """Store (kinds, bytes) the GPUs of each kind as bits, and the largest number of tasks on one machine."""
        self.usable = usable
        self._max_tasks = max_tasks

    def __len__(self) -> int:
        return len(self.usable)

    @overload
    def __getitem__(self, index: int) -> MachineOffer: ...
    @overload
    def __getitem__(self, index: slice) -> list[MachineOffer]: ...
    def __getitem__(self, index: int | slice) -> MachineOffer | list[MachineOffer]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        usable = int.from_bytes(self.usable[index].tobytes(), "little")
        return MachineOffer(-1, usable, (), min(self._max_tasks, usable.bit_count()))


class Offers(Sequence[MachineOffer]):
    """The offers of a cluster's machines to one job, in order of machine number unless they were sorted.

    Machines of one kind offer the same GPUs; each offer is built on access.
    """

    def __init__(
        self,
        machines: Ints,
        kind_of: Ints,
        kinds: Sequence[MachineOffer],
        hosted: Ints | None,
        sizes: Ints | None = None,
    ) -> None:
        """Store the offers of `machines` by their kinds; the machine numbers in kinds are ignored.

        kind_of: the kind of each of `machines`. hosted: the number of tasks for which the CPUs and memory of each
        suffice; None if the job needs none. sizes: the sizes of the offers; None if unknown.
        """
        self._kinds = kinds
        self._kind_of = kind_of
        self._hosted = hosted
        self.machines = machines
        """(offers,) the number of each offer's machine."""
        self.is_simple = isinstance(kinds, FreeKinds) or not any(map(_partitions, kinds))
        """True if no machine allocates its GPUs in fixed partitions only."""
        self.sizes = self._all_sizes() if sizes is None else sizes
        """(offers,) the largest number of GPUs of each offer at once: its `size`."""

    def __len__(self) -> int:
        return len(self.machines)

    @overload
    def __getitem__(self, index: int) -> MachineOffer: ...
    @overload
    def __getitem__(self, index: slice) -> Offers: ...
    def __getitem__(self, index: int | slice) -> MachineOffer | Offers:
        if isinstance(index, slice):
            return self.at(np.arange(len(self))[index])
        kind = self._kinds[int(self._kind_of[index])]
        most = kind.max_tasks if self._hosted is None else min(kind.max_tasks, int(self._hosted[index]))
        return MachineOffer(int(self.machines[index]), kind.usable, kind.partitions, most)

    def at(self, positions: NDArray[np.integer]) -> Offers:
        """Return the offers at these positions, in this order."""
        hosted = None if self._hosted is None else self._hosted[positions]
        sizes = self.sizes[positions]
        return Offers(self.machines[positions], self._kind_of[positions], self._kinds, hosted, sizes)

    @property
    def gpu_counts(self) -> Ints:
        """Return (offers,) the largest number of GPUs of each offer together if CPUs and memory set no limit."""
        sizes = [kind.size if kind.partitions else kind.max_tasks for kind in self._kinds]
        return np.array(sizes, dtype=np.int64)[self._kind_of]

    @property
    def first_gpus(self) -> Ints:
        """Return (offers,) the first GPU that each offers, by its number on the machine."""
        if not self.is_simple:
            return np.array([next(members(one.gpus_for(one.max_tasks)), 0) for one in self], np.int64)
        firsts = np.array([next(members(kind.usable), 0) for kind in self._kinds], np.int64)
        return firsts[self._kind_of]

    def kinds(self) -> Iterator[tuple[MachineOffer, int]]:
        """Yield each kind of offer and the number of machines that make it; its `machine` is not a real number."""
        hosted = np.full(len(self), -1) if self._hosted is None else self._hosted
        pairs, counts = np.unique(np.stack((self._kind_of, hosted)), axis=1, return_counts=True)
        kinds: list[list[int]] = pairs.T.tolist()
        for (kind, most), number in zip(kinds, counts.tolist(), strict=True):
            yield self._hosted_kind(kind, most), number

    @cached_property
    def native(self) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]:
        """Return the machines, the kind of each, its size, and (kinds, bytes) usable GPUs, for `_core.gang_tree`."""
        columns = self.machines, self._kind_of, self.sizes
        machines, kind_of, sizes = [one.astype(np.int32) for one in columns]
        if isinstance(self._kinds, FreeKinds):
            return machines, kind_of, sizes, self._kinds.usable
        width = max([1, *[-(-kind.usable.bit_length() // 8) for kind in self._kinds]])
        usable = b"".join([kind.usable.to_bytes(width, "little") for kind in self._kinds])
        return machines, kind_of, sizes, np.frombuffer(usable, np.uint8).reshape(-1, width)

    def _hosted_kind(self, kind: int, hosted: int) -> MachineOffer:
        """Return a kind of offer where CPUs and memory suffice for `hosted` tasks; -1 if the job needs none."""
        offer = self._kinds[kind]
        return offer if hosted < 0 else offer._replace(max_tasks=min(offer.max_tasks, hosted))

    def by_usable(self) -> Iterator[tuple[Mask, Ints]]:
        """Yield the GPUs that machines with equal offers offer, and the positions of these offers."""
        for kind, places in self._places_of_kinds():
            yield self._kinds[kind].usable, places

    def _places_of_kinds(self) -> Iterator[tuple[int, Ints]]:
        order = np.argsort(self._kind_of, kind="stable")
        kinds, firsts = np.unique(self._kind_of[order], return_index=True)
        numbers: list[int] = kinds.tolist()
        yield from zip(numbers, np.split(order, firsts[1:]), strict=True)

    def of_gpus(self, gpus: Mask) -> Offers:
        """Return offers of exactly these local GPUs, from the machines that can give them."""
        size = gpus.bit_count()

        def of_kind(kind: MachineOffer) -> MachineOffer:
            has_them = gpus in kind.partitions if kind.partitions else kind.usable & gpus == gpus
            if kind.max_tasks < size or not has_them:
                return kind._replace(partitions=(), max_tasks=0)
            return kind._replace(usable=gpus, partitions=(gpus,) if kind.partitions else (), max_tasks=size)

        new = [of_kind(kind) for kind in self._kinds]
        has_them = np.array([kind.max_tasks > 0 for kind in new], dtype=np.bool_)[self._kind_of]
        if self._hosted is not None:
            has_them &= self._hosted >= size
        positions = np.flatnonzero(has_them)
        return Offers(self.machines[positions], self._kind_of[positions], new, None)

    def without_partitions(self) -> Offers:
        """Return the offers as if no machine allocated its GPUs in fixed partitions only."""
        kinds = [kind._replace(partitions=()) for kind in self._kinds]
        return self if self.is_simple else Offers(self.machines, self._kind_of, kinds, self._hosted)

    def smallest_first(self) -> Offers:
        """Return the offers by size, ties by machine."""
        return self.at(np.argsort(self.sizes, kind="stable"))

    def _all_sizes(self) -> Ints:
        if not self.is_simple and self._hosted is not None:
            return np.array([offer.size for offer in self], dtype=np.int64)
        return self.gpu_counts if self._hosted is None else np.minimum(self.gpu_counts, self._hosted)


def offers_of(
    max_tasks_of: MaxTasks | None,
    request: JobRequest,
    view: ClusterView,
    most_memory_gb: float = math.inf,
    *,
    sees_jobs: bool = True,
    reslicing: Reslicing = Reslicing.NONE,
) -> Offers:
    """Return the offers of the machines that can take a part of the job now.

    max_tasks_of: returns the largest number of the job's tasks that a machine in a given state may have; None if any
    may have all. CPUs and memory also limit offers. most_memory_gb: limit on the memory of each GPU, GB. sees_jobs:
    True if `max_tasks_of` depends on the jobs on a machine. reslicing: the GPUs that may be resliced.
    """
    sight = Sight(jobs=sees_jobs, shares=request.takes_parts or bool(reslicing))
    conditions = view.conditions(sight)
    hosted = tasks_per_machine(request.job, view.cluster.hosts)
    if max_tasks_of is None and not sight.shares and not view.classes.have_partitions:
        return _of_free_gpus(request, view, conditions, hosted, most_memory_gb)

    def offer_of(machine_class: MachineClass, state: MachineState) -> MachineOffer:
        free = request.free_on(machine_class, state, reslicing=reslicing)
        usable = free & request.suitable(machine_class, most_memory_gb)
        most = request.size if max_tasks_of is None else max_tasks_of(request, state)
        return _offer(most, machine_class, usable)

    key = (request, max_tasks_of, most_memory_gb, sight, reslicing)
    table = view.table(key, lambda: ConditionTable(conditions, offer_of))
    kind_of = conditions.native.of_machines().astype(np.int64)
    numbers = list(conditions.native.present())
    places = np.zeros(max(numbers, default=0) + 1, dtype=np.int64)
    places[numbers] = np.arange(len(numbers))
    kinds = table.of_all(numbers)
    return _offers(kinds, places[kind_of], hosted)


def _of_free_gpus(
    request: JobRequest, view: ClusterView, conditions: Conditions, hosted: Ints | None, most_memory_gb: float
) -> Offers:
    """Return the offers to a job of whole GPUs, on machines without partitions."""
    suitable = [as_bytes(request.suitable(one, most_memory_gb)) for one in view.classes.classes]
    *columns, usable = _core.free_offers(conditions.native, suitable, request.size)
    machines, kind_of, sizes = [column.astype(np.int64) for column in columns]
    kinds = FreeKinds(usable, request.size)
    if hosted is None:
        return Offers(machines, kind_of, kinds, None, sizes)
    some = np.flatnonzero(hosted[machines] > 0)
    return Offers(machines[some], kind_of[some], kinds, hosted[machines[some]])


def idle_offers(
    max_tasks_of: MaxTasks, request: JobRequest, view: ClusterView, *, at_best: bool = False
) -> Offers:
    """Return the offers of the machines' healthy GPUs if the cluster were idle.

    at_best: unhealthy GPUs count as repaired, and offers are limited by CPUs and memory.
    """
    classes = view.classes
    gpus = [mask_of(range(len(one.gpus))) if at_best else one.healthy for one in classes.classes]
    kinds = [
        _offer(
            max_tasks_of(request, MachineState(free, (), 0.0)),
            one,
            free & request.suitable(one),
        )
        for one, free in zip(classes.classes, gpus, strict=True)
    ]
    limits = tasks_per_machine(request.job, view.cluster.hosts, idle=True) if at_best else None
    return _offers(kinds, np.array(classes.class_of, dtype=np.int64), limits)


def _offer(max_tasks: int, machine_class: MachineClass, usable: Mask) -> MachineOffer:
    """Return the offer of a machine with these usable GPUs, without a machine number; of 0 tasks if it offers none."""
    most = min(max_tasks, usable.bit_count())
    partitions = tuple(part for part in machine_class.partitions if part & usable == part)
    offers = most and (partitions or not machine_class.partitions)
    return MachineOffer(-1, usable, partitions, most if offers else 0)


def _offers(kinds: Sequence[MachineOffer], kind_of: Ints, hosted: Ints | None) -> Offers:
    """Return the offers of machines of these kinds, as far as they have the CPUs and memory for a task."""
    has_some = np.array([kind.max_tasks > 0 for kind in kinds], dtype=np.bool_)[kind_of]
    if hosted is not None:
        has_some &= hosted > 0
    machines = np.flatnonzero(has_some)
    return Offers(machines, kind_of[machines], kinds, None if hosted is None else hosted[machines])
