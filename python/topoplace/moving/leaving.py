"""A running job that leaves its GPUs for a while, so that a search can give it others."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import WHOLE_GPU
from topoplace.moving.held_shares import HeldShares


def running(job_id: str, cluster: Cluster) -> tuple[JobGraph, tuple[int, ...], HeldShares]:
    """Return the graph, the GPUs and the host resources of a running job whose tasks can move.

    Raise AllocationError if no such job runs, and ValueError if its tasks cannot move.
    """
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    gpus = cluster.gpus_of(job_id)
    if not gpus:
        raise AllocationError(f"no job {job_id!r} with GPUs runs")
    job = cluster.jobs.get(job_id) or JobGraph.independent(len(gpus))
    with naming(f"job {job_id!r}"):
        if cluster.gpu_thousandths_of(job_id) != WHOLE_GPU or cluster.native.slices_of(job_id):
            raise ValueError("repairs do not move jobs that share GPUs")
        return job, gpus, HeldShares(job, gpus, cluster.hosts.held.get(job_id), cluster.topology)


@contextmanager
def naming(what: str) -> Generator[None]:
    """Put the name of what is wrong before the message of a ValueError."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None


def leave(job_id: str, cluster: Cluster, gpus: Iterable[int], gone: Iterable[int] = ()) -> None:
    """Release a job, take the GPUs that it lost out of service, and let it stay on its other ones.

    It may stay there even if these and their machines get no new jobs.
    """
    cluster.release(job_id)
    lost = list(gone)
    cluster.native.drain(lost)
    is_kept = np.zeros(cluster.topology.num_gpus, np.bool_)
    is_kept[list(gpus)] = True
    is_kept[list(lost)] = False
    kept: list[int] = np.flatnonzero(is_kept).tolist()
    machines: list[int] = np.flatnonzero(np.bincount(cluster.topology.machine_of[kept])).tolist()
    cluster.native.undrain(kept, machines)
    cluster.native.unhold(kept, machines)
