"""Constants shared by AMD's tools and its kernel driver: models, weights and bandwidths of links."""

from __future__ import annotations

from collections.abc import Mapping

from topoplace.topology.links.link import Link, LinkKind
from topoplace.topology.links.link_catalogue import SPEEDS

# Weights as in the kernel's KFD driver; a path has the sum of its parts.
XGMI_WEIGHT = 15
"""The weight of one xGMI link between two GPUs."""
PCIE_WEIGHT = 20
"""The weight of one PCIe link between a GPU and its NUMA node."""
NEAR_WEIGHT = 15
"""The largest weight between two NUMA nodes of one socket; the driver uses the firmware's distance."""
SOCKETS_WEIGHT = 32
"""The weight between two NUMA nodes of different sockets."""

SLOWEST_XGMI = SPEEDS["xgmi-mi100"]
"""The slowest known xGMI link, assumed for GPUs of an unknown model."""

# PCI device ids, as the public list of PCI ids names them.
MODEL_OF_DEVICE: Mapping[int, str] = {
    0x738C: "MI100",
    0x7408: "MI250X",
    0x740C: "MI250",
    0x740F: "MI210",
    0x74A0: "MI300A",
    0x74A1: "MI300X",
    0x74A2: "MI308X",
    0x74A5: "MI325X",
}

_MAX_LANES = 16


def xgmi_link(least_mb_per_s: int, most_mb_per_s: int) -> Link:
    """Build an xGMI link from the driver's two bandwidths in MB/s: of one lane, and of all lanes together.

    The link has as many lanes as the first goes into the second, or one if that is not a whole number from 1 to 16.
    """
    lanes, rest = divmod(most_mb_per_s, least_mb_per_s) if least_mb_per_s else (1, 0)
    return Link(LinkKind.XGMI, lanes if 1 <= lanes <= _MAX_LANES and not rest else 1, most_mb_per_s / 1000)
