"""Running jobs that slow each other down: work asked is work done, whatever starts and ends next to it."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.testing.strategies import job_graphs, topologies
from topoplace_lab.simulate import FixedTime, ProfiledTime, Result, Workload, simulate
from topoplace_lab.simulate.performance.models import Neighbours, placement_class

PROFILE = PerformanceProfile(
    {
        ("net/1", 1, "intra-socket"): 100.0,
        ("net/1", 2, "intra-socket"): 100.0,
        ("net/1", 2, "inter-socket"): 125.0,
    },
    {("net/1", 1, "net/1", 1): 150.0, ("net/1", 2, "net/1", 1): 150.0, ("net/1", 1, "net/1", 2): 200.0},
)


class Crowded(FixedTime):
    """A job takes 1 + (neighbours) / 4 times as long."""

    def slowdown(self, job: object, placement: tp.Placement, neighbours: Neighbours) -> float:
        return 1 + len(neighbours) / 4


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    jobs = draw(st.lists(job_graphs(max_tasks=4), min_size=1, max_size=12))
    times = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=len(jobs), max_size=len(jobs))
    return Workload(jobs, draw(times), draw(times))


def machines_by_job(result: Result) -> dict[str, set[int]]:
    """Return the machines of each job that ran: those of its GPUs and those of its processes."""
    found: dict[str, set[int]] = {}
    for record in result.records:
        if record.placement is not None:
            own = {int(result.topology.machine_of[gpu]) for gpu in record.placement.gpus}
            found[record.submitted.job_id] = own | {share.machine for share in record.placement.hosts}
    return found


@given(topology=topologies(), workload=workloads(), policy=st.sampled_from(tp.policies.names()))
def test_work_done_is_work_asked(topology: tp.Topology, workload: Workload, policy: str) -> None:
    result = simulate(topology, workload, tp.policies.get(policy), performance=Crowded())
    ran = [row for row in result.jobs if not np.isnan(row["start"])]
    moments = sorted({time for row in ran for time in (row["start"], row["end"])})
    base = dict(zip(workload.job_ids, workload.base_time.tolist(), strict=True))
    machines = machines_by_job(result)
    for row in ran:
        done, mine = 0.0, machines[row["job"]]
        for begin, end in pairwise(moments):
            if row["start"] <= begin and end <= row["end"]:
                beside = [
                    other
                    for other in ran
                    if other["job"] != row["job"]
                    and other["start"] <= begin
                    and end <= other["end"]
                    and mine & machines[other["job"]]
                ]
                done += (end - begin) / (1 + len(beside) / 4)
        assert done == pytest.approx(base[row["job"]], abs=1e-6)
        assert row["start"] >= row["submit"]
        assert row["run_time"] == pytest.approx(row["end"] - row["start"], abs=1e-9)
    for gpu in range(topology.num_gpus):
        held = sorted((row["start"], row["end"]) for row in ran if gpu in row["gpus"])
        assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(held))


@given(workload=workloads(), policy=st.sampled_from(tp.policies.names()))
def test_neighbours_without_influence_change_nothing(workload: Workload, policy: str) -> None:
    class Alone(FixedTime):
        def slowdown(self, job: object, placement: object, neighbours: object) -> float:
            return 1.0

    topology = tp.machines.get("dgx1-v100")
    runs = [
        simulate(topology, workload, tp.policies.get(policy), performance=model)
        for model in (FixedTime(), Alone())
    ]
    assert np.array_equal(runs[0].jobs["end"], runs[1].jobs["end"], equal_nan=True)


def queue(*sizes: int, submit: list[float]) -> Workload:
    jobs = [tp.JobGraph.clique(size).with_(profile="net/1") for size in sizes]
    return Workload(jobs, submit, [100.0] * len(sizes))


def test_speed_changes_when_a_neighbour_starts_and_when_it_ends() -> None:
    model = ProfiledTime(PROFILE)
    result = simulate(
        tp.machines.get("minsky"), queue(1, 1, submit=[0.0, 50.0]), tp.policies.get("fcfs"), performance=model
    )
    # The first does 50 s alone and 50 s at 1/1.5; the second 75 s at 1/1.5, and its last 50 s alone.
    assert result.jobs["gpus"].tolist() == [(0,), (1,)]
    assert result.jobs["end"].tolist() == pytest.approx([125.0, 175.0])
    assert result.jobs["slowdown"].tolist() == pytest.approx([1.25, 1.25])


def test_across_sockets_a_job_is_slower_and_shares_both() -> None:
    topology = tp.machines.get("minsky")
    placement = tp.Placement((1, 2), topology=topology)
    jobs = list(queue(2, 1, submit=[0.0, 0.0]))
    model, random = ProfiledTime(PROFILE), np.random.default_rng(0)
    assert placement_class(placement) == "inter-socket"
    assert model.run_time(jobs[0], placement, random) == 125.0
    beside = [(jobs[1], tp.Placement((3,), topology=topology))]
    assert model.slowdown(jobs[0], placement, beside) == pytest.approx(150 / 125)
    assert model.slowdown(jobs[0], tp.Placement((0, 1), topology=topology), beside) == 1.0
    unknown = Workload([tp.JobGraph.ring(2)], [0.0], [7.0])
    assert model.run_time(next(iter(unknown)), placement, random) == 7.0


@pytest.mark.parametrize(
    ("factor", "message"),
    [
        (0.0, "slowdown for '0' = 0.0 is not above 0"),
        (math.nan, "slowdown for '0' = nan is not a finite number"),
        (None, "slowdown for '0' = None is not a number"),
        ("2", "slowdown for '0' = '2' is not a number"),
        (np.ones(2), "slowdown for '0' = array"),
        (1e14, "an end at 1e+16 s for '0', later than 1e+15 s"),
        (1e307, "an end at inf s for '0'"),
    ],
)
def test_a_bad_slowdown_is_refused(factor: Any, message: str) -> None:
    class Bad(FixedTime):
        def slowdown(self, job: object, placement: object, neighbours: object) -> float:
            slowdown: float = factor
            return slowdown

    with pytest.raises(ValueError, match=re.escape(f"performance: {message}")):
        simulate(
            tp.machines.get("minsky"), queue(1, submit=[0.0]), tp.policies.get("fcfs"), performance=Bad()
        )


def test_a_job_that_is_better_off_across_sockets_has_its_base_time_there() -> None:
    profile = PerformanceProfile({("net/1", 2, "intra-socket"): 100.0, ("net/1", 2, "inter-socket"): 80.0})
    topology, job = tp.machines.get("minsky"), next(iter(queue(2, submit=[0.0])))
    near, far = (tp.Placement(gpus, topology=topology) for gpus in ((0, 1), (1, 2)))
    model, random = ProfiledTime(profile), np.random.default_rng(0)
    assert [model.run_time(job, where, random) for where in (near, far)] == [125.0, 100.0]


def test_a_job_of_an_unknown_name_disturbs_as_the_median_does() -> None:
    topology = tp.machines.get("minsky")
    known, unknown = Workload(
        [tp.JobGraph.clique(1).with_(profile=name) for name in ("net/1", "new/1")], [0, 0], [100, 100]
    )
    model, where = ProfiledTime(PROFILE), [tp.Placement((gpu,), topology=topology) for gpu in (0, 1)]
    assert model.slowdown(known, where[0], [(unknown, where[1])]) == 1.75  # of 1.5 and 2
    assert model.slowdown(unknown, where[1], [(known, where[0])]) == pytest.approx(1.35)  # of 1.5 and 1.2


def test_summary_of_service_levels() -> None:
    topology = tp.machines.get("minsky")
    jobs = [
        tp.JobGraph.clique(size).with_(profile="net/1", min_utility=least)
        for size, least in ((1, 0.3), (1, 0.3), (2, 0.5))
    ]
    workload = Workload(jobs, [0.0, 1.0, 2.0], [100.0, 30.0, 100.0], ["a", "b", "c"])
    impatient, patient = (
        simulate(
            topology, workload, tp.policies.get(name, profile=PROFILE), performance=ProfiledTime(PROFILE)
        )
        for name in ("topo-aware", "topo-aware-p")
    )
    assert impatient.summary()["slo_violations"] == 1.0
    assert impatient.summary()["nvlink_use"] == 0.0
    assert patient.summary()["slo_violations"] == 0.0
    assert patient.summary()["nvlink_use"] == 1.0
    assert patient.jobs["postponed"].tolist() == [0, 0, 1]
    assert patient.jobs["start"].tolist() == [0.0, 1.0, 31.0]
    assert patient.jobs["slowdown"].tolist() == [1.0, 1.0, 1.0]
    assert patient.jobs["slowdown_with_wait"].tolist() == pytest.approx([1.0, 1.0, 1.29])
