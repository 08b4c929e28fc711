"""Constants shared by AMD's tools and its kernel driver: models, weights and bandwidths of links."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from topoplace.topology.links.link_kinds import SPEEDS, Link, LinkKind

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
Entry = tuple[int, int, Link]


def xgmi_link(least_mb_per_s: int, most_mb_per_s: int) -> Link:
    """Return an xGMI link from the driver's two bandwidths in MB/s: of one lane, and of all lanes together.

    The number of lanes is the second bandwidth divided by the first, or 1 if that is not a whole number from 1 to 16.
    """
    lanes, rest = divmod(most_mb_per_s, least_mb_per_s) if least_mb_per_s else (1, 0)
    return Link(LinkKind.XGMI, lanes if 1 <= lanes <= _MAX_LANES and not rest else 1, most_mb_per_s / 1000)


def relays(links: Iterable[Entry]) -> Iterator[tuple[int, int, int, float]]:
    """Yield (u, v, steps, gb_per_s) of the path between two GPUs without a link, u < v, over the xGMI links in `links`.

    The path is the fastest of those with the fewest steps; its speed is that of its slowest link.
    """
    near: dict[int, dict[int, float]] = {}
    for u, v, link in links:
        if link.kind is LinkKind.XGMI:
            near.setdefault(u, {})[v] = near.setdefault(v, {})[u] = link.gb_per_s
    for start in sorted(near):
        reached, border, steps = {start: math.inf}, {start: math.inf}, 0
        while border:
            steps += 1
            fresh: dict[int, float] = {}
            for vertex, width in border.items():
                for other, gb_per_s in near[vertex].items():
                    if other not in reached:
                        fresh[other] = max(fresh.get(other, 0.0), min(width, gb_per_s))
            reached |= fresh
            border = fresh
            if steps > 1:
                yield from ((start, other, steps, width) for other, width in fresh.items() if start < other)


def relay_notes(relayed: int, pairs: int) -> Iterator[str]:
    """Yield a note if any of `pairs` pairs of GPUs are relayed."""
    if relayed:
        yield (
            f"{relayed} of {pairs} pairs have no direct link: xGMI by way of other GPUs, "
            "at the speed of its slowest link, which other pairs share."
        )
