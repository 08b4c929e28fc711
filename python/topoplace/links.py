"""How two accelerators are connected: kinds of links, their speeds, and their weight in a distance."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from topoplace import _checks
from topoplace.errors import TopologyError


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
    """A link whose speed is known and whose kind is not."""


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """One connection: its kind, the lanes side by side, and their speed together.

    A link equals another link with the same three values, and equals the `LinkKind` it is of:
    `topology.link_kind(0, 1) == LinkKind.NVLINK2` asks for the kind alone.
    """

    kind: LinkKind
    lanes: int
    """NVLinks or xGMI links side by side; 1 where lanes have no meaning, 0 for no link."""
    gbps: float
    """GB/s (1e9 bytes per second) in one direction, all lanes together."""

    def __eq__(self, other: object) -> bool:
        if isinstance(other, LinkKind):
            return self.kind is other
        if isinstance(other, Link):
            return (self.kind, self.lanes, self.gbps) == (other.kind, other.lanes, other.gbps)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.kind)  # a link equals its kind, so both must hash alike


LinkSpec = (
    tuple[int, int, float]
    | tuple[int, int, float, LinkKind | str]
    | tuple[int, int, float, LinkKind | str, int]
)
"""A link as an argument: (u, v, gbps), (u, v, gbps, kind) or (u, v, gbps, kind, lanes)."""

NVLINKS = frozenset(kind for kind in LinkKind if kind.name.startswith("NVLINK"))
"""The kinds of direct NVLinks, of every generation."""

SELF = Link(LinkKind.SELF, 0, 0.0)
NONE = Link(LinkKind.NONE, 0, 0.0)

# GB/s of one lane in one direction, payload: the vendor's figures per generation, which are also those of
# MAPA (SC'21), table 1, for the first two.
LANE_GBPS: Mapping[LinkKind, float] = MappingProxyType(
    {
        LinkKind.NVLINK1: 20.0,
        LinkKind.NVLINK2: 25.0,
        LinkKind.NVLINK3: 25.0,
        LinkKind.NVLINK4: 25.0,
        LinkKind.NVLINK5: 50.0,
    }
)

# What a PCIe 3.0 x16 path achieves in one direction; MAPA, table 1.
PCIE3_X16_GBPS = 12.0
# One InfiniBand EDR port: the network assumed between machines where none is given.
NETWORK_GBPS = 12.5

# Weight of a path in a distance. SC'17 (Amaral et al.) and its published code: 1 inside a socket, 20 across
# the sockets of a machine. A direct link counts as 1 wherever its ends are; the network, which SC'17 does not
# number, follows in the same ratio.
_DISTANCE = {LinkKind.SELF: 0.0, LinkKind.SYSTEM: 20.0, LinkKind.NETWORK: 400.0, LinkKind.NONE: math.inf}


def distance_of(link: Link) -> float:
    """Distance between the two ends of `link`: 0 (itself), 1, 20, 400, or infinity where there is no path."""
    return _DISTANCE.get(link.kind, 1.0)


def direct(u: int, v: int, kind: LinkKind, lanes: int = 1) -> tuple[int, int, float, LinkKind, int]:
    """The `LinkSpec` of `lanes` direct links of `kind` between u and v, at the speed of `LANE_GBPS`."""
    return u, v, lanes * LANE_GBPS[kind], kind, lanes


def parsed_link(spec: object, what: str) -> tuple[Any, Any, Link]:
    """A `LinkSpec` as (u, v, Link); the ends and values are left to `checked_links`."""
    parts = _checks.sequence(spec, what, TopologyError)
    if not 3 <= len(parts) <= 5:
        raise TopologyError(f"{what} = {_checks.shown(parts)} is not (u, v, gbps[, kind[, lanes]])")
    u, v, gbps, kind, lanes = (parts + (LinkKind.UNKNOWN, 1)[len(parts) - 3 :])[:5]
    try:
        return u, v, Link(LinkKind(kind), lanes, gbps)
    except ValueError:
        raise TopologyError(f"{what}[3] = {_checks.shown(kind)} is not a LinkKind") from None


def checked_links(entries: Iterable[tuple[int, int, Link]], num_gpus: int) -> list[tuple[int, int, Link]]:
    """`entries` checked, each as (smaller, larger, link), sorted; a pair may be there once."""
    place: dict[tuple[int, int], int] = {}
    checked: list[tuple[int, int, Link]] = []
    for i, (u, v, link) in enumerate(entries):
        u = _checks.integer(u, f"links[{i}][0]", TopologyError, low=0, high=num_gpus - 1)
        v = _checks.integer(v, f"links[{i}][1]", TopologyError, low=0, high=num_gpus - 1)
        if u == v:
            raise TopologyError(f"links[{i}] = ({u}, {v}) joins a GPU with itself")
        pair = (u, v) if u < v else (v, u)
        first = place.setdefault(pair, i)
        if first != i:
            raise TopologyError(f"links[{i}] = ({u}, {v}) is the pair of links[{first}]")
        checked.append((*pair, _checked_link(link, f"links[{i}]")))
    checked.sort(key=lambda entry: entry[:2])
    return checked


def _checked_link(link: Link, where: str) -> Link:
    if link.kind is LinkKind.NONE and link.gbps == 0:
        return NONE
    if link.kind in (LinkKind.SELF, LinkKind.NONE):
        raise TopologyError(f"{where}: {link.gbps} GB/s over a link of kind {link.kind.name}")
    gbps = _checks.positive(link.gbps, f"{where}[2]", TopologyError)
    return Link(link.kind, _checks.integer(link.lanes, f"{where}[4]", TopologyError, low=1, high=1024), gbps)
