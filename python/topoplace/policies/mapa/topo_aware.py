"""MAPA's version of a topology-aware policy: take GPUs under one CPU socket if the job fits there."""

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
    """The policy that takes the lowest free GPU ids under one CPU socket (PCIe root), or else the lowest free ids.

    Tasks are assigned to these GPUs for the largest aggregated bandwidth. MAPA's paper cites SC'17's recursive
    bipartitioning but says that it "in effect" selects GPUs of one socket, and MAPA's artifact does just that. So this
    policy is first fit, without a partitioner. GPUs of unknown socket count as one group.
    """

    name = "mapa-topo-aware"
    artifact_rule = "topo-aware"

    def search(self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet) -> Placement | None:
        """Return the placement on the lowest GPUs of `free` inside one socket, using all of `required`.

        The GPUs must have a link for every edge of the job. If no socket has enough such GPUs, return the placement on
        the lowest ones of all of `free`; None if there is none.
        """
        fits = [
            placement
            for group in _by_socket(cluster.topology, free)
            if required <= group and (placement := self.first_fit(job, cluster, group, required))
        ]
        if fits:
            return min(fits, key=lambda placement: sorted(placement.gpus))
        return self.first_fit(job, cluster, free, required)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better: 0 for GPUs of one socket, else 1."""
        return (float(len(_by_socket(placement.topology, placement.gpus)) != 1),)


def _by_socket(topology: Topology, gpus: Iterable[int]) -> list[GpuSet]:
    groups: dict[tuple[str, int | None], list[int]] = {}
    for gpu in gpus:
        described = topology.gpus[gpu]
        groups.setdefault((described.machine, described.socket), []).append(gpu)
    return [frozenset(group) for group in groups.values()]
