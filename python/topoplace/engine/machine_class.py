"""Classes of interchangeable machines, built once per topology, so that a decision looks at few tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.objectives.fragmentation import fragmentation_from
from topoplace.objectives.links import class_of
from topoplace.topology.cluster_topology import ClusterTopology

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

_NO_PATH = 1e9
_TIE_BREAK = 1e-6

Mask = int
"""A set of GPUs of one machine: bit i for its GPU i."""


def mask_of(gpus: Iterable[int]) -> Mask:
    """Return the set as bits."""
    return sum(1 << gpu for gpu in gpus)


def finite(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distances, with the largest allowed one where there is no path."""
    return np.minimum(distance, _NO_PATH)


def members(mask: Mask) -> Iterator[int]:
    """Yield the GPUs of a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(frozen=True, eq=False)
class MachineClass:
    """Machines that are interchangeable to a policy; the GPUs of each are numbered from 0."""

    gpus: tuple[Gpu, ...]
    distance: NDArray[np.float64] = field(repr=False)
    """(n, n) distances between them; infinite where there is no path."""
    bandwidth: list[list[float]] = field(repr=False)
    """GB/s of the link between two GPUs."""
    classes: list[list[int]] = field(repr=False)
    """The class of that link (`objectives.links.class_of`)."""
    partitions: tuple[Mask, ...]
    """The sets that may be given to one job; () where any may."""

    @property
    def num_gpus(self) -> int:
        """Number of GPUs of each machine, n."""
        return len(self.gpus)

    @cached_property
    def healthy(self) -> Mask:
        """The GPUs that the topology calls healthy."""
        return mask_of(local for local, gpu in enumerate(self.gpus) if gpu.healthy)

    @cached_property
    def sockets(self) -> tuple[Mask, ...]:
        """The GPUs of each socket; those of unknown socket count as one."""
        groups: dict[int | None, list[int]] = {}
        for local, gpu in enumerate(self.gpus):
            groups.setdefault(gpu.socket, []).append(local)
        return tuple(mask_of(group) for group in groups.values())

    @cached_property
    def rows(self) -> list[list[float]]:
        """`distance` as nested lists, from which a single entry is read faster."""
        rows: list[list[float]] = self.distance.tolist()
        return rows

    @cached_property
    def target(self) -> kernels.TargetDistance:
        """`distance` as a handle for the kernels, built once; equal distances are ordered by bandwidth."""
        bandwidth = np.array(self.bandwidth)
        slowness = np.divide(
            bandwidth.max(initial=0.0), bandwidth, out=np.zeros_like(bandwidth), where=bandwidth > 0
        )
        return kernels.TargetDistance(finite(self.distance) + _TIE_BREAK * slowness)

    @cached_property
    def nearness(self) -> kernels.TargetDistance:
        """The farthest distance minus each distance: the cheapest mapping by it is an expensive one."""
        nearness = self.farthest - np.minimum(self.distance, self.farthest)
        np.fill_diagonal(nearness, 0.0)
        return kernels.TargetDistance(nearness)

    @cached_property
    def farthest(self) -> float:
        """The largest distance between two of its GPUs."""
        return float(self.distance[np.isfinite(self.distance)].max(initial=0.0))

    def fragmentation(self, free: Mask) -> float:
        """Return the fragmentation of a machine of which these GPUs are free."""
        return fragmentation_from(
            [((free & socket).bit_count(), socket.bit_count()) for socket in self.sockets]
        )

    def touched(self, gpus: Mask) -> Mask:
        """Return the numbers of the sockets that have any of `gpus`, as a set."""
        return mask_of(number for number, socket in enumerate(self.sockets) if socket & gpus)


class MachineClasses:
    """The machines of a topology by class."""

    def __init__(self, topology: Topology) -> None:
        """Machines of one template share a class; in a topology without templates, those that are equal."""
        self.gpus_of: list[tuple[int, ...]] = list(topology.gpus_of.values())
        """The GPUs of each machine, as the topology numbers them."""
        if isinstance(topology, ClusterTopology):
            self.classes = [_class(template, range(template.num_gpus)) for template in topology.templates]
            self.class_of = list(topology.template_of)
        else:
            self.classes, self.class_of = _distinct([_class(topology, gpus) for gpus in self.gpus_of])
        self.machine_of: list[int] = topology.machine_of.tolist()
        self.local_of = topology.local_index

    @property
    def num_machines(self) -> int:
        """Number of machines."""
        return len(self.class_of)

    def of(self, machine: int) -> MachineClass:
        """Return the class of a machine."""
        return self.classes[self.class_of[machine]]

    def by_machine(self, gpus: Iterable[int]) -> dict[int, Mask]:
        """Return the GPUs by machine, as each machine numbers them."""
        masks: dict[int, Mask] = {}
        for gpu in gpus:
            machine = self.machine_of[gpu]
            masks[machine] = masks.get(machine, 0) | 1 << self.local_of[gpu]
        return masks

    def distances(self, gpus: Sequence[int], topology: Topology) -> NDArray[np.float64]:
        """Return (m, m) distances between GPUs of any machines; two machines are as far apart as their first ones here.

        Infinite where there is no path.
        """
        machine = np.array([self.machine_of[gpu] for gpu in gpus])
        local = np.array([self.local_of[gpu] for gpu in gpus])
        chosen: list[int] = sorted(set(machine.tolist()))
        number = np.searchsorted(chosen, machine)
        first = [gpus[int(np.argmax(machine == one))] for one in chosen]
        between = np.zeros((len(chosen), len(chosen)))
        for i, j in combinations(range(len(chosen)), 2):
            between[i, j] = between[j, i] = topology.distance(first[i], first[j])
        matrix = between[number[:, None], number]
        for i, one in enumerate(chosen):
            inside = np.flatnonzero(number == i)
            own = self.of(one).distance
            matrix[np.ix_(inside, inside)] = own[np.ix_(local[inside], local[inside])]
        return matrix


def _class(topology: Topology, gpus: Sequence[int]) -> MachineClass:
    described = tuple(topology.gpus[gpu] for gpu in gpus)
    place = {gpu: local for local, gpu in enumerate(gpus)}
    inside = [part for part in topology.partitions if set(part) <= set(gpus)]
    partitions = tuple(sorted(mask_of(place[gpu] for gpu in part) for part in inside))
    distance = np.array([[topology.distance(u, v) for v in gpus] for u in gpus])
    links = [[topology.link(u, v) for v in gpus] for u in gpus]
    bandwidth = [[link.gb_per_s for link in row] for row in links]
    classes = [[class_of(link) for link in row] for row in links]
    return MachineClass(described, distance, bandwidth, classes, partitions)


def _distinct(given: Sequence[MachineClass]) -> tuple[list[MachineClass], list[int]]:
    """Return the different classes, and for each given one the number of the one it equals."""
    found: dict[object, int] = {}
    kept: list[MachineClass] = []
    numbers: list[int] = []
    for one in given:
        gpus = tuple((gpu.socket, gpu.model, gpu.memory_gb, gpu.healthy) for gpu in one.gpus)
        key = (gpus, one.distance.tobytes(), repr((one.bandwidth, one.classes)), one.partitions)
        number = found.setdefault(key, len(kept))
        if number == len(kept):
            kept.append(one)
        numbers.append(number)
    return kept, numbers
