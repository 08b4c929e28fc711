"""Bars of networks that change and are solved again, and of plans of capacity."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import bench_capacity
import bench_flow
from bars.bar import Bar, Measure
from instances.flow_live import churned
from timing.yardstick import Yardstick
from topoplace_lab.capacity import CapacityPlanner, Planner, SearchPlanner

KEPT = (  # machines, load, milliseconds; if places are short, every change moves the prices of all of them
    (1_000, 0.95, 15),
    (10_000, 0.95, 15),
    (10_000, 1.5, 70),
    (bench_flow.LARGEST, 8 / 9, 100),
    (bench_flow.LARGEST, 1, 250),
)


def kept(machines: int, load: float, limit: float, _: Yardstick) -> Iterator[Bar]:
    workload = bench_flow.kept(machines, load)
    rounds = churned(workload, 10)
    name = f"{machines:,} machines, {workload.num_tasks:,} tasks: 1 % leave, 1 % arrive, re-solved"
    yield Bar(name, limit, rounds.milliseconds, "ms")


def plans(planner: Planner, num_jobs: int, yardstick: Yardstick) -> list[bench_capacity.Decision]:
    seeds = yardstick.between(bench_capacity.SEEDS)
    return bench_capacity.decisions(planner, num_jobs, seeds)


def proven(num_jobs: int, limit: float, yardstick: Yardstick) -> Iterator[Bar]:
    found = plans(CapacityPlanner(), num_jobs, yardstick)
    name = f"5 nodes, 9 VM types, {num_jobs} jobs: a plan proven to 5 %, slowest of {len(found)}"
    yield Bar(name, limit, max(one.seconds for one in found), "s")
    yield Bar("... largest gap", 5, 100 * max(one.plan.gap for one in found), "%")


def searched(yardstick: Yardstick) -> Iterator[Bar]:
    num_jobs = bench_capacity.SIZES[-1]
    found = plans(SearchPlanner(), num_jobs, yardstick)
    milliseconds = 1e3 * statistics.median(one.seconds for one in found)
    yield Bar(f"the same {num_jobs} jobs by native search: median", 10, milliseconds, "ms")
    over = statistics.median(bench_capacity.excess(found))
    yield Bar("... its cost over the lower bound, median", 5, over, "%")


MEASURES: list[Measure] = [
    *(partial(kept, *row) for row in KEPT),
    *(partial(proven, *row) for row in zip(bench_capacity.SIZES, (1.5, 6, 8), strict=True)),
    searched,
]
