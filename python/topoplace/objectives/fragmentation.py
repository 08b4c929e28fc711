"""Fragmentation of the free GPUs over sockets (SC'17, eq. 5), and over the domains of a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.jobs.groups import MACHINE
from topoplace.objectives.arguments import different_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.topology.topology import Topology


def whole_domains(cluster: Cluster, level: str) -> int:
    """Return how many domains of a level have all their GPUs free, so that a job can get the whole of one.

    Args:
        cluster: Its drained, held and unhealthy GPUs are not free.
        level: "machine" or a level of the fabric. Machines in no domain of it do not count.

    Raises:
        ValueError: Names an unknown level.
    """
    topology = cluster.topology
    codes = {MACHINE: np.arange(topology.num_machines), **{one.name: one.codes for one in topology.levels}}
    _checks.one_of(level, "level", codes, ValueError)
    domain = codes[level][topology.machine_of]
    free = np.zeros(topology.num_gpus, bool)
    free[list(cluster.free_gpus())] = True
    sizes = np.bincount(domain[domain >= 0])
    return int(
        ((np.bincount(domain[(domain >= 0) & free], minlength=len(sizes)) == sizes) & (sizes > 0)).sum()
    )


def fragmentation(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Return the fragmentation of the machines of `gpus` after these are taken from `free` (SC'17, eq. 5).

    It is the mean over the machines' sockets of the share of GPUs that stay free, 0..1; entirely free sockets count as
    0.

    Raises:
        ValueError: If `gpus` is empty, or a GPU is unknown or listed twice.
    """
    taken = set(different_gpus(gpus, topology, "gpus"))
    if not taken:
        raise ValueError("gpus is empty")
    machines = {topology.gpus[gpu].machine for gpu in taken}
    left = set(different_gpus(free, topology, "free")) - taken
    sockets: dict[tuple[str, int | None], list[bool]] = {}
    for machine in sorted(machines):
        for gpu in topology.gpus_of[machine]:
            sockets.setdefault((machine, topology.gpus[gpu].socket), []).append(gpu in left)
    return fragmentation_from([(sum(socket), len(socket)) for socket in sockets.values()])


def fragmentation_from(sockets: Sequence[tuple[int, int]]) -> float:
    """Return the mean over sockets of the share of free GPUs, 0..1; a socket whose GPUs are all free counts as 0.

    sockets: (number of free GPUs, number of GPUs) of each socket.
    """
    return sum(free / size for free, size in sockets if free != size) / len(sockets)
