"""Classes of interchangeable machines, built once per topology; policies share tables among machines of one class."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.engine.memo import Memo
from topoplace.mig import MigProfile, profiles_of_gpu
from topoplace.objectives.links import LinkTables
from topoplace.objectives.pair_links import PairLinks, Rows, class_of, rows_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

MAX_MACHINE_GPUS = 4096
"""Limit on the GPUs of one machine; its tables have an entry for each pair."""
_MAX_PAIRED_GPUS = 64
"""Largest machine whose pairs are looked up one by one, without tables of the whole topology."""
_NO_PATH = 1e9
_TIE_BREAK = 1e-6

Mask = int
"""A set of GPUs of one machine as an integer: bit i is set if the machine's i-th GPU is in the set."""


def mask_of(gpus: Iterable[int]) -> Mask:
    """Return the bit mask in which bit i is set for each i in `gpus`."""
    mask = 0
    for gpu in gpus:
        mask |= 1 << gpu
    return mask


def finite(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances capped at 1e9, the finite value that kernels get for pairs without a path."""
    return np.minimum(distance, _NO_PATH)


def members(mask: Mask) -> Iterator[int]:
    """Yield the numbers of the GPUs in a bit mask, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def as_bytes(mask: Mask) -> bytes:
    """Return a bit mask for the kernels: the lowest byte first, as few as are needed."""
    return mask.to_bytes(-(-mask.bit_length() // 8), "little")


@dataclass(frozen=True, eq=False)
class MachineClass:
    """The hardware shared by a class of interchangeable machines.

    In all attributes and methods, the GPUs of a machine have local numbers 0..n-1.
    """

    gpus: tuple[Gpu, ...]
    distance: NDArray[np.float64] = field(repr=False)
    """(n, n) path distances between the machine's GPUs; infinite for pairs without a path."""
    bandwidth: Rows[float] = field(repr=False)
    """`bandwidth[u][v]`: GB/s of the link between GPUs u and v."""
    classes: Rows[int] = field(repr=False)
    """`classes[u][v]`: class of the link between GPUs u and v (`objectives.class_of`)."""
    partitions: tuple[Mask, ...]
    """The only GPU sets that one job may get; () if any set is allowed."""
    source: Topology = field(repr=False)
    """A topology with a machine of this class, whose first GPU is `gpus[0]`."""

    @cached_property
    def alone(self) -> Topology:
        """Return one machine of the class as its own topology."""
        return self.source.machine(self.gpus[0].machine)

    @property
    def num_gpus(self) -> int:
        """Return the number of GPUs of each machine, n."""
        return len(self.gpus)

    @cached_property
    def healthy(self) -> Mask:
        """Return the GPUs that the topology marks as healthy, as a bit mask."""
        return mask_of(local for local, gpu in enumerate(self.gpus) if gpu.healthy)

    @cached_property
    def suitable(self) -> Memo[Hashable, Mask]:
        """Return the known sets of GPUs that suit a job, by what the job requires of them."""
        return Memo(1 << 10)

    @cached_property
    def mig_profiles(self) -> tuple[Mapping[str, MigProfile], ...]:
        """Return, for each GPU, its MIG profiles by name."""
        return tuple([profiles_of_gpu(gpu) for gpu in self.gpus])

    @cached_property
    def sockets(self) -> tuple[Mask, ...]:
        """Return the set of GPUs of each CPU socket; all GPUs of unknown socket form one set."""
        groups: dict[int | None, list[int]] = {}
        for local, gpu in enumerate(self.gpus):
            groups.setdefault(gpu.socket, []).append(local)
        return tuple(mask_of(group) for group in groups.values())

    @cached_property
    def socket_of(self) -> list[int]:
        """Return the index in `sockets` of each GPU's socket."""
        numbers = {gpu: number for number, socket in enumerate(self.sockets) for gpu in members(socket)}
        return [numbers[gpu] for gpu in range(self.num_gpus)]

    @cached_property
    def rows(self) -> Sequence[Sequence[float]]:
        """Return the rows of the distance matrix, in the form in which reading a single entry is fastest."""
        return rows_of(self.distance)

    @cached_property
    def target(self) -> kernels.TargetDistance:
        """Return the distance matrix as an input of the mapping kernel; at equal distance, a faster link counts as
        nearer.
        """
        bandwidth = np.array(self.bandwidth)
        slowness = np.divide(
            bandwidth.max(initial=0.0), bandwidth, out=np.zeros_like(bandwidth), where=bandwidth > 0
        )
        return kernels.TargetDistance(finite(self.distance) + _TIE_BREAK * slowness)

    @cached_property
    def nearness(self) -> kernels.TargetDistance:
        """Return the matrix of largest distance minus distance, as an input of the mapping kernel.

        The cheapest mapping onto it is expensive by distance, and so estimates the highest cost.
        """
        nearness = self.farthest - np.minimum(self.distance, self.farthest)
        np.fill_diagonal(nearness, 0.0)
        return kernels.TargetDistance(nearness)

    @cached_property
    def farthest(self) -> float:
        """Return the largest finite distance between two GPUs of the machine; 0 if it has only one."""
        return float(self.distance[np.isfinite(self.distance)].max(initial=0.0))

    def fragmentation(self, free: Mask) -> float:
        """Return the fragmentation, 0..1, of a machine whose free GPUs are `free` (SC'17, eq. 5).

        It is the mean over the machine's sockets of the share of free GPUs; entirely free sockets count as 0.
        """
        known = self._fragmentations.get(free)
        if known is None:
            from topoplace.objectives.domains import fragmentation_from

            known = self._fragmentations[free] = fragmentation_from(self._free_by_socket(free))
        return known

    def unused(self, free: Mask) -> float:
        """Return the mean over the machine's sockets of the share of free GPUs, 0..1; `free`: the free GPUs."""
        known = self._unused.get(free)
        if known is None:
            shares = [num_free / size for num_free, size in self._free_by_socket(free)]
            known = self._unused[free] = sum(shares) / len(shares)
        return known

    def touched(self, gpus: Mask) -> Mask:
        """Return the set of sockets, as a bit mask over socket numbers, that contain any of `gpus`."""
        known = self._touched.get(gpus)
        if known is None:
            touched = [number for number, socket in enumerate(self.sockets) if socket & gpus]
            known = self._touched[gpus] = mask_of(touched)
        return known

    def _free_by_socket(self, free: Mask) -> list[tuple[int, int]]:
        """Return (number of free GPUs, number of GPUs) of each socket."""
        return [((free & socket).bit_count(), socket.bit_count()) for socket in self.sockets]

    @cached_property
    def _fragmentations(self) -> Memo[Mask, float]:
        return Memo()

    @cached_property
    def _unused(self) -> Memo[Mask, float]:
        return Memo()

    @cached_property
    def _touched(self) -> Memo[Mask, Mask]:
        return Memo()


class MachineClasses:
    """All machines of a topology, each with its class of interchangeable machines."""

    def __init__(self, topology: Topology) -> None:
        """Build the classes: one per group of equal machines.

        Raise ValueError if a machine has more than 4096 GPUs.
        """
        self.gpus_of: list[tuple[int, ...]] = list(topology.gpus_of.values())
        """The GPUs of each machine, by their numbers in the topology."""
        self.classes: list[MachineClass] = []
        of_template: list[list[int]] = []
        for template in topology.templates:
            classes, numbers = _distinct([_class(template, gpus) for gpus in template.gpus_of.values()])
            of_template.append([len(self.classes) + number for number in numbers])
            self.classes += classes
        self.class_of = [number for template in topology.template_of for number in of_template[template]]
        self.machine_of: list[int] = topology.machine_of.tolist()
        self.local_of = topology.local_index
        self.have_partitions = any(one.partitions for one in self.classes)
        """True if some machine allocates its GPUs in fixed partitions only."""
        self._farthest_machine: float | None = None

    @property
    def num_machines(self) -> int:
        """Return the number of machines in the topology."""
        return len(self.class_of)

    def of(self, machine: int) -> MachineClass:
        """Return the class to which machine number `machine` belongs."""
        return self.classes[self.class_of[machine]]

    def by_machine(self, gpus: Iterable[int]) -> dict[int, Mask]:
        """Return, for each machine with some of `gpus`, these as a bit mask of local numbers.

        gpus: numbers in the topology.
        """
        masks: dict[int, Mask] = {}
        for gpu in gpus:
            machine = self.machine_of[gpu]
            masks[machine] = masks.get(machine, 0) | 1 << self.local_of[gpu]
        return masks

    def numbers_of(self, machines: NDArray[np.int64], locals_: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers in the topology of GPUs of these machines, which have these numbers there."""
        numbers: NDArray[np.int64] = self._numbers[self._firsts[machines] + locals_]
        return numbers

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return np.array([gpu for gpus in self.gpus_of for gpu in gpus], np.int64)

    @cached_property
    def _firsts(self) -> NDArray[np.int64]:
        return np.cumsum([0, *map(len, self.gpus_of)])

    def distances(self, gpus: Sequence[int], topology: Topology) -> NDArray[np.float64]:
        """Return the distance matrix of `gpus`, which may be on several machines; infinite for pairs without a path.

        The distance between GPUs of two machines is that between the machines' first GPUs in `gpus`, unless GPUs of
        different machines may have direct links.
        """
        if topology.tiling is None and topology.num_machines > 1:
            return topology.distance_matrix()[np.ix_(gpus, gpus)]
        machine = np.array([self.machine_of[gpu] for gpu in gpus])
        local = np.array([self.local_of[gpu] for gpu in gpus])
        chosen: list[int] = sorted(set(machine.tolist()))
        number = np.searchsorted(chosen, machine)
        first = [gpus[int(np.argmax(machine == one))] for one in chosen]
        between = self.between(first, topology)
        matrix = between[number[:, None], number]
        for i, one in enumerate(chosen):
            inside = np.flatnonzero(number == i)
            own = self.of(one).distance
            matrix[np.ix_(inside, inside)] = own[np.ix_(local[inside], local[inside])]
        return matrix

    def farthest_machine(self, topology: Topology) -> float:
        """Return the largest finite distance between the first GPUs of the first machine and another one; 0 without
        one.
        """
        if self._farthest_machine is None:
            firsts = [numbers[0] for numbers in self.gpus_of]
            others = np.array(firsts[1:], dtype=np.int64)
            if PairLinks.serves(topology, len(others)):
                number, known = topology.derived(PairLinks).of(np.full_like(others, firsts[0]), others)
                distances = known.distances[number].tolist()
            else:
                distances = [topology.distance(firsts[0], other) for other in firsts[1:]]
            self._farthest_machine = max(filter(math.isfinite, distances), default=0.0)
        return self._farthest_machine

    def have_all_paths(self, topology: Topology) -> bool:
        """Return True if every two GPUs have a path between them; False if not, or if that is unknown."""
        inside = all(bool(np.isfinite(one.distance).all()) for one in self.classes)
        return inside and (topology.num_machines == 1 or topology.network > 0)

    def between(self, gpus: Sequence[int], topology: Topology) -> NDArray[np.float64]:
        """Return the distance matrix of different GPUs; 0 on the diagonal."""
        if not PairLinks.serves(topology, len(gpus) ** 2):
            return np.array([[topology.distance(u, v) if u != v else 0.0 for v in gpus] for u in gpus])
        number, known = topology.derived(PairLinks).among(gpus)
        return known.distances[number]


def _class(topology: Topology, gpus: Sequence[int]) -> MachineClass:
    if len(gpus) > MAX_MACHINE_GPUS:
        raise ValueError(
            f"machine {topology.gpus[gpus[0]].machine!r} has {len(gpus)} GPUs; this policy decides machine by machine, "
            f"and a machine may have at most {MAX_MACHINE_GPUS}"
        )
    described = tuple(topology.gpus[gpu] for gpu in gpus)
    place = {gpu: local for local, gpu in enumerate(gpus)}
    inside = [part for part in topology.partitions if place.keys() >= set(part)]
    partitions = tuple(sorted(mask_of(place[gpu] for gpu in part) for part in inside))
    return MachineClass(described, *_tables(topology, gpus), partitions, topology)


def _tables(topology: Topology, gpus: Sequence[int]) -> tuple[NDArray[np.float64], Rows[float], Rows[int]]:
    """Return the distances, the bandwidths and the link classes of the pairs of `gpus`."""
    if len(gpus) <= _MAX_PAIRED_GPUS:
        links = [[topology.link(u, v) for v in gpus] for u in gpus]
        distance = np.array([[topology.distances.of(link) for link in row] for row in links])
        bandwidth = [[link.gb_per_s for link in row] for row in links]
        return distance, bandwidth, [[class_of(link) for link in row] for row in links]
    tables = topology.derived(LinkTables)
    among = (np.s_[:], np.s_[:]) if len(gpus) == topology.num_gpus else np.ix_(gpus, gpus)
    distance = topology.distance_matrix()[among]
    return distance, rows_of(tables.matrix[among]), rows_of(tables.link_class[among])


def _distinct(given: Sequence[MachineClass]) -> tuple[list[MachineClass], list[int]]:
    """Return the distinct machine classes, and for each given class the index of the distinct class it equals."""
    found: dict[object, int] = {}
    kept: list[MachineClass] = []
    numbers: list[int] = []
    for one in given:
        gpus = tuple((gpu.socket, gpu.model, gpu.memory_gb, gpu.healthy) for gpu in one.gpus)
        tables = one.distance, np.array(one.bandwidth), np.array(one.classes, dtype=np.int8)
        key = (gpus, *(table.tobytes() for table in tables), one.partitions)
        number = found.setdefault(key, len(kept))
        if number == len(kept):
            kept.append(one)
        numbers.append(number)
    return kept, numbers
