"""Fragmentation over time, against a plain program that adds up what each machine has left at each time."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.moving import MakingRoom
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.simulate import (
    JobRecord,
    MoveTimes,
    Result,
    SubmittedJob,
    Workload,
    fragmentation_series,
    simulate,
)

ONE, TWO, FOUR = (tp.JobGraph.independent(size) for size in (1, 2, 4))
HALF = ONE.with_(gpu_fraction=0.5)
HOSTS = tp.HostResources(cpus=8, memory_gb=100)


def machine_of(size: int, model: str) -> tp.Topology:
    bare = tp.Topology.from_links(size, [], 12.0)
    return replace(bare, gpus=tuple(replace(gpu, model=model) for gpu in bare.gpus))


CLUSTER = tp.Topology.cluster([machine_of(4, "T4"), machine_of(4, "T4"), machine_of(2, "P4")])
TYPICAL = TypicalJobs(
    {
        HALF.with_(cpus=3): 3,
        ONE.with_(cpus=6.5): 2,
        TWO.with_(gpu_model="T4"): 1,
        tp.JobGraph.without_gpus(cpus=4): 1,
    }
)
JOBS = st.builds(
    lambda job, cpus: job.with_(cpus=cpus, single_machine=True),
    st.sampled_from([ONE, TWO, FOUR, HALF, ONE.with_(gpu_fraction=0.3)]),
    st.sampled_from([None, 1, 3.25]),
) | st.just(tp.JobGraph.without_gpus(cpus=2.5))


def by_hand(result: Result, time: float, typical: TypicalJobs, cpus: float) -> tuple[float, float]:
    """Return (left, fragment) at a time, machine by machine and typical job by typical job."""
    topology = result.topology
    left = dict.fromkeys(range(topology.num_gpus), 1000)
    free = dict.fromkeys(range(topology.num_machines), cpus)
    for record in result.records:
        for stay in record.stays:
            if stay.start <= time < stay.end:
                for gpu in stay.placement.gpus:
                    left[gpu] -= round(record.job.gpu_fraction * 1000)
                for share in stay.placement.hosts:
                    free[share.machine] -= share.cpus
    fragment = 0.0
    for machine, gpus in enumerate(topology.gpus_of.values()):
        own = [left[gpu] for gpu in gpus]
        for job, weight in typical.weights.items():
            share = round(job.gpu_fraction * 1000)
            suits = not job.gpu_model or topology.gpus[gpus[0]].model in job.gpu_models
            fits = (
                suits
                and free[machine] >= (job.cpus or 0)
                and sum(one >= share for one in own) >= job.num_tasks
            )
            usable = fits and job.num_tasks > 0
            fragment += weight * (sum(one for one in own if one < share) if usable else sum(own))
    return sum(left.values()) / 1000, fragment / 1000


@given(
    jobs=st.lists(JOBS, min_size=1, max_size=12),
    submit=st.lists(st.integers(0, 6), min_size=12, max_size=12),
    seconds=st.lists(st.integers(0, 9), min_size=12, max_size=12),
)
def test_each_row_is_what_machines_have_left(
    jobs: list[tp.JobGraph], submit: list[int], seconds: list[int]
) -> None:
    workload = Workload(jobs, submit[: len(jobs)], seconds[: len(jobs)])
    result = simulate(CLUSTER, workload, tp.policies.get("fgd", typical=TYPICAL), hosts=HOSTS)
    rows = fragmentation_series(result, TYPICAL, hosts=HOSTS)
    held = [stay for record in result.records for stay in record.stays if stay.start < stay.end]
    assert rows["time"].tolist() == sorted({time for stay in held for time in (stay.start, stay.end)})
    for time, left, fragment in rows.tolist():
        assert (left, fragment) == pytest.approx(by_hand(result, time, TYPICAL, 8))
    if held:
        assert rows["left"][-1] == CLUSTER.num_gpus


def test_one_gpu_on_each_machine_is_a_fragment_for_jobs_of_two() -> None:
    pair = tp.Topology.cluster(tp.Topology.from_links(2, [], 12.0), 2)
    typical = TypicalJobs({TWO: 3, ONE: 1})
    ran = [(ONE, 0, 0.0, 10.0), (ONE, 2, 1.0, 11.0), (HALF, 1, 2.0, 3.0)]
    records = [
        JobRecord(
            SubmittedJob(number, str(number), job, start, end - start),
            tp.Placement((gpu,), topology=pair, job=job),
            *(start, end, end - start),
        )
        for number, (job, gpu, start, end) in enumerate(ran)
    ]
    result = Result(pair, "by hand", tuple(records))
    rows = fragmentation_series(result, typical)
    assert rows.dtype.names == ("time", "left", "fragment")
    assert rows.tolist() == [
        (0, 3, 0.75),  # one GPU next to the job is lost for jobs of two, which are three in four
        (1, 2, 1.5),
        (2, 1.5, 0.75 * 1.5 + 0.25 * 0.5),  # half a GPU is lost for jobs of one, too
        (3, 2, 1.5),
        (10, 3, 0.75),
        (11, 4, 0),
    ]


def test_typical_jobs_are_by_default_those_of_the_result() -> None:
    workload = Workload([TWO] * 6 + [HALF] * 3, [0.0] * 9, [float(i + 1) for i in range(9)])
    result = simulate(CLUSTER, workload, tp.policies.get("fgd"))
    rows = fragmentation_series(result, TypicalJobs.of(workload.jobs))
    assert fragmentation_series(result).tolist() == rows.tolist()
    assert len(np.unique(rows["fragment"])) > 2


def test_moved_jobs_are_where_they_were() -> None:
    topology = tp.Topology.cluster(tp.machines.get("minsky"), 3)
    whole = tp.JobGraph.clique(4).with_(single_machine=True)
    workload = Workload(
        [tp.JobGraph.ring(1)] * 9 + [whole], [0.0] * 9 + [5.0], [3.0, 200.0, 200.0] * 3 + [50.0]
    )
    result = simulate(topology, workload, MakingRoom(), move_times=MoveTimes(1 / 3))
    assert result.jobs["moves"].any()
    typical = TypicalJobs({whole: 1})
    rows = fragmentation_series(result, typical)
    assert 5.0 in rows["time"]
    for time, left, fragment in rows.tolist():
        assert (left, fragment) == pytest.approx(by_hand(result, time, typical, math.inf))


def test_wrong_arguments_are_named() -> None:
    job = ONE.with_(cpus=6)
    result = simulate(CLUSTER, Workload([job], [0.0], [1.0]), tp.policies.get("fgd"), hosts=HOSTS)
    with pytest.raises(ValueError, match="result = 5"):
        fragmentation_series(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="typical = "):
        fragmentation_series(result, [job])  # type: ignore[arg-type]
    with pytest.raises(tp.AllocationError, match="CPUs"):
        fragmentation_series(result, TYPICAL, hosts=tp.HostResources(cpus=2, memory_gb=1))


def test_nothing_ran() -> None:
    large = tp.JobGraph.independent(99)
    result = simulate(CLUSTER, Workload([large], [0.0], [1.0]), tp.policies.get("fgd"))
    assert len(fragmentation_series(result)) == 0
    assert len(fragmentation_series(Result(CLUSTER, "none", ()))) == 0
