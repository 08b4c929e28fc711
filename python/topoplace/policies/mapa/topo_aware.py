"""MAPA's reading of the topology-aware policy: GPUs under one socket where they fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology


class MapaTopoAware(MapaPolicy):
    """First fit under one CPU socket (PCIe root), else the lowest free ids; tasks in the order of best AggBW.

    The paper cites SC'17's recursive bipartitioning but says that it "in effect" selects GPUs of one socket, and its
    artifact does just that; so this is first fit, not a partitioner. GPUs of unknown socket count as one group.
    """

    name = "mapa-topo-aware"
    artifact_rule = "topo-aware"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """Return the lowest ids inside one socket, or of all `free` where no socket has enough."""
        fits = [
            placement
            for group in _by_socket(cluster.topology, free)
            if required <= group and (placement := self.first_fit(job, cluster, group, required))
        ]
        if fits:
            return min(fits, key=lambda placement: sorted(placement.gpus))
        return self.first_fit(job, cluster, free, required)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return a key by which GPUs of one socket come first."""
        return (float(len(_by_socket(placement.topology, placement.gpus)) != 1),)


def _by_socket(topology: Topology, gpus: Iterable[int]) -> list[GpuSet]:
    groups: dict[tuple[str, int | None], list[int]] = {}
    for gpu in gpus:
        described = topology.gpus[gpu]
        groups.setdefault((described.machine, described.socket), []).append(gpu)
    return [frozenset(group) for group in groups.values()]
