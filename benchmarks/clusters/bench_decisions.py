"""Decisions on a cluster of machines of 8 GPUs at 90 % load, for every policy and one of somebody else.

`python benchmarks/clusters/bench_decisions.py [MACHINES]` prints the CPU time of the first decision, the mean over jobs
of 1 to 8 GPUs on one machine, between which jobs start and end, and the time of gangs of 64, 512 and 1,024 GPUs.
"""

from __future__ import annotations

import random
import runpy
import statistics
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import topoplace as tp

sys.path.insert(0, str(Path(__file__).parents[1]))  # run as a program, it finds its own folder only
from timing.measure import group_means

MACHINES = 12_500
GPUS = 8
DECISIONS = 1_000
FREE = 0.1
GANGS = (64, 512, 1024)
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_policy.py"
RINGS = [tp.JobGraph.ring(size).with_(single_machine=True) for size in range(1, GPUS + 1)]


class Cost(NamedTuple):
    first: float
    """CPU seconds of the first decision."""
    mean: float
    """CPU seconds of a decision after that: the median of ten groups' means."""
    gangs: tuple[float, ...]
    """CPU seconds of a gang of each of `GANGS`, the best of three."""


class Load:
    """A cluster of which a share is kept free, a tenth by default: jobs end at random."""

    def __init__(self, machines: int, free: float = FREE) -> None:
        self._free = free
        fabric = tp.Fabric.regular(machines, {"rack": 32, "spine": 512})
        self.cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-a100"), fabric=fabric))
        self._random = random.Random(1)
        self._running: list[str] = []
        self._number = 0
        for machine in range(machines):
            left = GPUS
            while left:
                size = min(left, self._random.choice((1, 2, 4, 8, 8, 8)))
                first = GPUS * (machine + 1) - left
                self.start(tuple(range(first, first + size)))
                left -= size
        self.end_jobs()

    def start(self, placement: tp.Placement | tuple[int, ...]) -> None:
        self.cluster.allocate(f"job-{self._number}", placement)
        self._running.append(f"job-{self._number}")
        self._number += 1

    def end_jobs(self) -> None:
        while self.cluster.num_free < self._free * self.cluster.topology.num_gpus:
            at = self._random.randrange(len(self._running))
            self._running[at], self._running[-1] = self._running[-1], self._running[at]
            self.cluster.release(self._running.pop())

    def decision(self, policy: tp.Policy) -> float:
        """Return the CPU seconds of one decision; then let the job start, and others end."""
        job = self._random.choice(RINGS)
        started = time.thread_time()
        placement = policy.place(job, self.cluster)
        seconds = time.thread_time() - started
        if placement is not None:
            self.start(placement)
        self.end_jobs()
        return seconds


def cost(policy: tp.Policy, machines: int = MACHINES) -> Cost:
    load = Load(machines)
    first = load.decision(policy)
    for _ in range(DECISIONS // 4):
        load.decision(policy)
    means = group_means([load.decision(policy) for _ in range(DECISIONS)])
    return Cost(first, statistics.median(means), tuple(gang(policy, load.cluster, size) for size in GANGS))


def gang(policy: tp.Policy, cluster: tp.Cluster, size: int) -> float:
    job, seconds = tp.JobGraph.ring(size), []
    for _ in range(4):
        started = time.thread_time()
        placement = policy.place(job, cluster)
        seconds.append(time.thread_time() - started)
        if placement is not None:
            cluster.allocate("gang", placement)
            cluster.release("gang")
    return min(seconds[1:])


def policies() -> list[tp.Policy]:
    of_others = runpy.run_path(str(EXAMPLE), run_name="example")["HighestIds"]
    return [*(tp.policies.get(name) for name in tp.policies.names()), of_others()]


@pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.name)
def test_decisions_at_90_percent_load(benchmark: Any, policy: tp.Policy) -> None:
    benchmark.pedantic(cost, args=(policy,), rounds=1)


def main() -> None:
    machines = int(sys.argv[1]) if len(sys.argv) > 1 else MACHINES
    print(
        f"{machines} machines of {GPUS} GPUs: ms of the first decision, us of the mean, ms of gangs of {GANGS}"
    )
    for policy in policies():
        first, mean, gangs = cost(policy, machines)
        shown = "  ".join(f"{1e3 * seconds:7.2f}" for seconds in gangs)
        print(f"{policy.name:16} {1e3 * first:8.1f} ms {1e6 * mean:8.1f} us   {shown} ms", flush=True)


if __name__ == "__main__":
    main()
