"""Every answer of the match kernel against brute force over all injective mappings."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from thoroughness import thorough
from topoplace import kernels

WEIGHTS = [0.0, 12.0, 12.0, 25.0, 25.0, 50.0]


@st.composite
def graphs(draw, smallest, largest, weights):
    n = draw(st.integers(smallest, largest))
    matrix = np.zeros((n, n))
    for u in range(n):
        for v in range(u):
            matrix[u, v] = matrix[v, u] = draw(st.sampled_from(weights))
    return matrix


patterns = graphs(1, 5, [0.0, 1.0, 1.0])
targets = graphs(1, 8, WEIGHTS)


def mappings(pattern, target, induced=False, min_weight=0.0, candidates=None):
    k, n = len(pattern), len(target)
    present = (target > 0) & (target >= min_weight)
    for image in permutations(range(n), k):
        if candidates is not None and not all(candidates[u][v] for u, v in enumerate(image)):
            continue
        pairs = [(u, v, present[image[u], image[v]]) for u in range(k) for v in range(u)]
        if all(on or not pattern[u, v] for u, v, on in pairs) and (
            not induced or all(not on or pattern[u, v] for u, v, on in pairs)
        ):
            yield image


def image_of(pattern, mapping):
    edges = [frozenset((mapping[u], mapping[v])) for u, v in np.argwhere(np.triu(pattern))]
    return frozenset(mapping), frozenset(edges)


def key_of(pattern, distinct, mapping):
    return {
        "mappings": lambda: mapping,
        "images": lambda: image_of(pattern, mapping),
        "vertex_sets": lambda: frozenset(mapping),
    }[distinct]()


@given(
    pattern=patterns,
    target=targets,
    distinct=st.sampled_from(["mappings", "images", "vertex_sets"]),
    induced=st.booleans(),
    min_weight=st.sampled_from([None, 12.0, 20.0, 50.0]),
    data=st.data(),
)
def test_enumeration_is_complete_and_canonical(pattern, target, distinct, induced, min_weight, data):
    k, n = len(pattern), len(target)
    candidates = None
    if data.draw(st.booleans()):
        candidates = data.draw(
            st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=k, max_size=k)
        )
    smallest: dict = {}
    for mapping in mappings(pattern, target, induced, min_weight or 0.0, candidates):
        smallest.setdefault(key_of(pattern, distinct, mapping), mapping)  # permutations come in order
    options = {"distinct": distinct, "induced": induced, "min_weight": min_weight, "candidates": candidates}
    rows = kernels.enumerate_subgraphs(pattern, target, **options)
    assert rows.shape == (len(smallest), k)
    assert rows.dtype == np.int32
    assert sorted(map(tuple, rows.tolist())) == sorted(smallest.values())
    assert kernels.count_subgraphs(pattern, target, **options) == len(smallest)
    for row in rows.tolist():
        assert kernels.verify_embedding(pattern, target, row, induced=induced, min_weight=min_weight)
    if distinct == "vertex_sets":
        assert [sorted(row) for row in rows.tolist()] == sorted(sorted(row) for row in rows.tolist())
    limit = data.draw(st.integers(0, len(smallest) + 1))
    assert (kernels.enumerate_subgraphs(pattern, target, limit=limit, **options) == rows[:limit]).all()
    assert kernels.count_subgraphs(pattern, target, limit=limit, **options) == min(limit, len(rows))


def edges_of(pattern):
    return [(int(u), int(v)) for u, v in np.argwhere(np.triu(pattern))]


def weights_used(pattern, target, mapping):
    return [target[mapping[u], mapping[v]] for u, v in edges_of(pattern)]


def canonical(candidates):
    """Of (score, mapping) pairs: best score, then smallest sorted list, then smallest mapping."""
    return min(candidates, key=lambda c: (-c[0], sorted(c[1]), c[1]), default=None)


def eq2_like(counts):
    x, y, z = (counts[:, i].astype(float) for i in range(3))
    return 16.0 * x - 8.0 * x * y + 12.5 * y * z - 5.0 * x * y * z + 7.5 / (z + 1)


CLASS_OF = {0.0: 0, 50.0: 0, 25.0: 1, 12.0: 2}


def count_score(pattern, target, mapping):
    used = [CLASS_OF[w] for w in weights_used(pattern, target, mapping)]
    return float(eq2_like(np.array([[used.count(c) for c in range(3)]]))[0])


@given(
    pattern=patterns,
    target=targets,
    objective=st.sampled_from(["sum", "bottleneck", "bottleneck_sum", "counts"]),
    min_weight=st.sampled_from([None, 20.0]),
    data=st.data(),
)
@settings(max_examples=thorough(5000, 50))
def test_best_embedding_is_the_canonical_optimum(pattern, target, objective, min_weight, data):
    n = len(target)
    free = data.draw(st.one_of(st.none(), st.sets(st.integers(0, n - 1))))
    usable = set(range(n)) if free is None else free
    required = data.draw(st.sets(st.sampled_from(sorted(usable)), max_size=2)) if usable else set()
    feasible = [
        m
        for m in mappings(pattern, target, min_weight=min_weight or 0.0)
        if set(m) <= usable and required <= set(m)
    ]
    if objective == "bottleneck_sum" and feasible and edges_of(pattern):
        widest = max(min(weights_used(pattern, target, m)) for m in feasible)
        feasible = [m for m in feasible if min(weights_used(pattern, target, m)) == widest]
    score_of = {
        "sum": lambda m: sum(weights_used(pattern, target, m)),
        "bottleneck": lambda m: min(weights_used(pattern, target, m), default=0.0),
        "bottleneck_sum": lambda m: sum(weights_used(pattern, target, m)),
        "counts": lambda m: count_score(pattern, target, m),
    }[objective]
    expected = canonical([(score_of(m), m) for m in feasible])
    goal = objective
    if objective == "counts":
        classes = np.vectorize(CLASS_OF.get)(target).astype(np.int8)
        classes[0, 0] = 2  # so that there are three classes whatever the weights
        goal = kernels.LinkCountScore(classes, eq2_like)
    found = kernels.best_subgraph(
        pattern, target, objective=goal, free=free, required=required, min_weight=min_weight
    )
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.score, tuple(found.vertices.tolist())) == expected
    assert found.bound == found.score
    assert found.optimal
    assert found.complete


@given(pattern=patterns, target=targets, data=st.data())
@settings(max_examples=thorough(5000, 40))
def test_best_remainder_is_the_canonical_optimum(pattern, target, data):
    n = len(target)
    usable = data.draw(st.sets(st.integers(0, n - 1), min_size=0))
    required = data.draw(st.sets(st.sampled_from(sorted(usable)), max_size=2)) if usable else set()
    kept = data.draw(st.sets(st.integers(0, n - 1)))

    def left(mapping):
        rest = sorted((usable | kept) - set(mapping))
        return float(np.triu(target[np.ix_(rest, rest)]).sum())

    feasible = [m for m in mappings(pattern, target) if set(m) <= usable - kept and required <= set(m)]
    expected = min(
        feasible, key=lambda m: (-left(m), -sum(weights_used(pattern, target, m)), sorted(m), m), default=None
    )
    found = kernels.best_remainder(pattern, target, free=usable, kept=kept, required=required)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert tuple(found.vertices.tolist()) == expected
    assert found.remainder == left(expected)
    assert found.score == sum(weights_used(pattern, target, expected))
    assert found.optimal


@pytest.mark.parametrize("objective", ["sum", "bottleneck", "bottleneck_sum"])
@given(pattern=graphs(2, 5, [1.0]), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=thorough(5000, 20))
def test_measured_weights_are_compared_exactly(objective, pattern, seed):
    """Real bandwidth matrices have a different value in every cell: more than the bound has levels."""
    random = np.random.default_rng(seed)
    upper = np.triu(random.uniform(8, 300, (7, 7)), 1)
    target = upper + upper.T
    found = kernels.best_subgraph(pattern, target, objective=objective)
    assert found is not None
    assert found.optimal
    scored = []
    for m in mappings(pattern, target):
        used = weights_used(pattern, target, m)
        scored.append(
            {"sum": sum(used), "bottleneck": min(used), "bottleneck_sum": (min(used), sum(used))}[objective]
        )
    best = max(scored)
    assert found.score == pytest.approx(best[1] if isinstance(best, tuple) else best, rel=1e-9)


@given(pattern=graphs(1, 6, [0.0, 1.0]))
def test_automorphisms_are_all_found(pattern):
    n = len(pattern)
    keeping = sum((pattern[np.ix_(p, p)] == pattern).all() for p in permutations(range(n)))
    assert kernels.Graph(pattern).num_automorphisms == keeping


def test_scores_are_the_targets_own_weights():
    weights = np.full((6, 6), 14.06)
    np.fill_diagonal(weights, 0)
    triangle = np.ones((3, 3)) - np.eye(3)
    assert kernels.best_subgraph(triangle, weights).score == 14.06 + 14.06 + 14.06
    assert kernels.best_subgraph(triangle, weights, objective="bottleneck").score == 14.06
    assert kernels.best_remainder(triangle, weights).remainder == 14.06 + 14.06 + 14.06


def test_min_weight_compares_the_weights_as_they_are():
    weights = np.array([[0, 1, 1 + 2e-12], [1, 0, 1 + 1e-12], [1 + 2e-12, 1 + 1e-12, 0]])
    pair = [[0, 1], [1, 0]]
    assert kernels.count_subgraphs(pair, weights, min_weight=1 + 2e-12) == 2
    assert kernels.best_subgraph(pair, weights, min_weight=1 + 2e-12).vertices.tolist() == [0, 2]
    tiny = weights * 2e-308
    assert kernels.count_subgraphs(pair, tiny, min_weight=1e-308) == 6


@pytest.mark.parametrize("weights", [[1e-6, 1e12], [1e-200], [1e200]])
def test_weights_too_far_apart_to_compare_are_refused(weights):
    edges = [(i, i + 1, weight) for i, weight in enumerate(weights)]
    with pytest.raises(ValueError, match="cannot be compared exactly"):
        kernels.best_subgraph([[0, 1], [1, 0]], kernels.Graph.from_edges(3, edges))
    assert kernels.count_subgraphs([[0, 1], [1, 0]], kernels.Graph.from_edges(3, edges)) == 2 * len(weights)
