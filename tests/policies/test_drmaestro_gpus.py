"""How DRMaestro compares machines by the GPUs that a job would get there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.machine_state import ClusterView
from topoplace.objectives import communication_cost
from topoplace.policies.drmaestro.beside import BesideProcess
from topoplace.policies.drmaestro.gpu_topology import GpuTopology
from topoplace.policies.drmaestro.policy import free_columns


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


@pytest.mark.parametrize(("disaggregate", "gpus"), [(False, (1, 0)), (True, (0, 1))])
@pytest.mark.parametrize("by_flow", [False, True])
def test_tasks_get_gpus_in_one_order_with_and_without_flows(
    disaggregate: bool, gpus: tuple[int, ...], by_flow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Local GPUs come by memory; where they might be remote, phase 2 hands them out by number."""
    if by_flow:
        monkeypatch.setattr(BesideProcess, "decides", lambda *_: False)
    cluster = tp.Cluster(tp.Topology.cluster([machine(24.0, 12.0, 24.0)]))
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=8.0, processes=1)
    placement = tp.policies.get("drmaestro", disaggregate=disaggregate).place(job, cluster)
    assert placement is not None
    assert placement.gpus == gpus


def test_links_count_where_just_enough_gpus_have_the_memory() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("minsky"), count=2, network=12.5))
    for gpu in (1, 3, 6, 7):  # of the first machine, a GPU of each socket is left
        cluster.drain(gpu)
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=8.0)
    placement = tp.policies.get("drmaestro", gpu_topology=True).place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [4, 5]


def test_a_near_gpu_of_more_memory_than_needed_does_not_count() -> None:
    """On the first machine, only GPUs of 12 and 24 GB share a socket; the job gets the two of 12 GB."""
    machines = [
        replace(one, gpus=tuple(replace(gpu, socket=i // 2) for i, gpu in enumerate(one.gpus)))
        for one in (machine(12.0, 24.0, 12.0), machine(12.0, 12.0))
    ]
    cluster = tp.Cluster(tp.Topology.cluster(machines, network=12.5))
    job = tp.JobGraph.ring(2).with_(gpu_memory_gb=8.0)
    placement = tp.policies.get("drmaestro", gpu_topology=True).place(job, cluster)
    assert placement is not None
    assert sorted(placement.gpus) == [3, 4]


# ---- how near GPUs are, by all mappings --------------------------------------------------------------------------


@st.composite
def linked_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Draw machines with GPUs of two sizes of memory, linked or on sockets, some of which are busy."""
    machines: list[tp.Topology] = []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(2, 4))
        links = [(u, v, 50.0) for u, v in combinations(range(size), 2) if draw(st.booleans())]
        plain = tp.Topology.from_links(size, links, 12.0, sockets=[gpu // 2 for gpu in range(size)])
        gpus = (replace(gpu, memory_gb=draw(st.sampled_from([12.0, 24.0]))) for gpu in plain.gpus)
        machines.append(replace(plain, gpus=tuple(gpus)))
    cluster = tp.Cluster(tp.Topology.cluster(machines, network=12.5))
    if busy := draw(st.sets(st.integers(0, cluster.topology.num_gpus - 1), max_size=4)):
        cluster.allocate("busy", sorted(busy))
    return cluster


def least_cost(job: tp.JobGraph, gpus: Iterable[int], topology: tp.Topology) -> float:
    return min(communication_cost(job, one, topology) for one in permutations(gpus, job.num_tasks))


@given(
    linked_clusters(),
    st.sampled_from([tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.chain]),
    st.integers(2, 3),
    st.sampled_from([None, 8.0, 16.0]),
)
def test_how_far_apart_the_gpus_of_each_machine_are(
    cluster: tp.Cluster, pattern: object, size: int, gpu_memory_gb: float | None
) -> None:
    """0 for the least cost of the job on any idle machine, 1 for the most; only the smallest memory is looked at."""
    topology, job = cluster.topology, pattern(size).with_(gpu_memory_gb=gpu_memory_gb)  # type: ignore[operator]
    view = cluster.view(ClusterView)
    near, free = GpuTopology(view.request(job), topology), free_columns(view).free()
    assert GpuTopology.matters(view.request(job), topology)
    suitable = {
        name: [gpu for gpu in gpus if topology.gpus[gpu].memory_gb >= (gpu_memory_gb or 0.0)]
        for name, gpus in topology.gpus_of.items()
    }
    every = [
        communication_cost(job, gpus, topology)
        for own in suitable.values()
        for gpus in permutations(own, job.num_tasks)
    ]
    for machine, own in enumerate(suitable.values()):
        here = [gpu for gpu in own if gpu in cluster.free_gpus()]
        memory = sorted(topology.gpus[gpu].memory_gb or 0.0 for gpu in here)
        if len(here) < size:
            assert near.shares(free)[machine] == 0.0
            continue
        most = memory[size - 1] if gpu_memory_gb else memory[-1]
        cost = least_cost(
            job, [gpu for gpu in here if (topology.gpus[gpu].memory_gb or 0.0) <= most], topology
        )
        span = max(every) - min(every)
        share = (cost - min(every)) / span if span else 0.0
        assert near.shares(free)[machine] == pytest.approx(share)
        for number, make in enumerate(free.columns.makes):
            alike = [gpu for gpu in here if topology.gpus[gpu].memory_gb == make[1]]
            if len(alike) >= size:
                chosen = near.gpus(machine * len(free.columns.makes) + number, free)
                assert set(chosen) <= set(alike)
                assert communication_cost(job, chosen, topology) == least_cost(job, alike, topology)


def test_where_links_do_not_matter() -> None:
    small = tp.Topology.cluster(tp.Topology.from_links(4, [(0, 1, 50.0)], 12.0), count=2)
    fixed = replace(tp.machines.get("minsky"), partitions=((0, 1), (2, 3)))
    most, large = (tp.Topology.from_links(size, [(0, 1, 50.0)], 12.0) for size in (63, 64))
    ring = tp.JobGraph.ring(2)
    for topology, job, matters in (
        (small, ring, True),
        (small, tp.JobGraph.ring(1), False),
        (small, tp.JobGraph.independent(2), False),
        (small, ring.with_(anti_affinity=True), False),
        (fixed, ring, False),
        (most, ring, True),
        (large, ring, False),
    ):
        view = tp.Cluster(topology).view(ClusterView)
        assert GpuTopology.matters(view.request(job), topology) == matters
        if matters:
            near = GpuTopology(view.request(job), topology)
            assert near.shares(free_columns(view).free()).tolist() == [0.0] * topology.num_machines


def test_remote_gpus_go_to_the_tasks_in_ascending_order() -> None:
    none, some = tp.HostResources(cpus=0, memory_gb=0.0), tp.HostResources(cpus=8, memory_gb=8.0)
    topology = tp.Topology.cluster(tp.machines.get("minsky"), count=3, network=12.5)
    cluster = tp.Cluster(topology, [none, some, none])
    for gpu in set(range(topology.num_gpus)) - {1, 8}:
        cluster.drain(gpu)
    placement = tp.policies.get("drmaestro").place(
        tp.JobGraph.independent(2).with_(cpus=1, processes=1), cluster
    )
    assert placement is not None
    assert (placement.gpus, placement.remote) == ((1, 8), (1, 8))
