"""Inside a toy Slurm: what the placer costs, and what bandwidth jobs get, against Slurm's own choice on the same jobs.

    python benchmarks/slurm_cluster.py speed --nodes 100 --jobs 500
    python benchmarks/slurm_cluster.py bandwidth --nodes 4 --jobs 120
    python benchmarks/slurm_cluster.py hostile --jobs 10000

It needs Slurm's daemons; times are CPU times of the placer and of the commands that it runs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from slurm_jobs import SEES, seen, states
from slurm_load import PlacerProcess
from topoplace import Topology, machines
from topoplace_hosts.slurm.testing import SlurmCluster

_SCHEDULING = ("sched_interval=1", "sched_min_interval=50000", "bf_interval=5", "default_queue_depth=1000")
QUEUE = {"SchedulerParameters": ",".join((*_SCHEDULING, "batch_sched_delay=0"))}


class Job(NamedTuple):
    """One job of a list."""

    gpus: int
    nodes: int
    sensitive: bool
    seconds: float


def listed(count: int, seed: int, *, gangs: bool, long: float) -> list[Job]:
    """Return random jobs of 1 to 8 GPUs, or of 16 on two nodes."""
    chance = random.Random(seed)
    jobs: list[Job] = []
    for _ in range(count):
        gang = gangs and chance.random() < 0.05
        gpus = 8 if gang else chance.choice([1, 2, 2, 3, 4, 4, 5, 8])
        jobs.append(Job(gpus, 1 + gang, chance.random() < 0.5, chance.uniform(0.3, 1.0) * long))
    return jobs


def submitted(
    slurm: SlurmCluster, jobs: Sequence[Job], *, pause_s: float = 0.0, least: float | None = None
) -> dict[str, Job]:
    """Submit the jobs one after the other, and return them by id. least: GB/s that sensitive jobs wait for."""
    found: dict[str, Job] = {}
    for job in jobs:
        request = {"pattern": "ring", "sensitive": job.sensitive}
        if least and job.sensitive and job.gpus > 1:
            request["min_bandwidth"] = least
        comment = json.dumps(request)
        options = [f"--gres=gpu:{job.gpus}", f"-N{job.nodes}", f"--comment={comment}"]
        found[slurm.submit(*options, script=f"{SEES} sleep {job.seconds:.2f}")] = job
        time.sleep(pause_s)
    return found


def until_empty(slurm: SlurmCluster) -> None:
    """Wait until no job is left."""
    while states(slurm):
        time.sleep(0.2)


def cluster_of(nodes: int) -> Topology:
    """Return `nodes` DGX-1V."""
    return Topology.cluster(machines.get("dgx1-v100"), nodes, names=[f"n{i}" for i in range(nodes)])


def cpu_s(process: int) -> tuple[float, float]:
    """Return the CPU seconds of a process, and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    own, children = (sum(map(int, fields[i : i + 2])) / 100 for i in (11, 13))
    return own, children


def speed(nodes: int, jobs: int, pause_s: float, rounds: int) -> None:
    """Print jobs a second without and with the placer, in turn, and the placer's CPU time for each job."""
    work = listed(jobs, 3, gangs=True, long=4.0)
    rates = [
        (rate(nodes, work, pause_s, placed=False), rate(nodes, work, pause_s, placed=True))
        for _ in range(rounds)
    ]
    alone, placed = (median(column) for column in zip(*rates, strict=True))
    print(f"medians: Slurm alone {alone:.2f} jobs/s, placer {placed:.2f}: {placed / alone - 1:+.1%}")


def rate(nodes: int, work: Sequence[Job], pause_s: float, *, placed: bool) -> float:
    """Run the jobs in a new toy Slurm, print a line, and return jobs a second."""
    with SlurmCluster(cluster_of(nodes), job_submit=placed, task_prolog=False, settings=QUEUE) as slurm:
        placer = PlacerProcess(slurm, interval=0.5, patience=300)
        if placed:
            placer.start()
            time.sleep(3)
            before = cpu_s(placer.process_id)
        start = time.monotonic()
        submitted(slurm, work, pause_s=pause_s)
        until_empty(slurm)
        found = len(work) / (time.monotonic() - start)
        line = f"{'placer' if placed else 'Slurm alone':12} {found:6.2f} jobs/s"
        if placed:
            own, children = (
                1000 * (now - then) / len(work)
                for now, then in zip(cpu_s(placer.process_id), before, strict=True)
            )
            line += f"; {own:.2f} ms CPU a job, its commands {children:.2f} ms"
            line += (
                f"; {len(placer.events('decided'))} decided, {len(placer.events('given_back'))} given back"
            )
            placer.stop()
        print(line, flush=True)
    return found


def ring_bandwidth(machine: Topology, gpus: Sequence[int]) -> float:
    """Return the bandwidth of the slowest link of the best ring through the GPUs, GB/s."""
    first, *others = gpus
    rings = ((first, *order, first) for order in permutations(others))
    return max(min(machine.bandwidth(a, b) for a, b in pairwise(ring)) for ring in rings)


def bandwidth(nodes: int, jobs: int) -> None:
    """Print the ring bandwidth of sensitive jobs as Slurm chooses with Links=, and as the policy does."""
    work = listed(jobs, 5, gangs=False, long=3.0)
    machine = machines.get("dgx1-v100")
    for policy, least in ((None, None), ("topo-aware", None), ("mapa-preserve", None), ("topo-aware", 25.0)):
        with SlurmCluster(
            cluster_of(nodes), types=policy is not None, job_submit=policy is not None
        ) as slurm:
            placer = PlacerProcess(slurm, policy or "topo-aware", interval=0.3, patience=300)
            if policy:
                placer.start()
            ids = submitted(slurm, work, pause_s=0.1, least=least)
            until_empty(slurm)
            got = [
                ring_bandwidth(machine, sorted(seen(slurm, job_id)[-1][1]))
                for job_id, job in ids.items()
                if job.sensitive and job.gpus > 1
            ]
            if policy:
                placer.stop()
        name = f"{policy or 'Slurm, Links='}{f', least {least:g}' if least else ''}"
        print(f"{name:22} mean {mean(got):6.2f} least {min(got):6.2f} GB/s, {len(got)} jobs", flush=True)


def hostile(jobs: int) -> None:
    """Print how long another user's job waits behind thousands of jobs with strange comments, and for its decision."""
    chance = random.Random(1)
    texts = [
        "{",
        '{"a":' * 150,
        '{"pattern": "' + "\\u0000" * 60 + '"}',
        '{"min_utility": 1e999}',
        "{" + "9" * 1000,
        '{"x\n|y": 1}',
    ]
    settings = {**QUEUE, "MaxJobCount": str(3 * jobs)}
    with SlurmCluster(cluster_of(4), settings=settings) as slurm:
        for start in range(0, jobs, 1000):
            count = min(1000, jobs - start)
            text = chance.choice(texts)
            slurm.submit("--gres=gpu:1", f"--array=1-{count}", f"--comment={text}", script="true")
        placer = PlacerProcess(slurm, interval=0.5, patience=300)
        placer.start()
        time.sleep(2)
        before = time.monotonic()
        job = slurm.submit("--gres=gpu:2", script=SEES, user=65534)
        while not seen(slurm, job):
            time.sleep(0.05)
        waited = time.monotonic() - before
        (event,) = (one for one in placer.events("decided") if one["job"] == job)
        print(
            f"another user's job was decided after {event['waited_s']:.1f} s, started after {waited:.1f} s",
            flush=True,
        )
        own, children = cpu_s(placer.process_id)
        given_back = len(placer.events("given_back"))
        print(
            f"{jobs} strange jobs: {given_back} given back so far; CPU {own:.1f} s, commands {children:.1f} s",
            flush=True,
        )
        placer.stop()


def main() -> None:
    """Run one of the benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "bandwidth", "hostile"))
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--jobs", type=int, default=120)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between submissions, for speed")
    parser.add_argument("--rounds", type=int, default=2, help="runs without and with the placer, for speed")
    given = parser.parse_args()
    if given.what == "speed":
        speed(given.nodes, given.jobs, given.pause, given.rounds)
    elif given.what == "bandwidth":
        bandwidth(given.nodes, given.jobs)
    else:
        hostile(given.jobs)


if __name__ == "__main__":
    main()
