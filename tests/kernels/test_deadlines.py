"""Deadlines of kernels, by counted work; `benchmarks/limits/bench_deadlines.py` measures them in time."""

from __future__ import annotations

import time

import numpy as np
import pytest

import topoplace as tp
from topoplace import kernels
from topoplace.errors import SearchTimeoutError

RING = tp.JobGraph.ring(12).graph


def test_a_graph_of_too_many_vertices_has_its_automorphisms_refused() -> None:
    with pytest.raises(ValueError, match="4097 vertices; the automorphisms of at most 4096"):
        _ = kernels.Graph.from_edges(4097, [(0, 1)]).num_automorphisms


def test_automorphisms_are_counted_until_a_timeout() -> None:
    ring = tp.JobGraph.ring(900).graph
    with pytest.raises(SearchTimeoutError, match="not counted after 0"):
        ring.count_automorphisms(timeout=0)
    assert RING.count_automorphisms() == RING.count_automorphisms(timeout=60) == RING.num_automorphisms == 24


def test_a_search_without_time_leaves_the_graph_usable() -> None:
    weights = np.triu(np.random.default_rng(1).integers(1, 98, (300, 300)), 1).astype(float)
    graph = kernels.Graph(weights + weights.T)
    with pytest.raises(SearchTimeoutError):
        kernels.best_remainder(RING, graph, timeout=0)
    with pytest.raises(SearchTimeoutError) as stopped:
        kernels.count_subgraphs(tp.JobGraph.ring(5).graph, graph, timeout=0)
    assert stopped.value.args
    found = kernels.best_subgraph(RING, graph, free=range(20))
    assert found is not None
    assert found.complete


def test_the_same_limit_on_nodes_gives_the_same_answer_before_and_after_preparations() -> None:
    weights = np.triu(np.random.default_rng(2).integers(1, 98, (120, 120)), 1).astype(float)
    graph = kernels.Graph(weights + weights.T)
    answers = [kernels.best_subgraph(RING, graph, max_nodes=3000) for _ in range(2)]
    assert answers[0] is not None
    assert answers[1] is not None
    assert answers[0].nodes == answers[1].nodes
    assert answers[0].vertices.tolist() == answers[1].vertices.tolist()


def test_a_search_of_billions_of_rows_ends_at_its_deadline() -> None:
    graph = kernels.Graph(np.ones((64, 64)) - np.eye(64))
    for distinct in ("mappings", "images"):
        with pytest.raises(SearchTimeoutError, match=r"[1-9]\d* matches so far"):
            kernels.enumerate_subgraphs(RING, graph, distinct=distinct, limit=10**12, timeout=0.2)


def test_a_mapping_without_time_does_not_rank_its_tasks_first() -> None:
    random = np.random.default_rng(3)
    weights, apart = (np.triu(random.integers(1, 98, (1100, 1100)), 1).astype(float) for _ in range(2))
    distance = kernels.TargetDistance(apart + apart.T)

    def spent(source: kernels.Graph) -> float:
        started = time.process_time()
        found = kernels.map_graph(source, distance, timeout=0)
        assert found is not None
        assert not found.complete
        return time.process_time() - started

    sources = [kernels.Graph(weights + weights.T) for _ in range(3)]
    first, again = min(map(spent, sources)), min(map(spent, sources))
    assert first < 8 * again  # 1.7 times; ranking all tasks by 600,000 weights takes 30 times as long
