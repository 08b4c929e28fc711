"""Minimum-cost flow against brute force, its own algorithms against each other, and what is refused."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels

ALGORITHMS = ["cost_scaling", "network_simplex", "successive_shortest_path", "cycle_canceling", "auto"]


@st.composite
def networks(draw, *, most_nodes=7, most_arcs=14, most_capacity=5, infinite=True):
    """Networks with loops, parallel arcs, lower bounds, negative cycles and demands in excess, feasible or not."""
    n = draw(st.integers(1, most_nodes))
    m = draw(st.integers(0, most_arcs))
    node = st.integers(0, n - 1)

    def row(values):
        return draw(st.lists(values, min_size=m, max_size=m))

    capacity = row(st.integers(0, most_capacity))
    lower = [min(c, low) for c, low in zip(capacity, row(st.integers(0, 2)), strict=True)]
    if infinite and draw(st.booleans()):
        capacity = [
            kernels.INFINITE if big else c for c, big in zip(capacity, row(st.booleans()), strict=True)
        ]
    supply = draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))
    supply[0] -= sum(supply) + draw(st.sampled_from([0, 0, 0, 1, 2, -1]))
    network = {
        "num_nodes": n,
        "tail": row(node),
        "head": row(node),
        "capacity": capacity,
        "cost": row(st.integers(draw(st.sampled_from([-4, 0])), 6)),
        "supply": supply,
    }
    return network if draw(st.booleans()) else network | {"lower": lower}


def brute_force(num_nodes, tail, head, capacity, cost, supply, lower=None):
    """The least cost by trying every flow; None where there is none."""
    best = None
    surplus = sum(supply) < 0
    lowest = [0] * len(tail) if lower is None else lower
    for flow in itertools.product(*(range(low, c + 1) for low, c in zip(lowest, capacity, strict=True))):
        left = list(supply)
        for t, h, units in zip(tail, head, flow, strict=True):
            left[t] -= units
            left[h] += units
        if all(x == 0 or (surplus and s < 0 and x < 0) for x, s in zip(left, supply, strict=True)):
            total = sum(c * units for c, units in zip(cost, flow, strict=True))
            best = total if best is None else min(best, total)
    return best


@given(networks(most_nodes=4, most_arcs=6, most_capacity=3, infinite=False))
def test_the_optimum_is_the_best_of_all_flows(network):
    expected = brute_force(**network)
    for algorithm in ALGORITHMS:
        found = kernels.min_cost_flow(**network, algorithm=algorithm)
        assert found.verify()
        assert (found.cost if found.status == "optimal" else None) == expected


@given(networks())
def test_all_algorithms_agree_and_prove_their_answer(network):
    answers = [kernels.min_cost_flow(**network, algorithm=algorithm) for algorithm in ALGORITHMS]
    assert len({(answer.status, answer.cost) for answer in answers}) == 1
    assert all(answer.verify() for answer in answers)


def test_a_network_of_four_nodes():
    solution = kernels.min_cost_flow(4, [0, 0, 1, 2], [1, 2, 3, 3], [3, 2, 3, 3], [1, 2, 3, 4], [4, 0, 0, -4])
    assert (solution.status, solution.cost, solution.flow.tolist()) == ("optimal", 18, [3, 1, 3, 1])
    assert (solution.flow.dtype, solution.potential.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tail", [0, 2], r"tail\[1\] = 2 is not a node"),
        ("head", [-1, 1], r"head\[0\] = -1 is not a node"),
        ("capacity", [1, -1], r"capacity\[1\] = -1 is negative"),
        ("capacity", [1.5, 1], r"capacity\[0\] = 1.5 is not an integer"),
        ("cost", [0, float("nan")], r"cost\[1\] = nan is not an integer"),
        ("cost", [0], "cost has 1 entries; the network has 2 arcs"),
        ("lower", [0, 2], r"lower\[1\] = 2 is above the capacity 1"),
        ("supply", [[1, 0]], r"supply has shape \(1, 2\)"),
    ],
)
def test_bad_input_is_named(name, value, message):
    good = {
        "num_nodes": 2,
        "tail": [0, 1],
        "head": [1, 0],
        "capacity": [1, 1],
        "cost": [1, 1],
        "supply": [0, 0],
    }
    with pytest.raises(ValueError, match=message):
        kernels.min_cost_flow(**(good | {name: value}))
