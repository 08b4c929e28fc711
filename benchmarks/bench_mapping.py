"""Mapping of job graphs to machines: DRB against the proof, both against Scotch's mapper, with their times.

`python benchmarks/bench_mapping.py` maps every pattern of 2 to 8 tasks to every built-in machine, idle and with random
GPUs busy, by two distances, and prints the distance of DRB from the proven optimum and both times. If Debian's
libscotch is installed, its mapper gets the same cases: integer weights, and the free GPUs as a complete graph with the
distances as edge weights. The better result of its default and its quality strategy counts.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import statistics
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import topoplace as tp
from timing.measure import microseconds, timed
from topoplace import kernels

J = tp.JobGraph
PATTERNS: dict[str, Callable[[int], tp.JobGraph]] = {
    "ring": J.ring,
    "chain": J.chain,
    "star": J.star,
    "tree": J.tree,
    "clique": J.clique,
    "allreduce": J.allreduce,
    "mesh": lambda size: J.mesh((2, size // 2)),
    "cube": lambda _: J.mesh((2, 2, 2)),
    "weighted": lambda size: J.from_edges(
        size, [(a, b, 1 + (3 * a + 5 * b) % 4) for b in range(size) for a in range(b)]
    ),
}
SIZES = {"mesh": (4, 6, 8), "cube": (8,)}
DISTANCES = ("hops", "time")
BUSY = (0.0, 0.15, 0.3, 0.5, 0.5)


class Case(NamedTuple):
    machine: str
    distance: str
    pattern: str
    size: int
    free: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.pattern}({self.size}) on {len(self.free)} GPUs of {self.machine}, {self.distance}"


def grid(machines: tuple[str, ...] | None = None) -> Iterator[Case]:
    """Yield every pattern on every machine, by both distances, idle and with random GPUs busy."""
    for machine in machines or tp.machines.names():
        n = tp.machines.get(machine).num_gpus
        random = np.random.default_rng(n)
        for share in BUSY:
            order = random.permutation(n)[: max(2, round((1 - share) * n))]
            free = tuple(sorted(order.tolist()))
            for pattern in PATTERNS:
                for size in SIZES.get(pattern, range(2, 9)):
                    if size <= len(free):
                        yield from (Case(machine, kind, pattern, size, free) for kind in DISTANCES)


def distances(machine: str, kind: str) -> NDArray[np.float64]:
    """Return `Topology.distance_matrix()`, or microseconds for a megabyte on the best path; integers, for Scotch."""
    topology = tp.machines.get(machine)
    if kind == "hops":
        return topology.distance_matrix()
    bandwidth = topology.bandwidth_matrix()
    return np.where(bandwidth > 0, np.round(1000 / np.where(bandwidth > 0, bandwidth, 1)), 0.0)


@cache
def target(machine: str, kind: str) -> kernels.TargetDistance:
    return kernels.TargetDistance(distances(machine, kind))


@cache
def job(pattern: str, size: int) -> tp.JobGraph:
    return PATTERNS[pattern](size)


def drb(case: Case) -> kernels.Mapping:
    found = kernels.map_graph(
        job(case.pattern, case.size).graph, target(case.machine, case.distance), free=case.free
    )
    assert found is not None
    return found


def exact(case: Case, max_nodes: int = 100_000) -> kernels.Mapping:
    found = kernels.map_graph(
        job(case.pattern, case.size).graph,
        target(case.machine, case.distance),
        free=case.free,
        method="exact",
        max_nodes=max_nodes,
    )
    assert found is not None
    return found


# ---- Scotch ------------------------------------------------------------------------------------------------------


class Scotch:
    """SCOTCH_graphMap through ctypes; its opaque structures get more memory than they need."""

    QUALITY = 0x00001  # SCOTCH_STRATQUALITY
    ROOM = 1 << 14

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    @classmethod
    def found(cls) -> Scotch | None:
        """Return the installed library with 32-bit numbers, or None."""
        for name in ("libscotch-7.0.so", "libscotch.so", ctypes.util.find_library("scotch") or ""):
            try:
                ctypes.CDLL(name.replace("libscotch", "libscotcherr"), ctypes.RTLD_GLOBAL)
                return cls(ctypes.CDLL(name))
            except OSError:
                continue
        return None

    def _graph(self, weights: NDArray[np.float64]) -> tuple[Any, list[Any]]:
        graph = ctypes.create_string_buffer(self.ROOM)
        ends = np.argwhere(weights > 0)
        first = np.searchsorted(ends[:, 0], np.arange(len(weights) + 1))
        arrays = [
            np.ascontiguousarray(values, np.int32) for values in (first, ends[:, 1], weights[weights > 0])
        ]
        verttab, edgetab, edlotab = (array.ctypes.data_as(ctypes.c_void_p) for array in arrays)
        assert self._library.SCOTCH_graphInit(graph) == 0
        assert (
            self._library.SCOTCH_graphBuild(
                graph, 0, len(weights), verttab, None, None, None, len(ends), edgetab, edlotab
            )
            == 0
        )
        return graph, arrays

    def _strategy(self, flags: int | None, size: int) -> Any:
        strategy = ctypes.create_string_buffer(self.ROOM)
        assert self._library.SCOTCH_stratInit(strategy) == 0
        if flags is not None:
            assert self._library.SCOTCH_stratGraphMapBuild(strategy, flags, size, ctypes.c_double(0.01)) == 0
        return strategy

    def architecture(self, distance: NDArray[np.float64]) -> Any:
        """Return the target as a complete graph, decomposed by Scotch."""
        graph, kept = self._graph(distance)
        built = ctypes.create_string_buffer(self.ROOM)
        assert self._library.SCOTCH_archInit(built) == 0
        assert self._library.SCOTCH_archBuild(built, graph, 0, None, self._strategy(None, 0)) == 0
        del kept
        return built

    def map(self, weights: NDArray[np.float64], architecture: Any, size: int) -> list[NDArray[np.int32]]:
        """Return the vertex of each task, for each strategy."""
        graph, kept = self._graph(weights)
        answers = []
        for flags in (None, self.QUALITY):
            places = np.full(len(weights), -1, np.int32)
            self._library.SCOTCH_randomReset()
            strategy = self._strategy(flags, size)
            pointer = places.ctypes.data_as(ctypes.c_void_p)
            assert self._library.SCOTCH_graphMap(graph, architecture, strategy, pointer) == 0
            answers.append(places)
        del kept
        return answers


def scotch_cost(scotch: Scotch, case: Case) -> float | None:
    """Return the cost of the better strategy; None if neither gives each task a separate GPU."""
    weights = weights_of(job(case.pattern, case.size))
    distance = distances(case.machine, case.distance)[np.ix_(case.free, case.free)]
    answers = scotch.map(weights, scotch.architecture(distance), len(case.free))
    costs = [
        float((weights * distance[np.ix_(places, places)]).sum()) / 2
        for places in answers
        if len(set(places.tolist())) == case.size
    ]
    return min(costs, default=None)


def weights_of(graph: tp.JobGraph) -> NDArray[np.float64]:
    weights = np.zeros((graph.num_tasks, graph.num_tasks))
    for a, b, weight in graph.edges:
        weights[a, b] = weights[b, a] = weight
    return weights


# ---- measurements ------------------------------------------------------------------------------------------------


class Quality(NamedTuple):
    cases: int
    within_5_percent: float
    optimal: float
    worst: float
    proven: float


def quality(cases: list[Case]) -> Quality:
    """Compare DRB's costs with the proven ones, or with the best known if the proof took too long."""
    ratios, proven = [], 0
    for case in cases:
        best = exact(case)
        proven += best.optimal
        cost = drb(case).cost
        ratios.append(1.0 if cost <= best.cost else cost / best.cost)
    within = sum(ratio <= 1.05 for ratio in ratios) / len(ratios)
    return Quality(len(ratios), within, ratios.count(1.0) / len(ratios), max(ratios), proven / len(ratios))


class Duel(NamedTuple):
    cases: int
    ours_worse: int
    worst: float
    theirs_worse: int
    their_worst: float
    refused: int


def against_scotch(scotch: Scotch, cases: list[Case]) -> Duel:
    """Compare DRB's costs with Scotch's; `refused` counts cases in which Scotch put two tasks on one GPU."""
    ours, refused = [], 0
    for case in cases:
        theirs = scotch_cost(scotch, case)
        refused += theirs is None
        if theirs is not None and theirs > 0:
            ours.append(drb(case).cost / theirs)
    worse = sum(ratio > 1.02 for ratio in ours)
    better = sum(ratio < 1 / 1.02 for ratio in ours)
    return Duel(len(ours), worse, max(ours), better, 1 / min(ours), refused)


def cases_of(machine: str, size: int) -> list[Case]:
    """Return the cases of one size on one machine by hops."""
    return [case for case in grid((machine,)) if case.size == size and case.distance == "hops"]


CLUSTER_SIZE = 4096


@cache
def cluster() -> kernels.TargetDistance:
    """Return 1,024 machines of four GPUs in pairs, with 64 GPUs per rack."""
    gpu = np.arange(CLUSTER_SIZE)
    distance = np.full((CLUSTER_SIZE, CLUSTER_SIZE), 200.0)
    for size, inside in ((64, 60.0), (4, 20.0), (2, 1.0)):
        distance[(gpu // size)[:, None] == gpu // size] = inside
    np.fill_diagonal(distance, 0.0)
    return kernels.TargetDistance(distance)


LARGE = {
    "ring(64)": J.ring(64),
    "clique(128)": J.clique(128),
    "allreduce(256)": J.allreduce(256),
    "mesh(16, 16)": J.mesh((16, 16)),
    "ring(1024)": J.ring(1024),
}


def large(name: str) -> kernels.Mapping:
    found = kernels.map_graph(LARGE[name].graph, cluster())
    assert found is not None
    return found


@pytest.mark.parametrize("method", [drb, exact], ids=["drb", "exact"])
@pytest.mark.parametrize(("machine", "size"), [("dgx1-v100", 4), ("torus2d-16", 8)])
def test_machine(benchmark: Any, method: Callable[[Case], kernels.Mapping], machine: str, size: int) -> None:
    benchmark(lambda: [method(case) for case in cases_of(machine, size)])


@pytest.mark.parametrize("name", LARGE)
def test_cluster(benchmark: Any, name: str) -> None:
    large(name)
    benchmark(large, name)


def report_times() -> None:
    print(f"{'machine':16} tasks   drb us (median, most)   exact us (median, most)   most nodes")
    for machine, size in [
        ("dgx1-v100", 2),
        ("dgx1-v100", 4),
        ("dgx1-v100", 8),
        ("torus2d-16", 4),
        ("torus2d-16", 8),
    ]:
        cases = cases_of(machine, size)
        rows = [[microseconds(partial(method, case)) for case in cases] for method in (drb, exact)]
        text = "".join(f"{statistics.median(row):14.1f} {max(row):10.1f}" for row in rows)
        print(f"{machine:16} {size:5} {text} {max(exact(case).nodes for case in cases):12}")
    for name in LARGE:
        large(name)
        seconds, found = timed(partial(large, name))
        print(f"{name} on {CLUSTER_SIZE} GPUs: {1e3 * seconds:.1f} ms, cost {found.cost:g}")


def main() -> None:
    cases = list(grid())
    print(quality(cases))
    scotch = Scotch.found()
    print("libscotch is not installed" if scotch is None else against_scotch(scotch, cases))
    report_times()


if __name__ == "__main__":
    main()
