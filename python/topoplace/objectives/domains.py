"""Fragmentation of the free GPUs over sockets (SC'17, eq. 5), and over the domains of a level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace import _checks
from topoplace.jobs.groups import MACHINE
from topoplace.objectives.arguments import different_gpus

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from topoplace.cluster.cluster import Cluster
    from topoplace.topology.topology import Topology


def whole_domains(cluster: Cluster, level: str) -> int:
    """Return the number of domains of a level whose GPUs are all free, so that a job can get a whole domain.

    Args:
        cluster: The cluster; its drained, held and unhealthy GPUs are not free.
        level: "machine" or a level of the fabric. Machines in no domain of the level do not count.

    Raises:
        ValueError: Names an unknown level.
    """
    sizes, free, _ = _by_domain(cluster, level)
    return int(((free == sizes) & (sizes > 0)).sum())


def possible_whole_domains(cluster: Cluster, level: str) -> int:
    """Return the number of domains of a level whose GPUs would all be free if jobs were packed into the fewest domains.

    The number of free GPUs is that of now. The result is an upper limit: it ignores whether jobs fit that way.

    Args:
        cluster: The cluster; domains with a drained, held or unhealthy GPU cannot be whole.
        level: As for `whole_domains`.

    Raises:
        ValueError: Names an unknown level.
    """
    sizes, _, out = _by_domain(cluster, level)
    smallest_first = np.sort(sizes[(out == 0) & (sizes > 0)])
    return int(np.searchsorted(np.cumsum(smallest_first), len(cluster.free_gpus()), side="right"))


def in_whole_domains(domain_of: NDArray[np.int64], whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return, for each machine, True if all machines of its domain are whole; False in no domain.

    domain_of: the number of each machine's domain, -1 for none.
    """
    used = np.bincount(domain_of[(domain_of >= 0) & ~whole], minlength=int(domain_of.max(initial=0)) + 1)
    found: NDArray[np.bool_] = (domain_of >= 0) & (used[domain_of] == 0)
    return found


def _by_domain(
    cluster: Cluster, level: str
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return for each domain of a level how many GPUs it has, how many are free, and how many out of service."""
    topology = cluster.topology
    codes = {MACHINE: np.arange(topology.num_machines), **{one.name: one.codes for one in topology.levels}}
    _checks.one_of(level, "level", codes, ValueError)
    domain = codes[level][topology.machine_of]
    sizes = np.bincount(domain[domain >= 0])

    def count(gpus: Sequence[int]) -> NDArray[np.int64]:
        own = domain[list(gpus)]
        return np.bincount(own[own >= 0], minlength=len(sizes))

    return sizes, count(cluster.free_gpus()), count(cluster.out_of_service())


def fragmentation(gpus: Iterable[int], topology: Topology, free: Iterable[int]) -> float:
    """Return the fragmentation of the machines of `gpus` after these are taken from `free` (SC'17, eq. 5).

    It is the mean over the machines' sockets of the share of GPUs that stay free, 0..1; entirely free sockets count as
    0.

    Raises:
        ValueError: `gpus` is empty, or a GPU is unknown or listed twice.
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
