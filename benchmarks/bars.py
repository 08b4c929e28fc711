"""Check the promised speeds against their limits in one run: `make bars` (two minutes; `--peers` adds six).

Every row is CPU time of one thread through the public API. Exits with 1 if a limit is missed.
"""

from __future__ import annotations

import operator
import statistics
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import bench_capacity
import bench_collective
import bench_flow
import bench_import
import bench_mapping
import bench_match_best
import bench_match_peers
import bench_partition
import bench_place
import bench_queues
import bench_sc17
import bench_simulate
import bench_topology
import topoplace as tp
from clusters import bench_decisions, bench_fifo, bench_waiting_jobs
from instances.flow_instances import FAMILIES, LOADS
from instances.partition_graphs import CLUSTERS, HUBS, OTHERS
from libraries import flow_libraries
from libraries.partition_libraries import installed
from limits import bench_sparse_targets
from topoplace import kernels
from topoplace.capacity import CapacityPlanner, SearchPlanner

RELATIONS = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}


class Bar(NamedTuple):
    what: str
    limit: float
    measured: float
    unit: str
    relation: str = "<="

    @property
    def reached(self) -> bool:
        return RELATIONS[self.relation](self.measured, self.limit)

    def __str__(self) -> str:
        verdict = "reached" if self.reached else "MISSED"
        limit, measured = (f"{value:,.3f}".rstrip("0").rstrip(".") for value in (self.limit, self.measured))
        return f"{verdict:8} {measured:>16} {self.relation} {limit:>14} {self.unit:3}  {self.what}"


def placements() -> Iterator[Bar]:
    idle = [bench_match_best.microseconds(case) / 1e3 for case in bench_match_best.grid()]
    yield Bar(f"best ring, clique, star, tree of 2-16 GPUs, idle: slowest of {len(idle)}", 5, max(idle), "ms")
    yield Bar("... median over cases", 0.3, statistics.median(idle), "ms")
    busy = [bench_place.median_microseconds(case) / 1e3 for case in bench_place.CASES]
    yield Bar("the same with 8 random GPUs busy, policy.place: median", 0.1, statistics.median(busy), "ms")
    rings = [bench_match_best.microseconds(case) for case in bench_match_best.small_rings()]
    yield Bar("rings of 2-8 GPUs, idle, border included: median", 5, statistics.median(rings), "us")
    for case, limit in zip(bench_match_best.HARD, (5, 10), strict=True):
        yield Bar(f"{case}, proven", limit, bench_match_best.microseconds(case) / 1e3, "ms")


def collectives() -> Iterator[Bar]:
    score = max(bench_collective.one_score_us(name) for name in bench_collective.EIGHT)
    yield Bar("ring bandwidth of 8 GPUs that is known: slowest of 3 machines", 10, score, "us")
    every = max(bench_collective.all_sets_us(name) for name in bench_collective.EIGHT) / 1e3
    yield Bar("ring bandwidth of all 247 sets of 8 GPUs for the first time", 2, every, "ms")
    slowest = max(
        bench_collective.decisions_us(name, size, seen=True)
        for name in bench_collective.SIXTEEN
        for size in bench_collective.SIZES
    )
    yield Bar("policy collective, 8 of 16 GPUs busy, a condition met before: slowest", 100, slowest, "us")
    cluster = max(bench_collective.cluster_us(name) for name in bench_collective.EIGHT[:2])
    yield Bar("policy collective, 12,500 machines of 8 GPUs: median", 30, cluster, "us")
    for what, graph in bench_collective.fabrics():
        yield Bar(f"trees of {what}, verified", 0.2, bench_collective.trees_us(graph) / 1e6, "s")


def large_targets() -> Iterator[Bar]:
    for size, limit in ((1_000, 0.1), (100_000, 5)):
        graph = bench_sparse_targets.random_graph(size)
        slowest = max(
            bench_sparse_targets.seconds_for_best(graph, o) for o in bench_sparse_targets.OBJECTIVES
        )
        yield Bar(f"best ring of 6, random graph of degree 6, {size:,} vertices, proven", limit, slowest, "s")


def counts() -> Iterator[Bar]:
    ring, graphs = bench_match_peers.PATTERNS["ring"], bench_match_peers.targets()
    sixteen, torus = (kernels.Graph.of(graphs[name]) for name in ("16 GPUs complete", "4x4x4 torus"))
    images = kernels.count_subgraphs(ring(9), sixteen, distinct="images")
    yield Bar("images of 9-rings in 16 GPUs", 230_630_400, images, "", "==")
    mappings = kernels.count_subgraphs(ring(9), sixteen)
    yield Bar("mappings of 9-rings in 16 GPUs", 4_151_347_200, mappings, "", "==")
    for size, target, name, limit in ((6, sixteen, "16 GPUs", 10), (10, torus, "a 4x4x4 torus", 250)):
        pattern = kernels.Graph.of(ring(size))
        seconds, found = bench_match_peers.seconds(
            lambda pattern=pattern, target=target: kernels.count_subgraphs(pattern, target)
        )
        yield Bar(f"counting the {found:,} mappings of {size}-rings in {name}", limit, 1e3 * seconds, "ms")


def partitions() -> Iterator[Bar]:
    call = bench_partition.microseconds(kernels.Graph([[0, 1], [1, 0]]))
    for name, artifact, cut in bench_partition.HALVED:
        graph = bench_partition.machine(name, artifact)
        found = kernels.bipartition(graph)
        which = f"{name} of MAPA's artifact" if artifact else name
        yield Bar(f"bisection of {which}", cut, found.cut if found.optimal else float("nan"), "", "==")
        limit = 2 if graph.num_vertices == 8 else 50
        called = bench_partition.microseconds(graph)
        yield Bar(f"... proven, beside the {call:.1f} us of a call from Python", limit, called - call, "us")
    for (name, build), cut in zip(CLUSTERS.items(), (540, 4880), strict=True):
        measured = bench_partition.measure(bench_partition.LIBRARIES["ours"], build())
        yield Bar(f"bisection of {name}, 3 % imbalance: median cut", cut, measured.cut, "")
    for name, cut in (("RMAT 2^13", 1_707), ("RMAT 2^15", 4_031), ("mild RMAT 2^13", 9_774)):  # mt-KaHyPar's
        measured = bench_partition.measure(bench_partition.LIBRARIES["ours"], HUBS[name]())
        yield Bar(f"bisection of {name}, 3 % imbalance: median cut", round(1.05 * cut), measured.cut, "")
    times = [bench_partition.milliseconds_per_edge(side) for side in (100, 1000)]
    yield Bar("time per edge, grid of a million vertices over one of 10,000", 2, times[1] / times[0], "x")


def systems() -> Iterator[Bar]:
    started = time.process_time()
    bench_simulate.twenty_runs("lexicographic")
    yield Bar("300 jobs x 4 policies x 5 machines, simulated", 2, time.process_time() - started, "s")
    for machines in bench_sc17.SCENARIOS:
        costs = [bench_sc17.cost(policy, machines) for policy in bench_sc17.POLICIES]
        name = f"SC'17's scenario 2, {machines:,} machines: slowest of {len(costs)} policies"
        yield Bar(f"{name}, one decision", 100, max(cost.decision for cost in costs), "us")
        yield Bar("... all 10,000 jobs", 5, max(cost.seconds for cost in costs), "s")
    fifo = bench_fifo.cost(bench_fifo.JOBS // 10)
    yield Bar(
        "first come, first served on 1,000 machines: a job",
        45,
        1e6 * fifo.seconds / (bench_fifo.JOBS // 10),
        "us",
    )
    for policy in bench_waiting_jobs.POLICIES:
        few, many = (bench_waiting_jobs.cost(policy, length) for length in (1_000, 100_000))
        yield Bar(
            f"{policy}, end of a job while 100,000 of 20 kinds wait, over 1,000", 2, many.end / few.end, "x"
        )
    statements = ("python", "topoplace", "topoplace --help")
    bare, package, usage = (
        1e3 * statistics.median(bench_import.cpu_seconds(bench_import.CASES[name]) for _ in range(9))
        for name in statements
    )
    yield Bar("import topoplace, over a bare start", 100, package - bare, "ms")
    yield Bar("topoplace --help", 250, usage, "ms")


def clusters() -> Iterator[Bar]:
    for policy in bench_decisions.policies():
        large = bench_decisions.cost(policy)
        small = bench_decisions.cost(policy, machines=bench_decisions.MACHINES // 100)
        limit = 100 if policy.name == "drmaestro" else 25
        name = f"{policy.name}, jobs of 1-8 GPUs on one of 12,500 machines: mean"
        yield Bar(name, limit, 1e6 * large.mean, "us")
        if policy.name != "g-queue":  # of 125 machines, hardly one is idle
            yield Bar("... over that on 125 machines", 1.5, large.mean / small.mean, "x")
        yield Bar("... the first decision", 100, 1e3 * large.first, "ms")
        for size, seconds, most in zip(bench_decisions.GANGS, large.gangs, (1, 5, 10), strict=True):
            yield Bar(f"... a ring of {size:,}", most, 1e3 * seconds, "ms")


def queues() -> Iterator[Bar]:
    log = bench_queues.workload()
    seconds = sum(bench_queues.cost(queue, log).seconds for queue in bench_queues.QUEUES)
    yield Bar(f"{len(log):,} jobs through both queues of TSUBAME, 480 nodes", 30, seconds, "s")


def topologies() -> Iterator[Bar]:
    started = time.process_time()
    topology = bench_topology.cluster()
    yield Bar("12,500 machines of 8 GPUs, built", 1, time.process_time() - started, "s")
    started = time.process_time()
    bench_topology.round_trip(topology)
    yield Bar("... through JSON and back, digests equal", 5, time.process_time() - started, "s")
    yield Bar("... all of that in memory", 100, bench_topology.megabytes_of_memory(), "MB")
    seconds, which = bench_topology.slowest_megabyte()
    yield Bar(f"a megabyte of any format, read or refused: slowest ({which})", 1, seconds, "s")


def peers() -> Iterator[Bar]:
    ratios = bench_match_peers.report("enumeration", bench_match_peers.ENUMERATE)
    mean = statistics.geometric_mean(ratios)
    yield Bar("enumeration, faster of igraph and rustworkx over ours: geometric mean", 5, mean, "x", ">=")
    yield Bar("... least", 1, min(ratios), "x", ">=")


def partition_peers() -> Iterator[Bar]:
    rows, _ = bench_partition.report(list(CLUSTERS.values()), installed(), "clusters")
    for name, row in zip(CLUSTERS, rows, strict=True):
        best = min(found.cut for found in row.values())
        yield Bar(f"bisection of {name}: our cut over the best", 1, row["ours"].cut / best, "x")
    compared = {"mt-kahypar": "cut", "pymetis": "milliseconds"}
    there = [name for name in compared if name in installed()]
    rows, _ = bench_partition.report(list(OTHERS.values()), ["ours", *there], "grids, geometric graphs")
    for name, what in compared.items():
        if name in there:
            ratio = bench_partition.ratio(rows, name, what)
            yield Bar(f"our {what} over {name}'s, geometric mean of {len(rows)} graphs", 1, ratio, "x")
        else:
            print(f"left out: {name} is not installed")


def mappings() -> Iterator[Bar]:
    small = [case for case in bench_mapping.grid() if tp.machines.get(case.machine).num_gpus <= 16]
    found = bench_mapping.quality(small)
    name = f"mappings within 5 % of the proven optimum, {found.cases:,} cases of 2-8 tasks"
    yield Bar(name, 95, 100 * found.within_5_percent, "%", ">=")
    for machine, size, limit in (("dgx1-v100", 4, 10), ("torus2d-16", 8, 100)):
        times = [bench_mapping.microseconds(bench_mapping.drb, c) for c in bench_mapping.timed(machine, size)]
        yield Bar(f"{size} tasks mapped to {machine}, median", limit, statistics.median(times), "us")
    times = [
        bench_mapping.microseconds(bench_mapping.exact, c, 3) for c in bench_mapping.timed("torus2d-16", 8)
    ]
    yield Bar("... proven: slowest", 10, max(times) / 1e3, "ms")
    started = time.process_time()
    bench_mapping.large("ring(1024)")
    yield Bar(
        "a ring of 1,024 tasks mapped to 4,096 GPUs, halves included", 3, time.process_time() - started, "s"
    )


def mapping_peers() -> Iterator[Bar]:
    scotch = bench_mapping.Scotch.found()
    if scotch is None:
        return
    duel = bench_mapping.against_scotch(scotch, list(bench_mapping.grid()))
    yield Bar(f"mapped cost over Scotch's, worst of {duel.cases:,} cases", 1.02, duel.worst, "x")


# Machines, load, ms. If places are short, every change moves the prices of all of them.
KEPT_LIMITS = (
    (1_000, 0.95, 15),
    (10_000, 0.95, 15),
    (10_000, 1.5, 70),
    (bench_flow.LARGEST, 8 / 9, 100),
    (bench_flow.LARGEST, 1, 250),
)


def flow_networks() -> Iterator[Bar]:
    for machines, load, limit in KEPT_LIMITS:
        kept = bench_flow.kept(machines, load)
        rounds = bench_flow.churned(kept, 10)
        name = f"{machines:,} machines, {kept.num_tasks:,} tasks: 1 % leave, 1 % arrive, re-solved"
        yield Bar(name, limit, rounds.milliseconds, "ms")


def flow_network_peers() -> Iterator[Bar]:
    there = flow_libraries.installed()
    for machines, load in bench_flow.KEPT if there else ():
        rounds = bench_flow.churned(bench_flow.kept(machines, load), 10)
        ratio = bench_flow.over_cold(rounds, there)
        name = (
            f"{machines:,} machines, {load:.0%} load, 1 % leave, 1 % arrive: best peer from scratch over ours"
        )
        yield Bar(name, 10, ratio, "x", ">=")


def flow_peers() -> Iterator[Bar]:
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
        rows = bench_flow.report(family, bench_flow.powers(family), ["auto", *there])
        ratio = bench_flow.mean(rows, lambda row: row.over("OR-tools"))
        yield Bar(
            f"{family}, 2^8 to 2^14 nodes: OR-tools' time over ours, geometric mean", 2, ratio, "x", ">="
        )
        yield Bar("... best peer's", 1, bench_flow.mean(rows, bench_flow.Row.over_best), "x", ">=")


def capacity() -> Iterator[Bar]:
    for num_jobs, limit in zip(bench_capacity.SIZES, (1.5, 6, 8), strict=True):
        proven = bench_capacity.decisions(CapacityPlanner(), num_jobs)
        name = f"5 nodes, 9 VM types, {num_jobs} jobs: a plan proven to 5 %, slowest of {len(proven)}"
        yield Bar(name, limit, max(one.seconds for one in proven), "s")
        yield Bar("... largest gap", 5, 100 * max(one.plan.gap for one in proven), "%")
    search = bench_capacity.decisions(SearchPlanner(), num_jobs)
    milliseconds = 1e3 * statistics.median(one.seconds for one in search)
    yield Bar(f"the same {num_jobs} jobs by native search: median", 10, milliseconds, "ms")
    over = statistics.median(bench_capacity.excess(search))
    yield Bar("... its cost over the lower bound, median", 5, over, "%")


def main() -> int:
    groups = [
        placements,
        collectives,
        large_targets,
        counts,
        partitions,
        mappings,
        flow_networks,
        capacity,
        systems,
        clusters,
    ]
    groups += [queues, topologies]
    groups += [peers, partition_peers, mapping_peers, flow_peers, flow_network_peers] * (
        "--peers" in sys.argv
    )
    missed = 0
    for group in groups:
        for bar in group():
            print(bar, flush=True)
            missed += not bar.reached
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
