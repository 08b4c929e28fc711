"""A year of TSUBAME 2.5 through both queues: 100,000 jobs on 480 nodes of three GPUs.

`python benchmarks/bench_queues.py` prints the seconds of each, with remote copies on shared links.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.papers.tsubame.generator import workload
from topoplace_lab.papers.tsubame.machine import MODEL, NODE, machines
from topoplace_lab.simulate import Workload, simulate

NODES = 480
QUEUES = ("g-queue", "r-queue")


class Cost(NamedTuple):
    seconds: float
    """CPU seconds."""
    mean_wait: float
    longest_queue: int


def cost(queue: str, jobs: Workload) -> Cost:
    topology = machines(NODES)
    started = time.process_time()
    result = simulate(topology, jobs, tp.policies.get(queue), hosts=NODE, performance=MODEL)
    seconds = time.process_time() - started
    rows = result.jobs
    moments = np.concatenate((rows["submit"], rows["start"]))
    change = np.repeat([1, -1], len(rows))[np.argsort(moments, kind="stable")]
    return Cost(seconds, float(rows["wait"].mean()), int(np.cumsum(change).max()))


@pytest.mark.parametrize("queue", QUEUES)
def test_a_week(benchmark: Any, queue: str) -> None:
    found = benchmark.pedantic(cost, args=(queue, workload(days=7)), rounds=3, warmup_rounds=1)
    assert found.mean_wait >= 0


def main() -> None:
    year = workload()
    for queue in QUEUES:
        found = cost(queue, year)
        waits = f"mean wait {found.mean_wait:,.0f} s, at most {found.longest_queue:,} wait"
        print(f"{queue}: {found.seconds:5.1f} s for {len(year):,} jobs; {waits}", flush=True)


if __name__ == "__main__":
    main()
