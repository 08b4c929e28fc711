"""MAPA's version of a topology-aware policy: take GPUs under one CPU socket if the job fits there."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from topoplace.policies.mapa.search import MapaPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.admission import GpuSet
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.kernels import WorkBudget
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology


class MapaTopoAware(MapaPolicy):
    """The policy that takes the lowest free GPU ids under one CPU socket (PCIe root), or else the lowest free ids.

    Tasks are assigned to these GPUs for the largest aggregated bandwidth. MAPA's paper cites SC'17's recursive
    bipartitioning but says that it "in effect" selects GPUs of one socket, and MAPA's artifact does just that. This
    policy is therefore first fit, without a partitioner. GPUs of one machine whose socket is unknown count as one
    group.

    On one machine without sockets, it decides as the policy Baseline and warns once with a UserWarning.
    """

    name = "mapa-topo-aware"

    def best_within(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet, budget: WorkBudget
    ) -> Placement | None:
        """Return the placement on the lowest GPUs of `free` inside one socket that has enough.

        The GPUs must have a link for every edge of the job. If no socket has enough such GPUs, return the placement on
        the lowest ones of all of `free`; None if there is none.
        """
        cluster.topology.derived(_warn_without_sockets)
        found: Placement | None = None
        for group in sorted(_by_socket(cluster.topology, free), key=min):
            if found and min(found.gpus) < min(group):
                break  # no later group has a smaller GPU list
            if required <= group:
                here = self.first_fit(job, cluster, group, required, budget)
                found = here if found is None else min(found, here or found, key=_ascending)
        return found or self.first_fit(job, cluster, free, required, budget)

    def order(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """Return the sort key of a placement, smaller is better: 0 for GPUs of one socket, else 1."""
        return (float(len(_by_socket(placement.topology, placement.gpus)) != 1),)


def _warn_without_sockets(topology: Topology) -> None:
    """Issue a UserWarning if all GPUs are on one machine, and none has a socket.

    `Topology.derived` calls this once per topology.
    """
    if topology.num_machines == 1 and all(gpu.socket is None for gpu in topology.gpus):
        warnings.warn(
            f"topology {topology.name!r} has no sockets: mapa-topo-aware is the policy baseline on it",
            UserWarning,
            stacklevel=2,
        )


def _by_socket(topology: Topology, gpus: Iterable[int]) -> list[GpuSet]:
    groups: dict[int, list[int]] = {}
    listed = list(gpus)
    for gpu, socket in zip(listed, topology.socket_of[listed].tolist(), strict=True):
        groups.setdefault(socket, []).append(gpu)
    return [frozenset(group) for group in groups.values()]


def _ascending(placement: Placement) -> list[int]:
    return sorted(placement.gpus)
