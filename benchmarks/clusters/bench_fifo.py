"""First come, first served on 1,000 machines of 8 GPUs at 90 % load: CPU time and memory of a long simulation.

`python benchmarks/clusters/bench_fifo.py [JOBS]` simulates JOBS jobs, by default a million.
"""

from __future__ import annotations

import resource
import sys
import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.simulate import Workload, simulate

JOBS = 1_000_000
MACHINES = 1_000
SIZES = (1, 2, 4, 8)
LOAD = 0.9
MEAN_TIME = 1000.0
"""Mean run time in seconds."""


class Cost(NamedTuple):
    seconds: float
    """CPU seconds of the simulation."""
    peak_gb: float
    """The most memory that the process ever held, GB; the workload and the result are part of it."""
    mean_wait: float
    """Mean waiting time of the jobs, in seconds."""


def workload(jobs: int) -> Workload:
    rng = np.random.default_rng(0)
    rings = [tp.JobGraph.ring(size) for size in SIZES]
    gap = MEAN_TIME * float(np.mean(SIZES)) / (8 * MACHINES * LOAD)
    submit, run = np.cumsum(rng.exponential(gap, jobs)), rng.exponential(MEAN_TIME, jobs)
    return Workload([rings[i] for i in rng.integers(len(rings), size=jobs).tolist()], submit, run)


def cost(jobs: int) -> Cost:
    given = workload(jobs)
    topology = tp.Topology.cluster(tp.machines.get("dgx-a100"), count=MACHINES)
    started = time.thread_time()
    result = simulate(topology, given, tp.policies.get("fcfs"))
    seconds = time.thread_time() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # KB on Linux
    waits = [record.start - record.submitted.submit_time for record in result.records]
    return Cost(seconds, peak, float(np.mean(waits)))


@pytest.mark.parametrize("jobs", [JOBS // 50])
def test_first_come_first_served(benchmark: Any, jobs: int) -> None:
    benchmark.pedantic(cost, args=(jobs,), rounds=1)


def main() -> None:
    jobs = int(sys.argv[1]) if len(sys.argv) > 1 else JOBS
    seconds, peak, wait = cost(jobs)
    print(f"{jobs:,} jobs on {MACHINES:,} machines: {seconds:.1f} s, {1e6 * seconds / jobs:.1f} us per job")
    print(f"at most {peak:.2f} GB; mean wait {wait:.1f} s")


if __name__ == "__main__":
    main()
