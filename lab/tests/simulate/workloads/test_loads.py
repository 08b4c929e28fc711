"""Workloads that ask for a given share of all GPU time."""

from __future__ import annotations

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.simulate import Workload


def offered(workload: Workload, num_gpus: int) -> float:
    """GPU seconds of the jobs, over those between the first and the last submission."""
    work = sum(
        job.num_tasks * job.gpu_fraction * time
        for job, time in zip(workload.jobs, workload.base_time.tolist(), strict=True)
    )
    return work / float(np.ptp(workload.submit_time)) / num_gpus


@pytest.mark.parametrize("load", [0.1, 1.0, 3])
def test_submissions_are_stretched(load: float) -> None:
    given = Workload.poisson(50, 10.0, 100.0, [1, 2, 4], seed=3)
    stretched = given.with_load(load, 16)
    assert offered(stretched, 16) == pytest.approx(load)
    gaps, before = np.diff(stretched.submit_time), np.diff(given.submit_time)
    assert gaps / gaps.sum() == pytest.approx(before / before.sum())
    assert (stretched.jobs, stretched.job_ids) == (given.jobs, given.job_ids)


def test_jobs_submitted_at_once_come_at_random_times() -> None:
    given = Workload.mapa(200, seed=1)
    one, again, other = (given.with_load(0.5, 8, seed) for seed in (1, 1, 2))
    assert offered(one, 8) == pytest.approx(0.5)
    assert (one.submit_time == again.submit_time).all()
    assert (one.submit_time != other.submit_time).any()
    gaps = np.diff(one.submit_time)
    assert gaps.min() >= 0
    assert 0.8 < gaps.std() / gaps.mean() < 1.2  # as of a Poisson process


def test_shares_of_gpus_count() -> None:
    half = tp.JobGraph.independent(1).with_(gpu_fraction=0.5)
    workload = Workload([half, half], [0.0, 1.0], [10.0, 30.0]).with_load(2.0, 1)
    assert workload.submit_time.tolist() == [0.0, 10.0]


@pytest.mark.parametrize(
    ("load", "last", "reached"), [(0.9, 1e6, "0.1"), (3.0, 1e6, "0.1"), (0.02, 1e5, "0.45")]
)
def test_a_load_that_most_jobs_cannot_reach_is_noted(load: float, last: float, reached: str) -> None:
    """The last job holds one of a thousand GPUs long after the others."""
    one = tp.JobGraph.independent(1)
    workload = Workload([one] * 3, [0.0, 1.0, 2.0], [100.0, 100.0, last])
    with pytest.warns(
        UserWarning, match=rf"load = {load:g}: cannot be reached: .* use 0\.\d+ % of all GPU time"
    ):
        stretched = workload.with_load(load, 1000)
    assert offered(stretched, 1000) == pytest.approx(load)


@pytest.mark.parametrize("load", [0.3, 0.9, 2.0])
def test_a_load_that_jobs_reach_is_not_noted(load: float) -> None:
    Workload.poisson(200, 10.0, 100.0, [1, 2, 4], seed=3).with_load(load, 16)  # a warning is an error here


@pytest.mark.parametrize(
    ("load", "num_gpus", "message"),
    [
        (0.0, 8, "load = 0.0 is not above 0"),
        (float("nan"), 8, "load = nan is not a finite number"),
        (1.0, 0, "num_gpus = 0 is not in 1"),
    ],
)
def test_wrong_arguments_are_named(load: float, num_gpus: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload.mapa(3).with_load(load, num_gpus)


def test_there_must_be_work_to_spread() -> None:
    alone = Workload([tp.JobGraph.ring(2)], [0.0], [5.0])
    idle = Workload([tp.JobGraph.ring(2)] * 2, [0.0, 1.0], [0.0, 0.0])
    for workload in (alone, idle):
        with pytest.raises(ValueError, match="load = 1: there must be two jobs or more, and one that runs"):
            workload.with_load(1.0, 8)
