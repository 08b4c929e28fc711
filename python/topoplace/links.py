"""How two accelerators are connected: kinds of links, the table of their speeds, and their weight in a distance."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from topoplace import _checks
from topoplace.errors import TopologyError, warn_deprecated


class LinkKind(enum.Enum):
    """The slowest part of the best path between two accelerators; the value is its name in JSON."""

    SELF = "self"
    """A GPU and itself."""
    NVLINK = "nvlink"
    """Direct NVLinks of a generation that is not known."""
    NVLINK1 = "nvlink1"
    """Direct NVLinks of the first generation (P100)."""
    NVLINK2 = "nvlink2"
    """Direct NVLinks of the second generation (V100)."""
    NVLINK3 = "nvlink3"
    """Direct NVLinks of the third generation (A100; bridges of A6000 and RTX 3090)."""
    NVLINK4 = "nvlink4"
    """Direct NVLinks of the fourth generation (H100)."""
    NVLINK5 = "nvlink5"
    """Direct NVLinks of the fifth generation (B200)."""
    NVSWITCH = "nvswitch"
    """NVLinks into a switch that serves every pair at the full speed of a GPU."""
    C2C = "c2c"
    """NVLink-C2C, chip to chip."""
    XGMI = "xgmi"
    """AMD Infinity Fabric between GPUs."""
    ICI = "ici"
    """Inter-chip interconnect of TPUs."""
    PCIE = "pcie"
    """PCIe switches or bridges only; the host bridge is not crossed."""
    HOST = "host"
    """Through the host bridge, inside one socket or where sockets are unknown."""
    SYSTEM = "system"
    """Across the CPU sockets of one machine."""
    NETWORK = "network"
    """Between two machines."""
    NONE = "none"
    """No path at all."""
    UNKNOWN = "unknown"
    """What connects the pair is not known; the speed is that of the path that is known to be there."""


@dataclass(frozen=True, slots=True)
class Link:
    """A connection: its kind, its lanes side by side, and the speed of all lanes together."""

    kind: LinkKind
    lanes: int
    """NVLinks or xGMI links side by side; 1 where lanes have no meaning, 0 for no link."""
    gb_per_s: float
    """GB/s (1e9 bytes per second) in one direction, all lanes together."""

    @property
    def gbps(self) -> float:
        """Deprecated name of `gb_per_s`, which is in gigabytes, not gigabits."""
        warn_deprecated("Link.gbps", "Link.gb_per_s")
        return self.gb_per_s


NVLINKS = frozenset(kind for kind in LinkKind if kind.name.startswith("NVLINK"))
"""The kinds of direct NVLinks, of every generation."""

_DECIMALS = 6
MAX_GB_PER_S = 1e15
"""Faster links are refused, as a mistake; sums over all links of a machine stay finite."""

SELF = Link(LinkKind.SELF, 0, 0.0)
NONE = Link(LinkKind.NONE, 0, 0.0)

# ---- speeds ----------------------------------------------------------------------------------------------------

Latency = Literal["package", "direct", "bus", "socket", "network"]
"""How far a link reaches, nearest first: what a message over it pays at least."""


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """What one link of a kind and generation carries, in GB/s (1e9 bytes per second) in one direction."""

    kind: LinkKind
    nominal_gb_per_s: float | None
    """The vendor's payload figure of one link (of sixteen lanes, for PCIe); None where there is none."""
    achievable_gb_per_s: float | None
    """What collective libraries measure or model; None where they have no figure."""
    latency: Latency
    most_links: int = 1
    """The most links one GPU has."""

    @property
    def gb_per_s(self) -> float:
        """The nominal figure, or the achievable one where there is no other."""
        return self.nominal_gb_per_s or self.achievable_gb_per_s or 0.0


def _pcie(nominal: float, achievable: float) -> LinkSpeed:
    return LinkSpeed(LinkKind.PCIE, nominal, achievable, "bus")


def _sockets(achievable: float) -> LinkSpeed:
    return LinkSpeed(LinkKind.SYSTEM, None, achievable, "socket")


def _port(nominal: float) -> LinkSpeed:
    return LinkSpeed(LinkKind.NETWORK, nominal, None, "network")


def _nvlink(kind: LinkKind, nominal: float, achievable: float, most_links: int) -> LinkSpeed:
    return LinkSpeed(kind, nominal, achievable, "direct", most_links)


SPEEDS: Mapping[str, LinkSpeed] = MappingProxyType(
    {
        # Nominal: NVIDIA's architecture papers, as in hwloc's topology-nvml.c; achievable: NCCL's graph/topo.h.
        "nvlink1": _nvlink(LinkKind.NVLINK1, 20.0, 18.0, 4),
        "nvlink2": _nvlink(LinkKind.NVLINK2, 25.0, 20.0, 6),
        "nvlink3": _nvlink(LinkKind.NVLINK3, 25.0, 20.0, 12),
        # RTX 3090 and A6000: 112.5 GB/s both ways over four links.
        "nvlink3-bridge": _nvlink(LinkKind.NVLINK3, 14.0625, 12.0, 4),
        "nvlink4": _nvlink(LinkKind.NVLINK4, 25.0, 20.6, 18),
        "nvlink5": _nvlink(LinkKind.NVLINK5, 50.0, 40.1, 18),
        # NVIDIA's data sheets, and the C2C entries of NCCL's XML dumps of these machines.
        "c2c-gh200": LinkSpeed(LinkKind.C2C, 450.0, 450.0, "package"),
        "c2c-gb300": LinkSpeed(LinkKind.C2C, 223.6, 223.6, "package"),
        "c2c-gb10": LinkSpeed(LinkKind.C2C, 345.0, 345.0, "package"),
        # Sixteen lanes. Nominal: PCI-SIG's rate less the line code; achievable: NCCL, width x rate / 80.
        "pcie1": _pcie(4.0, 3.0),
        "pcie2": _pcie(8.0, 6.0),
        "pcie3": _pcie(15.75, 12.0),
        "pcie4": _pcie(31.5, 24.0),
        "pcie5": _pcie(63.0, 48.0),
        "pcie6": _pcie(121.0, 96.0),
        # Between two CPU sockets: NCCL's graph/topo.h.
        "socket-broadwell": _sockets(6.0),
        "socket-skylake": _sockets(10.0),
        "socket-sapphire-rapids": _sockets(22.0),
        "socket-emerald-rapids": _sockets(40.0),
        "socket-amd": _sockets(16.0),
        "socket-power9": _sockets(32.0),
        "socket-arm": _sockets(6.0),
        # Nominal: the bandwidths the kernel's KFD driver reports; achievable: RCCL's graph/topo.h.
        "xgmi-mi100": LinkSpeed(LinkKind.XGMI, 46.0, 24.0, "direct", 3),
        "xgmi-mi200": LinkSpeed(LinkKind.XGMI, 50.0, 36.0, "direct", 8),
        "xgmi-mi300": LinkSpeed(LinkKind.XGMI, 64.0, 48.0, "direct", 7),
        # One port of four lanes: NCCL's net_ib.
        "infiniband-fdr": _port(7.0),
        "infiniband-edr": _port(12.5),
        "infiniband-hdr": _port(25.0),
        "infiniband-ndr": _port(50.0),
        "infiniband-xdr": _port(100.0),
    }
)
"""Speeds by kind and generation."""

LANE_GB_PER_S: Mapping[LinkKind, float] = MappingProxyType(
    {SPEEDS[f"nvlink{i}"].kind: SPEEDS[f"nvlink{i}"].gb_per_s for i in range(1, 6)}
)
"""GB/s of one NVLink of each generation, nominal; MAPA (SC'21), table 1, has the first two."""

_NVLINK_OF_MODEL = {
    **dict.fromkeys(("P100",), "nvlink1"),
    **dict.fromkeys(("V100",), "nvlink2"),
    **dict.fromkeys(("A100", "A800", "A30"), "nvlink3"),
    **dict.fromkeys(("A6000", "A5000", "A40", "3090"), "nvlink3-bridge"),
    **dict.fromkeys(("H100", "H200", "H800", "H20", "GH200"), "nvlink4"),
    **dict.fromkeys(("B200", "B300", "GB200", "GB300"), "nvlink5"),
}
NVLINK_MODELS = tuple(_NVLINK_OF_MODEL)
"""The GPU models whose NVLinks are known."""
_NVLINK_OF_CAPABILITY = {
    60: "nvlink1",
    70: "nvlink2",
    80: "nvlink3",
    86: "nvlink3-bridge",
    90: "nvlink4",
    100: "nvlink5",
    103: "nvlink5",
}


def model_known(name: str) -> str | None:
    """The model of `NVLINK_MODELS` that a product name such as "NVIDIA A100-SXM4-40GB" contains, or None."""
    words = re.split(r"[^A-Z0-9]+", name.upper())
    return next((model for model in NVLINK_MODELS if model in words), None)


def nvlink_of(model: str) -> LinkSpeed | None:
    """The NVLinks of a GPU model, given by any product name of it; None for a model that is not known."""
    known = model_known(model)
    return SPEEDS[_NVLINK_OF_MODEL[known]] if known else None


def xgmi_of(model: str) -> LinkSpeed | None:
    """The xGMI links of an AMD model such as "AMD Instinct MI250X"; None for a model that is not known."""
    found = re.search(r"MI([0-9]{3})", model.upper())
    return SPEEDS.get(f"xgmi-mi{found[1][0]}00") if found else None


def nvlink_of_capability(capability: int) -> LinkSpeed | None:
    """The NVLinks of a CUDA compute capability, times ten: 80 for 8.0; None for one without or unknown."""
    name = _NVLINK_OF_CAPABILITY.get(capability)
    return SPEEDS[name] if name else None


_PCIE_GENERATIONS = {2.5: "pcie1", 5.0: "pcie2", 8.0: "pcie3", 16.0: "pcie4", 32.0: "pcie5", 64.0: "pcie6"}


def pcie_gb_per_s(gigatransfers: float, width: int) -> float | None:
    """Nominal GB/s of `width` PCIe lanes at a rate of 2.5, 5, 8, 16, 32 or 64 GT/s; None for any other rate."""
    generation = _PCIE_GENERATIONS.get(gigatransfers)
    return SPEEDS[generation].gb_per_s * width / 16 if generation else None


# What a PCIe 3.0 x16 path achieves in one direction; MAPA, table 1.
PCIE3_X16_GB_PER_S = 12.0
# One InfiniBand EDR port: the network assumed between machines where none is given.
NETWORK_GB_PER_S = 12.5

# ---- distances -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DistanceWeights:
    """What each level of the hierarchy adds to, or is worth in, a distance.

    Inside a machine a pair has the weight of its link: `direct` (NVLink, NVSwitch, C2C, xGMI, ICI, unknown), `pcie`,
    `host` or `system`. Between machines it has the sum of the weights of all levels that its path climbs, up to
    the first that the two machines share: of `levels` by name, `network` for any other. The defaults are those of
    SC'17 (Amaral et al.) and its published code: 1 inside a socket, 20 across the sockets of a machine; the
    network, which SC'17 does not number, follows in the same ratio.
    """

    direct: float = 1.0
    pcie: float = 1.0
    host: float = 1.0
    system: float = 20.0
    network: float = 400.0
    levels: Mapping[str, float] = field(default_factory=dict[str, float])

    def __post_init__(self) -> None:
        for key in ("direct", "pcie", "host", "system", "network"):
            weight = _checks.real(getattr(self, key), f"distances.{key}", TopologyError)
            object.__setattr__(self, key, weight)
        _checks.instance(self.levels, Mapping, "distances.levels", TopologyError)
        checked = {
            _checks.text(name, "a level of distances", TopologyError): _checks.real(
                weight, f"distances.levels[{name!r}]", TopologyError
            )
            for name, weight in self.levels.items()
        }
        object.__setattr__(self, "levels", MappingProxyType(checked))

    def __hash__(self) -> int:
        return hash((self.direct, self.pcie, self.host, self.system, self.network))

    def __reduce__(self) -> tuple[type[DistanceWeights], tuple[object, ...]]:
        plain = (self.direct, self.pcie, self.host, self.system, self.network)
        return type(self), (*plain, dict(self.levels))

    def of(self, link: Link) -> float:
        """The distance between the two ends of `link`: 0 (itself), its weight, or infinity where there is no path."""
        kind = link.kind
        if kind is LinkKind.SELF:
            return 0.0
        if kind is LinkKind.NONE:
            return math.inf
        if kind in (LinkKind.PCIE, LinkKind.HOST, LinkKind.SYSTEM, LinkKind.NETWORK):
            weight: float = getattr(self, kind.value)
            return weight
        return self.direct


DISTANCES: Mapping[str, DistanceWeights] = MappingProxyType({"sc17": DistanceWeights()})
"""Presets by name."""


def rounded(gb_per_s: float) -> float:
    """A sum or product of speeds without the last digits that only rounding made: 18 x 20.6 GB/s is 370.8 GB/s."""
    return round(gb_per_s, _DECIMALS) or gb_per_s


def direct(u: int, v: int, kind: LinkKind, lanes: int = 1) -> tuple[int, int, float, LinkKind, int]:
    """(u, v, gb_per_s, kind, lanes) of `lanes` direct NVLinks between u and v, at their nominal speed."""
    return u, v, lanes * LANE_GB_PER_S[kind], kind, lanes
