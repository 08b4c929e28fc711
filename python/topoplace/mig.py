"""MIG: the profiles of slices into which each GPU model can be cut, and the choice of slices for jobs.

The source is NVIDIA's MIG user guide, "Supported MIG profiles", and what `nvidia-smi mig -lgipp` prints. A slice is
what NVIDIA calls a GPU instance. Most models have seven compute slices and eight memory slots, the A30 has four of
each. Inside the library, memory is counted in eighths, so that a slot of an A30 is two of them. A job gets an idle
slice of its profile, or one at the start that leaves most room for other slices.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from topoplace._checks import shown
from topoplace.errors import AllocationError

PROFILE_NAME: Final = re.compile(r"[1-7]g\.[1-9][0-9]{0,2}gb(?:\+me)?")
"""The form of a profile's name: compute slices, memory in GB, and "+me" with media engines."""
_MEDIA: Final = 1 << 8
"""The bit of `MigProfile.parts` for the media engines, after the eight of the memory."""
_TOLERANCE: Final = 1.12
"""The most by which the stated memory of a GPU may differ from a known one; tools count in GB or GiB."""


class MigDevice(Protocol):
    """Protocol of a GPU: the attributes on which its MIG profiles depend; `topoplace.Gpu` has them."""

    @property
    def model(self) -> str | None:
        """Return the model; None if unknown."""
        ...

    @property
    def memory_gb(self) -> float | None:
        """Return the memory in GB; None if unknown."""
        ...

    @property
    def parent(self) -> str | None:
        """Return the name of the GPU of which this is a slice; None for a GPU."""
        ...


class MigSlice(NamedTuple):
    """A slice of a GPU: its profile and the memory slot in which it starts."""

    profile: str
    """Such as "1g.10gb"."""
    start: int
    """The slice's first memory slot, as in the placements that `nvidia-smi mig -lgipp` lists."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A size of slice that a GPU model allows."""

    name: str
    """Such as "1g.10gb"."""
    compute: int
    """Number of the GPU's compute slices that it takes."""
    eighths: int
    """Eighths of the GPU's memory that it takes."""
    starts: tuple[int, ...]
    """The memory slots in which such a slice may start, ascending."""
    slot_eighths: int
    """The number of eighths in a memory slot: 2 for the A30, else 1."""
    has_media: bool
    """True if it includes the media engines, which only one slice of a GPU may have."""

    def parts(self, start: int) -> int:
        """Return what a slice that starts in memory slot `start` takes: bit i is the i-th eighth of memory, bit 8 the
        media engines.
        """
        memory = ((1 << self.eighths) - 1) << (start * self.slot_eighths)
        return memory | (_MEDIA if self.has_media else 0)


_SEVEN: Final = {  # (compute slices, eighths of the memory) -> first slots
    (1, 1): (0, 1, 2, 3, 4, 5, 6),
    (1, 2): (0, 2, 4, 6),
    (2, 2): (0, 2, 4),
    (3, 4): (0, 4),
    (4, 4): (0,),
    (7, 8): (0,),
}
_FOUR: Final = {(1, 2): (0, 1, 2, 3), (2, 4): (0, 2), (4, 8): (0,)}
_WITH_MEDIA: Final = {7: ((1, 1),), 4: ((1, 2), (2, 4))}
"""The sizes that also exist with the media engines, by the compute slices of the GPU."""

_MEMORY_GB: Final[Mapping[str, tuple[tuple[int, int, int, int], ...]]] = {
    # GB in the names of profiles of 1, 2, 4 and 8 eighths, for each memory size of the model
    **dict.fromkeys(("A100", "A800"), ((5, 10, 20, 40), (10, 20, 40, 80))),
    **dict.fromkeys(("H100", "H800"), ((10, 20, 40, 80), (12, 24, 47, 94), (12, 24, 48, 96))),
    "H200": ((18, 35, 71, 141),),
    "GH200": ((12, 24, 48, 96), (18, 36, 72, 144)),
    "B200": ((23, 45, 90, 180),),
    "GB200": ((23, 47, 93, 186),),
    "A30": ((3, 6, 12, 24),),
}


@lru_cache(maxsize=1024)
def profiles_of(model: str | None, memory_gb: float | None) -> Mapping[str, MigProfile]:
    """Return the profiles of a GPU by name, smallest first; {} if it cannot be sliced or its profiles are unknown.

    model: a name that contains the model as a word, such as "NVIDIA A100-SXM4-80GB". memory_gb: its memory, GB; it may
    be None for models with one memory size.
    """
    words = set(re.split(r"[^A-Z0-9]+", (model or "").upper()))
    name = next((known for known in _MEMORY_GB if known in words), None)
    if name is None:
        return _NONE
    sizes = _MEMORY_GB[name]
    if memory_gb is None:
        names = sizes[0] if len(sizes) == 1 else None
    else:
        names = min(sizes, key=lambda size: abs(size[-1] - memory_gb))
        if not 1 / _TOLERANCE <= memory_gb / names[-1] <= _TOLERANCE:
            names = None
    return MappingProxyType(
        {} if names is None else {one.name: one for one in _profiles(names, is_a30=name == "A30")}
    )


def profiles_of_gpu(gpu: MigDevice) -> Mapping[str, MigProfile]:
    """Return the profiles of a GPU of a topology; {} for a GPU that is itself a slice, and as for `profiles_of`."""
    return _NONE if gpu.parent is not None else profiles_of(gpu.model, gpu.memory_gb)


def compute_share(name: str) -> float:
    """Return the share (0 to 1) of a GPU's compute slices that the profile `name` takes: of 4 for an A30, else of 7."""
    return int(name[0]) / (4 if name.removesuffix("+me") in _A30_NAMES else 7)


def memory_gb_of(name: str) -> float:
    """Return the memory in GB that the name of a profile states."""
    return float(name.removesuffix("+me").removesuffix("gb").partition(".")[2])


_NONE: Final[Mapping[str, MigProfile]] = MappingProxyType({})
_A30_NAMES: Final = frozenset(("1g.6gb", "2g.12gb", "4g.24gb"))


def _profiles(names: tuple[int, int, int, int], *, is_a30: bool) -> Iterator[MigProfile]:
    gb_of: dict[int, int] = dict(zip((1, 2, 4, 8), names, strict=True))
    slot_eighths = 2 if is_a30 else 1
    for (compute, eighths), starts in (_FOUR if is_a30 else _SEVEN).items():
        name = f"{compute}g.{gb_of[eighths]}gb"
        yield MigProfile(name, compute, eighths, starts, slot_eighths, has_media=False)
        if (compute, eighths) in _WITH_MEDIA[4 if is_a30 else 7]:
            yield MigProfile(f"{name}+me", compute, eighths, starts, slot_eighths, has_media=True)


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
