"""The machines and clusters of the suite. Every change here changes the measurements: raise the suite's version."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from topoplace.machines import get
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.topology import Topology

_PORT: Final = 50.0
"""GB/s of a GPU's network port, one way: 400 Gb/s."""
_LINGJUN: Final = {8: 5, 7: 8, 6: 8, 5: 5, 4: 2, 2: 1}
"""The number of leaves for each number of hosts, in one of three spine groups of Alibaba's Lingjun dataset of 2023."""


def _rails(name: str) -> Topology:
    """Return machines of eight H100 in units of 8, with a rail for each of their GPUs, and spines above."""
    fabric = Fabric.regular(32, {"rail": 8, "unit": 8, "spine": 32})
    fabric = fabric.with_level("rail", gb_per_s=_PORT, rail=True, pxn=True)
    fabric = fabric.with_level("unit", gb_per_s=_PORT).with_level("spine", gb_per_s=_PORT)
    return Topology.cluster(get("dgx-h100"), fabric=fabric, name=name)


def _leaves(name: str) -> Topology:
    """Return machines of eight H100 under leaves of four, whose uplinks have a quarter of their bandwidth."""
    fabric = Fabric.regular(32, {"leaf": 4, "spine": 32}).with_level("leaf", gb_per_s=_PORT)
    fabric = fabric.with_level("spine", gb_per_s=_PORT, oversubscription=4.0)
    return Topology.cluster(get("dgx-h100"), fabric=fabric, name=name)


def _racks(name: str) -> Topology:
    """Return four racks, each one NVLink domain of 72 GPUs."""
    return Topology.cluster(get("gb200-nvl72"), 4, network=_PORT, name=name)


def _lingjun(name: str) -> Topology:
    """Return 179 machines of eight under 29 leaves of unequal size, whose uplinks have half their bandwidth."""
    sizes = [size for size, count in _LINGJUN.items() for _ in range(count)]
    leaf = tuple(f"leaf{number}" for number, size in enumerate(sizes) for _ in range(size))
    levels = (Level("leaf", leaf, _PORT), Level("spine", ("spine",) * len(leaf), _PORT, oversubscription=2.0))
    machine = replace(get("p5.48xlarge"), nics=())  # every GPU has a port of the leaves
    return Topology.cluster(machine, fabric=Fabric(numbered("host", len(leaf)), levels), name=name)


_BUILT: Final[Mapping[str, Callable[[str], Topology]]] = MappingProxyType(
    {
        "dgx1-v100": get,
        "l40s-8": get,
        "nvl72-x4": _racks,
        "h100-rails-x32": _rails,
        "h100-leaves-x32": _leaves,
        "lingjun-x179": _lingjun,
    }
)
ABOUT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "dgx1-v100": "one DGX-1 with eight V100, the machine of most papers",
        "l40s-8": "one machine with eight L40S on PCIe",
        "nvl72-x4": "four racks of GB200 NVL72",
        "h100-rails-x32": "DGX-H100 with rails, 8 to a unit, under spines: nothing is oversubscribed",
        "h100-leaves-x32": "DGX-H100 under leaves of 4, whose uplinks have a quarter of their bandwidth",
        "lingjun-x179": "p5.48xlarge under leaves as uneven as in Alibaba's Lingjun; half the bandwidth above them",
    }
)
"""A description of each machine or cluster."""
NAMES: Final = tuple(_BUILT)
"""The names of the machines, then of the clusters."""


@functools.cache
def built(name: str) -> Topology:
    """Return the machine or cluster of this name."""
    return _BUILT[name](name)
