"""How far kernels run past their deadlines: every kernel at n = 64 .. 4,096 with timeouts of 0.05 and 0.1 s.

`python benchmarks/limits/bench_deadlines.py [KERNEL ...]` prints, for each call, by how many milliseconds it exceeded
its timeout. Graphs are made before; what a kernel prepares on first use counts.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator

import numpy as np

import topoplace as tp
from topoplace import kernels
from topoplace.errors import SearchTimeoutError
from topoplace_lab import capacity
from topoplace_lab.capacity.planners.local_search import found_by
from topoplace_lab.capacity.planners.native_tables import tables_of

SIZES = (64, 256, 1024, 2048, 4096)
TIMEOUTS = (0.05, 0.1)
ALLOWED_MS = 20.0

Call = Callable[[float], object]


def dense(n: int) -> kernels.Graph:
    """Return a complete graph with 97 different random weights."""
    weights = np.triu(np.random.default_rng(n).integers(1, 98, (n, n)), 1).astype(float)
    return kernels.Graph(weights + weights.T)


def sparse(n: int, degree: int = 6) -> kernels.Graph:
    """Return a random graph of this mean degree."""
    ends = np.random.default_rng(n).integers(0, n, (n * degree // 2, 2))
    ends = np.unique(np.sort(ends[ends[:, 0] != ends[:, 1]], axis=1), axis=0)
    return kernels.Graph.from_edges(n, ends)


def metric(n: int) -> np.ndarray:
    """Return the distances of random points in a square."""
    points = np.random.default_rng(n).random((n, 2))
    return np.abs(points[:, None] - points[None]).sum(axis=2)


def matching(n: int) -> Iterator[tuple[str, Call]]:
    mesh = tp.JobGraph.mesh((4, 4)).graph
    for objective in ("sum", "bottleneck", "bottleneck_sum"):
        target = dense(n)
        yield (
            f"best_subgraph {objective}",
            lambda t, o=objective, g=target: kernels.best_subgraph(mesh, g, objective=o, timeout=t),
        )
    target, remainder, few = dense(n), dense(n), sparse(n)
    large = tp.JobGraph.ring(n // 2).graph
    yield "best_subgraph ring of n/2", lambda t: kernels.best_subgraph(large, target, timeout=t)
    yield "best_remainder", lambda t: kernels.best_remainder(mesh, remainder, timeout=t)
    ring = tp.JobGraph.ring(6).graph
    yield "count_subgraphs dense", lambda t: kernels.count_subgraphs(ring, target, timeout=t)
    yield "count_subgraphs sparse", lambda t: kernels.count_subgraphs(mesh, few, timeout=t)
    yield (
        "count_subgraphs vertex_sets",
        lambda t: kernels.count_subgraphs(ring, target, distinct="vertex_sets", timeout=t),
    )
    yield (
        "enumerate_subgraphs",
        lambda t: kernels.enumerate_subgraphs(ring, target, limit=10_000_000, timeout=t),
    )
    spread, symmetric = sparse(n), sparse(n)
    yield "pattern of n vertices", lambda t: kernels.best_subgraph(spread, target, timeout=t)
    yield "count_automorphisms", lambda t: symmetric.count_automorphisms(timeout=t)


def placing(n: int) -> Iterator[tuple[str, Call]]:
    distance, half, few = metric(n), tp.JobGraph.mesh((n // 32, 16)).graph, sparse(n)
    fresh, proven = kernels.TargetDistance(distance), kernels.TargetDistance(distance)
    yield "map_graph", lambda t: kernels.map_graph(half, fresh, timeout=t)
    yield "map_graph again", lambda t: kernels.map_graph(half, fresh, timeout=t)
    yield "map_graph exact", lambda t: kernels.map_graph(half, proven, method="exact", timeout=t)
    few_tasks = tp.JobGraph.mesh((4, 4)).graph
    yield "map_graph exact 16", lambda t: kernels.map_graph(few_tasks, proven, method="exact", timeout=t)
    yield "bipartition", lambda t: kernels.bipartition(few, timeout=t)
    full = dense(n)
    yield "bipartition dense", lambda t: kernels.bipartition(full, timeout=t)


def flowing(n: int) -> Iterator[tuple[str, Call]]:
    arcs = 16 * n
    random = np.random.default_rng(n)
    tail, head = random.integers(0, n, (2, arcs))
    tail, head = tail[tail != head], head[tail != head]
    capacity, cost = random.integers(1, 1000, (2, len(tail)))
    supply = np.zeros(n, int)
    supply[: n // 2] = 500
    supply[n // 2 :] = -500
    for algorithm in (
        "auto",
        "cost_scaling",
        "network_simplex",
        "successive_shortest_path",
        "cycle_canceling",
    ):
        yield (
            f"min_cost_flow {algorithm}",
            lambda t, a=algorithm: kernels.min_cost_flow(
                n, tail, head, capacity, cost, supply, algorithm=a, timeout=t
            ),
        )
    network = kernels.FlowNetwork()
    network.add_nodes(supply)
    network.add_arcs(tail, head, capacity, cost)
    yield "FlowNetwork.solve", lambda t: network.solve(timeout=t)


def planning(n: int) -> Iterator[tuple[str, Call]]:
    jobs = capacity.generate_jobs(n, n // 8, seed=n)
    asked = capacity.Problem.of(jobs, capacity.TABLE_II, n // 8)
    tables = tables_of(asked)
    yield "capacity search", lambda t: found_by(capacity.SearchPlanner(timeout=t), tables, asked)


FAMILIES = (matching, placing, flowing, planning)


def overrun_ms(call: Call, timeout: float) -> float:
    """Return by how many milliseconds of CPU time a call exceeds its timeout."""
    start = time.process_time()
    with contextlib.suppress(SearchTimeoutError):
        call(timeout)
    return (time.process_time() - start - timeout) * 1000


def main(wanted: list[str]) -> int:
    """Print the overrun of every call, worst last; return 1 if one exceeds what is allowed."""
    worst: list[tuple[float, str]] = []
    for n in SIZES:
        for family in FAMILIES:
            for timeout in TIMEOUTS:
                for name, call in family(n):
                    if wanted and not any(word in name for word in wanted):
                        continue
                    over = overrun_ms(call, timeout)
                    worst.append((over, f"{name}, n = {n}, timeout = {timeout} s"))
                    print(f"{over:9.1f} ms  {worst[-1][1]}", flush=True)
    print("beyond what is allowed:")
    missed = [entry for entry in sorted(worst) if entry[0] > ALLOWED_MS]
    for over, what in missed:
        print(f"{over:9.1f} ms  {what}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
