"""FGD's experiment: pods of a trace fill GPU nodes and never leave; how many GPUs are allocated at 130 % of demand?

    python benchmarks/bench_fragmentation.py NODES.csv[.gz] PODS.csv[.gz] [--seeds 10] [--policies fgd,least-stranded]

NODES has the columns sn, cpu_milli, memory_mib, gpu and model; PODS has num_gpus, gpu_milli, gpu_type (models joined
by `|`), cpus and mem_mib. As in the paper, pods come in random order, and random ones are added until the next would
ask for more than 130 % of all GPUs; a pod that does not fit when it comes is dropped.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import topoplace as tp
from topoplace.objectives.expected_fragmentation import TypicalJobs

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


def rows(path: str) -> list[dict[str, str]]:
    data = Path(path).read_bytes()
    text = gzip.decompress(data) if path.endswith(".gz") else data
    return list(csv.DictReader(text.decode().splitlines()))


def cluster_of(nodes: Sequence[dict[str, str]]) -> tp.Cluster:
    templates: dict[tuple[int, str], tp.Topology] = {}
    for row in nodes:
        key = int(row["gpu"]), row["model"]
        if key not in templates:
            bare = tp.Topology.from_links(key[0], [], 12.0)
            templates[key] = replace(bare, gpus=tuple(replace(gpu, model=key[1]) for gpu in bare.gpus))
    topology = tp.Topology.cluster([templates[int(row["gpu"]), row["model"]] for row in nodes])
    hosts = [
        tp.HostResources(int(row["cpu_milli"]) / 1000, int(row["memory_mib"]) * 2**20 / 1e9) for row in nodes
    ]
    return tp.Cluster(topology, hosts)


def job_of(row: dict[str, str]) -> tp.JobGraph:
    cpus, memory_gb = float(row["cpus"] or 0), float(row["mem_mib"] or 0) * 2**20 / 1e9 or None
    if not int(row["num_gpus"]):
        return tp.JobGraph.without_gpus(cpus=cpus, memory_gb=memory_gb)
    models = tuple(model for model in row["gpu_type"].split("|") if model)
    return tp.JobGraph.independent(int(row["num_gpus"])).with_(
        gpu_fraction=int(row["gpu_milli"]) / 1000,
        gpu_model=models or None,
        cpus=cpus,
        memory_gb=memory_gb,
        single_machine=True,
    )


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
    arguments = parser.parse_args()
    cluster = cluster_of([row for row in rows(arguments.nodes) if int(row["gpu"])])
    pods = [job_of(row) for row in rows(arguments.pods)]
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


if __name__ == "__main__":
    main()
