"""FGD's experiment: pods of a trace fill GPU nodes and never leave; how many GPUs are allocated at 130 % of demand?

    python benchmarks/bench_fragmentation.py NODES.csv[.gz] PODS.csv[.gz] [--seeds 10] [--policies fgd,least-stranded]

NODES is a list of nodes (`discovery.research.trace_nodes`), PODS a trace (`simulate.read_workload`), such as those of
Alibaba's openb. As in the paper, pods come in random order, and random ones are added until the next would
ask for more than 130 % of all GPUs; a pod that does not fit when it comes is dropped. With --bound, the last line is an
upper bound for any choice and order of the pods that come (`packing_bound.py`; needs HiGHS).
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Sequence

import topoplace as tp
from topoplace_lab.research.trace_nodes import read_nodes
from topoplace_lab.sharing.expected_fragmentation import TypicalJobs
from topoplace_lab.simulate import read_workload
from topoplace_lab.simulate.workloads import packed

RATIO = 1.3
POLICIES = (
    *(
        "random-fit",
        "dot-product",
        "gpu-clustering",
        "gpu-packing",
        "vector-best-fit",
        "fgd",
        "least-stranded",
    ),
    *("vector-worst-fit", "two-choices"),
)


def cluster_of(path: str) -> tp.Cluster:
    with open(path, "rb") as file, packed.opened(file) as text:
        nodes = read_nodes("".join(text.chunks()))
    return tp.Cluster(nodes.topology, nodes.hosts)


def pods_of(path: str) -> tuple[tp.JobGraph, ...]:
    found = read_workload(path, pattern="independent", duration=1.0, without_gpus=True)
    print(f"{path}: {found.report}")
    return found.jobs


def thousandths(job: tp.JobGraph) -> int:
    return round(job.num_tasks * job.gpu_fraction * 1000)


def arrivals(pods: Sequence[tp.JobGraph], num_gpus: int, seed: int) -> list[tp.JobGraph]:
    draws = random.Random(seed)
    jobs = draws.sample(pods, len(pods))
    asked, most = sum(map(thousandths, jobs)), RATIO * 1000 * num_gpus
    while asked > most:
        asked -= thousandths(jobs.pop(draws.randrange(len(jobs))))
    while True:
        job = draws.choice(pods)
        if asked + thousandths(job) > most:
            return jobs
        asked += thousandths(job)
        jobs.append(job)


def allocated(cluster: tp.Cluster, jobs: Sequence[tp.JobGraph], policy: tp.policies.Policy) -> float:
    """The share of all GPUs that is allocated in the end, %."""
    used = 0
    for number, job in enumerate(jobs):
        placement = policy.place(job, cluster)
        if placement is not None:
            cluster.allocate(f"pod-{number}", placement)
            used += thousandths(job)
    return used / 10 / cluster.topology.num_gpus


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("nodes")
    parser.add_argument("pods")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--policies", default=",".join(POLICIES))
    parser.add_argument("--bound", action="store_true")
    arguments = parser.parse_args()
    cluster, pods = cluster_of(arguments.nodes), pods_of(arguments.pods)
    typical = TypicalJobs.of(pods)
    print(f"{len(pods)} pods, {cluster.topology.num_gpus} GPUs, {len(typical.weights)} kinds are typical")
    for name in arguments.policies.split(","):
        options = {"typical": typical} if name in ("fgd", "least-stranded") else {}
        policy = tp.policies.get(name, **options)
        start, found = time.process_time(), []
        for seed in range(arguments.seeds):
            jobs = arrivals(pods, cluster.topology.num_gpus, seed)
            found.append(allocated(cluster.copy(), jobs, policy))
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        seconds = (time.process_time() - start) / arguments.seeds
        print(
            f"{name:17} {statistics.mean(found):6.2f} % +- {spread:.2f}, {seconds:.1f} CPU-s a seed",
            flush=True,
        )
    if arguments.bound:
        from packing_bound import most_gpus

        num_gpus = cluster.topology.num_gpus
        bounds = [
            most_gpus(cluster, arrivals(pods, num_gpus, seed)) / num_gpus for seed in range(arguments.seeds)
        ]
        print(f"{'at most':17} {100 * statistics.mean(bounds):6.2f} %")


if __name__ == "__main__":
    main()
