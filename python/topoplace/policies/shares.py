"""A job over several machines: which ones, and which GPUs of each come into question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from topoplace.policies.shapes import mask_of, members

if TYPE_CHECKING:
    from topoplace.policies.shapes import Mask
    from topoplace.topology.fabric import Fabric


class Room(NamedTuple):
    """A machine that could take a part of a job."""

    machine: int
    usable: Mask
    """Its GPUs that are free and suit the job."""
    partitions: tuple[Mask, ...]
    """Those of its partitions that are free and suit; () for a machine without partitions."""
    most: int
    """No more of them may be taken."""

    @property
    def size(self) -> int:
        """How many GPUs it can give."""
        return self.portion(self.most).bit_count()

    def portion(self, count: int) -> Mask:
        """The GPUs to take for up to `count` tasks; without partitions there may be more, of which some are left."""
        if self.partitions:
            fitting = (part for part in self.partitions if part.bit_count() <= min(count, self.most))
            return max(fitting, key=int.bit_count, default=0)
        few = count == 1 or self.most < self.usable.bit_count()
        return mask_of(islice(members(self.usable), min(count, self.most))) if few else self.usable


Shares = list[tuple[int, "Mask"]]
"""Machines and GPUs of each; together at least as many as the job has tasks."""


def fill(rooms: Iterable[Room], size: int, *, apart: bool = False) -> Shares | None:
    """The rooms one after the other until `size` GPUs are there; None where they are not enough.

    apart: one GPU of each machine. Of a machine with partitions, the largest one that is not too large.
    """
    shares: Shares = []
    left = size
    for room in rooms:
        mask = room.portion(1 if apart else left)
        if mask:
            shares.append((room.machine, mask))
            left -= min(left, mask.bit_count())
            if not left:
                return shares
    return None


def in_order(rooms: Sequence[Room], size: int, *, apart: bool = False) -> Iterator[Shares]:
    """The rooms as they come; and where partitions do not add up that way, the largest first."""
    shares = fill(rooms, size, apart=apart) or fill(_largest_first(rooms), size, apart=apart)
    if shares:
        yield shares


def nearest(
    rooms: Sequence[Room], size: int, fabric: Fabric | None, *, apart: bool = False
) -> Iterator[Shares]:
    """Ways to place a job, best first: the fewest machines, and of these the ones that meet at the innermost level.

    Among equals, those in the domain with the least room, then those of the first machine.
    """
    overall = _fewest(rooms, size, apart)
    if overall is None:
        return
    more: list[tuple[tuple[int, int, int], Shares]] = []
    for groups in _domains(rooms, fabric):
        for rank, shares in sorted(_ranked(groups, size, apart), key=lambda entry: entry[0]):
            if len(shares) == len(overall):
                yield shares
            else:
                more.append((rank, shares))
    yield overall
    for _, shares in sorted(more, key=lambda entry: entry[0]):
        yield shares


def _ranked(
    groups: Iterable[Sequence[Room]], size: int, apart: bool
) -> Iterator[tuple[tuple[int, int, int], Shares]]:
    for group in groups:
        room = sum(one.size for one in group)
        if room >= size and (shares := _fewest(group, size, apart)):
            yield (len(shares), room, group[0].machine), shares


def _domains(rooms: Sequence[Room], fabric: Fabric | None) -> Iterator[list[Sequence[Room]]]:
    """The rooms by domain of each level, innermost first; a rail joins GPUs, not machines."""
    for level in fabric.levels if fabric else ():
        groups: dict[str, list[Room]] = {}
        for room in rooms:
            domain = level.domains[room.machine]
            if domain is not None and not level.rail:
                groups.setdefault(domain, []).append(room)
        yield list(groups.values())


def _fewest(rooms: Sequence[Room], size: int, apart: bool) -> Shares | None:
    """The largest rooms; of the last one, that with the least room that is enough."""
    if apart:
        return fill(sorted(rooms, key=lambda room: (room.size, room.machine)), size, apart=True)
    shares = fill(_largest_first(rooms), size)
    if shares is None:
        return None
    left = size - sum(mask.bit_count() for _, mask in shares[:-1])
    used = {machine for machine, _ in shares[:-1]}
    tight = [room for room in rooms if room.machine not in used and room.size >= left]
    last = fill(sorted(tight, key=lambda room: (room.size, room.machine)), left)
    if last is not None and len(last) == 1:
        shares[-1] = last[0]
    return shares


def _largest_first(rooms: Iterable[Room]) -> list[Room]:
    return sorted(rooms, key=lambda room: (-room.size, room.machine))
