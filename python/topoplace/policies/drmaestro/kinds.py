"""What a job asks of DRMaestro: bundles that cannot be taken apart, and what may come from elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import megabytes
from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile
from topoplace.placement import Deferred, HostShare
from topoplace.policies.base import never_fits
from topoplace.policies.drmaestro.phase import Ints

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.cluster.hosts import HostResources, Hosts
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.policies.drmaestro.state import Layout


@dataclass(frozen=True, slots=True)
class Bundle:
    """What has to be on one machine: a process with its CPUs and memory, and its GPUs where they cannot be remote."""

    needs: tuple[int, int]
    """CPUs and MB."""
    gpus: int
    """How many GPUs it drives."""
    bound: bool
    """Whether these must be local."""


def kind_key(job: JobGraph) -> Hashable:
    """Equal for jobs that ask for the same; they may differ in their names, graphs and what else no phase looks at."""
    return (
        *(job.num_tasks, job.processes, job.cpus, job.memory_gb, job.drives, job.profile),
        *(job.gpu_model, job.gpu_memory_gb, job.single_machine, job.anti_affinity),
    )


class Kind:
    """Jobs that ask for the same; `job` is the first of them."""

    def __init__(
        self, job: JobGraph, layout: Layout, profile: NetworkProfile | None, *, disaggregate: bool
    ) -> None:
        self.job = job
        self.profile = profile or NEUTRAL
        self.suits: NDArray[np.bool_] = layout.suits(job)
        self.apart = job.anti_affinity and job.num_tasks > 1
        self.bound = job.single_machine or not disaggregate
        self.together = job.single_machine
        """Whether all its processes are one bundle."""
        self.own = self.together or self.apart
        """Whether bound GPUs have to be on the machine itself, not just in its pool."""
        self.spread = self.apart and job.processes > 1
        """Whether no two of its processes may share a machine."""
        self.bundles = tuple(self._bundles())
        most = [max(part) for part in zip(*((*b.needs, b.gpus) for b in self.bundles), strict=True)]
        self.largest = Bundle((most[0], most[1]), most[2], self.bound)
        self.needs = np.array([job.cpus or 0, megabytes(job.memory_gb or 0.0), job.drives], dtype=np.int64)

    def _bundles(self) -> Iterator[Bundle]:
        job = self.job
        parts = 1 if self.together else job.processes
        memory = megabytes((job.memory_gb or 0.0) / job.processes) * (job.processes // parts)
        cpus, gpus = _blocks(job.cpus or 0, parts), _blocks(job.num_tasks, parts, up=True)
        for own_cpus, own_gpus in zip(cpus, gpus, strict=True):
            yield Bundle((own_cpus, memory), own_gpus, self.bound)

    def shares(self, machines: list[int]) -> tuple[HostShare, ...]:
        """What its processes take on the machines of its bundles."""
        job = self.job
        where = machines * job.processes if self.together else machines
        memory = (job.memory_gb or 0.0) / job.processes
        cpus = _blocks(job.cpus or 0, job.processes)
        return tuple(HostShare(machine, own, memory) for machine, own in zip(where, cpus, strict=True))

    def never(self, cluster: Cluster, layout: Layout) -> Deferred | None:
        """Why such a job could not run even on the idle cluster; None where it may."""
        if self.job.num_tasks and (reason := never_fits(self.job, cluster.topology)):
            return reason
        return self._no_host(cluster.hosts.resources) or self._no_local_gpus(cluster.hosts, layout)

    def _no_host(self, machines: tuple[HostResources, ...]) -> Deferred | None:
        largest = _largest(machines)
        for bundle in self.bundles:
            if machines and not any(_holds(r, bundle) for r in machines):
                return Deferred(
                    f"never fits: a process of {bundle.needs[0]} CPUs and {bundle.needs[1]} MB, "
                    f"and the largest machine has {largest[0]} and {largest[1]}"
                )
        if machines and self.job.drives > sum(r.drives for r in machines):
            return Deferred(f"never fits: {self.job.drives} drives needed")
        return None

    def _no_local_gpus(self, hosts: Hosts, layout: Layout) -> Deferred | None:
        if any(map(self.torn, self.bundles)):
            return Deferred("never fits: anti_affinity with local GPUs needs a process for each task")
        local_to = np.arange(layout.num_machines) if self.own else hosts.pool_of()
        suitable = self.suits[layout.make_of]
        local = int(np.bincount(local_to[layout.machine_of[suitable]], minlength=1).max())
        most = max((bundle.gpus for bundle in self.bundles if bundle.bound), default=0)
        if most > local:
            return Deferred(f"never fits: {most} GPUs needed on one machine, the largest has {local} of them")
        return None

    def torn(self, bundle: Bundle) -> bool:
        """Whether its GPUs would have to be both local and on different machines."""
        return self.apart and bundle.bound and bundle.gpus > 1


def _holds(machine: HostResources, bundle: Bundle) -> bool:
    return machine.cpus >= bundle.needs[0] and int(machine.memory_gb * 1000 + 1e-6) >= bundle.needs[1]


def _largest(machines: tuple[HostResources, ...]) -> tuple[int, int]:
    cpus = max((r.cpus for r in machines), default=0)
    return cpus, int(max((r.memory_gb for r in machines), default=0.0) * 1000)


def _blocks(total: int, parts: int, *, up: bool = False) -> list[int]:
    """`total` in blocks as even as can be; up: as `JobGraph.processes` deals tasks out."""
    ends = [-(-i * total // parts) if up else i * total // parts for i in range(parts + 1)]
    return [end - start for start, end in pairwise(ends)]


def fitting(free: Ints, needs: Ints) -> Ints:
    """(m,) how many times `needs` fit into each row of `free`; 0 for rows below 0."""
    asked = needs > 0
    if not asked.any():
        return np.where((free >= 0).all(axis=1), np.int64(1) << 30, 0)
    times: Ints = (free[:, asked] // needs[asked]).min(axis=1)
    return np.maximum(times, 0)
