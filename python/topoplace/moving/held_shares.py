"""The CPUs and memory of a running job, which its processes keep when tasks move to other machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from topoplace.cluster.hosts import cpus_of, host_shares, megabytes, millicpus
from topoplace.jobs.groups import MACHINE
from topoplace.placement import HostShare

if TYPE_CHECKING:
    from topoplace.cluster.hosts import HostAllocation
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

_WHOLE_CPU: Final = 1000


class HeldShares:
    """What the processes of a running job hold of their machines, as the job itself divides it or as a host did.

    Processes of a host are of equally many tasks in order, such as pods, and each stays on one machine.
    """

    def __init__(
        self, job: JobGraph, gpus: Sequence[int], held: HostAllocation | None, topology: Topology
    ) -> None:
        """Store the arguments; ValueError for drives, remote GPUs, or a process on another machine than its tasks."""
        self._topology = topology
        self._own: tuple[HostShare, ...] = ()
        self.job = job
        """The job with requirements that suffice for the largest process."""
        if held is None:
            return
        if held.drives or held.remote:
            raise ValueError("repairs do not move drives or remote GPUs")
        if held.shares and held.shares != host_shares(job, gpus, topology):
            self._own = held.shares
            self.job = self._as_host(job, [int(topology.machine_of[gpu]) for gpu in gpus])

    @property
    def are_given(self) -> bool:
        """Return True if a host divided what the processes hold."""
        return bool(self._own)

    def of(self, job: JobGraph, gpus: Sequence[int]) -> tuple[HostShare, ...]:
        """Return what each process of the job holds if its tasks are on these GPUs."""
        if not self._own:
            return host_shares(job, gpus, self._topology)
        block = len(gpus) // len(self._own)
        machines = [int(self._topology.machine_of[gpu]) for gpu in gpus[::block]]
        return tuple(
            HostShare(machine, one.cpus, one.memory_gb)
            for machine, one in zip(machines, self._own, strict=True)
        )

    def _as_host(self, job: JobGraph, machines: Sequence[int]) -> JobGraph:
        """Return the job with the CPUs and memory of its largest process for each process, which stays together."""
        size = job.num_tasks
        block = self._tasks_of_each(machines)
        cpus = -(-max(millicpus(one.cpus) for one in self._own) // block)
        while cpus % _WHOLE_CPU and cpus * size % _WHOLE_CPU == 0:  # whole CPUs would be divided unevenly
            cpus += 1
        memory = -(-max(megabytes(one.memory_gb) for one in self._own) // block)
        found = job.with_(cpus=cpus_of(cpus * size) or None, memory_gb=memory * size / 1000 or None)
        return found.grouped(block, within=MACHINE) if block > 1 else found

    def _tasks_of_each(self, machines: Sequence[int]) -> int:
        """Return the number of tasks of each process. machines: of each task."""
        size, count = len(machines), len(self._own)
        block = size // count
        if block * count != size:
            raise ValueError(f"repairs do not move a job of {size} tasks in {count} processes of a host")
        for i, share in enumerate(self._own):
            if set(machines[i * block : (i + 1) * block]) != {share.machine}:
                raise ValueError(f"repairs do not move CPUs that are not with their GPUs: process {i}")
        return block
