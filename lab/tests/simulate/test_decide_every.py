"""Policies that are asked at fixed times instead of at every event."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import topoplace as tp
from topoplace.engine.plan import Plan, QueuedJob
from topoplace.policies import Baseline
from topoplace_lab.simulate import Workload, simulate


class Noted(Baseline):
    """A policy that notes the times at which it is asked; first come, first served."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        """Note the time, and plan."""
        self.times.append(now)
        return super().plan(queue, cluster, now)


def run(decide_every: float | None, *submit: float, seconds: float = 4.0) -> tuple[Noted, list[float]]:
    """Simulate jobs that need a whole machine of four GPUs, and return the policy and when each job starts."""
    policy, jobs = Noted(), [tp.JobGraph.ring(4)] * len(submit)
    workload = Workload(jobs, list(submit), [seconds] * len(submit))
    result = simulate(tp.machines.get("minsky"), workload, policy, decide_every=decide_every)
    return policy, [record.start for record in result.records]


def test_jobs_start_at_multiples_of_the_interval() -> None:
    assert run(None, 0.5, 1.0)[1] == [0.5, 4.5]
    policy, starts = run(3.0, 0.5, 1.0)
    assert starts == [3.0, 9.0]  # the first ends at 7
    assert policy.times == [3.0, 6.0, 9.0]


def test_the_policy_is_asked_only_while_jobs_wait() -> None:
    policy, starts = run(3.0, 0.0, 100.0)
    assert starts == [0.0, 102.0]
    assert policy.times == [0.0, 102.0]


@pytest.mark.parametrize("interval", [0.1, 0.3, 1 / 3, 0.7])
def test_intervals_that_are_no_binary_fractions_come_to_an_end(interval: float) -> None:
    policy, starts = run(interval, *(0.37 * i for i in range(20)), seconds=2.9)
    assert starts == sorted(starts)
    assert all(
        number == pytest.approx(round(number)) for number in (time / interval for time in policy.times)
    )
    assert len(set(policy.times)) == len(policy.times)
    assert 20 * 2.9 <= starts[-1] + 2.9 < 20 * (2.9 + interval) + interval


def test_a_job_that_never_starts_is_rejected_at_such_a_time() -> None:
    class Idle(Noted):
        """It starts nothing."""

        def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
            """Note the time, and start nothing."""
            self.times.append(now)
            return Plan()

    policy = Idle()
    workload = Workload([tp.JobGraph.ring(2)], [0.5], [1.0])
    result = simulate(tp.machines.get("minsky"), workload, policy, decide_every=2.0)
    assert result.records[0].rejected
    assert set(policy.times) == {2.0}


@pytest.mark.parametrize("interval", [0.0, -1.0, float("nan"), "1"])
def test_intervals_that_cannot_be_are_refused(interval: float) -> None:
    with pytest.raises(ValueError, match="decide_every"):
        run(interval, 0.0)


def test_an_interval_below_what_the_clock_can_tell_is_refused() -> None:
    with pytest.raises(ValueError, match=r"decide_every = 1e-06 is too small at 1e\+12 s"):
        run(1e-6, 1e12)
    with pytest.raises(ValueError, match=r"decide_every = 1e-20 is not in 1e-06"):
        run(1e-20, 1.0)
