"""The machines and clusters of the suite. Whatever changes here changes what the suite measures: raise its version."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from topoplace.machines import get, torus
from topoplace.topology.fabric import Fabric
from topoplace.topology.links.link import LinkKind
from topoplace.topology.links.link_catalogue import direct
from topoplace.topology.topology import Topology

Build = Callable[[str], Topology]


def _torus(shape: tuple[int, ...]) -> Build:
    """Return what builds one machine of chips in a torus."""
    return lambda name: torus(shape, host=shape, name=name)


def _hypercube(dimensions: int) -> Build:
    """Return what builds a machine whose V100 have a link to each GPU whose number differs in one bit."""
    pairs = [
        (u, u | 1 << bit) for u in range(1 << dimensions) for bit in range(dimensions) if not u >> bit & 1
    ]
    return _linked(1 << dimensions, tuple((u, v, 1) for u, v in pairs))


def _linked(num_gpus: int, pairs: tuple[tuple[int, int, int], ...]) -> Build:
    """Return what builds a machine of V100 on four sockets, with NVLinks between pairs (u, v, lanes)."""
    return lambda name: Topology.from_links(
        num_gpus,
        [direct(u, v, LinkKind.NVLINK2, lanes) for u, v, lanes in pairs],
        name=name,
        model="V100",
        memory_gb=32.0,
        sockets=[4 * gpu // num_gpus for gpu in range(num_gpus)],
    )


_BUILT: Final[Mapping[str, Build]] = MappingProxyType(
    {
        # Machines: those of the catalogue with 16 GPUs and more, and others from generators.
        **{name: lambda name: get(name) for name in ("dgx2", "torus2d-16", "cubemesh-16")},
        **{name: lambda name: get(name) for name in ("gb200-nvl72", "tpu-v4-64")},
        "ring-16": _torus((16,)),
        "torus-4x4": _torus((4, 4)),
        "torus-4x4x2": _torus((4, 4, 2)),
        "hypercube-16": _hypercube(4),
        "hypercube-32": _hypercube(5),
        "pairs-16": _linked(16, tuple((u, u + 1, 2) for u in range(0, 16, 2))),
        "pcie-16": _linked(16, ()),
        # Clusters.
        "8-dgx1-v100": lambda name: Topology.cluster(
            get("dgx1-v100"), fabric=Fabric.regular(8, {"rack": 4}), name=name
        ),
        "16-minsky": lambda name: Topology.cluster(
            get("minsky"), fabric=Fabric.regular(16, {"rack": 4, "row": 8}), name=name
        ),
        "4-dgx-h100": lambda name: Topology.cluster(get("dgx-h100"), 4, network=50.0, name=name),
        "4-dgx1-p100-4-dgx-a100": lambda name: Topology.cluster(
            [get("dgx1-p100")] * 4 + [get("dgx-a100")] * 4, racks=4, name=name
        ),
    }
)
NAMES: Final = tuple(_BUILT)
"""The names of the machines, then of the clusters."""
NUM_CLUSTERS: Final = 4


@functools.cache
def built(name: str) -> Topology:
    """Return the machine or cluster of this name."""
    return _BUILT[name](name)
