"""A trace at the size of a large cluster: CPU seconds and memory of a replay of jobs drawn from it.

    python benchmarks/clusters/bench_trace_replay.py TRACE [--jobs 100000] [--gpus 12500] [--load 0.9] [--policy NAME]

The jobs are drawn from the trace, with their sizes and run times, which are cut at `--longest`. They arrive as a
Poisson process whose rate gives the load: the share of all GPUs that would be in use if no job waited. Machines are
DGX-1 of 8 GPUs, or those of `--machine`. The speeds of jobs change with those beside them (`StepTime`), unless run
times are `--fixed`; with `--oversubscription`, leaves of 32 machines share uplinks.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import topoplace as tp
from topoplace_lab.simulate import FixedTime, StepTime, Workload, read_workload

PER_LEAF = 32


def drawn(
    trace: Workload, jobs: int, gpus: int, load: float, longest: float, least_utility: float, seed: int
) -> Workload:
    random = np.random.default_rng(seed)
    rows = random.integers(len(trace), size=jobs)
    kinds = {job: job.with_(min_utility=least_utility) for job in set(trace.jobs)}
    chosen = [kinds[trace.jobs[row]] for row in rows]
    times = np.minimum(trace.base_time[rows], longest)
    work = float(times @ [job.num_tasks for job in chosen])
    return Workload(chosen, np.cumsum(random.exponential(work / (gpus * load) / jobs, jobs)), times)


def cluster(machine: str, gpus: int, oversubscription: float) -> tp.Topology:
    template = tp.machines.get(machine)
    num_machines = -(-gpus // template.num_gpus)
    if oversubscription == 1:
        return tp.Topology.cluster(template, num_machines)
    fabric = tp.Fabric.regular(num_machines, {"leaf": PER_LEAF, "spine": num_machines})
    return tp.Topology.cluster(template, fabric=fabric.with_level("spine", oversubscription=oversubscription))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("trace")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--gpus", type=int, default=12_500)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--longest", type=float, default=36_000.0, help="seconds; longer jobs are cut")
    parser.add_argument("--policy", default="topo-aware-p")
    parser.add_argument("--min-utility", type=float, default=0.5)
    parser.add_argument("--pattern", default="ring")
    parser.add_argument("--machine", default="dgx1-v100")
    parser.add_argument("--oversubscription", type=float, default=1.0)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    start = time.process_time()
    trace = read_workload(given.trace, pattern=given.pattern)
    shape = given.load, given.longest, given.min_utility
    workload = drawn(trace, given.jobs, given.gpus, *shape, given.seed)
    topology = cluster(given.machine, given.gpus, given.oversubscription)
    read = time.process_time() - start
    model = FixedTime() if given.fixed else StepTime()
    result = tp.simulate(topology, workload, tp.policies.get(given.policy), performance=model)
    ran = time.process_time() - start - read
    summary = result.summary()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"{given.jobs:,} jobs on {topology.num_gpus:,} GPUs under {given.policy}: {ran:.1f} CPU-s to simulate, "
        f"{read:.1f} to read, {time.process_time() - start - read - ran:.1f} for the summary, {memory:.2f} GB"
    )
    names = ("utilization", "mean_wait", "wait_p99", "mean_slowdown", "rejected")
    print(", ".join(f"{name} {summary[name]:.3f}" for name in names))


if __name__ == "__main__":
    main()
