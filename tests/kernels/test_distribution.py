"""The distribution kernel: against brute force where there are few tasks, against its promises elsewhere."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace import kernels

WEIGHTS = (0.0, 0.0, 1.0, 2.0, 0.5)
DISTANCES = (0.0, 1.0, 2.5, 20.0)


@st.composite
def problems(draw):
    """Source weights, rooms, and distances of blocks, some of them below those inside a block."""
    k, b = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    weights, distance = np.zeros((k, k)), np.zeros((b, b))
    for i, j in combinations(range(k), 2):
        weights[i, j] = weights[j, i] = draw(st.sampled_from(WEIGHTS))
    for i in range(b):
        for j in range(i + 1):
            distance[i, j] = distance[j, i] = draw(st.sampled_from(DISTANCES))
    return weights, draw(st.lists(st.integers(0, 4), min_size=b, max_size=b)), distance


def brute_force(weights, room, distance):
    k, costs = len(weights), []
    for blocks in product(range(len(room)), repeat=k):
        if all(blocks.count(block) <= most for block, most in enumerate(room)):
            pairs = combinations(range(k), 2)
            costs.append(sum(weights[a, b] * distance[blocks[a], blocks[b]] for a, b in pairs))
    return min(costs, default=None)


@given(problems())
def test_bounds_hold_and_proofs_are_right(problem):
    weights, room, distance = problem
    least = brute_force(weights, room, distance)
    found = kernels.distribute(weights, room, distance)
    assert (found is None) == (least is None)
    if found is not None:
        assert kernels.verify_distribution(weights, room, distance, found.block_of, found.cost)
        assert found.bound <= least + 1e-9
        assert found.cost >= least - 1e-9
        assert not found.optimal or found.cost == pytest.approx(least)
        assert found.complete


def racks(num_blocks):
    number = np.arange(num_blocks)
    distance = np.where(number[:, None] // 4 == number // 4, 50.0, 100.0)
    np.fill_diagonal(distance, 1.0)
    return distance


@pytest.mark.parametrize("job", [tp.JobGraph.ring(64), tp.JobGraph.clique(64)], ids=lambda job: job.name)
def test_rings_and_cliques_are_proven(job):
    found = kernels.distribute(job.graph, [8] * 8, racks(8))
    assert found.optimal
    assert found.cost == found.bound


def test_a_torus_is_cut_as_well_as_by_the_mapping_kernel():
    job, machine = tp.JobGraph.torus([8, 8]), np.arange(64) // 8
    gpus = racks(8)[np.ix_(machine, machine)]
    np.fill_diagonal(gpus, 0.0)
    mapped = kernels.map_graph(job.graph, gpus)
    found = kernels.distribute(job.graph, [8] * 8, racks(8))
    assert found.cost <= mapped.cost


def random_weights():
    rng = np.random.default_rng(1)
    weights = np.triu(rng.random((48, 48)) < 0.1, 1).astype(float)
    return weights + weights.T


def test_more_starts_are_no_worse_and_none_is_in_turn():
    weights = random_weights()
    costs = [kernels.distribute(weights, [4] * 12, racks(12), starts=starts).cost for starts in (0, 1, 4)]
    assert costs == sorted(costs, reverse=True)
    in_turn = np.arange(48) // 4
    assert kernels.verify_distribution(weights, [4] * 12, racks(12), in_turn, costs[0])


def test_a_limit_leaves_an_answer():
    weights = random_weights()
    found = kernels.distribute(weights, [4] * 12, racks(12), max_nodes=1)
    assert not found.complete
    assert kernels.verify_distribution(weights, [4] * 12, racks(12), found.block_of, found.cost)
    assert not kernels.distribute(weights, [4] * 12, racks(12), timeout=1e-9).complete


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0.0]], [[1]], [[0.0]]), "room has shape"),
        (([[0.0]], [1.5], [[0.0]]), r"room\[0\] = 1.5"),
        (([[0.0]], [1, 1], [0.0]), "distance has shape"),
        (([[0.0]], [1, 1], [[0.0]]), "distance has the wrong shape"),
        (([[0.0]], [1, 1], [[0.0, 1.0], [2.0, 0.0]]), r"distance\[1, 0\] = 2"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        kernels.distribute(*arguments)


def test_faults_are_found():
    ring = tp.JobGraph.ring(4).graph
    two = [[1.0, 5.0], [5.0, 1.0]]
    assert kernels.verify_distribution(ring, [2, 2], two, [0, 0, 1, 1], 12.0)
    assert not kernels.verify_distribution(ring, [2, 2], two, [0, 0, 1, 1], 11.0)
    assert not kernels.verify_distribution(ring, [2, 2], two, [0, 0, 0, 1], 12.0)
    assert not kernels.verify_distribution(ring, [2, 2], two, [0, 0, 1, 2**40], 12.0)
    assert not kernels.verify_distribution(ring, [2, 2], two, [0, 0, 1], 12.0)
    assert not kernels.verify_distribution(ring, [2, 2], two, [0.0, 0.0, 1.0, 1.0], 12.0)
