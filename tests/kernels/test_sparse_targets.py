"""Targets of many vertices with few neighbours each, which are searched as lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import kernels
from topoplace.errors import SearchTimeoutError

RING = tp.JobGraph.ring(6).graph
OBJECTIVES = ["sum", "bottleneck", "bottleneck_sum"]


def random_graph(n: int, seed: int, weights: int = 9) -> kernels.Graph:
    """Return a graph of about six edges a vertex, with integer weights of 1 to `weights`."""
    random = np.random.default_rng(seed)
    ends = np.sort(random.integers(0, n, (3 * n, 2)), axis=1)
    ends = np.unique(ends[ends[:, 0] < ends[:, 1]], axis=0)
    return kernels.Graph.from_edges(n, np.column_stack([ends, random.integers(1, weights + 1, len(ends))]))


def with_edges(n: int, seed: int, edges: list[tuple[int, int, float]]) -> kernels.Graph:
    """Return a random tree of weight 1 with these edges added, each heavier than all of the tree."""
    random = np.random.default_rng(seed)
    tree = {(int(random.integers(0, v)), v): 1.0 for v in range(1, n)}
    tree.update({(min(u, v), max(u, v)): w for u, v, w in edges})
    return kernels.Graph.from_edges(n, [(u, v, w) for (u, v), w in tree.items()])


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_heaviest_ring_of_a_hundred_thousand_vertices_is_found(objective):
    chosen = [71, 40_000, 99_999, 5, 63_210, 812]
    heavy = [(u, v, 5.0) for u, v in zip(chosen, chosen[1:] + chosen[:1], strict=True)]
    light = [(v + 1, u + 1, 4.0) for u, v, _ in heavy if max(u, v) < 99_999]
    graph = with_edges(100_000, 1, heavy + light)
    best = kernels.best_subgraph(RING, graph, objective=objective)
    assert best is not None
    assert best.complete
    assert sorted(best.vertices) == sorted(chosen)
    assert best.score == (5.0 if objective == "bottleneck" else 30.0)
    assert kernels.verify_embedding(RING, graph, best.vertices)


@given(st.integers(65, 120), st.integers(0, 10**6), st.sampled_from(OBJECTIVES), st.integers(1, 3))
def test_triangles_and_rings_of_four_are_those_of_brute_force(n, seed, objective, weights):
    graph = random_graph(n, seed, weights)
    matrix = np.zeros((n, n))
    rows = kernels.enumerate_subgraphs(tp.JobGraph.ring(2).graph, graph)
    for u, v in rows.tolist():
        least = [
            w
            for w in range(1, weights + 1)
            if kernels.verify_embedding([(0, 1)], graph, [u, v], min_weight=w)
        ]
        matrix[u, v] = matrix[v, u] = max(least)
    triangles = [
        (u, v, w)
        for u in range(n)
        for v in np.flatnonzero(matrix[u][u + 1 :]) + u + 1
        for w in np.flatnonzero(matrix[u] * matrix[v])
        if w > v
    ]
    assert kernels.count_subgraphs(tp.JobGraph.ring(3).graph, graph, distinct="images") == len(triangles)

    def rank(t: tuple[int, int, int]) -> tuple[float, ...]:
        used = [matrix[t[0], t[1]], matrix[t[1], t[2]], matrix[t[0], t[2]]]
        key = {"sum": (sum(used),), "bottleneck": (min(used),), "bottleneck_sum": (min(used), sum(used))}[
            objective
        ]
        return (*(-k for k in key), *t)

    best = kernels.best_subgraph(tp.JobGraph.ring(3).graph, graph, objective=objective)
    assert (best is None) == (not triangles)
    if best is not None:
        assert best.vertices.tolist() == list(min(triangles, key=rank))


def test_a_sparse_search_ends_at_its_limits():
    graph = random_graph(20_000, 3)
    with pytest.raises(SearchTimeoutError):
        kernels.best_subgraph(RING, graph, timeout=0)
    with pytest.raises(SearchTimeoutError, match="matches so far"):
        kernels.count_subgraphs(tp.JobGraph.ring(14).graph, graph, timeout=0.05)
    early = [kernels.best_subgraph(RING, graph, max_nodes=2000) for _ in range(2)]
    assert early[0] is not None
    assert early[1] is not None
    assert not early[0].optimal
    assert early[0].bound > early[0].score
    assert early[0].vertices.tolist() == early[1].vertices.tolist()


def test_questions_that_need_rows_of_bits_name_their_limit():
    graph = kernels.Graph.from_edges(4097, [(0, 1)])
    assert kernels.count_subgraphs([(0, 1)], graph) == 2
    with pytest.raises(ValueError, match="4097 vertices; this question can be answered for at most 4096"):
        kernels.best_remainder([(0, 1)], graph)
    with pytest.raises(ValueError, match="4097 vertices; this question can be answered for at most 4096"):
        kernels.best_subgraph(
            [(0, 1)],
            graph,
            objective=kernels.LinkCountScore(np.zeros((4097, 4097), np.uint8), lambda counts: counts[:, 0]),
        )


def test_a_pattern_too_large_to_search_for_is_refused():
    with pytest.raises(ValueError, match="the pattern has 4097 vertices; at most 4096 can be searched for"):
        kernels.count_subgraphs(kernels.Graph.from_edges(4097, [(0, 1)]), [(0, 1)])
