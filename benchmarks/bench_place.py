"""One decision of a scheduler through `policy.place`: 16 GPUs, 8 of them busy at random.

`python benchmarks/bench_place.py` prints the median microseconds of every case and the median over all.
"""

from __future__ import annotations

import random
import statistics
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pytest

import topoplace as tp
from timing.measure import timed

PATTERNS = {
    "ring": tp.JobGraph.ring,
    "clique": tp.JobGraph.clique,
    "star": tp.JobGraph.star,
    "tree": tp.JobGraph.tree,
}
MACHINES = ("torus2d-16", "cubemesh-16")
SIZES = range(2, 9)
NUM_STATES = 10


class Case(NamedTuple):
    machine: str
    policy: str
    pattern: str
    size: int
    sensitive: bool

    def __str__(self) -> str:
        kind = "sensitive" if self.sensitive else "insensitive"
        return f"{self.policy}, {kind} {self.pattern}({self.size}) on {self.machine}"


# Scores of Greedy: aggregated bandwidth; of Preserve: effective (up to 5 tasks) and preserved bandwidth.
KINDS = (("mapa-greedy", False), ("mapa-preserve", True), ("mapa-preserve", False))
CASES = [
    Case(machine, policy, pattern, size, sensitive)
    for machine, (policy, sensitive), pattern, size in product(MACHINES, KINDS, PATTERNS, SIZES)
]


def decisions(case: Case) -> tuple[tp.Policy, tp.JobGraph, list[tp.Cluster]]:
    """Return the policy, the job and some clusters, after decisions that fill their caches."""
    rng = random.Random(str(case))
    topology = tp.machines.get(case.machine)
    policy = tp.policies.get(case.policy)
    job = PATTERNS[case.pattern](case.size).with_(bandwidth_sensitive=case.sensitive)
    clusters = []
    for _ in range(NUM_STATES):
        cluster = tp.Cluster(topology)
        cluster.allocate("running", rng.sample(range(topology.num_gpus), 8))
        policy.place(job, cluster)
        clusters.append(cluster)
    return policy, job, clusters


@pytest.mark.parametrize("case", CASES, ids=str)
def test_place(benchmark: Any, case: Case) -> None:
    policy, job, clusters = decisions(case)
    state = iter(clusters * 1000)
    placement = benchmark.pedantic(lambda: policy.place(job, next(state)), rounds=200, warmup_rounds=20)
    assert placement.optimal


def median_microseconds(case: Case) -> float:
    """Return the median over the states and repetitions of one case."""
    policy, job, clusters = decisions(case)
    return 1e6 * statistics.median(timed(partial(policy.place, job, cluster))[0] for cluster in clusters * 5)


def main() -> None:
    medians = {case: median_microseconds(case) for case in CASES}
    for case, median in medians.items():
        print(f"{median:8.1f} us  {case}")
    print(
        f"{statistics.median(medians.values()):8.1f} us  median over cases; slowest {max(medians.values()):.1f} us"
    )


if __name__ == "__main__":
    main()
