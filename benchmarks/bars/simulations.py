"""Bars of simulations."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import bench_queues
import bench_sc17
import bench_simulate
from bars.bar import Bar, Measure
from clusters import bench_fifo, bench_waiting_jobs
from timing.measure import timed
from timing.yardstick import Yardstick


def mapa(_: Yardstick) -> Iterator[Bar]:
    seconds, _jobs = timed(partial(bench_simulate.twenty_runs, "ours"))
    yield Bar("300 jobs x 4 policies x 5 machines, simulated", 2, seconds, "s")


def sc17(machines: int, yardstick: Yardstick) -> Iterator[Bar]:
    costs = [bench_sc17.cost(policy, machines) for policy in yardstick.between(bench_sc17.POLICIES)]
    name = f"SC'17's scenario 2, {machines:,} machines: slowest of {len(costs)} policies"
    yield Bar(f"{name}, one decision", 100, max(cost.decision for cost in costs), "us")
    yield Bar("... all 10,000 jobs", 5, max(cost.seconds for cost in costs), "s")


def first_come(_: Yardstick) -> Iterator[Bar]:
    jobs = bench_fifo.JOBS // 10
    each = 1e6 * bench_fifo.cost(jobs).seconds / jobs
    yield Bar("first come, first served on 1,000 machines: a job", 45, each, "us")


def waiting(policy: str, _: Yardstick) -> Iterator[Bar]:
    few, many = (bench_waiting_jobs.cost(policy, length) for length in (1_000, 100_000))
    name = f"{policy}, end of a job while 100,000 of 20 kinds wait, over 1,000"
    yield Bar(name, 2, many.end / few.end, "x")


def tsubame(yardstick: Yardstick) -> Iterator[Bar]:
    log = bench_queues.workload()
    seconds = sum(bench_queues.cost(queue, log).seconds for queue in yardstick.between(bench_queues.QUEUES))
    yield Bar(f"{len(log):,} jobs through both queues of TSUBAME, 480 nodes", 30, seconds, "s")


MEASURES: list[Measure] = [
    mapa,
    *(partial(sc17, machines) for machines in bench_sc17.SCENARIOS),
    first_come,
    *(partial(waiting, policy) for policy in bench_waiting_jobs.POLICIES),
    tsubame,
]
