"""How DRMaestro compares machines by the GPUs that a job would get there."""

from __future__ import annotations

from dataclasses import replace

import topoplace as tp


def machine(*memory_gb: float) -> tp.Topology:
    """Return a machine with a GPU of each of these sizes of memory."""
    plain = tp.Topology.from_links(len(memory_gb), [], 12.0, model="A100")
    gpus = tuple(replace(gpu, memory_gb=size) for gpu, size in zip(plain.gpus, memory_gb, strict=True))
    return replace(plain, gpus=gpus)


def test_the_largest_memory_of_the_gpus_counts() -> None:
    cluster = tp.Cluster(tp.Topology.cluster([machine(16.0, 80.0), machine(40.0, 40.0)], network=12.5))
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=16.0, single_machine=True)
    placement = tp.policies.get("drmaestro").place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [2, 3]


def test_links_count_where_just_enough_gpus_have_the_memory() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2, network=12.5))
    for gpu in (1, 3, 6, 7):  # of the first machine, a GPU of each socket is left
        cluster.drain(gpu)
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=8.0)
    placement = tp.policies.get("drmaestro", gpu_topology=True).place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [4, 5]
