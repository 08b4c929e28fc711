"""The MIG profiles of each GPU model: how much of a GPU a slice takes, and in which of its memory slots it may start.

The source is NVIDIA's MIG user guide, "Supported MIG profiles", and what `nvidia-smi mig -lgipp` prints. A slice is
what NVIDIA calls a GPU instance. Most models have seven compute slices and eight memory slots, the A30 has four of
each. Inside the library, memory is counted in eighths, so that a slot of an A30 is two of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

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
