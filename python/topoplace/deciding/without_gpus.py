"""Placement of jobs that need no GPU, on machines and in domains that other jobs already use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.cluster.hosts import megabytes, millicpus, shares_on
from topoplace.objectives.domains import in_whole_domains
from topoplace.placement import Placement

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.machine_state import ClusterView
    from topoplace.jobs.job_graph import JobGraph


def placed(job: JobGraph, view: ClusterView) -> Placement | None:
    """Return a job without GPUs on the first of its `ranked` machines; None if no machine has room."""
    machines = ranked(job, view)
    if not machines:
        return None
    hosts = shares_on(job, machines[0])
    return Placement((), scores={}, topology=view.cluster.topology, job=job, hosts=hosts, optimal=True)


def ranked(job: JobGraph, view: ClusterView) -> list[int]:
    """Return the machines with room for a job without GPUs; first the one on which it breaks the fewest whole domains.

    A machine is whole if all of its GPUs are free and no job has its CPUs or memory; a domain, if all of its machines
    are. Domains count before machines, outer ones first. Ties go to the fewest free GPUs, the fewest remaining CPUs,
    and the lowest number.
    """
    hosts, topology = view.cluster.hosts, view.cluster.topology
    free = hosts.free[:, :2]
    needs = np.array([millicpus(job.cpus or 0), megabytes(job.memory_gb or 0.0)])
    has_room = np.all(free >= needs, axis=1)
    has_room[view.cluster.native.withdrawn_machines()] = False
    machines = np.flatnonzero(has_room)
    sizes = np.bincount(topology.machine_of, minlength=len(free))
    free_gpus = np.bincount(topology.machine_of[list(view.cluster.free_gpus())], minlength=len(free))
    whole = (
        (free_gpus == sizes)
        & (sizes > 0)
        & (free == view.table((ranked, "idle"), lambda: _idle(view))).all(axis=1)
    )
    broken = [in_whole_domains(level.codes, whole) for level in reversed(topology.levels)]
    keys = [*broken, whole, free_gpus, free[:, 0]]
    order = np.lexsort([key[machines] for key in reversed(keys)])
    return list(map(int, machines[order]))


def _idle(view: ClusterView) -> NDArray[np.int64]:
    """Return the CPUs and memory of each machine without jobs, as `Hosts.free` has them."""
    each = [(millicpus(one.cpus), megabytes(one.memory_gb)) for one in view.cluster.hosts.resources]
    return np.array(each, np.int64)
