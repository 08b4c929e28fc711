"""Bars of searching and counting subgraphs."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial

import bench_match_best
import bench_match_peers
import bench_place
from bars.bar import Bar, Measure
from limits import bench_sparse_targets
from timing.yardstick import Yardstick
from topoplace import kernels


def idle(yardstick: Yardstick) -> Iterator[Bar]:
    cases = bench_match_best.grid()
    times = [bench_match_best.microseconds(case) / 1e3 for case in yardstick.between(cases)]
    yield Bar(
        f"best ring, clique, star, tree of 2-16 GPUs, idle: slowest of {len(times)}", 5, max(times), "ms"
    )
    yield Bar("... median over cases", 0.3, statistics.median(times), "ms")


def busy(yardstick: Yardstick) -> Iterator[Bar]:
    times = [bench_place.median_microseconds(case) / 1e3 for case in yardstick.between(bench_place.CASES)]
    what = "ring, clique, star, tree of 2-8 GPUs, 8 random GPUs of 16 busy, policy.place: median"
    yield Bar(what, 0.1, statistics.median(times), "ms")


def small_rings(yardstick: Yardstick) -> Iterator[Bar]:
    cases = bench_match_best.small_rings()
    times = [bench_match_best.microseconds(case) for case in yardstick.between(cases)]
    yield Bar("rings of 2-8 GPUs, idle, border included: median", 5, statistics.median(times), "us")


def hard(case: bench_match_best.Case, milliseconds: float, _: Yardstick) -> Iterator[Bar]:
    yield Bar(f"{case}, proven", milliseconds, bench_match_best.microseconds(case) / 1e3, "ms")


def sparse(size: int, seconds: float, yardstick: Yardstick) -> Iterator[Bar]:
    graph = bench_sparse_targets.random_graph(size)
    objectives = yardstick.between(bench_sparse_targets.OBJECTIVES)
    slowest = max(bench_sparse_targets.seconds_for_best(graph, objective) for objective in objectives)
    yield Bar(f"best ring of 6, random graph of degree 6, {size:,} vertices, proven", seconds, slowest, "s")


def nine_rings(_: Yardstick) -> Iterator[Bar]:
    pattern, target = ring(9), bench_match_peers.graphs_of("16 GPUs complete").ours
    images = kernels.count_subgraphs(pattern, target, distinct="images")
    yield Bar("images of 9-rings in 16 GPUs", 230_630_400, images, relation="==")
    yield Bar("mappings of them", 4_151_347_200, kernels.count_subgraphs(pattern, target), relation="==")


def counting(size: int, name: str, milliseconds: float, _: Yardstick) -> Iterator[Bar]:
    pattern, target = ring(size), bench_match_peers.graphs_of(name).ours
    seconds, found = bench_match_peers.seconds(lambda: kernels.count_subgraphs(pattern, target))
    yield Bar(f"counting the {found:,} mappings of {size}-rings, {name}", milliseconds, 1e3 * seconds, "ms")


def ring(size: int) -> kernels.Graph:
    return bench_match_peers.graphs_of("ring", size).ours


MEASURES: list[Measure] = [
    *(idle, busy, small_rings),
    *(partial(hard, *row) for row in zip(bench_match_best.HARD, (5, 10), strict=True)),
    *(partial(sparse, *row) for row in ((1_000, 0.1), (100_000, 5))),
    nine_rings,
    *(partial(counting, *row) for row in ((6, "16 GPUs complete", 10), (10, "4x4x4 torus", 250))),
]
