"""All-reduces in NVSwitches (NVLink SHARP, NVLS): the switches add, so that each GPU sends its data once.

For b bytes, each GPU sends b to the switches, which add the parts of all GPUs. It then gets 1 / n of the sums and sends
them back to the switches, which send them to all: b (1 + 1 / n) pass its port in each direction. An all-reduce by rings
takes 2 b (n - 1) / n. At equal port rates, NVLS therefore has 2 (n - 1) / (n + 1) times the bus bandwidth of rings. It
reaches a share of that (`Rates.nvls_efficiency`): 0.85 on Hopper and 0.74 on Blackwell, in the tuning model of NCCL.

Published measurements, bus bandwidth in GB/s: 8 H100 476 and 480 (NVIDIA/nccl-tests issues 290 and 309), 8 H200 475
(issue 272), 8 H800 215 (NVIDIA/nccl issue 1374), 8 B200 830 (issue 1807), 8 B300 845 (issue 2140), 8 GB200 on two trays
811, 72 GB200 839 to 847 (coreweave/nccl-tests pull request 43). The formula gives 476, 476, 212, 829 for the first
four. It grows with n to 2 x 0.74 of the port's rate, but 72 GB200 reach no more than 8 do. From Blackwell on, the limit
is therefore 7 / 6 of the ring's rate: 840 GB/s.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from topoplace.collective.bandwidth import DEFAULT_RATES, ring_bandwidth
from topoplace.collective.nvlink_domains import domain_level, reducing, switched
from topoplace.collective.prepared import are_on_one_machine, checked_gpus
from topoplace.collective.several_machines import bandwidth_over
from topoplace.kernels.job_traffic import reduced_bandwidth
from topoplace.topology.links.rates import Rates, rates_of
from topoplace.topology.makers import are_mixed
from topoplace.topology.topology import Topology

_FEWEST_GPUS: Final = 3
"""Least number of GPUs for NVLS: two GPUs would have 2 / 3 of the rate of rings."""


def nvls_rate(num_gpus: int, ring_gb_per_s: float, capability: int, rates: Rates) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce by NVLS among GPUs on common NVSwitches; 0 without NVLS.

    Arguments are those of `nvlink_domains.reducing`.
    """
    found = reducing(ring_gb_per_s, capability, rates)
    return reduced_bandwidth(num_gpus, *found) if num_gpus >= _FEWEST_GPUS else 0.0


def nvls_bandwidth(topology: Topology, gpus: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> float:
    """Return GB/s, as bus bandwidth, of an all-reduce in the NVSwitches of one machine or NVLink domain.

    Return 0 without NVLS: for fewer than three GPUs, for GPUs not all on the same NVSwitches, below compute capability
    9.0, and with rates without NVLS, such as "nccl-2.30-rings".

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
    """Return GB/s, as bus bandwidth, of an all-reduce among `gpus`: by rings, or by NVLS if that is faster.

    Over several machines that do not share NVSwitches, the all-reduce runs in channels, and by NVLS inside machines.
    Errors are those of `ring_bandwidth`.
    """
    numbers = checked_gpus(topology, gpus)
    if are_mixed(topology, numbers):
        return 0.0
    if domain_level(topology, numbers) is None and not are_on_one_machine(topology, numbers):
        return bandwidth_over(topology, numbers, rates, "reduce")
    return max(ring_bandwidth(topology, gpus, rates=rates), nvls_bandwidth(topology, gpus, rates=rates))
