"""A real Ray cluster with four nodes on this host, whose GPUs are resources without hardware."""

from __future__ import annotations

import time

import ray
from ray.cluster_utils import Cluster

import topoplace as tp
from topoplace_hosts.ray import node_resources
from topoplace_hosts.ray.resources import nodes_by_resource, resource_of

TOPOLOGY = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=4)
HEAD = "127.0.0.2"
"""An address of the loopback interface; Ray replaces 127.0.0.1 by that of the host."""


class Nodes:
    """A Ray cluster on the loopback interface, with an address for each node."""

    def __init__(self) -> None:
        head = {"num_cpus": 1, "include_dashboard": False, "node_ip_address": HEAD}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._nodes = {
            machine: self._cluster.add_node(
                num_cpus=16,
                node_ip_address=f"127.0.0.{number}",
                resources=node_resources(TOPOLOGY, machine),
            )
            for number, machine in enumerate(TOPOLOGY.machine_names, start=3)
        }
        ray.init(address=self._cluster.address, _node_ip_address=HEAD, log_to_driver=False)
        self._cluster.wait_for_nodes()

    def kill(self, machine: str) -> None:
        """End all processes of a node, without a word to Ray."""
        self._cluster.remove_node(self._nodes.pop(machine), allow_graceful=False)

    def is_alive(self, machine: str) -> bool:
        return machine in self._nodes

    def stop(self) -> None:
        ray.shutdown()
        self._cluster.shutdown()


def node_ids() -> dict[int, str]:
    """Return the id of each GPU's node in Ray."""
    ids = nodes_by_resource()
    names = {gpu: resource_of(TOPOLOGY, gpu) for gpu in range(TOPOLOGY.num_gpus)}
    return {gpu: ids[name] for gpu, name in names.items() if name in ids}


def free_gpus() -> int:
    free = ray.available_resources()
    return sum(int(free.get(resource_of(TOPOLOGY, gpu), 0)) for gpu in range(TOPOLOGY.num_gpus))


def wait_for(number: int) -> None:
    """Wait until so many GPUs are free in Ray."""
    end = time.monotonic() + 30
    while free_gpus() != number:
        assert time.monotonic() < end, f"{free_gpus()} GPUs are free, not {number}"
        time.sleep(0.05)
