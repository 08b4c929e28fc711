"""`place` with `previous`: tasks stay where that costs nothing."""

from __future__ import annotations

from random import Random

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp

RACKS = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 6, racks=2)
JOBS = {
    "ring": tp.JobGraph.ring(4),
    "independent": tp.JobGraph.independent(6),
    "groups": tp.JobGraph.parallel(tensor=4, data=3).grouped("tensor", within="machine"),
}
SLACK = 0.01


def seconds(job: tp.JobGraph, placement: tp.Placement, cluster: tp.Cluster) -> float:
    return tp.communication_time(job, placement.gpus, cluster.topology, cluster=cluster).seconds


@given(st.sampled_from(sorted(JOBS)), st.randoms(use_true_random=False))
def test_a_requeued_job_moves_only_for_a_shorter_time(name: str, random: Random) -> None:
    job, cluster = JOBS[name], tp.Cluster(RACKS)
    for i, gpu in enumerate(random.sample(range(48), random.randrange(20))):
        cluster.allocate(f"before{i}", [gpu])
    before = tp.place(job, cluster)
    if before is None:
        return
    for i, gpu in enumerate(random.sample(cluster.free_gpus(), random.randrange(10))):
        cluster.allocate(f"after{i}", [gpu])
    for job_id in random.sample(sorted(cluster.allocations), random.randrange(len(cluster.allocations) + 1)):
        cluster.release(job_id)
    after, fresh = tp.place(job, cluster, previous=before), tp.place(job, cluster)
    assert (after is None) == (fresh is None)
    if after is None or fresh is None:
        return
    cluster.allocate("job", after)
    cluster.release("job")
    least = seconds(job, fresh, cluster) * (1 + SLACK)
    assert seconds(job, after, cluster) <= least
    if set(before.gpus) <= set(cluster.free_gpus()) and seconds(job, before, cluster) <= least:
        assert after.gpus == before.gpus


def test_a_job_leaves_the_machine_that_is_gone_alone() -> None:
    job = JOBS["groups"]
    before = tp.place(job, tp.Cluster(RACKS))
    assert before is not None
    gone = RACKS.gpus[before.gpus[0]].machine
    left = [name for name in RACKS.machine_names if name != gone]
    fewer = tp.Topology.cluster({name: RACKS.machine(name) for name in left})
    after = tp.place(job, tp.Cluster(fewer), previous=before)
    assert after is not None
    names = [(RACKS.gpus[gpu].machine, RACKS.local_index[gpu]) for gpu in before.gpus]
    now = [(fewer.gpus[gpu].machine, fewer.local_index[gpu]) for gpu in after.gpus]
    assert all(a == b for a, b in zip(names, now, strict=True) if a[0] != gone)


def test_wrong_former_places_are_named() -> None:
    before = tp.place(JOBS["ring"], tp.Cluster(RACKS))
    assert before is not None
    with pytest.raises(ValueError, match="previous: 4 GPUs for a job of 6 tasks"):
        tp.place(JOBS["independent"], tp.Cluster(RACKS), previous=before)
    with pytest.raises(ValueError, match="previous: repairs do not honour max_machines"):
        tp.place(JOBS["ring"].with_(max_machines=2), tp.Cluster(RACKS), previous=before)
    with pytest.raises(ValueError, match=r"previous = \(0, 1\)"):
        tp.place(JOBS["ring"], tp.Cluster(RACKS), previous=(0, 1))  # type: ignore[arg-type]


def test_a_new_group_goes_beside_the_running_job() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.allocate("gang", range(32, 36))
    cluster.allocate("other", [0, 1, 2, 3, 8, 9, 10, 11])
    for beside, machines in ((tp.JobGraph.ring(2), {4}), (tp.JobGraph.independent(6), {4, 5})):
        found = tp.place(beside, cluster, beside="gang")
        assert found is not None
        assert set(RACKS.machine_of[list(found.gpus)].tolist()) <= machines
    ring = tp.place(tp.JobGraph.ring(6), cluster, beside="gang")
    assert ring is not None
    assert len(set(RACKS.machine_of[list(ring.gpus)].tolist())) == 1, "not split for being near"


def test_wrong_neighbours_are_named() -> None:
    cluster, job = tp.Cluster(RACKS), JOBS["ring"]
    with pytest.raises(ValueError, match="beside = 'gang': no job of this id with GPUs runs"):
        tp.place(job, cluster, beside="gang")
    with pytest.raises(ValueError, match="cluster = None is not a Cluster"):
        tp.place(job, None, beside="gang")  # type: ignore[arg-type]
    placement = tp.place(job, cluster)
    cluster.allocate("gang", range(32, 36))
    with pytest.raises(ValueError, match="previous and beside exclude each other"):
        tp.place(job, cluster, previous=placement, beside="gang")
