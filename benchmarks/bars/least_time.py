"""Bars of the policy least-time: jobs with graphs never seen before, and gangs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np

import topoplace as tp
from bars.bar import Bar, Measure
from timing.yardstick import Yardstick

MACHINES = 12_500
NEW_JOBS = 5_000


def cluster() -> tp.Cluster:
    """Return 12,500 machines of 8 GPUs, of which 90 % are busy, at random."""
    found = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), MACHINES))
    rng = random.Random(19)
    found.allocate("others", sorted(rng.sample(range(8 * MACHINES), int(7.2 * MACHINES))))
    return found


def _seconds(policy: tp.Policy, job: tp.JobGraph, busy: tp.Cluster) -> float:
    start = time.process_time()
    policy.place(job, busy)
    return time.process_time() - start


def new_graphs(yardstick: Yardstick) -> Iterator[Bar]:
    del yardstick
    busy, policy, rng = cluster(), tp.policies.get("least-time"), np.random.default_rng(19)
    times: list[float] = []
    for _ in range(NEW_JOBS):
        sent = rng.random((4, 4))
        times.append(_seconds(policy, tp.JobGraph.from_traffic(sent), busy))
    what = f"least-time, measured job graphs of 4 tasks, none seen before, {MACHINES:,} machines"
    yield Bar(f"{what}: median", 0.2, 1e3 * float(np.median(times[1:])), "ms")
    yield Bar(f"{what}: 99.9 % within", 5, 1e3 * float(np.percentile(times[1:], 99.9)), "ms")


def one_machine(yardstick: Yardstick) -> Iterator[Bar]:
    del yardstick
    busy, policy = cluster(), tp.policies.get("least-time")
    for tasks in (1, 2):
        job = tp.JobGraph.ring(tasks)
        policy.place(job, busy)
        times: list[float] = []
        for number in range(200):
            times.append(_seconds(policy, job, busy))
            placement = policy.place(job, busy)
            assert placement is not None
            busy.allocate(f"{tasks} {number}", placement)
        yield Bar(
            f"least-time, a ring of {tasks}, {MACHINES:,} machines", 25, 1e6 * float(np.median(times)), "us"
        )


def gangs(yardstick: Yardstick) -> Iterator[Bar]:
    del yardstick
    fabric = tp.Fabric.regular(1500, {"leaf": 16, "pod": 256})
    idle = tp.Cluster(tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=fabric))
    policy = tp.policies.get("least-time")
    large = tp.JobGraph.parallel(tensor=8, pipeline=8, data=64).grouped("tensor", within="machine")
    for what, limit, job in (
        ("a ring of 512", 20, tp.JobGraph.ring(512)),
        ("512 ranks in tensor groups of 8", 20, tp.JobGraph.parallel(tensor=8, data=64)),
        (
            "4,096 ranks in groups of 8 and 64",
            300,
            large.grouped(64, within="leaf"),
        ),
    ):
        policy.place(job.with_(name="before"), idle)
        yield Bar(f"least-time, {what} on 12,000 GPUs", limit, 1e3 * _seconds(policy, job, idle), "ms")


MEASURES: list[Measure] = [new_graphs, one_machine, gangs]
