"""Bars of splitting graphs and of mapping jobs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import bench_mapping
import bench_partition
import topoplace as tp
from bars.bar import Bar, Measure
from instances.partition_graphs import CLUSTERS, HUBS
from timing.measure import microseconds, timed
from timing.yardstick import Yardstick
from topoplace import kernels

OURS = bench_partition.LIBRARIES["ours"]
CUTS = {  # of clusters: the least that is known; of graphs with hubs: 5 % above mt-KaHyPar's
    **dict(zip(CLUSTERS, (540, 4_880), strict=True)),
    **{name: round(1.05 * cut) for name, cut in (("RMAT 2^13", 1_707), ("RMAT 2^15", 4_031))},
    "mild RMAT 2^13": round(1.05 * 9_774),
}


def machine(name: str, artifact: bool, cut: float, _: Yardstick) -> Iterator[Bar]:
    graph = bench_partition.machine(name, artifact)
    found = kernels.bipartition(graph)
    which = f"{name} of MAPA's artifact" if artifact else name
    yield Bar(f"bisection of {which}", cut, found.cut if found.optimal else float("nan"), relation="==")
    call = bench_partition.microseconds(kernels.Graph([[0, 1], [1, 0]]))
    beyond = bench_partition.microseconds(graph) - call
    yield Bar("... proven, beyond a call from Python", 2 if graph.num_vertices == 8 else 50, beyond, "us")


def cut(name: str, most: float, _: Yardstick) -> Iterator[Bar]:
    found = bench_partition.measure(OURS, (CLUSTERS | HUBS)[name]())
    yield Bar(f"bisection of {name}, 3 % imbalance: median cut", most, found.cut)


def growth(_: Yardstick) -> Iterator[Bar]:
    times = [bench_partition.milliseconds_per_edge(side) for side in (100, 1000)]
    yield Bar("time per edge, grid of a million vertices over one of 10,000", 2, times[1] / times[0], "x")


def near_optimal(_: Yardstick) -> Iterator[Bar]:
    small = [case for case in bench_mapping.grid() if tp.machines.get(case.machine).num_gpus <= 16]
    found = bench_mapping.quality(small)
    name = f"mappings within 5 % of the proven optimum, {found.cases:,} cases of 2-8 tasks"
    yield Bar(name, 95, 100 * found.within_5_percent, "%", ">=")


def mapped(name: str, size: int, limit: float, yardstick: Yardstick) -> Iterator[Bar]:
    cases = yardstick.between(bench_mapping.cases_of(name, size))
    times = [microseconds(partial(bench_mapping.drb, case)) for case in cases]
    yield Bar(f"{size} tasks mapped to {name}, median", limit, statistics.median(times), "us")


def proven(yardstick: Yardstick) -> Iterator[Bar]:
    cases = yardstick.between(bench_mapping.cases_of("torus2d-16", 8))
    times = [microseconds(partial(bench_mapping.exact, case), rounds=3) for case in cases]
    yield Bar("8 tasks mapped to torus2d-16, proven: slowest", 10, max(times) / 1e3, "ms")


def large(_: Yardstick) -> Iterator[Bar]:
    bench_mapping.cluster.cache_clear()
    seconds, _answer = timed(partial(bench_mapping.large, "ring(1024)"))
    yield Bar("a ring of 1,024 tasks mapped to 4,096 GPUs, halves included", 3, seconds, "s")


MEASURES: list[Measure] = [
    *(partial(machine, *row) for row in bench_partition.HALVED),
    *(partial(cut, *row) for row in CUTS.items()),
    growth,
    near_optimal,
    *(partial(mapped, *row) for row in (("dgx1-v100", 4, 10), ("torus2d-16", 8, 100))),
    *(proven, large),
]
