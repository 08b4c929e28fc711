"""All-reduces in NVSwitches (NVLink SHARP, NVLS): the switches add, so that each GPU sends its data once.

Of b bytes, each GPU sends b to the switches, which add the parts of all GPUs, and 1 / n of the sums are its own to give
back to the switches, which send them to all: b (1 + 1 / n) pass its port in each direction. An all-reduce by rings
takes 2 b (n - 1) / n. So at equal rates of ports NVLS has 2 (n - 1) / (n + 1) times the bus bandwidth of rings, of
which it reaches a share (`Rates.nvls_efficiency`): .85 on Hopper and .74 on Blackwell, in the tuning model of NCCL.

Published measurements, bus bandwidth in GB/s: 8 H100 476 and 480 (NVIDIA/nccl-tests issues 290 and 309), 8 H200 475
(issue 272), 8 H800 215 (NVIDIA/nccl issue 1374), 8 B200 830 (issue 1807), 8 B300 845 (issue 2140), 8 GB200 on two trays
811, 72 GB200 839 to 847 (coreweave/nccl-tests pull request 43). The formula gives 476, 476, 212, 829 for the first
four. It grows with n to 2 x .74 of the port's rate, but 72 GB200 reach no more than 8 do: from Blackwell on, 7 / 6 of
the ring's rate is the most, which is 840 GB/s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from topoplace.collective.bandwidth import DEFAULT_RATES, ring_bandwidth
from topoplace.collective.nvlink_domains import switched
from topoplace.collective.prepared import checked_gpus
from topoplace.collective.rates import Rates, rates_of
from topoplace.topology.topology import Topology

_FEWEST_GPUS: Final = 3
"""NVLS of two GPUs never exceeds rings: it would have 2 / 3 of their rate."""
_BLACKWELL: Final = 100
_MOST_OF_RING: Final = 7 / 6


def nvls_rate(num_gpus: int, ring_gb_per_s: float, capability: int, rates: Rates) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce by NVLS among GPUs on common NVSwitches; 0 without NVLS.

    Args:
        ring_gb_per_s: What rings among them carry, which is what a GPU's port is planned for.
        capability: The least CUDA compute capability of these GPUs, times ten.
    """
    efficiency = rates.nvls(capability)
    if num_gpus < _FEWEST_GPUS or not efficiency:
        return 0.0
    found = 2 * (num_gpus - 1) / (num_gpus + 1) * efficiency * ring_gb_per_s
    return min(found, _MOST_OF_RING * ring_gb_per_s) if capability >= _BLACKWELL else found


def nvls_bandwidth(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce in the NVSwitches of one machine or NVLink domain.

    0 where there is none: for fewer than three GPUs, unless all of them are on the same NVSwitches, below compute
    capability 9.0, and with rates without NVLS, such as "nccl-2.30-rings".

    Raises:
        ValueError: Names a wrong argument.
    """
    numbers, table = checked_gpus(topology, gpus), rates_of(rates)
    if len(numbers) < _FEWEST_GPUS or not table.nvls_efficiency:
        return 0.0
    found = switched(topology, numbers, table)
    return nvls_rate(len(numbers), found.ring_gb_per_s, found.capability, table) if found else 0.0


def all_reduce_bandwidth(
    topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES
) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce among `gpus`: by rings, or by NVLS where that is faster.

    Over several machines that do not share NVSwitches, it is `ring_bandwidth`; errors are the same.
    """
    by_rings = ring_bandwidth(topology, gpus, rates=rates)
    return max(by_rings, nvls_bandwidth(topology, gpus, rates=rates))
