"""Network simplex and the two simple algorithms where numbers are large, time is short, or work is counted."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.flow_instances import FAMILIES, Instance, workload
from topoplace import kernels

PRIMAL = ["network_simplex", "successive_shortest_path", "cycle_canceling"]


def solve(instance: Instance, **options):
    return kernels.min_cost_flow(
        instance.num_nodes,
        instance.tail,
        instance.head,
        instance.capacity,
        instance.cost,
        instance.supply,
        **options,
    )


@st.composite
def instances(draw):
    n = draw(st.integers(2, 8))
    m = draw(st.integers(1, 20))

    def row(low, high, size=m):
        return np.array(draw(st.lists(st.integers(low, high), min_size=size, max_size=size)), dtype=np.int64)

    supply = row(-4, 4, n)
    supply[0] -= supply.sum()
    return Instance("", "", row(0, n - 1), row(0, n - 1), row(0, 6), row(-5, 9), supply)


@given(instance=instances(), cost_bits=st.integers(0, 50), unit_bits=st.integers(0, 50))
def test_large_numbers_are_small_ones_times_something(instance, cost_bits, unit_bits):
    large = instance._replace(
        cost=instance.cost << cost_bits,
        capacity=instance.capacity << unit_bits,
        supply=instance.supply << unit_bits,
    )
    small = solve(instance, algorithm="cycle_canceling")
    for algorithm in PRIMAL:
        found = solve(large, algorithm=algorithm)
        assert found.status == small.status
        assert found.verify()
        assert found.cost == small.cost << (cost_bits + unit_bits)


def test_structure_is_left_alone_on_request():
    instance = workload("scheduling", 20, 0.95).instance()
    found, plain = solve(instance), solve(instance, structure=False)
    assert (found.algorithm, plain.algorithm) == ("auto", "network_simplex")
    assert found.cost == plain.cost
    assert found.verify()
    assert plain.verify()


@given(instance=instances(), order=st.randoms(use_true_random=False))
def test_the_order_of_arcs_does_not_change_the_cost(instance, order):
    arcs = list(range(len(instance.tail)))
    order.shuffle(arcs)
    shuffled = instance._replace(**{name: getattr(instance, name)[arcs] for name in Instance._fields[2:6]})
    for algorithm in PRIMAL:
        one, other = (solve(network, algorithm=algorithm) for network in (instance, shuffled))
        assert (one.status, one.cost) == (other.status, other.cost)


@pytest.mark.parametrize("algorithm", PRIMAL)
def test_a_search_ends_after_so_many_steps(algorithm):
    instance = FAMILIES["NETGEN-8"](8)
    found = solve(instance, algorithm=algorithm, max_nodes=100)
    assert (found.status, found.steps, found.cost) == ("timeout", 100, 0)
    assert not found.verify()
    again = [solve(instance, algorithm="network_simplex") for _ in range(2)]
    assert again[0].steps == again[1].steps
    assert (again[0].flow == again[1].flow).all()
    assert (again[0].potential == again[1].potential).all()


def test_a_search_ends_in_time():
    instance = FAMILIES["assignment"](12)
    before = time.perf_counter()
    assert solve(instance, algorithm="network_simplex", timeout=0.01).status == "timeout"
    assert time.perf_counter() - before < 2


def test_the_largest_costs_do_not_overflow():
    most = 2**61 // (3 + 2)
    arrays = [0, 1, 2], [1, 2, 0], [1, 1, 1]
    for costs in ([most] * 3, [-most] * 3, [most, -most, 1], [-most, most, -most]):
        found = [kernels.min_cost_flow(3, *arrays, costs, [1, 0, -1], algorithm=name) for name in PRIMAL]
        assert all(solution.verify() for solution in found)
        assert len({solution.cost for solution in found}) == 1
    with pytest.raises(ValueError, match=rf"cost\[1\] = {most + 1} is beyond"):
        kernels.min_cost_flow(3, *arrays, [0, most + 1, 0], [1, 0, -1], algorithm="network_simplex")


# Pivots for a node on average: what blocks, runs of arcs and strongly feasible trees are for.
@pytest.mark.parametrize(
    ("instance", "most"),
    [
        *((FAMILIES[name](10), most) for name, most in zip(FAMILIES, (3, 2.5, 5, 4, 4, 8), strict=True)),
        *((workload("scheduling", 1000, load).instance(), most) for load, most in ((0.5, 2.5), (1.5, 4))),
        *((workload("phase 2", 1000, load).instance(), most) for load, most in ((0.5, 2.5), (1.5, 3))),
    ],
    ids=lambda value: value.name if isinstance(value, Instance) else "",
)
def test_the_network_simplex_needs_few_pivots(instance, most):
    found = solve(instance, algorithm="network_simplex")
    assert found.verify()
    assert found.steps <= most * instance.num_nodes
