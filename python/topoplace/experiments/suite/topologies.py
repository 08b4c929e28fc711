"""The machines and clusters of the suite. Whatever changes here changes what the suite measures: raise its version."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from topoplace.machines import get
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.topology import Topology

_PORT: Final = 50.0
"""GB/s of a GPU's network port, one way: 400 Gb/s."""
_LINGJUN: Final = (
    {8: 35, 7: 8, 6: 3, 5: 1, 3: 1},
    {8: 28, 7: 7, 6: 4, 5: 1, 2: 2},
    {8: 5, 7: 8, 6: 8, 5: 5, 4: 2, 2: 1},
)
"""How many leaves have how many hosts, under each of the three groups of spines, in Alibaba's Lingjun dataset of
2023."""


def _rails(count: int, machines_per_unit: int, oversubscription: float, name: str) -> Topology:
    """Return machines of eight H100 in units, each with a rail for each of their GPUs, and spines above."""
    fabric = Fabric.regular(count, {"rail": machines_per_unit, "unit": machines_per_unit, "spine": count})
    fabric = fabric.with_level("rail", gb_per_s=_PORT, rail=True, pxn=True)
    fabric = fabric.with_level("unit", gb_per_s=_PORT)
    fabric = fabric.with_level("spine", gb_per_s=_PORT, oversubscription=oversubscription)
    return Topology.cluster(get("dgx-h100"), fabric=fabric, name=name)


def _racks(name: str) -> Topology:
    """Return eight racks, each one NVLink domain of 72 GPUs."""
    return Topology.cluster(get("gb200-nvl72"), 8, network=_PORT, name=name)


def _lingjun(name: str) -> Topology:
    """Return 847 machines of eight under 119 leaves of unequal size, in three groups of spines below one core."""
    sizes = [
        (spine, size) for spine, leaves in enumerate(_LINGJUN) for size, n in leaves.items() for _ in range(n)
    ]
    leaf = tuple(f"leaf{number}" for number, (_, size) in enumerate(sizes) for _ in range(size))
    spine = tuple(f"spine{spine}" for spine, size in sizes for _ in range(size))
    levels = (
        Level("leaf", leaf, _PORT),
        Level("spine", spine, _PORT),
        Level("core", ("core",) * len(leaf), _PORT, oversubscription=2.0),
    )
    return Topology.cluster(get("p5.48xlarge"), fabric=Fabric(numbered("host", len(leaf)), levels), name=name)


_BUILT: Final[Mapping[str, Callable[[str], Topology]]] = MappingProxyType(
    {
        "dgx1-v100": get,
        "l40s-8": get,
        "nvl72-x8": _racks,
        "h100-x64": lambda name: _rails(64, 16, 1.0, name),
        "lingjun-x847": _lingjun,
        "h100-x1500": lambda name: _rails(1500, 32, 2.0, name),
    }
)
ABOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dgx1-v100": "one DGX-1 with eight V100, the machine of most papers",
        "l40s-8": "one machine with eight L40S on PCIe",
        "nvl72-x8": "eight racks of GB200 NVL72",
        "h100-x64": "DGX-H100 with rails, 16 to a unit, under spines",
        "lingjun-x847": "p5.48xlarge under the leaves, spines and core of Alibaba's Lingjun",
        "h100-x1500": "DGX-H100 with rails, 32 to a unit, under spines with half their bandwidth",
    }
)
"""What each machine or cluster is, in words."""
NAMES: Final = tuple(_BUILT)
"""The names of the machines, then of the clusters."""


@functools.cache
def built(name: str) -> Topology:
    """Return the machine or cluster of this name."""
    return _BUILT[name](name)
