"""Bars of what collective operations carry, and of least-time where direct links and PCIe decide."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product

import bench_collective as bench
from bars.bar import Bar, Measure
from timing.yardstick import Yardstick
from topoplace import kernels


def scores(yardstick: Yardstick) -> Iterator[Bar]:
    known = max(bench.one_score_us(name) for name in yardstick.between(bench.EIGHT))
    yield Bar("ring bandwidth of 8 GPUs that is known: slowest of 3 machines", 10, known, "us")
    every = max(bench.all_sets_us(name) for name in yardstick.between(bench.EIGHT)) / 1e3
    yield Bar("ring bandwidth of all 247 sets of 8 GPUs for the first time", 2, every, "ms")


def decisions(yardstick: Yardstick) -> Iterator[Bar]:
    cases = yardstick.between(product(bench.SIXTEEN, bench.SIZES))
    slowest = max(bench.decisions_us(name, size, seen=True) for name, size in cases)
    yield Bar("least-time, a ring, 8 of 16 GPUs busy, a condition met before: slowest", 100, slowest, "us")


def cluster(yardstick: Yardstick) -> Iterator[Bar]:
    slowest = max(bench.cluster_us(name) for name in yardstick.between(bench.EIGHT[:2]))
    yield Bar("least-time, rings, 12,500 machines of 8 GPUs: median", 30, slowest, "us")


def trees(what: str, graph: kernels.TerminalGraph, _: Yardstick) -> Iterator[Bar]:
    yield Bar(f"trees of {what}, verified", 0.2, bench.trees_us(graph) / 1e6, "s")


MEASURES: list[Measure] = [scores, decisions, cluster, *(partial(trees, *row) for row in bench.fabrics())]
