"""Choice of a slice on a GPU: an idle slice of the profile, or the start that leaves most room for other slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from topoplace._checks import shown
from topoplace.errors import AllocationError
from topoplace.mig.profiles import MigProfile, MigSlice

_MEMORY: Final = 0xFF


class Reslicing(IntEnum):
    """The GPUs that may be resliced for a job; a policy tries these values in order and reslices only if it must."""

    NONE = 0
    """Only present slices are used."""
    CUT_GPUS = 1
    """GPUs with slices may get new slices in place of idle ones; whole GPUs stay whole."""
    ALL_GPUS = 2
    """Free GPUs may also be cut, and GPUs whose slices are all idle may be made whole."""

    def serves(self, mig: str | None) -> bool:
        """Return True if this may give a job of the MIG profile `mig` more GPUs; None means whole GPUs or shares."""
        return mig is not None or self is not Reslicing.CUT_GPUS


class PresentSlice(NamedTuple):
    """A slice that a GPU has now."""

    parts: int
    """The parts of the GPU that it takes, as `MigProfile.parts` returns them."""
    compute: int
    """Number of its compute slices."""
    is_held: bool
    """True if a job runs in it."""


class Start(NamedTuple):
    """The chosen start of a slice."""

    start: int
    reslices: bool
    """True if the slice does not exist yet: it must be cut, and idle slices in its way are given up."""


def start_for(
    profile: MigProfile,
    profiles: Mapping[str, MigProfile],
    present: Sequence[PresentSlice],
    *,
    may_reslice: bool,
) -> Start | None:
    """Return the start of a slice of this profile on a GPU; None if there is no room.

    profiles: all of the GPU. present: the GPU's slices now. The choice is the lowest idle slice of the profile. If
    there is none and `may_reslice`, it is the start that leaves possible the most placements of slices, over all
    profiles, next to held slices. Ties go to the start that gives up the fewest idle slices, then to the lowest.
    """
    for start in profile.starts:
        if PresentSlice(profile.parts(start), profile.compute, is_held=False) in present:
            return Start(start, reslices=False)
    if not may_reslice:
        return None
    held = parts_of(one for one in present if one.is_held)
    idle = [one.parts for one in present if not one.is_held]
    possible = [start for start in profile.starts if not profile.parts(start) & held]
    if not possible:
        return None

    def order(start: int) -> tuple[int, int, int]:
        parts = profile.parts(start)
        remaining = sum(
            not other.parts(place) & (held | parts) for other in profiles.values() for place in other.starts
        )
        return -remaining, sum(bool(one & parts) for one in idle), start

    return Start(min(possible, key=order), reslices=True)


def present(slices: Iterable[tuple[int, int, str | None]]) -> list[PresentSlice]:
    """Return slices that the native state lists as (parts, compute slices, job or None)."""
    return [PresentSlice(parts, compute, job_id is not None) for parts, compute, job_id in slices]


def parts_of(slices: Iterable[PresentSlice]) -> int:
    """Return the union of the parts that these slices take."""
    union = 0
    for one in slices:
        union |= one.parts
    return union


def packed(
    wanted: Iterable[str | MigSlice], profiles: Mapping[str, MigProfile], what: str, first: int = 0
) -> list[tuple[MigProfile, int]]:
    """Return profile and start of each wanted slice; slices without a start get the lowest starts with which all fit.

    Raise AllocationError for a slice that is unknown, may not start there, or does not fit. It names the slice as an
    item of `what`; `first` is the index of the first slice.
    """
    checked = [_checked(one, f"{what}[{i}]", profiles) for i, one in enumerate(wanted, first)]
    order = sorted(range(len(checked)), key=lambda i: len(checked[i][1]) > 1)
    starts, most = _lowest_starts([checked[i] for i in order])
    if starts is None:
        i = order[most]
        raise AllocationError(
            f"{what}[{first + i}] = {checked[i][0].name!r} has no room next to the other slices"
        )
    found = dict(zip(order, starts, strict=True))
    return [(profile, found[i]) for i, (profile, _) in enumerate(checked)]


def _lowest_starts(wanted: Sequence[tuple[MigProfile, tuple[int, ...]]]) -> tuple[list[int] | None, int]:
    """Return a start of each wanted slice such that none overlap, and how many have room together at most.

    The starts are None if not all have room. Earlier slices take the lowest starts that leave room for the others.
    """
    starts: list[int] = []
    hopeless: set[tuple[int, int]] = set()
    most = 0

    def place(taken: int) -> bool:
        nonlocal most
        i = len(starts)
        most = max(most, i)
        if i == len(wanted):
            return True
        if (i, taken) in hopeless:
            return False
        profile, possible = wanted[i]
        for start in possible:
            if not profile.parts(start) & taken:
                starts.append(start)
                if place(taken | profile.parts(start)):
                    return True
                starts.pop()
        hopeless.add((i, taken))
        return False

    return (starts if place(0) else None), most


def _checked(
    slice_: object, what: str, profiles: Mapping[str, MigProfile]
) -> tuple[MigProfile, tuple[int, ...]]:
    """Return a slice's profile and where it may start; AllocationError unless it is a name or a `MigSlice`."""
    match slice_:
        case str() as name:
            given: int | None = None
        case (str() as name, int() as start) if not isinstance(start, bool):
            given = start
        case _:
            raise AllocationError(f"{what} = {shown(slice_)} is not the name of a profile or a MigSlice")
    profile = profiles.get(name)
    if profile is None:
        raise AllocationError(
            f"{what} = {name!r}: the MIG profiles of this GPU are {', '.join(profiles) or 'unknown'}"
        )
    if given is not None and given not in profile.starts:
        raise AllocationError(f"{what}: {name} may start in slots {profile.starts}, not {given}")
    return profile, profile.starts if given is None else (given,)


def named(parts: int, compute: int, profiles: Mapping[str, MigProfile]) -> MigSlice | None:
    """Return the slice that takes these parts and compute slices of a GPU; None if its profiles have no such slice."""
    slices = (
        MigSlice(one.name, start)
        for one in profiles.values()
        if one.compute == compute
        for start in one.starts
    )
    return next((one for one in slices if profiles[one.profile].parts(one.start) == parts), None)


def thousandths(parts: int) -> int:
    """Return the thousandths of a GPU's memory in these parts."""
    return (parts & _MEMORY).bit_count() * 125
