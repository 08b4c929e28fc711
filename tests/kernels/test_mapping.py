"""The mapping kernel: against brute force where there are few vertices, against its promises elsewhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from topoplace import kernels

WEIGHTS = (0.0, 0.0, 1.0, 1.0, 2.0, 0.5)
DISTANCES = (0.0, 1.0, 1.0, 2.5, 20.0)
PRICES = (0.0, 0.0, 1.0, 2.5)


def symmetric(draw, n, values):
    pairs = n * (n - 1) // 2
    matrix = np.zeros((n, n))
    matrix[np.triu_indices(n, 1)] = draw(st.lists(st.sampled_from(values), min_size=pairs, max_size=pairs))
    return matrix + matrix.T


@st.composite
def problems(draw, most_tasks, most_vertices):
    """Source weights, target distances, and the keyword arguments of a mapping with room for all tasks."""
    n = draw(st.integers(1, most_vertices))
    k = draw(st.integers(1, min(most_tasks, n)))
    free = draw(st.none() | st.permutations(range(n)).map(lambda order: order[: max(k, len(order) - 2)]))
    prices = draw(st.none() | st.lists(st.sampled_from(PRICES), min_size=n, max_size=n))
    weights, distance = symmetric(draw, k, WEIGHTS), symmetric(draw, n, DISTANCES)
    return weights, distance, {"free": free, "target_cost": prices}


def cost_of(weights, distance, target_of, target_cost):
    pairs = sum(
        weights[a, b] * distance[target_of[a], target_of[b]] for a, b in combinations(range(len(weights)), 2)
    )
    return pairs + (0.0 if target_cost is None else sum(target_cost[v] for v in target_of))


def usable(distance, free):
    return range(len(distance)) if free is None else sorted(free)


def placing_order(weights):
    """The heaviest task first, then the one most tied to those before it."""
    order: list[int] = []
    while len(order) < len(weights):
        left = [task for task in range(len(weights)) if task not in order]
        order.append(max(left, key=lambda task: (weights[task, order].sum(), weights[task].sum(), -task)))
    return order


def brute_force(weights, distance, free, target_cost):
    """The least cost and, read in the order of placing, the lexicographically smallest mapping that has it."""
    order = placing_order(weights)
    cost, _, chosen = min(
        (cost_of(weights, distance, chosen, target_cost), [chosen[task] for task in order], chosen)
        for chosen in permutations(usable(distance, free), len(weights))
    )
    return cost, chosen


@given(problem=problems(5, 7))
@settings(max_examples=100)
def test_the_proof_is_brute_forces_answer(problem):
    weights, distance, options = problem
    found = kernels.map_graph(weights, distance, method="exact", **options)
    assert (found.cost, tuple(found.target_of.tolist())) == brute_force(weights, distance, **options)
    assert found.bound == found.cost
    assert found.optimal
    assert found.complete
    assert found.target_of.dtype == np.int32
    assert kernels.verify_map(weights, distance, found.target_of, found.cost, **options)


@given(problem=problems(8, 12), seed=st.integers(0, 2**64 - 1))
def test_descents_keep_their_promises(problem, seed):
    weights, distance, options = problem
    found = kernels.map_graph(weights, distance, seed=seed, **options)
    places = found.target_of.tolist()
    first_fit = list(usable(distance, options["free"]))[: len(weights)]
    assert len(set(places)) == len(weights)
    assert set(places) <= set(usable(distance, options["free"]))
    assert found.cost == pytest.approx(cost_of(weights, distance, places, options["target_cost"]))
    assert found.cost <= cost_of(weights, distance, first_fit, options["target_cost"]) + 1e-9
    assert found.bound <= found.cost
    assert found.optimal == (found.cost == pytest.approx(found.bound))
    assert kernels.verify_map(weights, distance, found.target_of, found.cost, **options)
    again = kernels.map_graph(weights, kernels.TargetDistance(distance), seed=seed, **options)
    assert again.target_of.tolist() == places
    assert again[1:] == found[1:]
    proven = kernels.map_graph(weights, distance, method="exact", **options)
    assert found.bound <= proven.cost <= found.cost


@given(problem=problems(6, 9), data=st.data())
def test_names_do_not_change_the_least_cost(problem, data):
    weights, distance, options = problem
    tasks = data.draw(st.permutations(range(len(weights))))
    order = data.draw(st.permutations(range(len(distance))))
    renamed = {
        "free": None if options["free"] is None else [order.index(v) for v in options["free"]],
        "target_cost": None if options["target_cost"] is None else [options["target_cost"][v] for v in order],
    }
    expected = kernels.map_graph(weights, distance, method="exact", **options).cost
    found = kernels.map_graph(
        weights[np.ix_(tasks, tasks)], distance[np.ix_(order, order)], method="exact", **renamed
    )
    assert found.cost == pytest.approx(expected)


@given(data=st.data(), seed=st.integers(0, 99))
@settings(max_examples=40)
def test_larger_jobs(data, seed):
    n = data.draw(st.integers(12, 40))
    k = data.draw(st.integers(9, n))
    weights = symmetric(data.draw, k, (0.0, 0.0, 0.0, 0.0, 1.0, 3.0, 0.1, 1e-320))
    distance = symmetric(data.draw, n, data.draw(st.sampled_from([DISTANCES, (0.3, 7.0), (0.0,), (1.0,)])))
    found = kernels.map_graph(weights, distance, seed=seed)
    places = found.target_of.tolist()
    assert len(set(places)) == k
    assert found.cost == pytest.approx(cost_of(weights, distance, places, None))
    assert found.cost <= cost_of(weights, distance, range(k), None) + 1e-9
    assert found.bound <= found.cost
    assert kernels.verify_map(weights, distance, places, found.cost)
    assert kernels.map_graph(weights, distance, seed=seed).target_of.tolist() == places


def test_halves_of_a_mesh_are_cut_where_it_is_thin():
    machine = np.arange(64) // 8
    distance = np.where(machine[:, None] == machine, 1.0, 20.0) - np.eye(64)
    found = kernels.map_graph(tp.JobGraph.mesh((8, 8)).graph, distance)
    assert found.cost <= 80 + 32 * 20  # eight blocks of 2 x 4


def test_no_room_is_none():
    assert kernels.map_graph(np.ones((3, 3)) - np.eye(3), np.zeros((2, 2))) is None
    assert kernels.map_graph(np.ones((2, 2)) - np.eye(2), np.zeros((4, 4)), free=[3]) is None


def test_a_packed_machine_is_found_in_a_cluster():
    machine = np.arange(4096) // 4
    distance = np.where(
        machine[:, None] == machine, 1.0, np.where(machine[:, None] // 16 == machine // 16, 20.0, 90.0)
    )
    np.fill_diagonal(distance, 0.0)
    target = kernels.TargetDistance(distance)
    free = [v for v in range(4096) if v % 4 == 0 or v // 4 == 777]
    found = kernels.map_graph(tp.JobGraph.clique(4).graph, target, free=free)
    assert found.target_of.tolist() == [3108, 3109, 3110, 3111]
    assert found.optimal
    large = kernels.map_graph(tp.JobGraph.ring(256).graph, target)
    assert kernels.verify_map(tp.JobGraph.ring(256).graph, target, large.target_of, large.cost)
    assert large.cost <= 192 + 48 * 20 + 16 * 90


def test_limits():
    rng = np.random.default_rng(1)
    distance = np.triu(rng.random((16, 16)), 1)
    distance += distance.T
    job = np.triu(rng.random((10, 10)), 1)
    job += job.T
    early = kernels.map_graph(job, distance, method="exact", max_nodes=20)
    assert not early.complete
    assert early.nodes <= 20
    assert early.bound <= early.cost
    assert not kernels.map_graph(job, distance, method="exact", timeout=0).complete
    assert kernels.map_graph(job, distance, timeout=0).target_of.shape == (10,)
    wide = np.triu(rng.random((400, 400)), 1)
    wide += wide.T
    large = kernels.map_graph(tp.JobGraph.ring(80).graph, wide, method="exact", max_nodes=5000)
    assert not large.complete
    assert large.bound < large.cost


def test_a_timeout_is_looked_at_between_the_steps_of_large_problems():
    rng = np.random.default_rng(1)
    wide = np.triu(rng.random((600, 600)), 1)
    target = kernels.TargetDistance(wide + wide.T)
    kernels.map_graph(tp.JobGraph.ring(2).graph, target, kicks=0)  # the halves are made once
    many = [range(i, i + 420) for i in range(180)]
    small = kernels.map_graph(tp.JobGraph.ring(400).graph, target, regions=many, timeout=0)
    assert (small.complete, small.descents) == (False, 1)
    dense = kernels.map_graph(tp.JobGraph.clique(500).graph, target, timeout=0.0)
    assert (dense.complete, dense.exchanges) == (False, 0)


def test_no_region_is_tried_twice():
    rng = np.random.default_rng(1)
    apart = np.triu(1 + rng.random((10, 10)), 1)
    machine = np.arange(10) // 5
    distance = np.where(machine[:, None] == machine, apart + apart.T, 50.0)
    found = kernels.map_graph(tp.JobGraph.ring(5).graph, distance)
    assert found.descents == 4  # each machine, the first five vertices, and all


def test_no_tasks_are_placed_at_no_cost():
    for size in (0, 2):
        found = kernels.map_graph(np.zeros((0, 0)), np.zeros((size, size)), method="exact")
        assert found.target_of.tolist() == []
        assert (found.cost, found.bound, found.optimal, found.complete) == (0, 0, True, True)


@pytest.mark.parametrize("unit", [2.0**-60, 2.0**60])
def test_the_proof_does_not_depend_on_the_unit_of_costs(unit):
    around = np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    ring = np.minimum(around, 10 - around).astype(float)
    rng = np.random.default_rng(0)  # a case that is hard enough to ask for the target's symmetries
    job = np.triu(rng.integers(1, 9, (9, 9)), 1).astype(float)
    prices = rng.integers(0, 30, 10).astype(float)
    found = kernels.map_graph(job + job.T, ring, method="exact", target_cost=prices)
    other = kernels.map_graph(job + job.T, ring * unit, method="exact", target_cost=prices * unit)
    assert found.nodes > 2000
    assert other.target_of.tolist() == found.target_of.tolist()
    assert (other.cost, other.nodes) == (found.cost * unit, found.nodes)


def test_answers_do_not_depend_on_threads():
    target = kernels.TargetDistance(tp.machines.get("torus2d-16").distance_matrix())
    jobs = [tp.JobGraph.ring(k).graph for k in range(2, 12)]
    alone = [kernels.map_graph(job, target).target_of.tolist() for job in jobs]
    fresh = kernels.TargetDistance(tp.machines.get("torus2d-16").distance_matrix())
    with ThreadPoolExecutor(8) as pool:
        assert (
            list(pool.map(lambda job: kernels.map_graph(job, fresh).target_of.tolist(), jobs * 3))
            == alone * 3
        )


def test_the_verifier_refuses():
    job, distance = np.array([[0, 2], [2, 0]]), np.array([[0, 1, 3], [1, 0, 5], [3, 5, 0]])
    assert kernels.verify_map(job, distance, [0, 1], 2)
    assert not kernels.verify_map(job, distance, [0, 1], 3)
    assert not kernels.verify_map(job, distance, [1, 1], 0)
    assert not kernels.verify_map(job, distance, [0, 3], 2)
    assert not kernels.verify_map(job, distance, [0, 1, 2], 2)
    assert not kernels.verify_map(job, distance, [0, 1], 2, free=[1, 2])
    assert not kernels.verify_map(job, distance, [0, 1], 2, target_cost=[1, 0, 0])
    assert kernels.verify_map(job, distance, [0, 1], 3, target_cost=[1, 0, 0], free=[1, 0])


def spoiled(entry, value):
    distance = np.ones((4, 4)) - np.eye(4)
    distance[entry] = value
    return distance


JOB, TARGET = np.ones((2, 2)) - np.eye(2), np.ones((4, 4)) - np.eye(4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: kernels.map_graph(JOB, spoiled((2, 1), np.nan)), r"target_distance\[2, 1\] = nan is not"),
        (lambda: kernels.map_graph(JOB, spoiled((0, 3), np.inf)), r"target_distance\[0, 3\] = inf is not"),
        (lambda: kernels.map_graph(JOB, spoiled((0, 3), -1)), r"target_distance\[0, 3\] = -1 is negative"),
        (
            lambda: kernels.map_graph(JOB, spoiled((2, 2), 1)),
            r"target_distance\[2, 2\] = 1 is on the diagonal",
        ),
        (
            lambda: kernels.map_graph(JOB, spoiled((1, 2), 4)),
            r"target_distance\[1, 2\] = 4 but .*\[2, 1\] = 1",
        ),
        (
            lambda: kernels.map_graph(JOB, spoiled((1, 2), 1e101)),
            r"target_distance\[1, 2\] = 1e\+101 is more",
        ),
        (lambda: kernels.map_graph(JOB, np.ones((2, 3))), r"target_distance has shape \(2, 3\)"),
        (lambda: kernels.map_graph(JOB, "far"), r"target_distance has dtype"),
        (lambda: kernels.map_graph(JOB, TARGET, method="best"), r"method = 'best' is not one of drb, exact"),
        (lambda: kernels.map_graph(JOB, TARGET, free=[0, 4]), r"free\[1\] = 4 is not in 0..3"),
        (lambda: kernels.map_graph(JOB, TARGET, free=[0, 2, 0]), r"free\[2\] = 0 is there twice"),
        (lambda: kernels.map_graph(JOB, TARGET, free=7), r"free = 7 is not a sequence"),
        (lambda: kernels.map_graph(JOB, TARGET, regions=[[0, 1], [2, 9]]), r"regions\[1\]\[1\] = 9 is not"),
        (lambda: kernels.map_graph(JOB, TARGET, regions=7), r"regions = 7 is not a sequence"),
        (lambda: kernels.map_graph(JOB, TARGET, regions=[[1, 1]]), r"regions\[0\]\[1\] = 1 is there twice"),
        (lambda: kernels.map_graph(JOB, TARGET, target_cost=[0, 1]), r"target_cost has shape \(2,\)"),
        (
            lambda: kernels.map_graph(JOB, TARGET, target_cost=[0, 1, -2, 0]),
            r"target_cost\[2\] = -2 is not in",
        ),
        (lambda: kernels.map_graph(JOB, TARGET, target_cost=[0, np.nan, 0, 0]), r"target_cost\[1\] = nan"),
        (lambda: kernels.map_graph(JOB, TARGET, kicks=-1), r"kicks = -1 is not in 0.."),
        (lambda: kernels.map_graph(JOB, TARGET, seed=-1), r"seed = -1 is not in 0.."),
        (lambda: kernels.map_graph(JOB, TARGET, timeout=-1), r"timeout = -1"),
        (lambda: kernels.map_graph(JOB, TARGET, max_nodes=0), r"max_nodes = 0"),
        (lambda: kernels.map_graph(JOB * 1e300, TARGET * 1e50), r"the sum of the graph.s weights times"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
