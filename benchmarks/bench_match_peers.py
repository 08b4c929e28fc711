"""Subgraph enumeration and counting against igraph (VF2) and rustworkx (VF2), one process, one thread.

`python benchmarks/bench_match_peers.py` runs the whole grid once, checks that all three agree, and prints for
every case the CPU time of each, the ratio of the faster peer to ours, and the geometric mean of the ratios.
All graphs are built beforehand. The peers return the lists they build; we fill an array.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import igraph
import networkx as nx
import numpy as np
import pytest
import rustworkx as rx

import topoplace as tp

MAX_MAPPINGS = 20_000_000  # limit for the peers' lists of lists, which take a few GB
SET_CHECK = (
    20_000  # up to this number, mappings are compared as sets; above it, only their number is compared
)
PATTERNS: dict[str, Callable[[int], nx.Graph]] = {
    "ring": nx.cycle_graph,
    "chain": nx.path_graph,
    "star": lambda size: nx.star_graph(size - 1),
    "clique": nx.complete_graph,
}
SIZES = (3, 4, 5, 6, 7, 8)


class Case(NamedTuple):
    pattern: str
    size: int
    target: str

    def __str__(self) -> str:
        return f"{self.pattern}({self.size}) in {self.target}"


@cache
def targets() -> dict[str, nx.Graph]:
    """Return topologies by name; both 16-GPU machines have the same complete unweighted graph."""
    graphs = {"dgx1-v100 complete": nx.complete_graph(8), "16 GPUs complete": nx.complete_graph(16)}
    for machine in ("dgx1-v100", "torus2d-16", "cubemesh-16"):
        graphs[f"{machine} NVLink"] = nvlink_graph(tp.machines.get(machine))
    graphs["8x8 torus"] = torus(8, 8)
    graphs["4x4x4 torus"] = torus(4, 4, 4)
    return graphs


def nvlink_graph(topology: tp.Topology) -> nx.Graph:
    """Return the graph of GPU pairs with an NVLink."""
    graph = nx.empty_graph(topology.num_gpus)
    pairs = ((u, v) for v in range(topology.num_gpus) for u in range(v))
    graph.add_edges_from(
        (u, v) for u, v in pairs if topology.link(u, v).kind in (tp.LinkKind.NVLINK1, tp.LinkKind.NVLINK2)
    )
    return graph


def torus(*sides: int) -> nx.Graph:
    """Return the torus with these sides, its vertices numbered row by row."""
    return nx.convert_node_labels_to_integers(nx.grid_graph(sides, periodic=True))


class Graphs(NamedTuple):
    """One graph in the form of each library."""

    ours: tp.kernels.Graph
    igraph: igraph.Graph
    rustworkx: rx.PyGraph[None, None]


@cache
def graphs_of(kind: str, size: int = 0) -> Graphs:
    """Return a pattern of `size` vertices, or with size 0 the target of that name."""
    graph = PATTERNS[kind](size) if size else targets()[kind]
    edges = sorted(tuple(sorted(edge)) for edge in graph.edges)
    third: rx.PyGraph[None, None] = rx.PyGraph(multigraph=False)
    third.add_nodes_from([None] * len(graph))
    third.add_edges_from_no_data(edges)
    return Graphs(tp.kernels.Graph.from_edges(len(graph), edges), igraph.Graph(len(graph), edges), third)


def ours_enumerate(pattern: Graphs, target: Graphs) -> Any:
    return tp.kernels.enumerate_subgraphs(pattern.ours, target.ours)


def igraph_enumerate(pattern: Graphs, target: Graphs) -> Any:
    return target.igraph.get_subisomorphisms_vf2(pattern.igraph)


def rustworkx_enumerate(pattern: Graphs, target: Graphs) -> Any:
    return list(rx.vf2_mapping(target.rustworkx, pattern.rustworkx, subgraph=True, induced=False))


def ours_count(pattern: Graphs, target: Graphs) -> int:
    return tp.kernels.count_subgraphs(pattern.ours, target.ours)


def igraph_count(pattern: Graphs, target: Graphs) -> int:
    return target.igraph.count_subisomorphisms_vf2(pattern.igraph)


def rustworkx_count(pattern: Graphs, target: Graphs) -> int:
    return sum(1 for _ in rx.vf2_mapping(target.rustworkx, pattern.rustworkx, subgraph=True, induced=False))


ENUMERATE = {"ours": ours_enumerate, "igraph": igraph_enumerate, "rustworkx": rustworkx_enumerate}
COUNT = {"ours": ours_count, "igraph": igraph_count, "rustworkx": rustworkx_count}


def cases() -> Iterator[Case]:
    """Yield the cases, without patterns that have more vertices or edges than their target."""
    for target, graph in targets().items():
        for pattern, size in product(PATTERNS, SIZES):
            if size <= len(graph) and PATTERNS[pattern](size).size() <= graph.size():
                yield Case(pattern, size, target)


def seconds(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the minimum CPU time of a run, and its answer, from up to seven batches within a quarter of a second.

    At least two batches run, unless one takes a second: the first may have to free the memory of the previous case.
    """
    best, spent, rounds, batch = math.inf, 0.0, 0, 1
    while rounds < 1 or (rounds < 2 and spent < 1) or (rounds < 7 and spent < 0.25):
        before = time.thread_time()
        for _ in range(batch):
            answer = run()
        took = time.thread_time() - before
        best, spent, rounds = min(best, took / batch), spent + took, rounds + 1
        batch = max(
            batch, min(1000, int(0.0005 / max(best, 1e-9)))
        )  # the clock is too coarse for microseconds
    return best, answer


def same_mappings(ours: Any, igraphs: Any, rustworkxs: Any) -> bool:
    """Return whether three enumerations agree: as sets if they are small, else in number."""
    if not len(ours) == len(igraphs) == len(rustworkxs):
        return False
    if len(ours) > SET_CHECK:
        return True
    third = {
        tuple(gpu for _, gpu in sorted((task, gpu) for gpu, task in mapping.items()))
        for mapping in rustworkxs
    }
    return set(map(tuple, np.asarray(ours).tolist())) == set(map(tuple, igraphs)) == third


def compare(case: Case, libraries: dict[str, Callable[[Graphs, Graphs], Any]]) -> float:
    """Time every library on one case, check that they agree, print a row; return the faster peer's time over ours."""
    pattern, target = graphs_of(case.pattern, case.size), graphs_of(case.target)
    times, answers = {}, {}
    for name, run in libraries.items():
        times[name], answers[name] = seconds(lambda run=run: run(pattern, target))
    counted = isinstance(answers["ours"], int)
    agree = len(set(answers.values())) == 1 if counted else same_mappings(*answers.values())
    if not agree:
        raise AssertionError(f"{case}: the libraries disagree")
    size = answers["ours"] if counted else len(answers["ours"])
    ratio = min(times["igraph"], times["rustworkx"]) / times["ours"]
    columns = " ".join(f"{1e3 * times[name]:11.3f}" for name in libraries)
    print(f"{case!s:36} {size:11,} {columns} {ratio:9.1f}", flush=True)
    return ratio


def report(title: str, libraries: dict[str, Callable[[Graphs, Graphs], Any]]) -> list[float]:
    """Run the grid with one set of functions, print its table, return the ratios of faster peer over ours."""
    print(f"\n{title}, CPU ms")
    print(f"{'case':36} {'mappings':>11} {'ours':>11} {'igraph':>11} {'rustworkx':>11} {'ratio':>9}")
    ratios: list[float] = []
    for case in cases():
        number = ours_count(graphs_of(case.pattern, case.size), graphs_of(case.target))
        if number > MAX_MAPPINGS:
            print(f"{case!s:36} {number:11,} left out: more than {MAX_MAPPINGS:,} mappings")
        else:
            ratios.append(compare(case, libraries))
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    print(f"{title}: {len(ratios)} cases, faster peer / ours: mean {mean:.1f}, least {min(ratios):.2f}")
    return ratios


QUICK = [Case("ring", 5, "16 GPUs complete"), Case("ring", 8, "8x8 torus"), Case("chain", 6, "4x4x4 torus")]


@pytest.mark.parametrize("library", ENUMERATE)
@pytest.mark.parametrize("case", QUICK, ids=str)
def test_enumerate(benchmark: Any, case: Case, library: str) -> None:
    benchmark.group = str(case)
    benchmark.pedantic(
        ENUMERATE[library], args=(graphs_of(case.pattern, case.size), graphs_of(case.target)), rounds=5
    )


if __name__ == "__main__":
    report("enumeration", ENUMERATE)
    report("counting", COUNT)
