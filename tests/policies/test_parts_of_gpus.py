"""Jobs that take shares or MIG slices of GPUs, under every policy that decides by the engine's admission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import for_each_policy
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.plan import QueuedJob
from topoplace.engine.policy import SearchPolicy
from topoplace.testing.placements import check_placement
from topoplace_lab.simulate import Discipline, Workload, simulate

NAMES = tuple(
    name for name in tp.policies.names() if isinstance(tp.policies.get(name), MachinePolicy | SearchPolicy)
)
OTHERS = tuple(name for name in tp.policies.names() if name not in NAMES)
RESLICING = tuple(name for name in NAMES if isinstance(tp.policies.get(name), MachinePolicy))
PROFILES = ("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "7g.40gb")


def machine(model: str | None = "A100") -> tp.Topology:
    """Return a machine of three GPUs that are joined by NVLink, without MIG if `model` is None."""
    known = tp.Topology.from_links(3, [(0, 1, 50.0), (1, 2, 50.0), (0, 2, 25.0)], 12.0)
    return replace(known, gpus=tuple([replace(gpu, model=model, memory_gb=40.0) for gpu in known.gpus]))


ALONE = machine()
SEVERAL = tp.Topology.cluster([machine(), machine(), machine(None)], racks=1)


@st.composite
def divided_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Generate clusters with whole, shared, sliced and drained GPUs; jobs hold some slices, also of drained GPUs."""
    cluster = tp.Cluster(draw(st.sampled_from([ALONE, SEVERAL])))
    for gpu in range(cluster.topology.num_gpus):
        match draw(st.sampled_from(["free", "whole", "share", "slices", "slices"])):
            case "whole":
                cluster.allocate(f"job-{gpu}", [gpu])
            case "share":
                share = draw(st.sampled_from([0.2, 0.5, 0.8]))
                cluster.allocate(f"job-{gpu}", [gpu], tp.JobGraph.independent(1).with_(gpu_fraction=share))
            case "slices" if cluster.topology.gpus[gpu].model:
                slices = draw(st.lists(st.sampled_from(PROFILES[:4]), min_size=1, max_size=2))
                cluster.slice_gpu(gpu, slices)
                if draw(st.booleans()):
                    graph = tp.JobGraph.independent(1).with_(mig=slices[0])
                    cluster.allocate(f"job-{gpu}", [gpu], graph)
            case _:
                pass
        if draw(st.integers(0, 4)) == 4:
            cluster.drain(gpu)
    return cluster


def jobs() -> st.SearchStrategy[tp.JobGraph]:
    """Generate independent tasks that take shares, slices or whole GPUs."""
    parts = st.sampled_from(
        [{"gpu_fraction": 0.3}, {"gpu_fraction": 0.6}, *({"mig": name} for name in PROFILES), {}]
    )
    one_machine = st.sampled_from([{}, {"single_machine": True}])
    return st.builds(
        lambda size, part, where: tp.JobGraph.independent(size).with_(**part, **where),
        st.integers(1, 4),
        parts,
        one_machine,
    )


def can_hold(job: tp.JobGraph, gpu: int, cluster: tp.Cluster, *, resliced: bool) -> bool:
    """Return whether a task of the job can be allocated on the GPU, by attempts at every start of a slice."""
    one = tp.JobGraph.independent(1).with_(gpu_fraction=job.gpu_fraction, mig=job.mig)
    places: Sequence[Any] = [()] if job.mig is None else [((job.mig, start),) for start in range(8)]
    for slices in places:
        with cluster.what_if():
            try:
                placement = tp.Placement(
                    (gpu,),
                    topology=cluster.topology,
                    job=one,
                    slices=slices,
                    resliced=(gpu,) if resliced else (),
                )
                cluster.allocate("attempt", placement)
            except tp.AllocationError:
                continue
            return True
    return False


def possible(job: tp.JobGraph, cluster: tp.Cluster, *, resliced: bool = False) -> bool:
    able = [gpu for gpu in range(cluster.topology.num_gpus) if can_hold(job, gpu, cluster, resliced=resliced)]
    machine_of = cluster.topology.machine_of
    return any(
        not job.single_machine or len({int(machine_of[gpu]) for gpu in gpus}) == 1
        for gpus in combinations(able, job.num_tasks)
    )


@pytest.mark.parametrize("name", NAMES)
@for_each_policy()
@given(cluster=divided_clusters(), job=jobs())
def test_a_job_gets_a_place_if_and_only_if_there_is_one(
    name: str, cluster: tp.Cluster, job: tp.JobGraph
) -> None:
    policy, before = tp.policies.get(name), cluster.snapshot()
    placement = policy.place(job, cluster)
    assert (placement is not None) == possible(job, cluster)
    plan = policy.plan([QueuedJob("new", job)], cluster, 0.0)
    assert cluster.snapshot() == before
    if placement is None:
        assert not plan.start
        assert policy.explain(job, cluster).refusal is not None
        return
    check_placement(placement, job, cluster)
    assert placement.resliced == ()
    assert dict(plan.start)["new"] == placement
    cluster.allocate("new", placement)


@pytest.mark.parametrize("name", RESLICING)
@for_each_policy()
@given(cluster=divided_clusters(), job=jobs())
def test_a_policy_that_may_slices_gpus_again_where_it_must(
    name: str, cluster: tp.Cluster, job: tp.JobGraph
) -> None:
    plain = tp.policies.get(name)
    policy = plain.with_reslicing()
    placement = policy.place(job, cluster)
    assert (placement is not None) == (possible(job, cluster, resliced=True) or possible(job, cluster))
    if placement is None:
        return
    without = plain.place(job, cluster)
    assert without is None or placement == without
    assert policy.explain(job, cluster, top=1).candidates == (placement,)
    check_placement(placement, job, cluster)
    assert dict(policy.plan([QueuedJob("new", job)], cluster, 0.0).start)["new"] == placement
    cluster.allocate("new", placement)
    cluster.release("new")
    assert not plain.may_reslice


@pytest.mark.parametrize("name", RESLICING)
@given(cluster=divided_clusters(), mig=st.sampled_from(PROFILES), num_tasks=st.integers(1, 2))
def test_no_whole_gpu_is_cut_where_those_that_are_cut_have_room(
    name: str, cluster: tp.Cluster, mig: str, num_tasks: int
) -> None:
    job = tp.JobGraph.independent(num_tasks).with_(mig=mig)
    cut = set(cluster.sliced_gpus)
    have_room = [gpu for gpu in sorted(cut) if can_hold(job, gpu, cluster, resliced=True)]
    have_room += [
        gpu for gpu in sorted(cut.difference(have_room)) if can_hold(job, gpu, cluster, resliced=False)
    ]
    placement = tp.policies.get(name).with_reslicing().place(job, cluster)
    if len(have_room) >= num_tasks:
        assert placement is not None
        assert cut.issuperset(placement.gpus)


@pytest.mark.parametrize("name", NAMES)
def test_the_reason_says_what_would_have_to_be_resliced(name: str) -> None:
    policy, cluster = tp.policies.get(name), tp.Cluster(SEVERAL)
    job = tp.JobGraph.independent(1).with_(mig="2g.10gb")
    refusal = policy.explain(job, cluster).refusal
    assert refusal is not None
    assert not refusal.permanent
    assert refusal.reason == (
        "cannot start now: needs a MIG slice 2g.10gb of 1 GPU, 0 are free; "
        "6 more are free if resliced, as a policy with_reslicing() may, or --reslice"
    )
    cluster.slice_gpu(4, ["7g.40gb"])
    refusal = policy.explain(tp.JobGraph.independent(9), cluster).refusal
    assert refusal is not None
    assert "8 are free; 1 more is free if resliced" in refusal.reason
    never = policy.explain(job.with_(mig="1g.12gb"), cluster).refusal
    assert never is not None
    assert never.permanent


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("part", [{"gpu_fraction": 0.5}, {"mig": "1g.5gb"}])
def test_other_policies_refuse_parts_by_name(name: str, part: dict[str, Any]) -> None:
    (field,) = part
    with pytest.raises(ValueError, match=rf"^{field} = .* cannot be honoured: .* gives whole GPUs only$"):
        tp.policies.get(name).place(tp.JobGraph.independent(1).with_(**part), tp.Cluster(ALONE))


@pytest.mark.parametrize("name", RESLICING)
def test_slices_are_cut_in_simulations_and_none_is_lost(name: str, tmp_path: Path) -> None:
    profiles = ["1g.5gb", "3g.20gb", "2g.10gb", "7g.40gb", "1g.10gb"] * 6
    slices = [tp.JobGraph.independent(1).with_(mig=profile) for profile in profiles]
    whole = [tp.JobGraph.independent(3), tp.JobGraph.independent(1).with_(gpu_fraction=0.4)] * 3
    queue = [*slices[:15], *whole, *slices[15:]]
    workload = Workload(queue, [0.0] * len(queue), [10.0] * len(queue))
    result = simulate(ALONE, workload, tp.policies.get(name).with_reslicing())
    assert not any(record.rejected for record in result.records)
    result.save(tmp_path / "result.csv")
    assert tp.simulate.Result.load(tmp_path / "result.csv") == result
    assert all(
        bool(one.placement and one.placement.slices) == (one.job.mig is not None) for one in result.records
    )
    for moment in {record.start for record in result.records}:
        running = [r for r in result.records if r.start <= moment < r.end]
        for gpu in range(3):
            here = [r.job for r in running if r.placement and gpu in r.placement.gpus]
            assert sum(job.gpu_share for job in here) <= 1 + 1e-9
            assert len({job.mig is None for job in here}) <= 1


@pytest.mark.parametrize("topology", [ALONE, SEVERAL], ids=["alone", "several"])
@pytest.mark.parametrize("name", NAMES)
def test_the_memory_asked_for_is_that_of_the_slice(name: str, topology: tp.Topology) -> None:
    cluster = tp.Cluster(topology)
    cluster.slice_gpu(1, ["1g.5gb", "2g.10gb"])
    job = tp.JobGraph.independent(1).with_(mig="2g.10gb", gpu_memory_gb=10.0)
    placement = tp.policies.get(name).place(job, cluster)
    assert placement is not None
    assert placement.gpus == (1,)
    refusal = tp.policies.get(name).explain(job.with_(mig="1g.5gb"), cluster).refusal
    assert refusal is not None
    assert refusal.permanent


def test_reservations_and_new_slices_exclude_each_other() -> None:
    policy = tp.policies.get("fgd").with_reslicing()
    workload = Workload([tp.JobGraph.independent(1)], [0.0], [10.0])
    with pytest.raises(ValueError, match=r"^backfill = 'conservative': fgd may reslice GPUs"):
        simulate(ALONE, workload, policy, discipline=Discipline(backfill="conservative"))
    assert simulate(ALONE, workload, policy, discipline=Discipline(backfill="easy")).records[0].end == 10.0
    assert policy.with_reslicing() is policy
    assert repr(policy).endswith(".with_reslicing()")


def test_the_start_that_spoils_least_is_taken() -> None:
    """One slice of 1g goes to slot 6, next to which every larger profile but 7g still has a place."""
    cluster = tp.Cluster(ALONE)
    policy = tp.policies.get("fgd").with_reslicing()
    starts: list[int] = []
    for number in range(7):
        job = tp.JobGraph.independent(1).with_(mig="1g.5gb")
        placement = policy.place(job, cluster)
        assert placement is not None
        cluster.allocate(f"job-{number}", placement)
        starts.append(placement.slices[0].start)
        assert placement.gpus == (0,)
    assert starts[0] == 6
    assert sorted(starts) == [0, 1, 2, 3, 4, 5, 6]
