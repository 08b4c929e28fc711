"""Links between two GPUs: their kinds, published speeds with sources, and the links of each GPU model."""

from __future__ import annotations

import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeVar


class LinkKind(enum.Enum):
    """The kind of a link: that of the slowest part of the best path between two GPUs; the value is its name in JSON."""

    SELF = "self"
    """A GPU and itself."""
    NVLINK = "nvlink"
    """Direct NVLinks of an unknown generation."""
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
    XGMI_RELAYED = "xgmi_relayed"
    """AMD Infinity Fabric by way of other GPUs; the speed is that of its slowest link, which other pairs share."""
    ICI = "ici"
    """Inter-chip interconnect of TPUs."""
    PCIE = "pcie"
    """At most one PCIe switch or bridge: PIX of `nvidia-smi topo -m`."""
    PCIE_BRIDGES = "pcie_bridges"
    """Several PCIe switches or bridges; the host bridge is not crossed: PXB."""
    HOST = "host"
    """Through the host bridge of one CPU: PHB. Also the path inside one socket, or where sockets are unknown."""
    HOST_BRIDGES = "host_bridges"
    """Between the host bridges of one NUMA node, or between the NUMA nodes of one socket: NODE."""
    SYSTEM = "system"
    """Across the CPU sockets of one machine: SYS."""
    NETWORK = "network"
    """Between two machines."""
    NONE = "none"
    """No path at all."""
    UNKNOWN = "unknown"
    """Unknown connection; the speed is that of the slower path that certainly exists."""

    @property
    def label(self) -> str:
        """Return the kind's label in tables and pictures: PIX, PXB, PHB, NODE or SYS for a path, else its name."""
        return _LABELS.get(self, self.name)


PATHS: Mapping[str, LinkKind] = MappingProxyType(
    {
        "PIX": LinkKind.PCIE,
        "PXB": LinkKind.PCIE_BRIDGES,
        "PHB": LinkKind.HOST,
        "NODE": LinkKind.HOST_BRIDGES,
        "SYS": LinkKind.SYSTEM,
    }
)
"""The paths over PCIe and CPUs inside a machine, nearest first, by their labels in `nvidia-smi topo -m`."""
PATH_KINDS = tuple(PATHS.values())
"""The kinds of `PATHS`, nearest first."""
_LABELS = {kind: label for label, kind in PATHS.items()}


@dataclass(frozen=True, slots=True)
class Link:
    """A connection: its kind, its number of parallel lanes, and the speed of all lanes together."""

    kind: LinkKind
    lanes: int
    """Parallel NVLinks or xGMI links; 1 where lanes have no meaning, 0 for SELF and NONE."""
    gb_per_s: float
    """GB/s (1e9 bytes per second) in one direction, all lanes together."""


NVLINKS = frozenset(kind for kind in LinkKind if kind.name.startswith("NVLINK"))
"""The kinds of direct NVLinks, of every generation."""

_DECIMALS = 6
MAX_GB_PER_S = 1e15
"""Limit on a link's speed; faster links are refused as a mistake, and sums over a machine stay finite."""

SELF = Link(LinkKind.SELF, 0, 0.0)
NONE = Link(LinkKind.NONE, 0, 0.0)


def rounded(gb_per_s: float) -> float:
    """Return a sum or product of speeds without rounding errors in the last digits: 18 x 20.6 GB/s is 370.8 GB/s."""
    return round(gb_per_s, _DECIMALS) or gb_per_s


_Found = TypeVar("_Found")
Latency = Literal["package", "direct", "bus", "socket", "network"]
"""Latency class of a link, lowest first."""


@dataclass(frozen=True, slots=True)
class LinkSpeed:
    """Bandwidth of one link of a kind and generation, in GB/s (1e9 bytes per second) in one direction."""

    kind: LinkKind
    nominal_gb_per_s: float | None
    """The vendor's payload figure for one link (for sixteen lanes of PCIe); None if there is none."""
    achievable_gb_per_s: float | None
    """The figure that NCCL or RCCL measure or assume for one link; None if there is none."""
    latency: Latency
    most_links: int = 1
    """The number of such links that a fully connected GPU has."""

    @property
    def gb_per_s(self) -> float:
        """Return the nominal GB/s of one link, or the achievable GB/s if there is no nominal figure."""
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
"""Speeds of links, by kind and generation."""


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
"""The GPU models with known NVLinks."""

_MODEL = re.compile(rf"(?<![A-Z0-9])(?:{'|'.join(NVLINK_MODELS)})(?![A-Z0-9])")


_NVLINK_OF_CAPABILITY = {
    60: "nvlink1",
    70: "nvlink2",
    80: "nvlink3",
    86: "nvlink3-bridge",
    90: "nvlink4",
    100: "nvlink5",
    103: "nvlink5",
}


def models_in(text: str) -> set[str]:
    """Return the models of `NVLINK_MODELS` that a text names, in capitals or not."""
    return set(_MODEL.findall(text.upper()))


def model_known(name: str) -> str | None:
    """Return the model of `NVLINK_MODELS` that a product name such as "NVIDIA A100-SXM4-40GB" contains, or None."""
    named = models_in(name)
    return next((model for model in NVLINK_MODELS if model in named), None)


def nvlink_of(model: str) -> LinkSpeed | None:
    """Return speed and number of the NVLinks of any product name of a GPU model; None for an unknown model."""
    known = model_known(model)
    return SPEEDS[_NVLINK_OF_MODEL[known]] if known else None


def xgmi_of(model: str) -> LinkSpeed | None:
    """Return speed and number of the xGMI links of an AMD model such as "AMD Instinct MI250X"; None if unknown."""
    found = re.search(r"MI([0-9]{3})", model.upper())
    return SPEEDS.get(f"xgmi-mi{found[1][0]}00") if found else None


def nvlink_of_capability(capability: int) -> LinkSpeed | None:
    """Return speed and number of the NVLinks of GPUs of a CUDA compute capability, times ten; None if unknown.

    Example: 80 stands for capability 8.0, the A100.
    """
    name = _NVLINK_OF_CAPABILITY.get(capability)
    return SPEEDS[name] if name else None


_CAPABILITY_OF_MODEL = {
    **dict.fromkeys(("P100",), 60),
    **dict.fromkeys(("V100",), 70),
    **dict.fromkeys(("T4",), 75),
    **dict.fromkeys(("A100", "A800", "A30"), 80),
    **dict.fromkeys(("A6000", "A5000", "A40", "A10", "A10G", "3090"), 86),
    **dict.fromkeys(("L4", "L40", "L40S", "4090"), 89),
    **dict.fromkeys(("H100", "H200", "H800", "H20", "GH200"), 90),
    **dict.fromkeys(("B200", "GB200"), 100),
    **dict.fromkeys(("B300", "GB300"), 103),
    **dict.fromkeys(("5090",), 120),
}


def capability_of(model: str) -> int | None:
    """Return the CUDA compute capability, times ten, of a GPU model given by any product name; None if unknown."""
    return _named(model, _CAPABILITY_OF_MODEL)


def _named(model: str, of_word: Mapping[str, _Found]) -> _Found | None:
    """Return what the first word of a product name that is a key of `of_word` stands for."""
    words = re.split(r"[^A-Z0-9]+", model.upper())
    return next((of_word[word] for word in words if word in of_word), None)


_PCIE_OF_MODEL = {
    # NVIDIA's data sheets.
    **dict.fromkeys(("P100", "V100", "T4"), "pcie3"),
    **dict.fromkeys(("A100", "A800", "A30", "A40", "A10", "A10G", "A5000", "A6000"), "pcie4"),
    **dict.fromkeys(("3090", "4090", "L4", "L40", "L40S"), "pcie4"),
    **dict.fromkeys(("H100", "H200", "H800", "H20", "GH200"), "pcie5"),
    **dict.fromkeys(("B200", "GB200", "5090"), "pcie5"),
    **dict.fromkeys(("B300", "GB300"), "pcie6"),
}


def pcie_of(models: Iterable[str | None]) -> str | None:
    """Return the key in `SPEEDS` of the oldest PCIe that GPUs of these models have; None if one of them is unknown.

    Their machines most likely have the same generation of PCIe: GPUs are sold in hosts of their generation.
    """
    found = [_named(model, _PCIE_OF_MODEL) if model else None for model in models]
    return None if None in found else min(filter(None, found), default=None)


_XGMI_OF_ARCHITECTURE = {
    **dict.fromkeys(("906", "908", "gfx906", "gfx908"), "xgmi-mi100"),
    **dict.fromkeys(("910", "gfx90a"), "xgmi-mi200"),
    **dict.fromkeys(("940", "941", "942", "gfx940", "gfx941", "gfx942"), "xgmi-mi300"),
}


def xgmi_of_architecture(name: str) -> LinkSpeed | None:
    """Return speed and number of the xGMI links of an AMD architecture such as "gfx90a" or "910"; None if unknown."""
    return SPEEDS.get(_XGMI_OF_ARCHITECTURE.get(name, ""))


_PCIE_GENERATIONS = {2.5: "pcie1", 5.0: "pcie2", 8.0: "pcie3", 16.0: "pcie4", 32.0: "pcie5", 64.0: "pcie6"}


def pcie_gb_per_s(gigatransfers: float, width: int) -> float | None:
    """Return nominal GB/s of `width` PCIe lanes at a rate of 2.5, 5, 8, 16, 32 or 64 GT/s; None for any other rate."""
    generation = _PCIE_GENERATIONS.get(gigatransfers)
    return SPEEDS[generation].gb_per_s * width / 16 if generation else None


_TWELFTHS: Mapping[LinkKind, int] = MappingProxyType(
    {
        # PCIe of both GPUs carries it; NCCL takes width x rate / 80.
        LinkKind.PCIE: 12,
        # Between its neighbours: no figure is published, and NCCL takes that of PIX.
        LinkKind.PCIE_BRIDGES: 11,
        # NCCL divides by 1.2 between two GPUs through the host bridge of an Intel CPU.
        LinkKind.HOST: 10,
        # Between its neighbours: no figure is published, and NCCL takes that of PHB.
        LinkKind.HOST_BRIDGES: 8,
        # NCCL's sockets carry .46 (Sapphire Rapids) to .83 (Skylake) of their PCIe, and half on Broadwell.
        LinkKind.SYSTEM: 6,
    }
)
"""Share of its PCIe speed, in twelfths, that a path of each class carries if a text states no speed (docs/decisions.md,
15).
"""


def path(kind: LinkKind, pcie_gb_per_s: float) -> Link:
    """Return a link of a kind in `PATH_KINDS`, at the speed assumed for PCIe of `pcie_gb_per_s` GB/s."""
    return Link(kind, 1, rounded(pcie_gb_per_s * _TWELFTHS[kind] / 12))


def assumed_paths(pcie_gb_per_s: float, kinds: Iterable[LinkKind]) -> str:
    """Return the end of a note on the speeds that `path` assumes, such as "10 (PHB) and 6 (SYS) GB/s are assumed"."""
    *most, last = [f"{path(kind, pcie_gb_per_s).gb_per_s:g} ({kind.label})" for kind in kinds]
    return f"{', '.join(most)} and {last} GB/s are assumed" if most else f"{last} GB/s is assumed"


_IDLE_GB_PER_S = tuple(SPEEDS["pcie1"].gb_per_s * width / 16 for width in (1, 2, 4, 8, 16))


def is_idle_pcie(gb_per_s: float) -> bool:
    """Return True for a speed of PCIe generation 1, to which idle links fall back."""
    return any(math.isclose(gb_per_s, idle, rel_tol=0.005) for idle in _IDLE_GB_PER_S)


# Achievable GB/s of a PCIe 3.0 x16 path in one direction; MAPA, table 1.
PCIE3_X16_GB_PER_S = 12.0


# One InfiniBand EDR port: the network assumed between machines where none is given.
NETWORK_GB_PER_S = 12.5


def direct(u: int, v: int, kind: LinkKind, lanes: int = 1) -> tuple[int, int, float, LinkKind, int]:
    """Return (u, v, gb_per_s, kind, lanes) of `lanes` direct NVLinks between u and v, at their nominal speed."""
    return u, v, lanes * LANE_GB_PER_S[kind], kind, lanes
