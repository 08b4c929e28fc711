"""Choose among the available devices for a container, by a policy's search."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from topoplace import policies
from topoplace._checks import shown
from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from topoplace.engine.policy import Policy
    from topoplace.placement import Placement
    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

_REPLICA = "::"
"""Separates the name of a GPU from the number of a replica, if GPUs are shared by time slicing."""
_MOST_NUMA_NODES = 4


def numa_node_of(gpu: Gpu) -> int | None:
    """Return the NUMA node of a GPU; if it is unknown, the number of its socket."""
    return gpu.socket if gpu.numa_node is None else gpu.numa_node


class PreferredAllocation:
    """Answers the kubelet's question which devices a container should get.

    topology: one machine. A device is known by its UUID or, if the machine's GPUs have no UUIDs, by its number. policy:
    `least-time`, or one that decides by a search, such as MAPA's. Its job communicates in a ring and is sensitive to
    bandwidth. Among sets of GPUs that it finds equally good, those on fewer NUMA nodes are preferred. ValueError for
    another topology or policy.
    """

    def __init__(self, topology: Topology, policy: Policy | str = policies.DEFAULT) -> None:
        if topology.num_machines != 1:
            raise ValueError(f"topology: {topology.num_machines} machines; a device plugin serves one")
        chosen = policies.get(policy) if isinstance(policy, str) else policy
        if not isinstance(chosen, (policies.SearchPolicy, policies.LeastTime)):
            raise ValueError(
                f"policy = {chosen.name}: it cannot be asked for sets with given GPUs; least-time and MAPA's can"
            )
        self.topology = topology
        self._policy = chosen
        self._gpu_of = {gpu.uuid or str(gpu.index): gpu.index for gpu in topology.gpus}
        self.device_ids: tuple[str, ...] = tuple(self._gpu_of)
        """The name of each GPU as a device."""

    def choose(self, available: Sequence[str], required: Collection[str], size: int) -> list[str]:
        """Return the `size` devices that a container should get, in the order of its tasks.

        available: the devices to choose from. required: those that the container must get. A container gets only one
        replica of a GPU, so that its tasks are on different GPUs. ValueError for a device that is unknown or not
        available, or if there are too few.
        """
        device_of = self._devices(available, "available")
        needed = self._devices(required, "required")
        if missing := sorted(set(required) - set(available)):
            raise ValueError(f"required: device {shown(missing[0])} is not available")
        if not len(needed) <= size <= len(device_of):
            raise ValueError(
                f"size = {size}: there are {len(device_of)} GPUs, {len(needed)} of them required"
            )
        if not size:
            return []
        placement = self._best(frozenset(device_of), frozenset(needed), size)
        if placement is None:
            raise ValueError(f"size = {size}: no such set of the available GPUs is linked")
        return [needed.get(gpu) or device_of[gpu] for gpu in placement.gpus]

    def gpu_name(self, device_id: str) -> str:
        """Return the name of the GPU that a device is, or is a replica of."""
        return device_id.partition(_REPLICA)[0]

    def knows(self, device_id: str) -> bool:
        """Return True if the device's GPU is in the topology."""
        return self.gpu_name(device_id) in self._gpu_of

    def _devices(self, device_ids: Collection[str], what: str) -> dict[int, str]:
        """Return the first device of each GPU."""
        device_of: dict[int, str] = {}
        for device_id in device_ids:
            gpu = self._gpu_of.get(self.gpu_name(device_id))
            if gpu is None:
                raise ValueError(f"{what}: device {shown(device_id)} is not in the topology")
            device_of.setdefault(gpu, device_id)
        return device_of

    def _best(self, free: frozenset[int], required: frozenset[int], size: int) -> Placement | None:
        job = (JobGraph.ring(size) if size > 2 else JobGraph.clique(size)).with_(bandwidth_sensitive=True)
        cluster = Cluster(self.topology)
        for gpu in set(range(self.topology.num_gpus)) - free:
            cluster.drain(gpu)
        best = self._policy.best(job, cluster, free, required)
        if best is None:
            return None
        order = self._policy.order(job, best)
        for gpus in self._on_fewer_numa_nodes(best.gpus, free, required):
            nearer = self._policy.best(job, cluster, gpus, required)
            if nearer is not None and self._policy.order(job, nearer) <= order:
                return nearer
        return best

    def _on_fewer_numa_nodes(
        self, gpus: Sequence[int], free: frozenset[int], required: frozenset[int]
    ) -> Iterator[frozenset[int]]:
        """Yield the free GPUs of fewer NUMA nodes than `gpus` have, if these suffice; a single node first."""
        node_of = {gpu: numa_node_of(self.topology.gpus[gpu]) for gpu in free}
        nodes = sorted({node for node in node_of.values() if node is not None})
        used = len({node_of[gpu] for gpu in gpus})
        if len(nodes) > _MOST_NUMA_NODES:
            used = min(used, 2)
        for number in range(1, used):
            for some in combinations(nodes, number):
                there = frozenset(gpu for gpu in free if node_of[gpu] in some)
                if len(there) >= len(gpus) and required <= there:
                    yield there
