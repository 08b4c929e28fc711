"""The best ring of 6 in random graphs of degree 6, and the number of its images, by size of the graph.

`python benchmarks/limits/bench_sparse_targets.py` prints CPU seconds for 1,000 to a million vertices, for weights that
all differ; `make bars` checks the first sizes against their limits.
"""

from __future__ import annotations

import time

import numpy as np

import topoplace as tp
from topoplace import kernels

RING = tp.JobGraph.ring(6).graph
OBJECTIVES = ("sum", "bottleneck", "bottleneck_sum")


def random_graph(num_vertices: int) -> kernels.Graph:
    """Return a graph of three times as many random edges, with weights of 1 to 100."""
    random = np.random.default_rng(0)
    ends = np.sort(random.integers(0, num_vertices, (4 * num_vertices, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    ends = ends[np.sort(random.permutation(len(ends))[: 3 * num_vertices])]
    return kernels.Graph.from_edges(num_vertices, np.column_stack([ends, 1 + 99 * random.random(len(ends))]))


def seconds_for_best(graph: kernels.Graph, objective: str) -> float:
    """Return the CPU time of the proven best ring."""
    started = time.thread_time()
    best = kernels.best_subgraph(RING, graph, objective=objective)  # type: ignore[arg-type]
    assert best is not None
    assert best.complete
    return time.thread_time() - started


def seconds_to_count(graph: kernels.Graph) -> float:
    """Return the CPU time of counting the images of the ring."""
    started = time.thread_time()
    assert kernels.count_subgraphs(RING, graph, distinct="images") > 0
    return time.thread_time() - started


if __name__ == "__main__":
    print(f"{'vertices':>9}", *(f"{name:>15}" for name in (*OBJECTIVES, "count")))
    for size in (1_000, 10_000, 100_000, 1_000_000):
        target = random_graph(size)
        times = [seconds_for_best(target, objective) for objective in OBJECTIVES]
        print(
            f"{size:9,}", *(f"{seconds:15.4f}" for seconds in (*times, seconds_to_count(target))), flush=True
        )
