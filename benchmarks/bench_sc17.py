"""SC'17's scenario 2: 10,000 jobs on 1,000 machines of four GPUs, and on 200 where they queue, under its four policies.

`python benchmarks/bench_sc17.py` prints CPU seconds of every run, and the microseconds that the policy's plans take per
job, in a run of their own. The paper's decisions took 3 s (topology-aware) and 0.45 s (greedy); those of its published
simulator take 0.39 and 0.048 s.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import pytest

import topoplace as tp
from topoplace.policies import Explanation, Plan, Policy, QueuedJob
from topoplace_lab.papers.sc17.measured import authors_profile
from topoplace_lab.simulate import ProfiledTime, Workload, simulate

POLICIES = ("fcfs", "best-fit", "topo-aware", "topo-aware-p")
SCENARIOS = {1000: 10.0, 200: 0.49}
"""Mean seconds between two jobs, by number of machines: the paper's, and a value that keeps 200 machines busy."""
JOBS = 10_000


class Cost(NamedTuple):
    seconds: float
    """CPU seconds of the whole run."""
    decision: float
    """CPU microseconds of the policy for all its plans, divided by the number of placed jobs."""


class Timed:
    """A policy that is asked for plans, and records the CPU time of these."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.name = policy.name
        self.seconds = 0.0

    def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
        return self.policy.place(job, cluster)

    def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> Explanation:
        return self.policy.explain(job, cluster, top)

    def plan(self, queue: Sequence[QueuedJob], cluster: tp.Cluster, now: float) -> Plan:
        started = time.thread_time()
        plan = self.policy.plan(queue, cluster, now)
        self.seconds += time.thread_time() - started
        return plan


@cache
def workload(machines: int) -> Workload:
    return Workload.sc17(JOBS, mean_gap=SCENARIOS[machines], profile=authors_profile())


def cost(policy: str, machines: int) -> Cost:
    timed = Timed(tp.policies.get(policy, profile=authors_profile()))
    seconds = run(tp.policies.get(policy, profile=authors_profile()), machines)
    run(timed, machines)
    return Cost(seconds, 1e6 * timed.seconds / JOBS)


def run(policy: Policy, machines: int) -> float:
    """Return the CPU seconds of one run."""
    jobs = workload(machines)
    topology = tp.Topology.cluster(tp.machines.get("minsky"), count=machines)
    started = time.thread_time()
    result = simulate(topology, jobs, policy, performance=ProfiledTime(authors_profile()))
    seconds = time.thread_time() - started
    assert all(record.placement for record in result.records)
    return seconds


@pytest.mark.parametrize("machines", SCENARIOS)
@pytest.mark.parametrize("policy", POLICIES)
def test_scenario_2(benchmark: Any, policy: str, machines: int) -> None:
    benchmark.pedantic(cost, args=(policy, machines), rounds=1)


def main() -> None:
    for machines in SCENARIOS:
        for policy in POLICIES:
            seconds, decision = cost(policy, machines)
            print(f"{machines:5} machines  {policy:13} {seconds:5.2f} s  {decision:5.0f} us per decision")


if __name__ == "__main__":
    main()
