"""Elastic jobs in simulations: they start with what is free, grow, make way, and outlive failures with fewer tasks."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import QueuedJob
from topoplace_lab.simulate import (
    Discipline,
    FailingPart,
    Failures,
    FixedTime,
    MapaSlowdown,
    Recovery,
    Result,
    StepTime,
    Workload,
    fragmentation_series,
    simulate,
)

QUAD = tp.Topology.from_links(4, [(0, 1, 50.0), (2, 3, 50.0)], 12.0)
RACKS = tp.Topology.cluster(QUAD, 4, racks=2, network=10.0)
ELASTIC = tp.JobGraph.parallel(tensor=4, data=(1, 4)).grouped("tensor", within="machine")
TWO = ELASTIC.with_(elastic=None).with_tasks(8)
DISCIPLINES = (
    None,
    Discipline(),
    Discipline(backfill="none"),
    Discipline(backfill="conservative"),
    Discipline(order="priority"),
)


def run(workload: Workload, *, policy: str = "best-fit", **options: Any) -> Result:
    return simulate(RACKS, workload, tp.policies.get(policy), **{"performance": FixedTime()} | options)


def sizes(result: Result, job_id: str) -> list[tuple[int, float, float]]:
    """The number of GPUs of each stay, its start and its end."""
    record = next(record for record in result.records if record.job_id == job_id)
    return [(len(stay.placement.gpus), stay.start, stay.end) for stay in record.stays]


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("policy", ["best-fit", "least-time"])
def test_a_job_starts_at_once_makes_way_and_grows(discipline: Discipline | None, policy: str) -> None:
    jobs = Workload([TWO, ELASTIC, TWO], [0, 10, 5000], [2000, 8000, 1000], ["first", "elastic", "last"])
    result = run(jobs, policy=policy, discipline=discipline)
    # Half the GPUs: 1990 of 16000 s are done. All: 2700 of 8000 s after a pause of 300 s. Half: 700 of 16000 s.
    end = 6000 + 300 + 8000 * (1 - 1990 / 16000 - 2700 / 8000 - 700 / 16000)
    assert sizes(result, "elastic") == [(8, 10, 2000), (16, 2000, 5000), (8, 5000, 6000), (16, 6000, end)]
    assert sizes(result, "last") == [(8, 5000, 6000)]
    row = result.jobs[1]
    assert (row["resizes"], row["num_gpus"], row["lost"]) == (3, 16, 0)
    assert row["gpu_seconds"] == 8 * 1990 + 16 * 3000 + 8 * 1000 + 16 * (end - 6000)
    assert result.stays["num_gpus"].tolist().count(16) == 2


def test_a_job_grows_only_if_it_ends_sooner_then() -> None:
    jobs = Workload([TWO, ELASTIC], [0, 0], [2000, 1299], ["rigid", "elastic"])
    assert sizes(run(jobs), "elastic") == [(8, 0, 2598)]
    longer = Workload([TWO, ELASTIC], [0, 0], [2000, 1301], ["rigid", "elastic"])
    assert len(sizes(run(longer), "elastic")) == 2
    for restart_s, stays in ((298, 2), (299, 1)):
        found = run(jobs, recovery=Recovery(restart_s=restart_s))
        assert len(sizes(found, "elastic")) == stays


def test_only_jobs_of_no_higher_priority_make_way_as_far_as_needed() -> None:
    one = ELASTIC.with_(elastic=None).with_tasks(4)
    for priority, wait, left in ((0, 0, 12), (1, 3000, 16)):
        jobs = Workload([ELASTIC.with_(priority=priority), one], [0, 1000], [4000, 500])
        result = run(jobs)
        assert result.jobs["wait"][1] == wait
        assert sizes(result, "0")[min(priority + 1, len(sizes(result, "0")) - 1)][0] == left


def test_a_job_goes_on_with_fewer_tasks_after_a_failure_and_grows_again() -> None:
    part = Failures((FailingPart("machine", 1, 4, 0.1, per="machine", repair_s=3000),))
    for way in ("repair", "place-again", "queue"):
        recovery = Recovery(way=way, checkpoint_every=600)
        rigid, elastic = (
            run(Workload([job], [0], [9000]), failures=part, recovery=recovery, seed=5)
            for job in (ELASTIC.with_(elastic=None), ELASTIC)
        )
        held = [size for size, _, _ in sizes(elastic, "0")]
        assert elastic.summary()["failures"] > 0
        assert held[:3] == [16, 12, 16]
        assert elastic.records[0].end < rigid.records[0].end
        assert elastic.summary()["mean_wait"] == 0 < rigid.summary()["mean_wait"]
        moved = elastic.records[0].stays[:2]
        assert set(moved[1].placement.gpus) < set(moved[0].placement.gpus) or way != "repair"


JOBS = st.sampled_from(
    [
        ELASTIC,
        TWO,
        tp.JobGraph.parallel(tensor=2, data=(2, 8), expert=2),
        tp.JobGraph.ring(8).with_(elastic=(3, 8), priority=1),
        tp.JobGraph.independent(6).with_(elastic=(1, 6)),
        tp.JobGraph.ring(3),
    ]
)
PARTS = Failures((FailingPart("machine", 1, 4, 0.1, per="machine", repair_s=900),))


@settings(max_examples=10)
@given(
    st.lists(st.tuples(JOBS, st.integers(0, 3000), st.integers(1, 4000)), min_size=1, max_size=8),
    st.sampled_from(DISCIPLINES),
    st.sampled_from([None, PARTS]),
    st.sampled_from(["repair", "place-again", "queue"]),
    st.integers(0, 99),
)
def test_no_gpu_twice_and_all_work_done(
    jobs: list[tuple[tp.JobGraph, int, int]],
    discipline: Discipline | None,
    failures: Failures | None,
    way: Any,
    seed: int,
) -> None:
    workload = Workload(*map(list, zip(*jobs, strict=True)))
    recovery = Recovery(way=way, checkpoint_every=500, restart_s=50)
    options: dict[str, Any] = {"discipline": discipline, "failures": failures, "seed": seed}
    if failures or any(job.elastic for job in workload.jobs):
        options["recovery"] = recovery
    result = run(workload, **options)
    assert run(workload, **options) == result
    held: dict[int, list[tuple[float, float]]] = {}
    for record in result.records:
        for stay in record.stays:
            assert len(stay.placement.gpus) in record.job.sizes
            assert stay.placement.job is None or stay.placement.job.num_tasks == len(stay.placement.gpus)
            for gpu in stay.placement.gpus:
                held.setdefault(gpu, []).append((stay.start, stay.end))
    for stays in held.values():
        assert all(before[1] <= after[0] for before, after in pairwise(sorted(stays)))
    busy = sum(end - start for stays in held.values() for start, end in stays)
    work = sum(time * job.num_tasks for job, time in zip(workload.jobs, workload.base_time, strict=True))
    found = result.summary()
    assert math.isclose(found["utilization"] * found["makespan"] * RACKS.num_gpus, busy, rel_tol=1e-9)
    assert math.isclose(found["goodput"] * busy, work, rel_tol=1e-9)


@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_compute_takes_longer_with_fewer_tasks_and_communication_what_it_takes(overlap: float) -> None:
    job = tp.JobGraph.parallel(data=(1, 4), traffic=tp.Traffic(data=20, tflop=50))
    h100 = tp.machines.get("dgx-h100")
    entry = next(iter(Workload([job], [0], [100])))
    model, random = StepTime(overlap=overlap), np.random.default_rng(0)

    def step_s(size: int) -> float:
        placement = tp.place(job.with_tasks(size), tp.Cluster(h100)) or pytest.fail("no room")
        compute = 50 * 4 / size / (0.4 * 989.4)
        return compute + placement.time - overlap * min(compute, placement.time)

    for size in job.sizes:
        placement = tp.place(job.with_tasks(size), tp.Cluster(h100)) or pytest.fail("no room")
        seconds = model.run_time(entry.on(placement), placement, random)
        assert math.isclose(seconds, 100 * step_s(size) / step_s(4), rel_tol=1e-3)
        assert math.isclose(FixedTime().run_time(entry.on(placement), placement, random), 400 / size)


def test_a_share_of_communication_does_not_grow_with_compute() -> None:
    job = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True, elastic=(1, 2))
    entry = next(iter(Workload([job], [0], [100])))
    placement = tp.place(job.with_tasks(1), tp.Cluster(QUAD)) or pytest.fail("no room")
    seconds = StepTime(default_share=0.2).run_time(entry.on(placement), placement, np.random.default_rng(0))
    assert math.isclose(seconds, 160)


def test_the_plan_of_a_queue_takes_the_largest_size_that_fits() -> None:
    cluster = tp.Cluster(RACKS)
    cluster.allocate("other", range(4, 9))
    queue = [
        QueuedJob("a", ELASTIC),
        QueuedJob("b", tp.JobGraph.ring(4).with_(elastic=(2, 4))),
        QueuedJob("c", TWO),
    ]
    for name in ("least-time", "best-fit", "fcfs", "mapa-preserve"):
        plan = tp.policies.get(name).plan(queue, cluster, 0.0)
        assert [(job_id, len(placement.gpus)) for job_id, placement in plan.start] == [("a", 8), ("b", 3)]
        with cluster.what_if():
            plan.carry_out(cluster)
            assert cluster.jobs["b"].num_tasks == 3
    impossible = [QueuedJob("a", ELASTIC.with_(gpu_model="none"))]
    assert tp.policies.get("fcfs").plan(impossible, cluster, 0.0).reject


def test_a_job_is_rejected_only_if_its_least_size_is_impossible() -> None:
    jobs = [tp.JobGraph.parallel(tensor=4, data=(4, 9)), tp.JobGraph.parallel(tensor=4, data=(5, 9))]
    for discipline in DISCIPLINES:
        result = run(Workload(jobs, [0, 0], [90, 90]), discipline=discipline)
        assert [bool(record.rejected) for record in result.records] == [False, True]
        assert sizes(result, "0") == [(16, 0, 90 * 9 / 4)]


@pytest.mark.parametrize("backfill", ["easy", "conservative"])
def test_a_quota_limits_the_size(backfill: Any) -> None:
    discipline = Discipline(quotas={"team": 12}, backfill=backfill)
    team, two = ELASTIC.with_(group="team"), TWO.with_(group="team")
    jobs = Workload([team, two, TWO], [0, 500, 600], [9000, 100, 100], ["team", "waits", "other"])
    result = run(jobs, discipline=discipline)
    alone = sizes(run(Workload([team], [0], [9000]), discipline=discipline), "0")
    assert alone == [(12, 0, 12000)]
    # It makes way for a job of others, but not for one that its team's quota keeps waiting.
    assert [size for size, _, _ in sizes(result, "team")] == [12, 8, 12]
    assert sizes(result, "other") == [(8, 600, 700)]
    assert result.records[1].start == result.records[0].end
    held = [stay for record in result.records[:2] for stay in record.stays]
    for time in {stay.start for stay in held}:
        assert sum(len(stay.placement.gpus) for stay in held if stay.start <= time < stay.end) <= 12


def test_run_times_may_need_the_scores_of_links() -> None:
    sensitive = tp.JobGraph.ring(4).with_(bandwidth_sensitive=True, elastic=(2, 4))
    other = tp.JobGraph.ring(14)
    result = run(Workload([other, sensitive], [0, 0], [5000, 9000]), performance=MapaSlowdown())
    assert [size for size, _, _ in sizes(result, "1")] == [2, 4]
    assert "effective_bandwidth" in result.records[1].stays[1].placement.scores


def test_traces_and_files_of_results_keep_sizes(tmp_path: Path) -> None:
    text = "job_id,submit_s,num_gpus,duration_s,pattern,min_gpus\na,0,12,600,ring,\nb,0,8,6000,ring,2\n"
    workload = Workload.from_trace(text)
    assert [job.elastic for job in workload.jobs] == [None, (2, 8)]
    result = run(workload)
    assert [size for size, _, _ in sizes(result, "b")] == [4, 8]
    result.save(tmp_path / "result.csv")
    assert Result.load(tmp_path / "result.csv") == result
    assert fragmentation_series(result)["left"].tolist() == [0, 8, 16]
    with pytest.raises(ValueError, match="line 2: min_gpus"):
        Workload.from_trace("job_id,submit_s,num_gpus,duration_s,min_gpus\na,0,4,600,5\n")


def test_a_recovery_needs_failures_or_elastic_jobs() -> None:
    with pytest.raises(ValueError, match="recovery: without failures and elastic jobs, no job restarts"):
        run(Workload([TWO], [0], [1]), recovery=Recovery())


class Planning:
    """A policy that decides as another one, by plans alone."""

    def __init__(self, inner: tp.Policy) -> None:
        self.name, self.place, self.explain, self.plan = inner.name, inner.place, inner.explain, inner.plan


@settings(max_examples=10)
@given(
    st.lists(st.tuples(JOBS, st.integers(0, 900), st.integers(1, 2000)), min_size=1, max_size=8),
    st.sampled_from(["best-fit", "fcfs"]),
)
def test_queues_that_follow_plans_decide_the_same(
    jobs: list[tuple[tp.JobGraph, int, int]], name: str
) -> None:
    workload, policy = Workload(*map(list, zip(*jobs, strict=True))), tp.policies.get(name)
    results = [simulate(RACKS, workload, one, performance=FixedTime()) for one in (policy, Planning(policy))]
    assert results[0] == results[1]
