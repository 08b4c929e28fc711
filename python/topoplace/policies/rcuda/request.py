"""What a job asks of the queues of TSUBAME: some nodes, and on each of them the same GPUs, CPUs and memory."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from topoplace.cluster.hosts import megabytes
from topoplace.placement import HostShare
from topoplace.policies.base import suits_of

Amounts = tuple[int, int, int, int]
"""Nodes, and GPUs, CPUs and MB on each."""

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology


def request_key(job: JobGraph) -> Hashable:
    """Equal for jobs that ask for the same."""
    return (
        *(job.num_tasks, job.processes, job.cpus, job.memory_gb, job.drives),
        *(job.gpu_model, job.gpu_memory_gb, job.single_machine, job.anti_affinity),
    )


class Request:
    """What all jobs of one `request_key` ask for.

    A job has a node for each of its processes, no two on the same machine; one for all of them if it is
    `single_machine`, and one for each task under `anti_affinity`. Its CPUs and memory are divided evenly, CPUs
    rounded up.
    """

    def __init__(self, job: JobGraph, topology: Topology) -> None:
        self.job = job
        """The first that asked for it."""
        apart = job.anti_affinity and job.num_tasks > 1
        self.nodes = 1 if job.single_machine else job.num_tasks if apart else job.processes
        self.gpus, self.uneven = divmod(job.num_tasks, self.nodes)
        """On each node; and how many are left over, which makes it a request that cannot be granted."""
        self.cpus = -(-(job.cpus or 0) // self.nodes)
        self.memory_gb = (job.memory_gb or 0.0) / self.nodes
        self.megabytes = megabytes(self.memory_gb)
        self.total_gpus = self.nodes * self.gpus
        self.local = job.single_machine or apart
        """Whether GPUs of other machines are out of the question."""
        self.suits: NDArray[np.bool_] | None = None
        """(n,) the GPUs that meet its requirements; None for all of them."""
        if job.gpu_model or job.gpu_memory_gb:
            self.suits = np.array(list(map(suits_of(job), topology.gpus)), dtype=np.bool_)
        shape = (
            self.gpus if topology.partitions else None
        )  # who asks for more may get it as another partition
        self.flavour: Hashable = (job.gpu_model, job.gpu_memory_gb, self.local, shape)
        self.amounts: Amounts = (self.nodes, self.gpus, self.cpus, self.megabytes)
        self._shares: dict[int, HostShare] = {}

    def share(self, machine: int) -> HostShare:
        """What it takes of a machine."""
        known = self._shares.get(machine)
        if known is None:
            known = self._shares[machine] = HostShare(machine, self.cpus, self.memory_gb)
        return known


class Refused:
    """The requests that find no place, and with them all that ask for as much or more; until something is freed."""

    def __init__(self) -> None:
        self.known: set[Request] = set()
        """Those that have been asked about."""
        self.jobs: dict[int, JobGraph] = {}
        """Jobs of such requests by their id, which they keep as long as they are in here."""
        self._least: dict[Hashable, list[Amounts]] = {}

    def covers(self, request: Request) -> bool:
        """Whether it asks for as much as one of them, or more."""
        return any(_covers(request.amounts, least) for least in self._least.get(request.flavour, ()))

    def add(self, request: Request) -> None:
        """A request that has found no place and is not covered."""
        self.known.add(request)
        self._least[request.flavour] = [request.amounts, *self._others(request)]

    def _others(self, request: Request) -> Iterator[Amounts]:
        return (
            least for least in self._least.get(request.flavour, ()) if not _covers(least, request.amounts)
        )


def _covers(amounts: Amounts, least: Amounts) -> bool:
    """Whether each amount is at least that much."""
    return (
        amounts[0] >= least[0]
        and amounts[1] >= least[1]
        and amounts[2] >= least[2]
        and amounts[3] >= least[3]
    )
