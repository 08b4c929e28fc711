"""Simulated queues in which a job waits for one machine while that is right, and is split while that is right."""

from __future__ import annotations

import math

import pytest

import topoplace as tp
from topoplace.policies import LeastTime
from topoplace_lab.simulate import Discipline, Result, Workload, simulate

PAIR_OF_H100S = tp.Topology.cluster(tp.machines.get("dgx-h100"), 2, network=50.0)
EIGHT = tp.JobGraph.allreduce(8).with_(bandwidth_sensitive=True)
HALF = tp.JobGraph.independent(4)
DISCIPLINES = [None, Discipline(), Discipline(backfill="none"), Discipline(backfill="conservative")]
IDS = ["own order", "easy", "no backfill", "conservative"]


def simulated(until: float, seconds: float, discipline: Discipline | None, waits: float = 1.0) -> Result:
    """Simulate a job of eight that runs for `seconds`, submitted while half of each machine is busy `until` a time."""
    jobs = [HALF, HALF, HALF, HALF, EIGHT]
    base = [until, 1e6, until, 1e6, seconds]  # the first two share a machine
    workload = Workload(jobs, [0.0, 0.0, 0.0, 0.0, 1.0], base, requested_time=[math.nan] * 4 + [seconds])
    return simulate(PAIR_OF_H100S, workload, LeastTime(waits=waits), discipline=discipline)


def patience(seconds: float) -> float:
    return LeastTime(waits=1.0).patience(EIGHT, tp.Cluster(PAIR_OF_H100S), seconds)


def machines(result: Result, row: int) -> int:
    placement = result.records[row].placement
    assert placement is not None
    return len({PAIR_OF_H100S.gpus[gpu].machine for gpu in placement.gpus})


@pytest.mark.parametrize("discipline", DISCIPLINES, ids=IDS)
def test_a_job_waits_for_a_machine_that_is_soon_idle(discipline: Discipline | None) -> None:
    busy = [tp.JobGraph.independent(8), HALF, EIGHT]
    workload = Workload(busy, [0.0, 0.0, 1.0], [50.0, 1e6, 1024.0], requested_time=[50.0, 1e6, 1024.0])
    assert patience(1024.0) > 50
    job = simulate(PAIR_OF_H100S, workload, LeastTime(), discipline=discipline).jobs[2]
    assert (job["start"], job["run_time"]) == (50.0, 1024.0)


@pytest.mark.parametrize("discipline", DISCIPLINES, ids=IDS)
def test_it_starts_split_once_it_has_waited_as_long_as_that_costs(discipline: Discipline | None) -> None:
    result = simulated(10.0, 1024.0, discipline)
    start = float(result.jobs["start"][4])
    assert machines(result, 4) == 2
    if discipline is not None and discipline.backfill == "conservative":
        assert start == 10.0  # it knows that no machine comes in time
    else:
        assert start == pytest.approx(1.0 + patience(1024.0))
        assert result.jobs["run_time"][4] == pytest.approx(1024.0 + patience(1024.0))


@pytest.mark.parametrize("discipline", DISCIPLINES, ids=IDS)
def test_without_waiting_it_is_split_at_once(discipline: Discipline | None) -> None:
    result = simulated(10.0, 1024.0, discipline, waits=0.0)
    assert (machines(result, 4), result.jobs["start"][4]) == (2, 10.0)


def test_beside_jobs_that_never_end_it_still_starts() -> None:
    cluster = tp.Cluster(PAIR_OF_H100S)
    cluster.allocate("first", range(4))
    cluster.allocate("second", range(8, 12))
    workload = Workload([EIGHT], [5.0], [1024.0], requested_time=[1024.0])
    for discipline in DISCIPLINES[:3]:
        result = simulate(cluster, workload, LeastTime(waits=1.0), discipline=discipline)
        assert result.jobs["start"][0] == pytest.approx(5.0 + patience(1024.0))


def test_no_job_starves_in_a_stream_of_small_ones() -> None:
    small = tp.JobGraph.allreduce(2).with_(bandwidth_sensitive=True)
    jobs = [small] * 200 + [EIGHT]
    submit = [*(10.0 * i for i in range(200)), 100.0]
    workload = Workload(jobs, submit, [75.0] * 200 + [64.0], requested_time=[75.0] * 200 + [64.0])
    for discipline in DISCIPLINES[1:]:
        job = simulate(PAIR_OF_H100S, workload, LeastTime(), discipline=discipline).jobs[200]
        assert job["start"] - 100.0 <= 2 * patience(64.0) + 75.0


def test_a_short_job_does_not_wait_as_long_as_an_older_one_of_its_kind() -> None:
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), 4, network=50.0))
    for machine in range(4):
        cluster.allocate(f"half of {machine}", range(8 * machine, 8 * machine + 4))
    workload = Workload([EIGHT, EIGHT], [0.0, 1.0], [1e5, 16.0], requested_time=[1e5, 16.0])
    for discipline in (None, Discipline()):
        jobs = simulate(cluster, workload, LeastTime(waits=1.0), discipline=discipline).jobs
        if discipline is None:
            assert jobs["start"][1] == pytest.approx(1.0 + patience(16.0))
        assert jobs["start"][1] < jobs["start"][0]
