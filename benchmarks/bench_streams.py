"""Streams of jobs on four clusters: how long jobs take from submission to end, under `least-time` and others.

    python benchmarks/bench_streams.py [--jobs 3000] [--seeds 5] [--load 0.9] [--clusters NAME] [--policies NAMES]

All policies decide where a job goes in the same queue, EASY backfilling. Others than `least-time` are asked as their
users ask: a job that fits a machine is one pod or node, a larger one is pods or nodes of whole machines. Run times are
those of steps that compute and communicate (`StepTime`), so that a policy which splits jobs makes them longer. For each
cluster there is a row for each policy: the mean over jobs of turnaround / run time on the best GPUs (its slowdown) and
of the turnaround, both the mean over the seeds, and the ratios of `least-time` to the best other policy, of the means
and seed by seed. `--quick` takes one seed and 600 jobs. `least-time:0` and so on state how long a job waits rather than
being split (`LeastTime.waits`).
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

import topoplace as tp
from topoplace_lab.simulate import Discipline, Workload, simulate

MACHINES: Final = 64
PORT: Final = 50.0
SIZES: Final[Mapping[int, float]] = {1: 0.25, 2: 0.2, 4: 0.2, 8: 0.2, 16: 0.1, 32: 0.05}
"""GPUs of a job, with their chances."""
MEDIAN_S: Final = 1800.0
SPREAD: Final = 1.0
"""Standard deviation of the logarithm of run times."""
SHORTEST_S, LONGEST_S = 60.0, 36_000.0
TENSOR: Final = 8
OURS: Final = "least-time"
OTHERS: Final = (
    "kueue-best-fit",
    "kueue-least-free",
    "slurm-block",
    "slurm-tree",
    "volcano-binpack",
    "kubernetes-default",
    "fcfs",
    "best-fit",
    "topo-aware",
)


# ---- clusters ------------------------------------------------------------------------------------------------------


def _h100_rails() -> tp.Topology:
    """Return DGX-H100 in units of 16, with a rail for each of their GPUs, below spines."""
    fabric = tp.Fabric.regular(MACHINES, {"rail": 16, "unit": 16, "spine": MACHINES})
    fabric = fabric.with_level("rail", gb_per_s=PORT, rail=True, pxn=True)
    for level in ("unit", "spine"):
        fabric = fabric.with_level(level, gb_per_s=PORT)
    return tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)


def _h100_leaves() -> tp.Topology:
    """Return DGX-H100 below leaves of eight, whose uplinks have a quarter of their bandwidth."""
    fabric = tp.Fabric.regular(MACHINES, {"leaf": 8, "spine": MACHINES}).with_level("leaf", gb_per_s=PORT)
    fabric = fabric.with_level("spine", gb_per_s=PORT, oversubscription=4.0)
    return tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric)


def _dgx1() -> tp.Topology:
    """Return DGX-1 with V100 below leaves of 16, whose uplinks have half their bandwidth."""
    fabric = tp.Fabric.regular(MACHINES, {"leaf": 16, "spine": MACHINES})
    fabric = fabric.with_level("spine", oversubscription=2.0)
    return tp.Topology.cluster(tp.machines.get("dgx1-v100"), fabric=fabric)


def _nvl72() -> tp.Topology:
    """Return eight racks, each one NVLink domain of 72 GPUs."""
    return tp.Topology.cluster(tp.machines.get("gb200-nvl72"), 8, network=PORT)


CLUSTERS: Final[Mapping[str, Callable[[], tp.Topology]]] = {
    "h100-rails": _h100_rails,
    "h100-leaf-4:1": _h100_leaves,
    "dgx1-v100": _dgx1,
    "nvl72": _nvl72,
}


@functools.cache
def built(name: str) -> tp.Topology:
    return CLUSTERS[name]()


# ---- jobs ----------------------------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """How users of other schedulers ask for a job."""

    per_pod: int
    """GPUs of a machine: a pod or node has no more, and a larger job has pods or nodes of so many."""
    prefer: str | None
    """The level that they prefer."""


@functools.cache
def job_of(size: int, asked: Asked | None) -> tp.JobGraph:
    """Return data-parallel training, of tensor-parallel groups of eight if it has more GPUs than that."""
    if size == 1:
        return tp.JobGraph.independent(1)
    job = tp.JobGraph.allreduce(size)
    if size > TENSOR:
        job = tp.JobGraph.parallel(tensor=TENSOR, data=size // TENSOR)
    job = job.with_(bandwidth_sensitive=True)
    if asked is None:
        return job
    if size <= asked.per_pod:
        return job.with_(single_machine=True)
    return job.grouped(asked.per_pod, within="machine").with_(prefer=asked.prefer)


def asked_by(spec: str, topology: tp.Topology) -> Asked | None:
    """Return how users of a policy ask for jobs; None for ours."""
    if spec.startswith(OURS):
        return None
    levels = [level.name for level in topology.levels if level.name == "nvlink_domain"]
    knows = spec.startswith(("kueue", "volcano")) and levels
    return Asked(topology.num_gpus // topology.num_machines, levels[0] if knows else None)


def stream(jobs: int, gpus: int, load: float, seed: int, asked: Asked | None) -> Workload:
    """Return jobs that arrive as a Poisson process; without waiting, and on the best GPUs, they use a share `load`."""
    random = np.random.default_rng(seed)
    sizes = random.choice(list(SIZES), jobs, p=list(SIZES.values()))
    seconds = np.clip(random.lognormal(np.log(MEDIAN_S), SPREAD, jobs), SHORTEST_S, LONGEST_S)
    gaps = random.exponential(1.0, jobs)
    gaps *= float(seconds @ sizes) / (gpus * load) / gaps.sum()
    graphs = [job_of(int(size), asked) for size in sizes]
    return Workload(graphs, np.cumsum(gaps), seconds)


# ---- measuring -----------------------------------------------------------------------------------------------------


class Score(NamedTuple):
    slowdown: float
    """The mean of turnaround / run time on the best GPUs."""
    turnaround_s: float
    cpu_s: float


def policy_of(spec: str) -> tp.Policy:
    name, _, waits = spec.partition(":")
    return tp.policies.get(name, waits=float(waits)) if waits else tp.policies.get(name)


def score(cluster: str, spec: str, jobs: int, load: float, seed: int) -> Score:
    topology = built(cluster)
    workload = stream(jobs, topology.num_gpus, load, seed, asked_by(spec, topology))
    begin = time.process_time()
    rows = simulate(topology, workload, policy_of(spec), discipline=Discipline(backfill="easy")).jobs
    spent = time.process_time() - begin
    turnaround = rows["end"] - rows["submit"]
    assert np.isfinite(turnaround).all(), "jobs were rejected"
    slowdown = float((turnaround / workload.base_time).mean())
    return Score(slowdown, float(turnaround.mean()), spent)


def ratio(ours: Sequence[float], others: Mapping[str, Sequence[float]]) -> str:
    """Return our mean over the best other mean, and the worst ratio to the best other of a seed."""
    best = min(map(statistics.fmean, others.values()))
    by_seed = [one / min(row[seed] for row in others.values()) for seed, one in enumerate(ours)]
    return f"{statistics.fmean(ours) / best:.2f} of the best other; at worst {max(by_seed):.2f} in a seed"


def measure(cluster: str, specs: Sequence[str], jobs: int, load: float, seeds: int) -> None:
    found: dict[str, list[Score]] = {}
    for spec in specs:
        found[spec] = [score(cluster, spec, jobs, load, seed) for seed in range(seeds)]
        means = [statistics.fmean(column) for column in zip(*found[spec], strict=True)]
        print(f"{cluster:14} {spec:20} {means[0]:9.3f} {means[1]:12,.0f} {means[2]:8.1f}", flush=True)
    ours = found.pop(OURS, None)
    others = {spec: rows for spec, rows in found.items() if not spec.startswith(OURS)}
    if ours and others:
        for at, what in enumerate(("slowdown", "turnaround")):
            by_policy = {spec: [row[at] for row in rows] for spec, rows in others.items()}
            print(f"{cluster:14} {what}: {ratio([row[at] for row in ours], by_policy)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--clusters", default=",".join(CLUSTERS))
    parser.add_argument("--policies", default=",".join((OURS, f"{OURS}:0", *OTHERS)))
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    jobs, seeds = (600, 1) if given.quick else (given.jobs, given.seeds)
    print(f"{'cluster':14} {'policy':20} {'slowdown':>9} {'turnaround s':>12} {'CPU s':>8}")
    for cluster in given.clusters.split(","):
        measure(cluster, given.policies.split(","), jobs, given.load, seeds)


if __name__ == "__main__":
    main()
