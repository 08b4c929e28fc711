from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.engine.policy import SearchPolicy
from topoplace.testing.strategies import job_graphs, topologies
from topoplace_lab.simulate import FixedTime, MapaSlowdown, Result, Workload, simulate

IN_ORDER = ("baseline", "mapa-topo-aware", "mapa-greedy", "mapa-preserve", "fcfs")


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Few different times, so that several things happen at once."""
    jobs = draw(st.lists(job_graphs(max_tasks=4), min_size=1, max_size=12))
    times = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=len(jobs), max_size=len(jobs))
    return Workload(jobs, draw(times), draw(times))


@given(topology=topologies(), workload=workloads(), policy=st.sampled_from(tp.policies.names()))
def test_the_invariants_of_every_run(topology: tp.Topology, workload: Workload, policy: str) -> None:
    result = simulate(topology, workload, tp.policies.get(policy), performance=FixedTime())
    jobs = result.jobs
    assert [record.submitted for record in result.records] == list(workload)
    ran = jobs[~np.isnan(jobs["start"])]
    assert (ran["start"] >= ran["submit"]).all()
    assert (ran["run_time"] == workload.base_time[~np.isnan(jobs["start"])]).all()
    assert all(bool(job["rejected"]) == math.isnan(job["start"]) for job in jobs)
    assert all(len(job["gpus"]) == job["num_gpus"] for job in ran)
    for gpu in range(topology.num_gpus):
        held = sorted((job["start"], job["end"]) for job in ran if gpu in job["gpus"])
        assert all(end <= start for (_, end), (start, _) in pairwise(held))
    if policy not in IN_ORDER:
        return
    order = sorted(range(len(ran)), key=lambda i: ran["submit"][i])  # stable: ties in the order of the rows
    assert (np.diff(ran["start"][order]) >= 0).all()  # first in, first out: nobody overtakes


@given(topology=topologies(), workload=workloads())
def test_same_seed_same_run(topology: tp.Topology, workload: Workload) -> None:
    class Noisy:
        def run_time(self, job: object, placement: object, random: np.random.Generator) -> float:
            return float(random.random())

    runs = [
        simulate(topology, workload, tp.policies.Greedy(), performance=Noisy(), seed=3).jobs for _ in "12"
    ]
    assert np.array_equal(runs[0]["end"], runs[1]["end"], equal_nan=True)
    assert runs[0]["gpus"].tolist() == runs[1]["gpus"].tolist()


def queue_of(
    *sizes: int, submit: Sequence[float] | None = None, run_time: Sequence[float] | None = None
) -> Workload:
    jobs = [tp.JobGraph.ring(size) for size in sizes]
    return Workload(jobs, submit or [0.0] * len(sizes), run_time or [10.0] * len(sizes))


def test_the_head_blocks_the_queue() -> None:
    result = simulate(tp.machines.get("summit"), queue_of(4, 4, 1), tp.policies.Baseline())
    assert result.jobs["start"].tolist() == [0.0, 10.0, 10.0]
    assert result.jobs["wait"].tolist() == [0.0, 10.0, 10.0]
    assert result.jobs["gpus"].tolist() == [(0, 1, 2, 3), (0, 1, 2, 3), (4,)]
    assert result.jobs["postponed"].tolist() == [0, 0, 0]


def test_completions_come_before_submissions_and_those_before_starts() -> None:
    result = simulate(tp.machines.get("summit"), queue_of(6, 6, submit=[0.0, 10.0]), tp.policies.Baseline())
    assert result.jobs["start"].tolist() == [0.0, 10.0]


def test_what_never_fits_is_rejected_and_the_queue_goes_on() -> None:
    result = simulate(tp.machines.get("summit"), queue_of(1, 7, 1), tp.policies.Baseline())
    assert result.jobs["rejected"].tolist() == ["", "never fits: needs 7 GPUs, the topology has 6", ""]
    assert result.jobs["start"].tolist()[::2] == [0.0, 0.0]
    assert result.summary()["rejected"] == 1


def test_a_refusal_on_an_idle_machine_is_a_rejection_not_a_deadlock() -> None:
    picky = tp.policies.Preserve(min_effective_bandwidth=1000.0)
    job = tp.JobGraph.ring(3).with_(bandwidth_sensitive=True)
    workload = Workload([job, tp.JobGraph.ring(3)], [0.0, 0.0], [5.0, 5.0])
    result = simulate(tp.machines.get("dgx1-v100"), workload, picky)
    assert result.jobs["rejected"][0].startswith("waits: the best effective bandwidth now is 57.858")
    assert result.jobs["start"][1] == 0.0


def test_a_job_postponed_by_its_policy_is_counted() -> None:
    gpus = tuple(tp.Gpu(i, f"GPU{i}", model) for i, model in enumerate(("A100", "V100", "V100")))
    topology = tp.Topology(gpus, ((0, 1, tp.Link(tp.LinkKind.NVLINK2, 2, 50.0)),))
    needs_0 = tp.JobGraph.ring(1).with_(gpu_model="A100")
    needs_nvlink = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)
    workload = Workload([needs_0, needs_nvlink, needs_0], [0.0, 1.0, 2.0], [10.0, 5.0, 5.0])
    jobs = simulate(topology, workload, tp.policies.Preserve(min_effective_bandwidth=30.0)).jobs
    assert jobs["start"].tolist() == [0.0, 10.0, 15.0]
    assert jobs["postponed"].tolist() == [0, 2, 0]


class Misbehaving(SearchPolicy):
    name = "misbehaving"

    def __init__(self, plan: Plan) -> None:
        self.answer = plan

    def best(self, *_: object) -> None:
        return None

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        return self.answer


class Nameless(SearchPolicy):
    def best(self, *_: object) -> None:
        return None


def test_a_policy_that_breaks_the_rules_is_named() -> None:
    topology = tp.machines.get("summit")
    two = tp.Placement(gpus=(0, 1), topology=topology)
    with pytest.raises(ValueError, match="'misbehaving': 'nobody' in its plan is not a waiting job"):
        simulate(topology, queue_of(2), Misbehaving(Plan(start=(("nobody", two),))))
    with pytest.raises(ValueError, match="'misbehaving': 2 GPUs for '0', which has 3 tasks"):
        simulate(topology, queue_of(3), Misbehaving(Plan(start=(("0", two),))))
    with pytest.raises(tp.AllocationError):
        simulate(topology, queue_of(2, 2), Misbehaving(Plan(start=(("0", two), ("1", two)))))
    for no_plan, shown in ((None, "None"), ({"start": ()}, r"\{'start': \(\)\}")):
        with pytest.raises(TypeError, match=f"'misbehaving': plan returned {shown}, not a Plan$"):
            simulate(topology, queue_of(2), Misbehaving(no_plan))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("policy", "lacks"),
    [("baseline", "name, place, explain, plan"), (Nameless(), "name")],
    ids=["str", "Nameless"],
)
def test_what_is_no_policy_is_refused_with_what_it_lacks(policy: Any, lacks: str) -> None:
    with pytest.raises(ValueError, match=f"^policy = .* is not a Policy, as it lacks {lacks}$"):
        simulate(tp.machines.get("summit"), queue_of(2), policy)


def test_a_performance_model_must_give_a_time() -> None:
    class Broken:
        def run_time(self, job: object, placement: object, random: object) -> float:
            return math.nan

    with pytest.raises(ValueError, match="performance: run time of '0' = nan"):
        simulate(tp.machines.get("summit"), queue_of(2), tp.policies.Baseline(), performance=Broken())


# ---- run times ---------------------------------------------------------------------------------------------------


def run_time_at(bandwidth: float, **job: object) -> float:
    model = MapaSlowdown({"vgg16": 0.5})
    topology = tp.machines.get("summit")
    workload = Workload(
        [tp.JobGraph.ring(2).with_(**{"bandwidth_sensitive": True, "profile": "vgg16.sh"} | job)], [0], [100]
    )
    placement = tp.Placement(gpus=(0, 1), scores={"effective_bandwidth": bandwidth}, topology=topology)
    return model.run_time(next(iter(workload)), placement, np.random.default_rng(0))


def test_a_placement_without_scores_is_refused_with_where_they_come_from() -> None:
    topology = tp.machines.get("summit")
    entry = next(iter(Workload([tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)], [0], [100])))
    placement = tp.Placement(gpus=(0, 1), topology=topology)
    with pytest.raises(
        ValueError, match=r"no score effective_bandwidth, .*; topoplace\.objectives\.scores_of "
    ):
        MapaSlowdown().run_time(entry, placement, np.random.default_rng(0))


def test_a_job_that_never_ran_has_no_slowdown_even_without_work() -> None:
    result = simulate(
        tp.machines.get("minsky"), Workload([tp.JobGraph.ring(9)], [0.0], [0.0]), tp.policies.Greedy()
    )
    assert result.jobs["rejected"][0]
    assert np.isnan(result.jobs["slowdown"]).all()
    assert np.isnan(result.jobs["slowdown_with_wait"]).all()


def test_slowdown_has_the_shape_of_figure_16() -> None:
    assert run_time_at(50.0) == run_time_at(70.0) == 100.0
    assert run_time_at(25.0) == pytest.approx(150.0)
    assert run_time_at(10.0) == run_time_at(3.2) == pytest.approx(300.0)
    assert run_time_at(10.0, bandwidth_sensitive=False) == 100.0
    times = [run_time_at(bandwidth) for bandwidth in range(1, 80)]
    assert times == sorted(times, reverse=True)


def test_slowdown_checks_its_parameters() -> None:
    with pytest.raises(ValueError, match=r"share of vgg16 = 1.5"):
        MapaSlowdown({"vgg16": 1.5})
    with pytest.raises(ValueError, match="floor_gb_per_s = 60"):
        MapaSlowdown(floor_gb_per_s=60)


# ---- workloads ---------------------------------------------------------------------------------------------------


def test_the_mapa_mix_is_uniform_and_seeded() -> None:
    workload = Workload.mapa(3000, seed=5)
    sizes = [job.num_tasks for job in workload.jobs]
    assert [sizes.count(k) for k in range(1, 6)] == pytest.approx([600] * 5, rel=0.15)
    assert sum(job.bandwidth_sensitive for job in workload.jobs) == pytest.approx(2000, rel=0.05)
    assert set(workload.submit_time) == {0.0}
    assert list(Workload.mapa(50, seed=1)) == list(Workload.mapa(50, seed=1))
    assert list(Workload.mapa(50, seed=1)) != list(Workload.mapa(50, seed=2))


def test_poisson_means() -> None:
    workload = Workload.poisson(5000, mean_gap=2.0, mean_time=30.0, sizes=(1, 2, 4), seed=1)
    assert np.diff(workload.submit_time).mean() == pytest.approx(2.0, rel=0.1)
    assert workload.base_time.mean() == pytest.approx(30.0, rel=0.1)
    assert {job.num_tasks for job in workload.jobs} == {1, 2, 4}


def test_csv_and_mapa_lines_give_the_same_jobs() -> None:
    table = Workload.from_csv(
        "run_time,gpus,pattern,submit,profile,bandwidth_sensitive\n321,2,ring,5,a,1\n9,3,star,6,,0\n"
    )
    lines = Workload.from_mapa("2,ring,5,321,1,a\n3,star,6,9,0,\n")
    assert list(table) == list(lines)
    assert table.jobs[0] == tp.JobGraph.ring(2).with_(bandwidth_sensitive=True, profile="a")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2,ring,0,10,1\n", "line 1: 5 columns, 6 needed"),
        ("2,ring,0,10,1,a\nx,ring,0,10,1,a\n", "line 2: gpus = 'x', not a number from 1"),
        ("0,ring,0,10,1,a\n", "line 1: gpus = '0', not a number from 1"),
        ("2,ring,-1,10,1,a\n", "line 1: submit = '-1', not a number from 0"),
        ("2,ring,0,nan,1,a\n", "line 1: run_time = 'nan', not a number from 0"),
        ("2,ring,0,10,2,a\n", "line 1: bandwidth_sensitive = '2', not a number 0..1"),
        ("2,knot,0,10,1,a\n", "line 1: pattern = 'knot', not one of ring"),
    ],
)
def test_bad_job_lines_are_named(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.from_mapa(text)


def test_bad_columns_are_named() -> None:
    ring = tp.JobGraph.ring(2)
    with pytest.raises(ValueError, match="line 1: columns"):
        Workload.from_csv("gpus,submit\n1,2\n")
    with pytest.raises(ValueError, match=r"submit_time\[1\] = inf"):
        Workload([ring, ring], [0, math.inf], [1, 1])
    with pytest.raises(ValueError, match="base_time: 1 rows, jobs has 2"):
        Workload([ring, ring], [0, 0], [1])
    with pytest.raises(ValueError, match=r"job_ids\[1\] = 'a', already in row 0"):
        Workload([ring, ring], [0, 0], [1, 1], ["a", "a"])


# ---- results -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> list[Result]:
    workload = Workload.mapa(60)
    topology = tp.machines.get("dgx1-v100")
    return [
        simulate(topology, workload, tp.policies.get(name), performance=MapaSlowdown())
        for name in tp.policies.names()
    ]


def test_summary_adds_up(runs: list[Result]) -> None:
    for result in runs:
        summary, jobs = result.summary(), result.jobs
        assert summary["makespan"] == jobs["end"].max()
        assert summary["throughput"] == pytest.approx(60 / summary["makespan"] * 3600)
        assert 0 < summary["utilization"] <= 1
        assert summary["sensitive_run_time_min"] <= summary["sensitive_run_time_p75"]
        assert (jobs["slowdown"] >= 1).all()
        assert jobs["scores"]["aggregated_bandwidth"].max() > 0


def test_compare_is_relative_to_the_first(runs: list[Result]) -> None:
    rows = runs[0].compare(runs[1:])
    assert [row["policy"] for row in rows] == list(tp.policies.names())
    assert rows[0]["speedup"] == rows[0]["sensitive_p75_speedup"] == 1.0
    assert rows[3]["speedup"] > 1.0


def test_without_a_utility_nobody_knows_what_was_violated(runs: list[Result]) -> None:
    told = {run.policy: run.summary()["slo_violations"] for run in runs}
    assert math.isnan(told["baseline"])
    assert told["topo-aware"] == 0.0


def test_compare_to_a_run_without_length() -> None:
    topology, policy = tp.machines.get("summit"), tp.policies.Baseline()
    ring = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)
    instant, normal, none = (
        simulate(topology, workload, policy)
        for workload in (Workload([ring], [0], [0]), Workload([ring], [0], [9]), Workload([], [], []))
    )
    for first in (instant, none, simulate(topology, queue_of(99), policy)):
        for row in first.compare([normal]):
            assert math.isnan(row["speedup"])
    assert normal.compare([instant])[1]["sensitive_p75_speedup"] != 1.0


def test_to_pandas_has_a_column_per_score(runs: list[Result]) -> None:
    frame = runs[0].to_pandas()
    assert len(frame) == 60
    assert frame["effective_bandwidth"].tolist() == runs[0].jobs["scores"]["effective_bandwidth"].tolist()


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_gantt_is_written(runs: list[Result], tmp_path: Path, ending: str) -> None:
    runs[3].gantt(tmp_path / f"gantt.{ending}")
    assert (tmp_path / f"gantt.{ending}").stat().st_size > 10_000


def test_an_empty_workload_is_a_result() -> None:
    result = simulate(tp.machines.get("summit"), Workload([], [], []), tp.policies.Baseline())
    assert len(result.jobs) == 0
    assert np.isnan(result.summary()["makespan"])


def test_the_package_can_be_called() -> None:
    assert len(tp.simulate(tp.machines.get("summit"), queue_of(1), tp.policies.Baseline()).jobs) == 1
    assert FixedTime().run_time(next(iter(queue_of(1))), None, None) == 10.0  # type: ignore[arg-type]
