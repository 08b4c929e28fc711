"""Bars of large topologies, of reading texts, and of starting the program."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import bench_import
import bench_topology
from bars.bar import Bar, Measure
from timing.measure import timed
from timing.yardstick import Yardstick


def large(_: Yardstick) -> Iterator[Bar]:
    seconds, topology = timed(bench_topology.cluster)
    yield Bar("12,500 machines of 8 GPUs, built", 1, seconds, "s")
    seconds, _same = timed(partial(bench_topology.round_trip, topology))
    yield Bar("... through JSON and back, digests equal", 5, seconds, "s")
    yield Bar("... all of that in memory", 100, bench_topology.megabytes_of_memory(), "MB")


def texts(yardstick: Yardstick) -> Iterator[Bar]:
    seconds, which = max(map(bench_topology.slowest_megabyte, yardstick.between(bench_topology.FIXTURES)))
    yield Bar(f"a megabyte of any format, read or refused: slowest ({which})", 1, seconds, "s")


def start(yardstick: Yardstick) -> Iterator[Bar]:
    for statement in bench_import.CASES.values():
        bench_import.start(statement)  # compiles the byte code
    bare, package, usage = (
        1e3 * statistics.median(bench_import.cpu_seconds(bench_import.CASES[name]) for _ in range(9))
        for name in yardstick.between(("python", "topoplace", "topoplace --help"))
    )
    yield Bar("import topoplace, over a bare start", 100, package - bare, "ms")
    yield Bar("topoplace --help", 250, usage, "ms")


MEASURES: list[Measure] = [large, texts, start]
