"""A year of jobs through the queues of TSUBAME 2.5: 100,000 of them on 480 nodes of three GPUs.

`python benchmarks/bench_queues.py` prints the seconds of both queues, with remote copies on shared links.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from topoplace.simulate import RemoteCopies, Transfers, Workload, simulate

NODES, JOBS = 480, 100_000
HOST = tp.HostResources(cpus=8, memory_gb=22.0)
QUEUES = ("g-queue", "r-queue")
MEAN_SECONDS = 15_000.0
LOAD = 0.88
BURST = 20


class Cost(NamedTuple):
    seconds: float
    """CPU time."""
    mean_wait: float
    longest_queue: int


def log(jobs: int = JOBS, load: float = LOAD, seed: int = 0) -> Workload:
    """Bursts of up to `BURST` jobs of the same kind, mostly of seven nodes; most kinds leave others no room."""
    random = np.random.default_rng(seed)
    bursts = np.repeat(np.arange(jobs), random.integers(1, BURST + 1, jobs))[:jobs]
    nodes = np.where(random.random(jobs) < 0.7, 7, random.choice([1, 2, 4, 16, 32], jobs))
    gpus = random.choice([1, 2, 3], jobs, p=[0.2, 0.2, 0.6])
    cpus = random.choice([2, 4, 6, 8], jobs, p=[0.1, 0.1, 0.2, 0.6])
    memory = random.choice([4, 8, 16, 22], jobs)
    kinds = list(zip(*(column[bursts].tolist() for column in (nodes, gpus, cpus, memory)), strict=True))
    graphs = {kind: _graph(*kind) for kind in set(kinds)}
    seconds = np.minimum(random.lognormal(0.0, 1.3, jobs), 50.0)
    seconds *= MEAN_SECONDS / seconds.mean()
    span = float((nodes[bursts] * seconds).sum()) / NODES / load
    submit = np.sort(random.random(bursts[-1] + 1) * span)[bursts] + random.random(jobs) * 600.0
    connections = random.integers(100, 100_001, (jobs, 2)).tolist()
    sent = [
        Transfers(float(kind[3]), network, float(kind[3]), copies)
        for kind, (network, copies) in zip(kinds, connections, strict=True)
    ]
    return Workload([graphs[kind] for kind in kinds], submit, seconds, transfers=sent)


def _graph(nodes: int, gpus: int, cpus: int, memory: int) -> tp.JobGraph:
    job = tp.JobGraph.independent(nodes * gpus)
    return job.with_(processes=nodes, cpus=nodes * cpus, memory_gb=float(nodes * memory))


def cost(queue: str, workload: Workload) -> Cost:
    node = tp.Topology.from_links(3, [], 8.0, model="K20X", name="thin node")
    topology = tp.Topology.cluster(node, NODES)
    started = time.process_time()
    result = simulate(topology, workload, tp.policies.get(queue), hosts=HOST, performance=RemoteCopies())
    seconds = time.process_time() - started
    jobs = result.jobs
    moments = np.concatenate((jobs["submit"], jobs["start"]))
    change = np.repeat([1, -1], len(jobs))[np.argsort(moments, kind="stable")]
    return Cost(seconds, float(jobs["wait"].mean()), int(np.cumsum(change).max()))


@pytest.mark.parametrize("queue", QUEUES)
def test_a_week(benchmark: Any, queue: str) -> None:
    workload = log(JOBS // 52)
    found = benchmark.pedantic(cost, args=(queue, workload), rounds=3, warmup_rounds=1)
    assert found.mean_wait >= 0


def main() -> None:
    workload = log()
    for queue in QUEUES:
        found = cost(queue, workload)
        waits = f"mean wait {found.mean_wait:,.0f} s, at most {found.longest_queue:,} wait"
        print(f"{queue}: {found.seconds:5.1f} s for {len(workload):,} jobs; {waits}", flush=True)


if __name__ == "__main__":
    main()
