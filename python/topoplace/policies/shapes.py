"""What machines that are alike have in common: built once per topology, so that a decision looks at few tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.objectives import class_of
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
    """The set as bits."""
    return sum(1 << gpu for gpu in gpus)


def finite(distance: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distances with the largest one allowed where there is no path."""
    return np.minimum(distance, _NO_PATH)


def members(mask: Mask) -> Iterator[int]:
    """The GPUs of a set, ascending."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


@dataclass(frozen=True, eq=False)
class Shape:
    """A machine as a policy sees it, its GPUs numbered from 0; machines of one shape are interchangeable."""

    gpus: tuple[Gpu, ...]
    distance: NDArray[np.float64] = field(repr=False)
    """(n, n) distances between them; infinite where there is no path."""
    bandwidth: list[list[float]] = field(repr=False)
    """GB/s of the link between two GPUs."""
    classes: list[list[int]] = field(repr=False)
    """The class of that link (`objectives.link_class`)."""
    partitions: tuple[Mask, ...]
    """The sets that may be given to one job; () where any may."""

    @property
    def num_gpus(self) -> int:
        """How many GPUs it has, n."""
        return len(self.gpus)

    @cached_property
    def healthy(self) -> Mask:
        """Those that the topology calls healthy."""
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
        """`distance` as lists, which single entries are read from faster."""
        rows: list[list[float]] = self.distance.tolist()
        return rows

    @cached_property
    def target(self) -> kernels.TargetDistance:
        """`distance` as a handle the kernels take, built once; of pairs equally far apart the faster one is nearer."""
        bandwidth = np.array(self.bandwidth)
        slowness = np.divide(
            bandwidth.max(initial=0.0), bandwidth, out=np.zeros_like(bandwidth), where=bandwidth > 0
        )
        return kernels.TargetDistance(finite(self.distance) + _TIE_BREAK * slowness)

    @cached_property
    def nearness(self) -> kernels.TargetDistance:
        """What each distance lacks to the farthest one: a mapping that is cheap by it is dear by `distance`."""
        nearness = self.farthest - np.minimum(self.distance, self.farthest)
        np.fill_diagonal(nearness, 0.0)
        return kernels.TargetDistance(nearness)

    @cached_property
    def farthest(self) -> float:
        """The largest distance between two of its GPUs."""
        return float(self.distance[np.isfinite(self.distance)].max(initial=0.0))

    def fragmentation(self, free: Mask) -> float:
        """Eq. 5 of SC'17 for this machine: the mean share of free GPUs of its sockets, 0 of those free altogether."""
        broken = (socket for socket in self.sockets if free & socket != socket)
        return sum((free & socket).bit_count() / socket.bit_count() for socket in broken) / len(self.sockets)

    def touched(self, gpus: Mask) -> Mask:
        """The numbers of the sockets that have any of `gpus`, as a set."""
        return mask_of(number for number, socket in enumerate(self.sockets) if socket & gpus)


class Shapes:
    """The machines of a topology by shape."""

    def __init__(self, topology: Topology) -> None:
        """Machines of one template share a shape; in a topology without templates, those that are equal."""
        self.gpus_of: list[tuple[int, ...]] = list(topology.gpus_of.values())
        """Of each machine, its GPUs as the topology numbers them."""
        if isinstance(topology, ClusterTopology):
            self.shapes = [_shape(template, range(template.num_gpus)) for template in topology.templates]
            self.shape_of = list(topology.template_of)
        else:
            self.shapes, self.shape_of = _distinct([_shape(topology, gpus) for gpus in self.gpus_of])
        self.machine_of: list[int] = topology.machine_of.tolist()
        self.local_of = topology.local_index

    @property
    def num_machines(self) -> int:
        """How many machines there are."""
        return len(self.shape_of)

    def by_machine(self, gpus: Iterable[int]) -> dict[int, Mask]:
        """The GPUs by machine, as each machine numbers them."""
        masks: dict[int, Mask] = {}
        for gpu in gpus:
            machine = self.machine_of[gpu]
            masks[machine] = masks.get(machine, 0) | 1 << self.local_of[gpu]
        return masks

    def distances(self, gpus: Sequence[int], topology: Topology) -> NDArray[np.float64]:
        """(m, m) distances between GPUs of any machines; two machines are as far apart as their first ones here.

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
            own = self.shapes[self.shape_of[one]].distance
            matrix[np.ix_(inside, inside)] = own[np.ix_(local[inside], local[inside])]
        return matrix


def _shape(topology: Topology, gpus: Sequence[int]) -> Shape:
    described = tuple(topology.gpus[gpu] for gpu in gpus)
    place = {gpu: local for local, gpu in enumerate(gpus)}
    inside = [part for part in topology.partitions if set(part) <= set(gpus)]
    partitions = tuple(sorted(mask_of(place[gpu] for gpu in part) for part in inside))
    distance = np.array([[topology.distance(u, v) for v in gpus] for u in gpus])
    links = [[topology.link(u, v) for v in gpus] for u in gpus]
    bandwidth = [[link.gb_per_s for link in row] for row in links]
    classes = [[class_of(link) for link in row] for row in links]
    return Shape(described, distance, bandwidth, classes, partitions)


def _distinct(shapes: Sequence[Shape]) -> tuple[list[Shape], list[int]]:
    """The different ones, and of each the number of the one it equals."""
    found: dict[object, int] = {}
    kept: list[Shape] = []
    numbers: list[int] = []
    for shape in shapes:
        gpus = tuple((gpu.socket, gpu.model, gpu.memory_gb, gpu.healthy) for gpu in shape.gpus)
        number = found.setdefault(
            (gpus, shape.distance.tobytes(), repr((shape.bandwidth, shape.classes)), shape.partitions),
            len(kept),
        )
        if number == len(kept):
            kept.append(shape)
        numbers.append(number)
    return kept, numbers
