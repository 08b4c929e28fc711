"""Bars of single decisions on large clusters, under every policy."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import topoplace as tp
from bars.bar import Bar, Measure
from clusters import bench_decisions as bench
from timing.yardstick import Yardstick


def decisions(policy: tp.Policy, yardstick: Yardstick) -> Iterator[Bar]:
    sizes = yardstick.between((bench.MACHINES, bench.MACHINES // 100))
    large, small = (bench.cost(policy, machines) for machines in sizes)
    limit = 100 if policy.name == "drmaestro" else 25
    yield Bar(
        f"{policy.name}, jobs of 1-8 GPUs on one of 12,500 machines: mean", limit, 1e6 * large.mean, "us"
    )
    if policy.name != "g-queue":  # of 125 machines, hardly one is idle
        yield Bar("... over that on 125 machines", 1.5, large.mean / small.mean, "x")
    yield Bar("... the first decision", 100, 1e3 * large.first, "ms")
    for size, seconds, most in zip(bench.GANGS, large.gangs, (1, 5, 10), strict=True):
        yield Bar(f"... a ring of {size:,}", most, 1e3 * seconds, "ms")


MEASURES: list[Measure] = [partial(decisions, policy) for policy in bench.policies()]
