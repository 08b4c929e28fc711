"""The nodes of the paper's simulation (Table 2), and the speeds of transfers between them."""

from __future__ import annotations

from typing import Final

from topoplace.cluster.hosts import HostResources
from topoplace.topology.topology import Topology
from topoplace_lab.simulate import RemoteCopies, TransferSpeeds

GPUS: Final = 3
MEMORY: Final = 22
GB: Final = 2**30 / 1e9
"""A gigabyte of batch systems (2**30 bytes) in gigabytes of 1e9 bytes."""
NODE: Final = HostResources(cpus=8, memory_gb=MEMORY * GB + 0.01)
"""CPUs and memory of a node that GPU jobs may use; a virtual machine for CPU jobs holds the rest.

Memory is slightly larger than 22 GB, because the requests of several jobs are each rounded up to whole MB.
"""
SPEEDS: Final = TransferSpeeds(
    network_gb_per_s=10.0,
    network_latency=1.2e-3,
    gpu_gb_per_s=171.0,
    remote_latency=3.47e-3,
    remote_overhead=1.09,
)
MODEL: Final = RemoteCopies(SPEEDS)


def machines(count: int) -> Topology:
    """Return the topology of a cluster of `count` TSUBAME 2.5 nodes with three GPUs each."""
    node = Topology.from_links(GPUS, [], 8.0, model="K20X", memory_gb=6.0, name="node")
    return Topology.cluster(
        node, count=count, network=SPEEDS.network_gb_per_s, name=f"{count} nodes of TSUBAME 2.5"
    )
