"""The bundles of a job: each is a process with its CPUs and memory on one machine, and with the GPUs it drives.

All processes of a `single_machine` job form one bundle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import cpus_of, megabytes, millicpus, shared_cpus
from topoplace.engine.admission import never, why_never, why_no_machine
from topoplace.jobs.network_profile import NEUTRAL, NetworkProfile
from topoplace.placement import HostShare
from topoplace.policies.drmaestro.free_resources import Ints, TopologyColumns

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Refusal
    from topoplace.policies.drmaestro.gpu_topology import GpuTopology


@dataclass(frozen=True, slots=True)
class Bundle:
    """A process with its CPUs, memory and GPUs; the process, CPUs and memory are on one machine.

    For a `single_machine` job, it stands for all processes of the job.
    """

    needs: tuple[int, int]
    """Thousandths of CPUs, and MB of memory."""
    gpus: int
    """Number of GPUs that the process drives."""
    gpus_local: bool
    """True if these GPUs must be local: on the process's machine or, unless excluded, in its pool."""


class JobBundles:
    """The bundles (processes with their CPUs, memory and GPUs) and constraints of a job.

    All jobs with equal resource needs and equal network profile share one object.
    """

    def __init__(
        self,
        job: JobGraph,
        cluster: Cluster,
        profile: NetworkProfile | None,
        *,
        disaggregate: bool,
        gpu_topology: GpuTopology | None = None,
    ) -> None:
        """Compute the bundles of a job. profile: None for a job without network traffic. gpu_topology: how near the
        GPUs of each machine are to each other; None if that does not matter to the job.
        """
        self.job = job
        """The first job with these needs."""
        self._topology, self._hosts = cluster.topology, cluster.hosts
        self.profile = profile or NEUTRAL
        self.anti_affine = job.anti_affinity and job.num_tasks > 1
        """True if no two tasks of the job may share a machine."""
        self.processes = job.num_tasks if self.anti_affine else job.processes
        """Number of processes: one for each task of an anti-affine job."""
        self.gpus_local = job.single_machine or self.anti_affine or not disaggregate
        """True if the job's GPUs must be local to its processes."""
        self.single_bundle = job.single_machine
        """True if all processes of the job form one bundle."""
        self.own_machine_only = self.single_bundle or self.anti_affine
        """True if local GPUs must be on the process's machine; GPUs of its pool do not count as local then."""
        self.bundles = tuple(self._bundles())
        most = [max(part) for part in zip(*((*b.needs, b.gpus) for b in self.bundles), strict=True)]
        self.largest = Bundle((most[0], most[1]), most[2], self.gpus_local)
        self.gpu_topology = gpu_topology if len(self.bundles) == 1 else None
        """How near GPUs of each machine are to each other; None if that is not looked at."""
        self.needs = np.array(
            [millicpus(job.cpus or 0), megabytes(job.memory_gb or 0.0), job.drives], dtype=np.int64
        )

    @cached_property
    def suits(self) -> NDArray[np.bool_]:
        """Return (makes,) True for each GPU make (model and memory) that meets the job's requirements."""
        return self._columns.suits(self.job)

    @cached_property
    def memory_rank(self) -> Ints:
        """Return (makes,) the rank of the make's GPU memory, smallest 0; all 0 if the job does not require memory."""
        ranks = self._columns.memory_rank
        return ranks if self.job.gpu_memory_gb else np.zeros_like(ranks)

    @cached_property
    def refusal(self) -> Refusal | None:
        """Return why a job with these needs cannot run even on the idle cluster; None if no reason is known."""
        machines = self._hosts.resources
        if self.job.num_tasks and (reason := why_never(self.job, self._topology)):
            return reason
        if reason := why_no_machine((bundle.needs for bundle in self.bundles), machines):
            return reason
        drives = sum(machine.drives for machine in machines)
        if machines and self.job.drives > drives:
            return never(f"needs {self.job.drives} drives, the machines have {drives}")
        return self._why_no_local_gpus()

    @property
    def _columns(self) -> TopologyColumns:
        return self._topology.derived(TopologyColumns)

    def _bundles(self) -> Iterator[Bundle]:
        job = self.job
        parts = 1 if self.single_bundle else self.processes
        memory = megabytes((job.memory_gb or 0.0) / self.processes) * (self.processes // parts)
        cpus, gpus = _cpus(job, parts), _blocks(job.num_tasks, parts, up=True)
        for own_cpus, own_gpus in zip(cpus, gpus, strict=True):
            yield Bundle((own_cpus, memory), own_gpus, self.gpus_local)

    def host_shares(self, machines: list[int]) -> tuple[HostShare, ...]:
        """Return the machine, CPUs and memory of each process. machines: the machine of each bundle of processes."""
        job = self.job
        where = machines * self.processes if self.single_bundle else machines
        memory = (job.memory_gb or 0.0) / self.processes
        cpus = map(cpus_of, _cpus(job, self.processes))
        return tuple(HostShare(machine, own, memory) for machine, own in zip(where, cpus, strict=True))

    def _why_no_local_gpus(self) -> Refusal | None:
        columns = self._columns
        local_to = np.arange(columns.num_machines) if self.own_machine_only else self._hosts.pool_of()
        suitable = self.suits[columns.make_of]
        local = int(np.bincount(local_to[columns.machine_of[suitable]], minlength=1).max())
        most = max((bundle.gpus for bundle in self.bundles if bundle.gpus_local), default=0)
        if most > local:
            return never(f"needs {most} GPUs on one machine, the largest has {local} of them")
        return None


def _cpus(job: JobGraph, parts: int) -> list[int]:
    """Divide a job's CPUs into `parts`, and return the thousandths of CPUs of each."""
    units, unit = shared_cpus(job)
    return [part * unit for part in _blocks(units, parts)]


def _blocks(total: int, parts: int, *, up: bool = False) -> list[int]:
    """Divide `total` into `parts` integers that differ by at most 1, and return them.

    up: round block ends up, as `JobGraph.processes` does for tasks, so that the first block is among the larger ones.
    """
    ends = [-(-i * total // parts) if up else i * total // parts for i in range(parts + 1)]
    return [end - start for start, end in pairwise(ends)]
