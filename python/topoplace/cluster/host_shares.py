"""The CPUs and host memory of a job: the number of tasks that a machine can host, and the share of each process.

The job's processes have equal shares. If the tasks of any process are on several machines, or the number of tasks is
not divisible by that of processes, the job has one process per task instead. Whole CPUs, or else thousandths of a CPU,
that do not divide evenly go to the first processes, so that the shares add up to the job's CPUs. Memory is counted in
whole MB, rounded up for each process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.hosts import cpus_of, megabytes, millicpus
from topoplace.placement import HostShare

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int64]


def needs_hosts(job: JobGraph) -> bool:
    """Return True if the job requires CPUs or host memory; 0 CPUs do not count."""
    return bool(job.cpus or job.memory_gb)


def shared_cpus(job: JobGraph) -> tuple[int, int]:
    """Return (units, unit): a job's CPUs as a number of units, and the thousandths of a CPU in a unit.

    Processes get whole units: whole CPUs, or thousandths of a CPU if the CPUs of the job are not whole.
    """
    cpus = job.cpus or 0
    return (cpus, 1000) if type(cpus) is int else (millicpus(cpus), 1)


def whole_job(job: JobGraph) -> tuple[int, int]:
    """Return the thousandths of CPUs and the MB that all processes of a job need together on one machine."""
    processes = _num_processes(job)
    return millicpus(job.cpus or 0), megabytes((job.memory_gb or 0.0) / processes) * processes


def tasks_hosted(job: JobGraph, free: Ints, *, at_best: bool) -> Ints:
    """Return (m,) the number of the job's tasks for which each machine has enough free CPUs and memory.

    free: (m, 2 or more) free thousandths of CPUs and MB of each machine; below 0 on a machine that accepts no
    processes. For less than the whole job, each task counts as one process, and tasks with more CPUs than others count
    first. The number may therefore be too small for other tasks of the job. at_best: True counts tasks with more CPUs
    last, so that the number is never too small.
    """
    size = job.num_tasks
    units, unit = shared_cpus(job)
    each, more = divmod(units, size)
    memory_each = megabytes((job.memory_gb or 0.0) / size)
    some = np.full(len(free), size - 1, dtype=np.int64)
    if each or more:
        free_units = free[:, 0] // unit
        few = free_units // (each + 1)
        many = (free_units - more) // each if each else np.full_like(few, size)
        small = np.maximum(free_units, 0) // each if each else np.full_like(few, size)
        large_first = np.where(few < more, few, np.maximum(many, more))
        some = np.minimum(some, small if at_best else large_first)
    if memory_each:
        some = np.minimum(some, free[:, 1] // memory_each)
    all_cpus, memory = whole_job(job)
    whole = (free[:, 0] >= all_cpus) & (free[:, 1] >= memory)
    return np.where(whole, size, np.maximum(some, 0))


def host_shares(job: JobGraph, gpus: Sequence[int], topology: Topology) -> tuple[HostShare, ...]:
    """Return the machine, CPUs and memory of each process of a job; () if the job needs neither CPUs nor memory.

    gpus: the GPU of each task; a process is on the machine of its GPUs. If the GPUs of any process are on several
    machines, the job has one process per task instead.
    """
    if not needs_hosts(job):
        return ()
    machines = [int(topology.machine_of[gpu]) for gpu in gpus]
    processes = _num_processes(job)
    block = len(machines) // processes
    if any(len(set(machines[at : at + block])) > 1 for at in range(0, len(machines), block)):
        processes, block = len(machines), 1
    return _equal_shares(job, machines[::block])


def shares_on(job: JobGraph, machine: int) -> tuple[HostShare, ...]:
    """Return the machine, CPUs and memory of each process of a job that runs on one machine, with or without GPUs."""
    return _equal_shares(job, [machine] * _num_processes(job))


def _equal_shares(job: JobGraph, machines: Sequence[int]) -> tuple[HostShare, ...]:
    """Divide a job's CPUs and memory among its processes. machines: the machine of each process."""
    units, unit = shared_cpus(job)
    each, more = divmod(units, len(machines))
    memory = (job.memory_gb or 0.0) / len(machines)
    return tuple(
        HostShare(machine, cpus_of((each + (i < more)) * unit), memory) for i, machine in enumerate(machines)
    )


def _num_processes(job: JobGraph) -> int:
    return job.num_tasks if job.num_tasks % job.processes else job.processes
