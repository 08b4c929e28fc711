"""A job over several machines: which ones, and which of their GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from topoplace.fabric import Fabric
    from topoplace.policies.shapes import Mask, Shape


class Room(NamedTuple):
    """A machine that could take a part of a job."""

    machine: int
    shape: Shape
    usable: Mask
    """Its GPUs that are free and suit the job."""

    @property
    def size(self) -> int:
        """How many GPUs it could give."""
        return self.usable.bit_count()


Gang = list[tuple[int, "Mask"]]
"""Machines and GPUs of each; together at least as many as the job has tasks."""


def fill(rooms: Iterable[Room], size: int, *, apart: bool = False) -> Gang | None:
    """The rooms one after the other until `size` GPUs are there; None where they are not enough.

    apart: one GPU of each machine. Of a machine with partitions, the largest one that is not too large.
    """
    gang: Gang = []
    left = size
    for room in rooms:
        mask = _portion(room, 1 if apart else left)
        if mask:
            gang.append((room.machine, mask))
            left -= min(left, mask.bit_count())
            if not left:
                return gang
    return None


def nearest(rooms: Sequence[Room], size: int, fabric: Fabric | None, *, apart: bool = False) -> Gang | None:
    """The gang that meets at the innermost level of the fabric, of the fewest machines.

    Among equals, the one in the domain it leaves the fewest GPUs free in; then that of the first machine. Of the last
    machine, that with the least room that is enough.
    """
    everything: list[Sequence[Room]] = [rooms]
    for groups in (*_domains(rooms, fabric), everything):
        best: tuple[tuple[int, int, int], Gang] | None = None
        for group in groups:
            room = sum(one.size for one in group)
            if room < size or (gang := _fewest(group, size, apart)) is None:
                continue
            rank = (len(gang), room, group[0].machine)
            if best is None or rank < best[0]:
                best = (rank, gang)
        if best:
            return best[1]
    return None


def _domains(rooms: Sequence[Room], fabric: Fabric | None) -> Iterable[list[Sequence[Room]]]:
    """The rooms by domain of each level, innermost first; a rail joins GPUs, not machines."""
    for level in fabric.levels if fabric else ():
        groups: dict[str, list[Room]] = {}
        for room in rooms:
            domain = level.domains[room.machine]
            if domain is not None and not level.rail:
                groups.setdefault(domain, []).append(room)
        yield list(groups.values())


def _fewest(rooms: Sequence[Room], size: int, apart: bool) -> Gang | None:
    if apart:
        return fill(sorted(rooms, key=lambda room: (room.size, room.machine)), size, apart=True)
    largest_first = sorted(rooms, key=lambda room: (-room.size, room.machine))
    gang = fill(largest_first, size)
    if gang is None:
        return None
    left = size - sum(mask.bit_count() for _, mask in gang[:-1])
    used = {machine for machine, _ in gang[:-1]}
    tight = [room for room in rooms if room.machine not in used and room.size >= left]
    last = fill(sorted(tight, key=lambda room: (room.size, room.machine)), left)
    if last is not None and len(last) == 1:
        gang[-1] = last[0]
    return gang


def _portion(room: Room, most: int) -> Mask:
    """The GPUs to take of a room for `most` tasks; more of them where there are more, without partitions."""
    if not room.shape.partitions:
        return room.usable & -room.usable if most == 1 else room.usable
    legal = [part for part in room.shape.partitions if part & room.usable == part]
    return max((part for part in legal if part.bit_count() <= most), key=int.bit_count, default=0)
