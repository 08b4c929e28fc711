"""A simulation of many jobs whose speeds change with their neighbours: 100,000 jobs on 12,500 machines of 8 GPUs.

`python benchmarks/clusters/bench_changing_speeds.py` prints the seconds under least-time, with fixed run times and with
`StepTime`. Sizes are like those of Microsoft's Philly clusters: four of five jobs take one GPU, 2 % take several
machines. They are submitted in the time in which 80 % of the GPUs could run them.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import topoplace as tp
from topoplace.experiments.simulate import FixedTime, PerformanceModel, StepTime, Workload, simulate

JOBS, MACHINES = 100_000, 12_500
SHARES = {1: 0.8, 2: 0.05, 4: 0.06, 8: 0.07, 16: 0.012, 32: 0.005, 64: 0.003}
MEDIAN_S = 900.0


def workload(num_jobs: int, num_gpus: int, seed: int = 0) -> Workload:
    """Draw jobs, submitted in the time in which 80 % of the GPUs could run them."""
    random = np.random.default_rng(seed)
    kinds = {size: tp.JobGraph.clique(size).with_(bandwidth_sensitive=size > 1) for size in SHARES}
    sizes = random.choice(list(SHARES), num_jobs, p=list(SHARES.values()))
    seconds = random.lognormal(np.log(MEDIAN_S), 1.0, num_jobs)
    span = float(sizes @ seconds) / (0.8 * num_gpus)
    return Workload(
        [kinds[size] for size in sizes.tolist()], np.sort(random.uniform(0, span, num_jobs)), seconds
    )


def cluster(num_machines: int) -> tp.Topology:
    """Return machines of 8 GPUs in leaves of 32, whose uplinks carry a half of their adapters."""
    sizes = {"leaf": 32, "spine": num_machines}
    return tp.Topology.cluster(
        tp.machines.get("dgx-h100"),
        fabric=tp.Fabric.regular(num_machines, sizes).with_level("spine", oversubscription=2.0),
    )


def seconds_of(topology: tp.Topology, jobs: Workload, model: PerformanceModel) -> tuple[float, float]:
    """Return how long the simulation takes, and the mean slowdown of its jobs."""
    started = time.perf_counter()
    result = simulate(topology, jobs, tp.policies.get("least-time"), performance=model)
    return time.perf_counter() - started, float(result.jobs["slowdown"].mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--machines", type=int, default=MACHINES)
    given = parser.parse_args()
    topology = cluster(given.machines)
    jobs = workload(given.jobs, topology.num_gpus)
    for model in (FixedTime(), StepTime()):
        seconds, slowdown = seconds_of(topology, jobs, model)
        print(f"{type(model).__name__:10} {seconds:6.1f} s, mean slowdown {slowdown:.3f}")


if __name__ == "__main__":
    main()
