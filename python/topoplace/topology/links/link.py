"""A link between two GPUs and its kind."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


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
