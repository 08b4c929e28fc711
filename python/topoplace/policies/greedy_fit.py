"""The two schedulers SC'17 compares with: first come first served, and best fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from topoplace.policies.machine_policy import MachinePolicy
from topoplace.policies.shapes import mask_of, members
from topoplace.policies.shares import Room, Shares, in_order

if TYPE_CHECKING:
    from topoplace.objectives.utility import Costs
    from topoplace.policies.kinds import Kind
    from topoplace.policies.occupancy import Occupancy
    from topoplace.policies.shapes import Mask, Shape


class FirstComeFirstServed(MachinePolicy):
    """The lowest free GPUs of the first machine with room; strictly in the order of submission."""

    name = "fcfs"
    out_of_order = False

    def mappings(self, kind: Kind, shape: Shape, free: Mask) -> Iterable[tuple[int, ...]]:
        """The lowest ids."""
        return [_lowest(kind, shape, region) for region in kind.regions(shape, free)]

    def order(self, shape: Shape, free: Mask, gpus: tuple[int, ...], costs: Costs) -> tuple[float, ...]:
        """Nothing is better than anything else: the lowest ids count."""
        return ()

    def shares(self, kind: Kind, rooms: Sequence[Room], occupancy: Occupancy) -> Iterable[Shares]:
        """The first machines with room."""
        return in_order(rooms, kind.size, apart=kind.job.anti_affinity)


class BestFit(MachinePolicy):
    """Bin packing, the bins being sockets: that with the least left, on the most used machine (section 5.2).

    Where no socket has room for all of the job, the most used machine, its most used sockets first. Jobs start in the
    order of their submission; one that does not fit lets the next go first.
    """

    name = "best-fit"

    def mappings(self, kind: Kind, shape: Shape, free: Mask) -> Iterable[tuple[int, ...]]:
        """The lowest ids of each socket with room, or else of the sockets with the least free GPUs."""
        if shape.partitions:
            return [_lowest(kind, shape, region) for region in kind.regions(shape, free)]
        sockets = sorted((free & socket for socket in shape.sockets), key=int.bit_count)
        whole = [_lowest(kind, shape, socket) for socket in sockets if socket.bit_count() >= kind.size]
        fullest_first = (gpu for socket in sockets for gpu in members(socket))
        return whole or [_joined(kind, shape, free, tuple(islice(fullest_first, kind.size)))]

    def order(self, shape: Shape, free: Mask, gpus: tuple[int, ...], costs: Costs) -> tuple[float, ...]:
        """Inside one socket first; then the socket, and the machine, with the least left."""
        touched = [socket for socket in shape.sockets if socket & mask_of(gpus)]
        left = sum((free & socket).bit_count() for socket in touched)
        return (float(len(touched) > 1), float(left), float(free.bit_count()))

    def shares(self, kind: Kind, rooms: Sequence[Room], occupancy: Occupancy) -> Iterable[Shares]:
        """The most used machines."""
        fullest_first = sorted(rooms, key=lambda room: (room.size, room.machine))
        return in_order(fullest_first, kind.size, apart=kind.job.anti_affinity)


def _lowest(kind: Kind, shape: Shape, region: Mask) -> tuple[int, ...]:
    return _joined(kind, shape, region, tuple(islice(members(region), kind.size)))


def _joined(kind: Kind, shape: Shape, region: Mask, gpus: tuple[int, ...]) -> tuple[int, ...]:
    """`gpus`, or the nearest of the region where some that would talk have no path."""
    return gpus if kind.communication(shape, gpus) < math.inf else kind.mapped(shape, region)
