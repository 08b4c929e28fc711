"""`with_tasks` and elastic jobs: the same job with another number of tasks."""

from __future__ import annotations

import pickle
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

import topoplace as tp
from topoplace.jobs.job_graph import PATTERNS
from topoplace.moving.replicas import roles_of, without

JobGraph = tp.JobGraph
MIXTRAL = tp.Traffic.of("mixtral-8x7b", zero_stage=1)


def parallel(data: Any, **degrees: Any) -> tp.JobGraph:
    return JobGraph.parallel(**{"tensor": 2, "pipeline": 2, "context": 2} | degrees, data=data)


@given(
    st.integers(1, 6),
    st.integers(1, 6),
    st.sampled_from([1, 2]),
    st.sampled_from([None, MIXTRAL]),
    st.sampled_from(["tensor-context-data-pipeline", "data-pipeline-tensor-context"]),
)
def test_only_the_data_dimension_changes(
    before: int, after: int, expert: int, traffic: Any, order: str
) -> None:
    said = {"expert": expert, "traffic": traffic, "order": order}
    job, other = parallel(before * expert, **said), parallel(after * expert, **said)
    assert job.with_tasks(other.num_tasks) == other
    needs = {"cpus": 3 * before, "within": "rack", "priority": 4, "bandwidth_sensitive": True}
    assert job.with_(**needs).with_tasks(other.num_tasks) == other.with_(**needs | {"cpus": 3 * after})


@given(st.sampled_from(sorted(PATTERNS)), st.integers(1, 9), st.integers(1, 9))
def test_a_pattern_stays_one(name: str, before: int, after: int) -> None:
    job = PATTERNS[name](before).with_(cpus=2 * before, gpu_model="V100")
    assert job.with_tasks(after) == PATTERNS[name](after).with_(cpus=2 * after, gpu_model="V100")
    assert pickle.loads(pickle.dumps(job)).with_tasks(after) == job.with_tasks(after)
    assert job.with_tasks(before) is job


@pytest.mark.parametrize("groups", ["tensor", "expert", "data", "pipeline", 4, 16])
def test_groups_are_made_again(groups: str | int) -> None:
    small, large = parallel(2, expert=2), parallel(6, expert=2)
    large_in_groups = large.grouped(groups, within="rack").grouped("tensor", prefer="machine")
    assert large_in_groups.with_tasks(16) == small.grouped(groups, within="rack").grouped(
        "tensor", prefer="machine"
    )
    if groups not in ("data", 16):  # in the small job, these are also those of the experts, and all tasks
        assert large_in_groups.with_tasks(16).with_tasks(48) == large_in_groups


def test_a_group_of_all_tasks_and_short_last_blocks_stay() -> None:
    job = JobGraph.ring(8).grouped(8, within="rack").grouped(3, within="machine")
    wanted = JobGraph.ring(10).grouped(10, within="rack").grouped(3, within="machine")
    assert job.with_tasks(10) == wanted


def test_a_job_that_gives_up_replicas_is_that_of_fewer() -> None:
    job = parallel(4).grouped("tensor", within="machine").with_(cpus=32)
    for replica in roles_of(job).replicas:
        assert without(job, replica) == job.with_tasks(24)


def test_an_elastic_job_is_its_largest_and_keeps_its_range() -> None:
    job = JobGraph.parallel(tensor=8, data=(4, 12)).grouped("tensor", within="machine")
    assert job.sizes == tuple(range(96, 31, -8))
    assert job.elastic == (32, 96)
    assert job.with_(elastic=None) == JobGraph.parallel(tensor=8, data=12).grouped("tensor", within="machine")
    for size in job.sizes:
        form = job.with_tasks(size)
        assert form.num_tasks == size
        assert form.sizes == job.sizes
        assert form.with_tasks(96) == job
        assert JobGraph.from_json(form.to_json()) == form
        assert pickle.loads(pickle.dumps(form)) == form
    assert JobGraph.parallel(data=(4, 4)) == JobGraph.parallel(data=4)
    assert JobGraph.ring(4).with_(elastic=(2, 8)).sizes == (8, 7, 6, 5, 4, 3, 2)
    assert JobGraph.parallel(data=(4, 12), expert=4).sizes == (12, 8, 4)
    assert JobGraph.ring(4).sizes == (4,)
    assert JobGraph.ring(4) != JobGraph.ring(4).with_(elastic=(2, 4))


def test_json_of_parallel_jobs_says_their_degrees() -> None:
    job = parallel((2, 8), traffic=MIXTRAL, expert=2, order="data-pipeline-tensor-context", name="mine")
    assert JobGraph.from_json(job.to_json()) == job
    assert len(job.to_json()) < 700
    text = '{"pattern": "ring", "num_tasks": 8, "elastic": [4, 8]}'
    assert JobGraph.from_json(text) == JobGraph.ring(8).with_(elastic=(4, 8))


HEAD = '{"format":"topoplace.jobgraph","version":1,"num_tasks":8,'
BAD: list[tuple[Any, str]] = [
    (lambda: parallel((12, 4)), r"data = \(12, 4\): the least is above the most"),
    (lambda: parallel((0, 4)), r"data\[0\] = 0 is not in 1\.\."),
    (lambda: parallel((4, 2.5)), r"data\[1\] = 2\.5 is not an integer"),
    (lambda: parallel((4, 6, 8)), r"data = \(4, 6, 8\) is not \(least, most\)"),
    (lambda: parallel((6, 12), expert=4), "expert = 4 does not divide data = 6"),
    (lambda: parallel(4).with_tasks(12), "num_tasks = 12 is no multiple of 8, the tasks of a data rank"),
    (lambda: parallel(4, expert=4).with_tasks(48), "of 32, the tasks of a data rank times expert = 4"),
    (lambda: parallel((2, 4)).with_tasks(8), r"num_tasks = 8 is outside of elastic = \(16, 32\)"),
    (lambda: parallel((2, 4)).with_tasks(0), r"num_tasks = 0 is not in 1\.\."),
    (lambda: JobGraph.ring(4).with_tasks("4"), "num_tasks = '4' is not an integer"),  # type: ignore[arg-type]
    (lambda: JobGraph.from_edges(3, [(0, 1)]).with_tasks(4), "'custom' has edges of its own"),
    (lambda: JobGraph.mesh((2, 2)).with_tasks(6), "'mesh' has edges of its own"),
    (lambda: JobGraph.joined([JobGraph.ring(2), JobGraph.star(2)]).with_tasks(6), "roles of its own"),
    (lambda: JobGraph.without_gpus(cpus=1).with_tasks(2), "a job without tasks has no other size"),
    (lambda: JobGraph.ring(8).grouped([4, 3, 1], within="rack").with_tasks(4), "nothing about 4 tasks"),
    (lambda: JobGraph.ring(8).with_(elastic=(2, 6)), r"elastic = \(2, 6\): the job has 8 tasks"),
    (lambda: JobGraph.ring(8).with_(elastic=(8, 2)), "the least is above the most"),
    (lambda: JobGraph.ring(8).with_(elastic=8), "elastic = 8 is not a sequence"),
    (lambda: parallel(4).with_(elastic=(12, 32)), r"elastic = \(12, 32\): 12 is no multiple of 8"),
    (lambda: JobGraph.mesh((2, 2)).with_(elastic=(2, 4)), "edges of its own, which"),
    (lambda: parallel((2, 4)).grouped([2, 30], prefer="rack"), "nothing about 16 tasks"),
    (lambda: JobGraph(8, (), degrees=4), "degrees = 4 is not a Degrees"),  # type: ignore[arg-type]
    (lambda: JobGraph(4, (), degrees=parallel(1).degrees), "degrees have 8 tasks, the job has 4"),
    (lambda: JobGraph(8, [(0, 1)], degrees=parallel(1).degrees), "other edges or collectives exclude"),  # type: ignore[arg-type]
    (lambda: JobGraph.from_json(HEAD + '"degrees":{"data":8,"x":1}}'), "degrees has the unknown key 'x'"),
    (lambda: JobGraph.from_json(HEAD + '"degrees":{"data":8,"traffic":{"x":1}}}'), "the unknown key 'x'"),
    (lambda: JobGraph.from_json(HEAD + '"degrees":{"data":0}}'), "degrees: data = 0 is not in"),
    (lambda: JobGraph.from_json(HEAD + '"degrees":4}'), "degrees = 4 is not a dict"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_other_sizes_are_refused_by_name(build: Any, message: str) -> None:
    with pytest.raises(tp.errors.JobGraphError, match=message):
        build()


def test_a_running_job_is_resized_to_its_other_form() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 3))
    job = JobGraph.parallel(tensor=8, data=(1, 3)).grouped("tensor", within="machine")
    cluster.allocate("gang", tp.place(job, cluster) or pytest.fail("no room"))
    plan = tp.resize("gang", cluster, job.with_tasks(8)) or pytest.fail("no plan")
    plan.carry_out(cluster)
    assert cluster.num_free == 16
    plan = tp.resize("gang", cluster, cluster.jobs["gang"].with_tasks(24)) or pytest.fail("no plan")
    plan.carry_out(cluster)
    assert cluster.jobs["gang"] == job


def test_repairs_do_not_go_below_the_least_size() -> None:
    job = JobGraph.parallel(tensor=8, data=(2, 3)).grouped("tensor", within="machine")
    for lost, left in (([3], 16), ([3, 11], None)):
        cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 3))
        cluster.allocate("gang", tp.place(job, cluster) or pytest.fail("no room"))
        smaller = tp.repair("gang", cluster, lost=lost).smaller
        placement = smaller.placement if smaller else None
        assert (placement and placement.job) == (left and job.with_tasks(left))
