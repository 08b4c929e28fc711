"""What an event of a simulation costs while many jobs of 20 kinds wait for 100 machines of 8 GPUs.

`python benchmarks/clusters/bench_waiting_jobs.py [LENGTH...]` prints CPU microseconds for each policy and length of the
queue: of a submission, and of the end of a job, after which others start. Every machine has a free GPU, so that every
kind of job has to be looked at. Under `topo-aware-p`, jobs ask for utilities, and many are deferred at every event.
The last two columns are the same with plans, as policies outside the engine make them.
"""

from __future__ import annotations

import sys
import time
from typing import Any, NamedTuple

import pytest

import topoplace as tp
from topoplace.policies import Policy
from topoplace_lab.simulate import JobRecord
from topoplace_lab.simulate.scheduling import PlannedQueue, Queue, queue_of
from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob

MACHINES = 100
LENGTHS = (100, 1_000, 10_000, 100_000)
POLICIES = ("fcfs", "best-fit", "topo-aware", "topo-aware-p", "mapa-greedy")
EVENTS = 50
SHAPES = (tp.JobGraph.ring, tp.JobGraph.star, tp.JobGraph.clique, tp.JobGraph.chain, tp.JobGraph.independent)


class Cost(NamedTuple):
    submission: float
    """CPU microseconds of a job's submission while none can start."""
    end: float
    """CPU microseconds of a job's end, after which others start on its GPUs."""


class Events:
    """A full cluster with a queue of one length, in which jobs are submitted and end."""

    def __init__(self, policy: Policy, length: int, *, plans: bool) -> None:
        self.cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), count=MACHINES))
        asks = policy.name == "topo-aware-p"
        self._kinds = [
            shape(size).with_(single_machine=True, min_utility=0.9 * asks)
            for shape in SHAPES
            for size in (2, 3, 4, 7)
        ]
        self._number = 0
        self._running = [self._start_on(machine) for machine in range(MACHINES)]
        self.queue: Queue = PlannedQueue(policy, self.cluster) if plans else queue_of(policy, self.cluster)
        for _ in range(length):
            self._submit()
        self._decide()

    def submission(self) -> float:
        started = time.thread_time()
        self._submit()
        self._decide()
        return time.thread_time() - started

    def end(self) -> float:
        started = time.thread_time()
        self.cluster.release(self._running.pop(0))
        self._decide()
        return time.thread_time() - started

    def _start_on(self, machine: int) -> str:
        name = f"first-{machine}"
        self.cluster.allocate(name, range(8 * machine, 8 * machine + 7))
        return name

    def _submit(self) -> None:
        job = self._kinds[self._number % len(self._kinds)]
        self.queue.submit(JobRecord(SubmittedJob(self._number, str(self._number), job, 0.0, 1.0)))
        self._number += 1

    def _decide(self) -> None:
        decided = self.queue.decide(0.0)
        self.queue.count_deferred()
        self._running += [record.job_id for record, _ in decided.start]


def cost(policy: str, length: int, *, plans: bool = False, events: int = EVENTS) -> Cost:
    state = Events(tp.policies.get(policy), length, plans=plans)
    ends = [state.end() for _ in range(events)]
    state.submission()
    submissions = [state.submission() for _ in range(events)]
    return Cost(1e6 * sum(submissions) / events, 1e6 * sum(ends) / events)


@pytest.mark.parametrize("policy", POLICIES)
def test_an_event_with_10_000_waiting_jobs(benchmark: Any, policy: str) -> None:
    benchmark.pedantic(cost, args=(policy, 10_000), rounds=1)


def main() -> None:
    lengths = [int(length) for length in sys.argv[1:]] or LENGTHS
    print(f"{'':24}{'us per submission, end':>24}{'the same with plans':>24}")
    for policy in POLICIES:
        for length in lengths:
            own = cost(policy, length)
            plans = cost(policy, length, plans=True, events=5)
            shown = "".join(f"{us:12,.0f}" for us in (*own, *plans))
            print(f"{policy:13}{length:>11,}{shown}", flush=True)


if __name__ == "__main__":
    main()
