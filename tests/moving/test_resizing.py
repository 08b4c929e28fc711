"""`resize`: tasks stay where they are, and whole domains are given back."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.errors import AllocationError

RACKS = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 6, racks=2)


def parallel(data: int, pipeline: int = 2) -> tp.JobGraph:
    job = tp.JobGraph.parallel(tensor=4, pipeline=pipeline, data=data)
    return job.grouped("tensor", within="machine")


def started(job: tp.JobGraph, busy: tuple[int, ...] = ()) -> tp.Cluster:
    cluster = tp.Cluster(RACKS)
    if busy:
        cluster.allocate("other", busy)
    placement = tp.place(job, cluster)
    assert placement is not None
    cluster.allocate("gang", placement)
    return cluster


@given(st.integers(1, 6), st.integers(1, 6), st.sets(st.integers(0, 47), max_size=4))
def test_each_rank_stays_with_its_coordinates(before: int, after: int, busy: set[int]) -> None:
    try:
        cluster = started(parallel(before), tuple(sorted(busy)))
    except AssertionError:
        return
    held = cluster.gpus_of("gang")
    plan = tp.resize("gang", cluster, parallel(after))
    if plan is None:
        return
    assert plan.placement is not None
    assert not plan.replaced
    kept = set(held) & set(plan.placement.gpus)
    assert len(kept) == 8 * min(before, after)
    was = {gpu: coordinates(task, before) for task, gpu in enumerate(held)}
    now = {gpu: coordinates(task, after) for task, gpu in enumerate(plan.placement.gpus)}
    assert all(was[gpu][:2] == now[gpu][:2] for gpu in kept)
    if after >= before:
        assert all(was[gpu] == now[gpu] for gpu in kept)
    assert set(plan.given_back) == set(held) - kept
    assert set(plan.added.values()) == set(plan.placement.gpus) - kept
    plan.carry_out(cluster)
    assert cluster.gpus_of("gang") == plan.placement.gpus
    assert cluster.jobs["gang"] == parallel(after)


def coordinates(rank: int, data: int) -> tuple[int, int, int]:
    """Tensor, pipeline and data coordinate of a rank, as Megatron-LM counts."""
    return rank % 4, rank // 4 // data, rank // 4 % data


def test_a_job_that_shrinks_gives_back_the_domain_that_is_idle_then() -> None:
    cluster = tp.Cluster(RACKS)
    gpus = (*range(32, 40), *range(8))  # a machine of rack 2 whose other one is idle, and one of rack 0
    cluster.allocate("gang", tp.Placement(gpus, topology=RACKS, job=tp.JobGraph.ring(16)))
    cluster.allocate("other", [8])
    plan = tp.resize("gang", cluster, tp.JobGraph.ring(8))
    assert plan is not None
    assert plan.given_back == tuple(range(32, 40))
    assert plan.placement is not None
    assert plan.placement.gpus == tuple(range(8))


def test_what_is_left_of_a_domain_goes_first() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.allocate("gang", tp.Placement((0, 1, 2, 3, 8), topology=RACKS, job=tp.JobGraph.independent(5)))
    cluster.allocate("other", [9])
    plan = tp.resize("gang", cluster, tp.JobGraph.independent(4))
    assert plan is not None
    assert plan.given_back == (8,)


def test_gpus_out_of_service_are_given_back_first() -> None:
    broken = RACKS.with_unhealthy([9])
    cluster = tp.Cluster(broken)
    cluster.allocate("other", [16])
    cluster.record("gang", tp.Placement(tuple(range(16)), topology=broken), tp.JobGraph.ring(16))
    for size, given_back in ((15, [9]), (8, list(range(8, 16)))):
        plan = tp.resize("gang", cluster, tp.JobGraph.ring(size))
        assert plan is not None
        assert list(plan.given_back) == given_back
        assert not plan.replaced


@given(st.integers(1, 16), st.integers(1, 24), st.sampled_from(["ring", "clique", "star"]))
def test_a_plan_that_compares_less_moves_no_more(before: int, after: int, pattern: str) -> None:
    make = getattr(tp.JobGraph, pattern)
    cluster = started(make(before), (3, 17))
    plan = tp.resize("gang", cluster, make(after), further=False)
    assert plan is not None
    assert plan.placement is not None
    assert not plan.replaced
    assert len(plan.added) == max(0, after - before)
    assert plan.time == pytest.approx(plan.placement.time)
    plan.carry_out(cluster)
    assert len(cluster.gpus_of("gang")) == after


def test_a_job_with_cpus_gets_those_of_the_new_tasks() -> None:
    cluster = tp.Cluster(RACKS, tp.HostResources(cpus=40, memory_gb=512))
    job = tp.JobGraph.ring(8).with_(cpus=16)
    placement = tp.place(job, cluster)
    assert placement is not None
    cluster.allocate("gang", placement)
    plan = tp.resize("gang", cluster, tp.JobGraph.ring(12).with_(cpus=24))
    assert plan is not None
    plan.carry_out(cluster)
    assert sum(share.cpus for share in cluster.hosts.held["gang"].shares) == 24


def test_a_job_without_room_cannot_grow() -> None:
    cluster = started(tp.JobGraph.ring(40))
    assert tp.resize("gang", cluster, tp.JobGraph.ring(49)) is None
    assert cluster.gpus_of("gang")


def test_wrong_arguments_are_named() -> None:
    cluster = started(tp.JobGraph.ring(4))
    with pytest.raises(AllocationError, match="no job 'none' with GPUs runs"):
        tp.resize("none", cluster, tp.JobGraph.ring(4))
    with pytest.raises(ValueError, match="job = 8 is not a JobGraph"):
        tp.resize("gang", cluster, 8)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="further = 1"):
        tp.resize("gang", cluster, tp.JobGraph.ring(4), further=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="job has no tasks: release the job instead"):
        tp.resize("gang", cluster, tp.JobGraph.without_gpus(cpus=1))
    with pytest.raises(ValueError, match="job: repairs do not honour max_machines"):
        tp.resize("gang", cluster, tp.JobGraph.ring(4).with_(max_machines=2))
