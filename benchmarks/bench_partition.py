"""Bipartitions against METIS, KaHIP, mt-KaHyPar and Scotch: the same graphs, one process, one thread, 3 % imbalance.

`python benchmarks/bench_partition.py` runs every library that is installed on every graph, with as many seeds as fit
into a few seconds, and prints the median cut and the median CPU time of the calls; `--plot FILE` draws time over edges,
`--largest N` leaves out larger graphs, and you can name graph files in METIS' format.
`pip install --group peers` gets pymetis, kahip and mtkahypar; libmetis and libscotch, if installed, are
called directly. All libraries get arrays that they need not convert.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import topoplace as tp
from instances.partition_graphs import CLUSTERS, HUBS, IMBALANCE, OTHERS, Instance, from_file, grid
from libraries.partition_libraries import LIBRARIES, Library, installed
from topoplace import kernels

MILLIONS = (
    *("grid 1000^2", "shuffled grid 1000^2", "geometric 1,000,000", "grid with holes 1000^2"),
    *("RMAT 2^20", "mild RMAT 2^20", "regular 1,000,000 x 6"),
)
MOST_SEEDS, FEWEST_SEEDS, SECONDS = 11, 3, 4.0


# ---- measuring ---------------------------------------------------------------------------------------------------


class Measured(NamedTuple):
    cut: float
    milliseconds: float

    def __str__(self) -> str:
        return f"{self.cut:,.0f} / {self.milliseconds:,.2f}"


class Point(NamedTuple):
    graph: str
    library: str
    edges: int
    milliseconds: float

    @property
    def family(self) -> str:
        return self.graph.rpartition(" ")[0]


def measure(library: Library, instance: Instance) -> Measured:
    """Return medians over seeds of the cut and of the CPU time of the call alone."""
    cuts, times = [], []
    for seed in range(1, MOST_SEEDS + 1):
        call = library.prepare(instance, seed)
        before = time.thread_time(), time.process_time()
        answer = call()
        # threads that a library starts in spite of its settings count as well
        times.append(max(time.thread_time() - before[0], time.process_time() - before[1]))
        cuts.append(instance.cut(np.asarray(answer, dtype=np.int64)))
        if seed >= FEWEST_SEEDS and sum(times) > SECONDS:
            break
    return Measured(statistics.median(cuts), 1e3 * statistics.median(times))


def ratio(rows: Sequence[dict[str, Measured]], of: str, what: str) -> float:
    """Return the geometric mean of our `what` over that of the library `of`."""
    return statistics.geometric_mean(getattr(row["ours"], what) / getattr(row[of], what) for row in rows)


# ---- machines ----------------------------------------------------------------------------------------------------

# Pairs whose link in MAPA's artifact differs from the machine's: the torus lacks an edge; in the cube mesh, two double
# links are PCIe and four are single.
ARTIFACT = {
    "torus2d-16": {(0, 4): 12.0},
    "cubemesh-16": {(4, 5): 12.0, (12, 13): 12.0, (1, 5): 25.0, (3, 8): 25.0, (0, 11): 25.0, (9, 13): 25.0},
}
HALVED = (  # machine, links of the artifact?, minimum cut
    ("dgx1-v100", False, 294.0),
    ("torus2d-16", False, 872.0),
    ("torus2d-16", True, 859.0),
    ("cubemesh-16", False, 870.0),
    ("cubemesh-16", True, 820.0),
)


def machine(name: str, artifact: bool = False) -> kernels.Graph:
    """Return a machine's bandwidths between all pairs, with 12 GB/s for PCIe, or those of MAPA's artifact."""
    bandwidth = np.array(tp.machines.get(name).bandwidth_matrix())
    for (u, v), gb_per_s in ARTIFACT.get(name, {}).items() if artifact else ():
        bandwidth[u, v] = bandwidth[v, u] = gb_per_s
    return kernels.Graph(bandwidth)


def milliseconds_per_edge(side: int) -> float:
    """Return the CPU milliseconds per edge to bipartition the grid of side^2 vertices."""
    instance = grid(side)
    return measure(LIBRARIES["ours"], instance).milliseconds / len(instance.edges)


def microseconds(graph: kernels.Graph) -> float:
    """Return the minimum CPU time of a proof, including the call from Python."""
    best = math.inf
    for _ in range(20):
        before = time.thread_time()
        for _ in range(500):
            kernels.bipartition(graph)
        best = min(best, (time.thread_time() - before) / 500)
    return 1e6 * best


# ---- pytest-benchmark --------------------------------------------------------------------------------------------

QUICK = {name: (CLUSTERS | OTHERS)[name] for name in ("cluster 1,000 x 4", "grid 100^2", "geometric 10,000")}
build_once = cache(lambda name: QUICK[name]())


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("graph", QUICK)
def test_bipartition(benchmark: Any, graph: str, name: str) -> None:
    if not LIBRARIES[name].installed:
        pytest.skip(f"{name} is not installed")
    benchmark.group = graph
    call = LIBRARIES[name].prepare(build_once(graph), 1)
    side = np.asarray(benchmark.pedantic(call, rounds=5), dtype=np.int64)
    assert build_once(graph).cut(side) > 0


@pytest.mark.parametrize(("name", "artifact", "cut"), HALVED)
def test_machine(benchmark: Any, name: str, artifact: bool, cut: float) -> None:
    found = benchmark(kernels.bipartition, machine(name, artifact))
    assert found.optimal
    assert found.cut == cut


# ---- as a program ------------------------------------------------------------------------------------------------


def plot(points: Sequence[Point], path: Path) -> None:
    """Draw CPU time over edges, both logarithmic, with a panel per family of graphs and a line of linear growth."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    families = list(dict.fromkeys(point.family for point in points))
    figure, panels = plt.subplots(
        1, len(families), figsize=(5 * len(families), 4.5), sharey=True, layout="constrained", squeeze=False
    )
    for panel, family in zip(panels[0], families, strict=True):
        those = [point for point in points if point.family == family]
        for name in dict.fromkeys(point.library for point in those):
            line = [(point.edges, point.milliseconds) for point in those if point.library == name]
            style = {"linewidth": 2.5, "color": "black"} if name == "ours" else {"linestyle": ":"}
            panel.loglog(*zip(*line, strict=True), marker=".", label=name, **style)
        ends = np.array([min(point.edges for point in those), max(point.edges for point in those)])
        last = [point for point in those if point.library == "ours"][-1].milliseconds
        panel.loglog(ends, ends / ends[1] * last, color="0.8", label="linear", zorder=0)
        panel.set(title=f"{family}s" if "grid" in family else f"random {family} graphs", xlabel="edges")
    panels[0][0].set_ylabel("CPU ms of a bipartition, 3 % imbalance")
    panels[0][-1].legend(loc="lower right")
    figure.savefig(path, dpi=100)


def report(
    cases: Sequence[Callable[[], Instance]], libraries: Sequence[str], title: str
) -> tuple[list[dict[str, Measured]], list[Point]]:
    """Print a table; return its rows, and the times as points to draw."""
    print(f"\n{title}, {IMBALANCE:.0%} imbalance: median cut / CPU ms\n")
    print(f"| graph | {' | '.join(libraries)} |\n|---|{'---|' * len(libraries)}")
    rows: list[dict[str, Measured]] = []
    points: list[Point] = []
    for build in cases:
        instance = build()
        rows.append({name: measure(LIBRARIES[name], instance) for name in libraries})
        print(f"| {instance.name} | {' | '.join(map(str, rows[-1].values()))} |", flush=True)
        points += [
            Point(instance.name, name, len(instance.edges), found.milliseconds)
            for name, found in rows[-1].items()
        ]
    for name in libraries[1:]:
        cut, time_ = ratio(rows, name, "cut"), ratio(rows, name, "milliseconds")
        print(f"ours / {name}, geometric means: cut {cut:.3f}, time {time_:.3f}", flush=True)
    return rows, points


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="use these graph files instead of all other graphs")
    parser.add_argument("--plot", type=Path, help="draw CPU time over edges into this file")
    parser.add_argument("--quick", action="store_true", help="leave out a million vertices")
    arguments = parser.parse_args()
    names = installed()
    print("not installed:", ", ".join(name for name in LIBRARIES if name not in names) or "none")
    if arguments.files:
        report([lambda path=path: from_file(path) for path in arguments.files], names, "files")
        return
    report(list(CLUSTERS.values()), names, "clusters")
    others = [build for name, build in OTHERS.items() if not (arguments.quick and name in MILLIONS)]
    _, points = report(others, names, "grids and random geometric graphs")
    hubs = [build for name, build in HUBS.items() if not (arguments.quick and name in MILLIONS)]
    report(hubs, names, "graphs with hubs, regular graphs and weighted grids with holes")
    if arguments.plot:
        plot(points, arguments.plot)


if __name__ == "__main__":
    main()
