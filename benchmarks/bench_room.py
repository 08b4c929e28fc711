"""Making room for a job: one machine of 16 GPUs with 12 jobs, and clusters of 1,000 machines.

`python benchmarks/bench_room.py` prints, for each case, CPU milliseconds (median, worst), how many plans are proven,
and the largest gap between a plan and its bound.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator
from typing import Any

import pytest

import topoplace as tp

MACHINES = ("cubemesh-16", "torus2d-16", "dgx2")
ONE, MANY = "one machine", "1,000 machines"
Case = tuple[tp.JobGraph, tp.Cluster, dict[str, Any]]


def one_machine(seed: int) -> Case:
    """Return a machine of 16 GPUs with 12 jobs of 1 or 2 GPUs, and a job that asks for bandwidth or utility."""
    draws = random.Random(seed)
    cluster = tp.Cluster(tp.machines.get(draws.choice(MACHINES)))
    gpus = draws.sample(range(16), 16)
    for number in range(12):
        size = 2 if number < 3 else 1
        taken, gpus = gpus[:size], gpus[size:]
        cluster.allocate(f"job {number}", taken, tp.JobGraph.ring(size))
    pattern = draws.choice([tp.JobGraph.ring, tp.JobGraph.clique, tp.JobGraph.tree])
    factors = {f"job {number}": draws.uniform(0.5, 2) for number in range(12)}
    preempt = draws.choice([2.0, 10.0, math.inf])
    asked = draws.choice([{}, {"min_bandwidth": 25.0}, {"min_bandwidth": 12.0}, {"min_utility": 0.9}])
    job = pattern(draws.choice([2, 3, 4, 5, 6, 8])).with_(min_utility=asked.pop("min_utility", 0.0))
    return job, cluster, {"cost": tp.MoveCosts(preempt_per_gpu=preempt, factors=factors), **asked}


def many_machines(seed: int, num_machines: int = 1000) -> Case:
    """Return machines of 8 GPUs with jobs of 1, 2 and 4 on nearly all GPUs, and a job for one whole machine or half."""
    draws = random.Random(seed)
    cluster = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx1-v100"), num_machines))
    for machine in range(num_machines):
        gpus = draws.sample(range(8 * machine, 8 * machine + 8), 8)
        while len(gpus) == 8 or (gpus and draws.random() < 0.9):
            size = min(len(gpus), draws.choice([1, 1, 1, 2, 2, 4]))
            taken, gpus = gpus[:size], gpus[size:]
            cluster.allocate(f"job {taken[0]}", taken, tp.JobGraph.ring(size))
    size = draws.choice([4, 8])
    asked = draws.choice([{}, {"min_bandwidth": 20.0}] if size == 4 else [{}])
    return tp.JobGraph.ring(size).with_(single_machine=True), cluster, asked


def cases(kind: str, count: int) -> Iterator[Case]:
    build = one_machine if kind == ONE else many_machines
    return (build(seed) for seed in range(count))


@pytest.mark.parametrize(("kind", "seed"), [(ONE, 0), (ONE, 1), (MANY, 0)])
def test_make_room(benchmark: Any, kind: str, seed: int) -> None:
    job, cluster, asked = (one_machine if kind == ONE else many_machines)(seed)
    benchmark(tp.make_room, job, cluster, **asked)


def main() -> None:
    for kind, count in ((ONE, 400), (MANY, 12)):
        milliseconds: list[float] = []
        proven, gap = 0, 0.0
        for job, cluster, asked in cases(kind, count):
            begin = time.thread_time()
            plan = tp.make_room(job, cluster, timeout=10.0, **asked)
            milliseconds.append((time.thread_time() - begin) * 1e3)
            proven += plan.optimal
            if plan.start and plan.cost > plan.bound:
                gap = max(gap, 1 - plan.bound / plan.cost)
        within = sum(one <= (20 if kind == ONE else 200) for one in milliseconds)
        print(
            f"{kind}: median {statistics.median(milliseconds):.2f} ms, worst {max(milliseconds):.1f} ms, "
            f"within the bar {within} of {count}, proven {proven}, largest gap {gap:.0%}"
        )


if __name__ == "__main__":
    main()
