"""The MIG slices of a job on the GPUs that a policy chose for it, and the GPUs to reslice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace.mig import MigSlice, present, profiles_of_gpu, start_for

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph


def slices_for(
    job: JobGraph, gpus: Sequence[int], cluster: Cluster
) -> tuple[tuple[MigSlice, ...], tuple[int, ...]]:
    """Return the slice of each GPU, () for a job without a profile, and the GPUs to reslice, ascending.

    gpus: GPUs that each have room for the job.
    """
    native = cluster.native
    if job.mig is None:
        return (), tuple(sorted([gpu for gpu in gpus if native.slices(gpu)]))
    chosen: list[MigSlice] = []
    resliced: list[int] = []
    for gpu in gpus:
        profiles = profiles_of_gpu(cluster.topology.gpus[gpu])
        found = start_for(profiles[job.mig], profiles, present(native.slices(gpu)), may_reslice=True)
        assert found is not None
        chosen.append(MigSlice(job.mig, found.start))
        if found.reslices:
            resliced.append(gpu)
    return tuple(chosen), tuple(sorted(resliced))
