"""Bars of ratios to other libraries, which are measured in the same run."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import bench_flow
import bench_mapping
import bench_match_peers
import bench_partition
from bars.bar import Bar, Measure
from instances.flow_instances import FAMILIES, LOADS
from instances.flow_live import churned
from instances.partition_graphs import CLUSTERS, OTHERS
from libraries import flow_libraries
from libraries.partition_libraries import installed
from timing.yardstick import Yardstick

PARTITIONED = {"mt-kahypar": "cut", "pymetis": "milliseconds"}


def enumeration(_: Yardstick) -> Iterator[Bar]:
    ratios = bench_match_peers.report("enumeration", bench_match_peers.ENUMERATE)
    mean = statistics.geometric_mean(ratios)
    yield Bar("enumeration, faster of igraph and rustworkx over ours: geometric mean", 5, mean, "x", ">=")
    yield Bar("... least", 1, min(ratios), "x", ">=")


def clusters(_: Yardstick) -> Iterator[Bar]:
    rows, _points = bench_partition.report(list(CLUSTERS.values()), installed(), "clusters")
    for name, row in zip(CLUSTERS, rows, strict=True):
        best = min(found.cut for found in row.values())
        yield Bar(f"bisection of {name}: our cut over the best", 1, row["ours"].cut / best, "x")


def partitions(_: Yardstick) -> Iterator[Bar]:
    there = [name for name in PARTITIONED if name in installed()]
    rows, _points = bench_partition.report(list(OTHERS.values()), ["ours", *there], "grids, geometric graphs")
    for name, what in PARTITIONED.items():
        if name in there:
            ratio = bench_partition.ratio(rows, name, what)
            yield Bar(f"our {what} over {name}'s, geometric mean of {len(rows)} graphs", 1, ratio, "x")
        else:
            print(f"left out: {name} is not installed")


def mappings(_: Yardstick) -> Iterator[Bar]:
    scotch = bench_mapping.Scotch.found()
    if scotch is None:
        print("left out: mappings; Scotch is not installed")
        return
    duel = bench_mapping.against_scotch(scotch, list(bench_mapping.grid()))
    yield Bar(f"mapped cost over Scotch's, worst of {duel.cases:,} cases", 1.02, duel.worst, "x")


def flows(_: Yardstick) -> Iterator[Bar]:
    there = flow_libraries.installed()
    if len(there) < len(flow_libraries.PEERS):
        print("left out: flows; ortools or pylmcf is not installed")
        return
    rows: list[bench_flow.Row] = []
    for family, limits in (("scheduling", (5, 4, 2)), ("phase 2", (6, 3, 2))):
        for load, limit in zip(LOADS, limits, strict=True):
            builds = bench_flow.schedules(family, load)
            title = f"{family} graphs, 1,000 and 10,000 machines, {load:.0%} load"
            rows += bench_flow.report(title, builds, ["auto", "general", *there])
            ratio = bench_flow.mean(rows[-len(builds) :], bench_flow.Row.over_best)
            yield Bar(f"{title}: best peer's time over ours, geometric mean", limit, ratio, "x", ">=")
    ratios = [row.over("OR-tools", "general") for row in rows]
    name = f"OR-tools' time over ours on these {len(rows)} without recognition"
    yield Bar(f"{name}, geometric mean", 2, statistics.geometric_mean(ratios), "x", ">=")
    yield Bar("... least", 1, min(ratios), "x", ">=")
    for family in FAMILIES:
        yield from family_of_flows(family, there)


def family_of_flows(family: str, there: list[str]) -> Iterator[Bar]:
    rows = bench_flow.report(family, bench_flow.powers(family), ["auto", *there])
    ratio = bench_flow.mean(rows, lambda row: row.over("OR-tools"))
    name = f"{family}, 2^8 to 2^14 nodes: OR-tools' time over ours, geometric mean"
    yield Bar(name, 2, ratio, "x", ">=")
    yield Bar("... best peer's", 1, bench_flow.mean(rows, bench_flow.Row.over_best), "x", ">=")


def changed(machines: int, load: float, _: Yardstick) -> Iterator[Bar]:
    if there := flow_libraries.installed():
        rounds = churned(bench_flow.kept(machines, load), 10)
        name = (
            f"{machines:,} machines, {load:.0%} load, 1 % leave, 1 % arrive: best peer from scratch over ours"
        )
        yield Bar(name, 10, bench_flow.over_cold(rounds, there), "x", ">=")


MEASURES: list[Measure] = [
    *(enumeration, clusters, partitions, mappings, flows),
    *(partial(changed, *row) for row in bench_flow.KEPT),
]
