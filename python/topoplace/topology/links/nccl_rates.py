"""Rates of links as a collective library assumes them, and how it looks for channels, by version.

The numbers are those of NCCL's sources (`src/graph/topo.h`, `src/graph/search.cc`) at each version. All are GB/s in one
direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import pairwise
from types import MappingProxyType

from topoplace import _checks
from topoplace._lazy import above
from topoplace.topology.links.link_kinds import SPEEDS

_parsed: Callable[[str], Rates] = above("parsed_rates")
_written: Callable[[Rates], str] = above("written_rates")


class PathType(IntEnum):
    """The worst part of a path, nearest first; the values are NCCL's."""

    NVL = 1
    """NVLinks, direct or through an NVSwitch."""
    NVB = 2
    """NVLinks through another GPU."""
    C2C = 3
    PIX = 4
    """One PCIe switch."""
    PXB = 5
    """Several PCIe switches."""
    PHB = 8
    """The host bridge of a CPU."""
    SYS = 9
    """Several CPUs."""


@dataclass(frozen=True, slots=True, eq=False)
class Rates:
    """Rates of links and of channels; change single ones with `dataclasses.replace`. Equal only to itself.

    Raises:
        ValueError: A rate or share is not positive and finite, an overhead is below 1, a link or path is unknown, or
            channels are not descending or not for all GPUs.
    """

    name: str
    gb_per_s: Mapping[str, float]
    """GB/s of one link, or of sixteen lanes of PCIe, by its key in `topoplace.links.SPEEDS`."""
    intel_overhead: float
    """Factor by which a path through the host bridge of an Intel CPU takes more than its rate of PCIe links."""
    channel_gb_per_s: Mapping[int, tuple[float, ...]]
    """GB/s that a channel may have, descending, by the least compute capability, times ten, for which they hold.

    The rates of key 0 also hold for GPUs of unknown capability.
    """
    achieved: Mapping[str, float] = field(default_factory=dict[str, float])
    """Measured over planned speed of rings, by the name of the worst `PathType` of their hops; a missing one is 1.

    Presets are empty: their figures are NCCL's. `topoplace_lab.measuring` measures them.
    """
    nvls_efficiency: Mapping[int, float] = field(default_factory=dict[int, float])
    """Share of the NVLinks' rate that reductions in NVSwitches (NVLS) reach, by the least compute capability, times
    ten.

    GPUs below all keys have no NVLS; if it is empty, no GPU has.
    """

    def __post_init__(self) -> None:
        for name, rate in self.gb_per_s.items():
            _checks.one_of(name, "a key of gb_per_s", SPEEDS, ValueError)
            _checks.positive(rate, f"gb_per_s[{name!r}]", ValueError, high=1e6)
        _checks.real(self.intel_overhead, "intel_overhead", ValueError, low=1.0, high=100.0)
        if 0 not in self.channel_gb_per_s:
            raise ValueError("channel_gb_per_s has no key 0, for GPUs of an unknown compute capability")
        for capability, steps in self.channel_gb_per_s.items():
            _check_steps(capability, steps)
        for name, share in self.achieved.items():
            _checks.one_of(name, "a key of achieved", PathType.__members__, ValueError)
            _checks.positive(share, f"achieved[{name!r}]", ValueError, high=100.0)
        for least, share in self.nvls_efficiency.items():
            _checks.integer(least, "a key of nvls_efficiency", ValueError, low=0, high=10_000)
            _checks.positive(share, f"nvls_efficiency[{least}]", ValueError, high=100.0)

    @classmethod
    def from_json(cls, text: str) -> Rates:
        """Read rates that `to_json` wrote; ValueError names the fault of any other text."""
        return _parsed(text)

    def to_json(self) -> str:
        """Return the rates as JSON, which `from_json` reads."""
        return _written(self)

    def of(self, name: str) -> float | None:
        """Return GB/s of a link called `name` in the link catalogue; None if there is no such figure."""
        return self.gb_per_s.get(name)

    def channels(self, capability: int) -> tuple[float, ...]:
        """Return the GB/s that a channel may have among GPUs of this CUDA compute capability (times ten)."""
        return self.channel_gb_per_s[max(least for least in self.channel_gb_per_s if least <= capability)]

    def nvls(self, capability: int) -> float:
        """Return the share of the NVLinks' rate that NVLS reaches at this compute capability (times ten); 0 without
        NVLS.
        """
        known = max((least for least in self.nvls_efficiency if least <= capability), default=None)
        return 0.0 if known is None else self.nvls_efficiency[known]


def _check_steps(capability: object, steps: object) -> None:
    least = _checks.integer(capability, "a key of channel_gb_per_s", ValueError, low=0, high=10_000)
    what = f"channel_gb_per_s[{least}]"
    listed = _checks.ordered(steps, what, ValueError)
    rates = [_checks.positive(rate, f"{what}[{i}]", ValueError, high=1e6) for i, rate in enumerate(listed)]
    if not rates or any(slower >= faster for faster, slower in pairwise(rates)):
        raise ValueError(f"{what} = {_checks.shown(rates)} is not a list of descending rates")


SLOW_CHANNELS = (
    15.0,
    12.0,
    10.0,
    9.0,
    8.0,
    7.0,
    6.0,
    5.0,
    4.0,
    3.0,
    2.4,
    1.2,
    0.6,
    0.24,
    0.12,
    0.06,
    0.01,
    0.001,
)
"""GB/s of channels if a path exists but no channel of the table fits, as over PCIe among GPUs of NVLink's tables.

NCCL then takes the GPUs in simple order and assumes 0.1 GB/s, whatever they carry. The upper steps are those of NCCL's
tables of older GPUs, the lower ones those of its tables between machines.
"""
_ACHIEVABLE = {name: speed.achievable_gb_per_s for name, speed in SPEEDS.items() if speed.achievable_gb_per_s}
_SM90_FROM_2_21 = (60.0, 50.0, 40.0, 30.0, 24.0, 20.0, 15.0, 12.0, 11.0, 6.0, 3.0)
_SM100 = (90.0, 80.0, 70.0, 60.0, 50.0, 45.0, 40.0, 30.0, 24.0, 20.0, 19.0, 18.0)
_2_30 = Rates(
    "nccl-2.30",
    MappingProxyType(_ACHIEVABLE),
    1.2,
    MappingProxyType(
        {
            0: (40.0, 30.0, 20.0, 18.0, 15.0, 12.0, 10.0, 9.0, 7.0, 6.0, 5.0, 4.0, 3.0),
            90: _SM90_FROM_2_21,
            100: _SM100,
        }
    ),
    nvls_efficiency=MappingProxyType({90: 0.85, 100: 0.74}),
)


def _since(
    newer: Rates,
    version: str,
    rates: Mapping[str, float] | None = None,
    channels: Mapping[int, tuple[float, ...]] | None = None,
) -> Rates:
    """Return the rates of an older version, with what differs from a newer one."""
    return replace(
        newer,
        name=f"nccl-{version}",
        gb_per_s=MappingProxyType({**newer.gb_per_s, **(rates or {})}),
        channel_gb_per_s=MappingProxyType({**newer.channel_gb_per_s, **(channels or {})}),
    )


_2_27 = _since(_2_30, "2.27", channels={100: tuple(rate for rate in _SM100 if rate != 45.0)})
_2_26 = _since(
    _2_27, "2.26", {"nvlink5": 40.0}, {100: tuple(rate for rate in _SM100 if rate not in (45.0, 18.0))}
)
_2_21 = _since(
    _2_26,
    "2.21",
    {"socket-sapphire-rapids": 10.0, "socket-emerald-rapids": 10.0, "nvlink5": 20.6},
    {100: _SM90_FROM_2_21},
)
_SM90_OF_2_19 = tuple(rate for rate in _SM90_FROM_2_21 if rate != 11.0)
_2_19 = _since(_2_21, "2.19", {"nvlink4": 20.0, "nvlink5": 20.0}, {90: _SM90_OF_2_19, 100: _SM90_OF_2_19})
_SM90_OF_2_18 = tuple(rate for rate in _SM90_OF_2_19 if rate != 50.0)
_2_18 = _since(_2_19, "2.18", {"socket-amd": 24.0}, {90: _SM90_OF_2_18, 100: _SM90_OF_2_18})


def _only_rings(rates: Rates) -> Rates:
    """Return rates without NVLS, as with NCCL_NVLS_ENABLE=0."""
    return replace(rates, name=f"{rates.name}-rings", nvls_efficiency=MappingProxyType({}))


_VERSIONS = (_2_18, _2_19, _2_21, _2_26, _2_27, _2_30)
PRESETS: Mapping[str, Rates] = MappingProxyType(
    {rates.name: rates for rates in (*_VERSIONS, *map(_only_rings, _VERSIONS))}
)
"""Rates by library and version; a version stands for itself and all later ones before the next in the list.

Presets whose names end with "-rings" are the same without NVLS.
"""


def rates_of(rates: Rates | str) -> Rates:
    """Return `rates`, or the preset of this name; ValueError for an unknown name."""
    if isinstance(rates, Rates):
        return rates
    return PRESETS[_checks.one_of(rates, "rates", PRESETS, ValueError)]
