"""`best_subgraph` with a tolerance, without time, and next to `map_graph`."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from numpy.typing import NDArray

import topoplace as tp
from topoplace import kernels

OBJECTIVES: tuple[kernels.Objective, ...] = ("sum", "bottleneck", "bottleneck_sum")


def measured(machines: int, size: int, seed: int) -> NDArray[np.float64]:
    """Return the GB/s between GPUs of machines of `size`, each link up to 3 % off."""
    rng = np.random.default_rng(seed)
    machine = np.arange(machines * size) // size
    weights = np.where(machine[:, None] == machine, 50.0, 6.0) * rng.uniform(
        0.97, 1.03, (machines * size,) * 2
    )
    return np.triu(weights, 1) + np.triu(weights, 1).T


def best_of_all(job: tp.JobGraph, weights: NDArray[np.float64], objective: kernels.Objective) -> float:
    """Return the best score of all mappings."""
    images = np.array(list(permutations(range(len(weights)), job.num_tasks)))
    used = np.stack([weights[images[:, a], images[:, b]] for a, b, _ in job.edges])
    return float((used.min(axis=0) if objective == "bottleneck" else used.sum(axis=0)).max())


@pytest.mark.parametrize("objective", ["sum", "bottleneck"])
@pytest.mark.parametrize("tolerance", [1e-6, 0.03, 0.5])
def test_an_answer_is_within_its_tolerance_of_the_best(
    objective: kernels.Objective, tolerance: float
) -> None:
    for seed in range(4):
        weights = measured(3, 2 + seed % 2, seed)
        for job in (tp.JobGraph.ring(4), tp.JobGraph.tree(5), tp.JobGraph.clique(3)):
            best = best_of_all(job, weights, objective)
            found = kernels.best_subgraph(job.graph, weights, objective=objective, tolerance=tolerance)
            assert found is not None
            assert found.score <= best * (1 + 1e-9)
            assert found.bound >= best * (1 - 1e-9)
            assert found.within <= tolerance * (1 + 1e-9)
            assert found.within == 0 or not found.optimal
            assert not found.complete
            again = kernels.best_subgraph(job.graph, weights, objective=objective, tolerance=tolerance)
            assert again is not None
            assert again.vertices.tolist() == found.vertices.tolist()


def test_no_tolerance_is_the_default_and_breaks_ties() -> None:
    ring, weights = tp.JobGraph.ring(4).graph, measured(2, 4, 1)
    found = [kernels.best_subgraph(ring, weights, tolerance=zero) for zero in (0, 0.0)]
    default = kernels.best_subgraph(ring, weights)
    assert default is not None
    assert (default.within, default.complete) == (0.0, True)
    assert all(one is not None and one.vertices.tolist() == default.vertices.tolist() for one in found)


def test_a_tolerance_saves_work() -> None:
    ring, weights = tp.JobGraph.ring(12).graph, measured(6, 8, 2)
    free = np.sort(np.random.default_rng(1).permutation(48)[:20]).tolist()
    rough = kernels.best_subgraph(ring, weights, free=free, tolerance=0.03)
    exact = kernels.best_subgraph(ring, weights, free=free, max_nodes=200_000)
    assert rough is not None
    assert exact is not None
    assert exact.score <= rough.bound
    assert 20 * rough.nodes < exact.nodes


def test_a_tolerance_of_link_counts_is_relative_to_their_score() -> None:
    machine = tp.machines.get("dgx1-v100")
    weights = machine.bandwidth_matrix()
    classes = np.searchsorted(np.unique(weights), weights)
    for shift in (0, -60, -1000):
        score = kernels.LinkCountScore(classes, lambda counts, shift=shift: counts @ [0, 1, 3, 7] + shift)  # type: ignore[misc]
        best = kernels.best_subgraph(tp.JobGraph.ring(5).graph, weights, objective=score)
        rough = kernels.best_subgraph(tp.JobGraph.ring(5).graph, weights, objective=score, tolerance=0.2)
        assert best is not None
        assert rough is not None
        assert rough.score <= best.score <= rough.bound
        assert rough.within <= 0.2


def test_the_gap_of_a_score_of_zero() -> None:
    none = np.zeros(2, np.int32)
    assert kernels.Embedding(none, 0.0, 0.0, True, True, 1).within == 0
    assert kernels.Embedding(none, 0.0, 1.0, False, False, 1).within == math.inf
    assert kernels.Embedding(none, -4.0, -3.0, False, False, 1).within == 0.25


@pytest.mark.parametrize("tolerance", [-0.1, math.nan, math.inf, "0.1", None, True, [0.1]])
def test_a_tolerance_that_is_none_is_refused(tolerance: object) -> None:
    with pytest.raises(ValueError, match="tolerance = "):
        kernels.best_subgraph([(0, 1)], np.ones((3, 3)) - np.eye(3), tolerance=tolerance)  # type: ignore[arg-type]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_without_time_a_complete_target_has_an_answer(objective: kernels.Objective) -> None:
    weights = measured(30, 8, 3)
    chain = tp.JobGraph.chain(32).graph
    for limits in ({"timeout": 0}, {"max_nodes": 1}, {"timeout": 1e-4}):
        found = kernels.best_subgraph(
            chain, kernels.Graph(weights), objective=objective, required=[100], **limits
        )
        assert found is not None
        assert 100 in found.vertices
        assert kernels.verify_embedding(chain, weights, found.vertices.tolist())
        assert found.score <= found.bound
        assert not found.optimal


def test_without_time_a_score_by_link_counts_has_an_answer() -> None:
    weights = measured(30, 8, 3)
    score = kernels.LinkCountScore((weights > 20).astype(int), lambda counts: counts[:, 1] - counts[:, 0])
    for limits in ({"timeout": 0}, {"max_nodes": 1}):
        found = kernels.best_subgraph(tp.JobGraph.ring(20).graph, weights, objective=score, **limits)
        assert found is not None
        assert found.score <= found.bound <= 20


def test_the_best_embedding_is_not_below_what_the_mapping_kernel_finds() -> None:
    for seed, job in enumerate((tp.JobGraph.ring(16), tp.JobGraph.mesh((4, 4)), tp.JobGraph.tree(12))):
        weights = measured(8, 8, seed)
        free = np.sort(np.random.default_rng(seed).permutation(64)[:30]).tolist()
        distance = weights.max() - weights
        np.fill_diagonal(distance, 0.0)
        mapped = kernels.map_graph(job.graph, kernels.TargetDistance(distance), free=free)
        found = kernels.best_subgraph(job.graph, weights, free=free, max_nodes=60_000)
        assert mapped is not None
        assert found is not None
        assert found.score >= sum(weights[mapped.target_of[a], mapped.target_of[b]] for a, b, _ in job.edges)
