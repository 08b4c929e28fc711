"""Minimum-cost flow against brute force, its own algorithms against each other, and what is refused."""

from __future__ import annotations

import copy
import itertools
import pickle

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from instances.flow_instances import FAMILIES, workload
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


@given(networks(), st.randoms(use_true_random=False))
def test_order_does_not_change_the_cost(network, random):
    arcs, nodes = list(range(len(network["tail"]))), list(range(network["num_nodes"]))
    random.shuffle(arcs)
    random.shuffle(nodes)
    shuffled = {key: [network[key][a] for a in arcs] for key in network.keys() - {"num_nodes", "supply"}}
    shuffled["tail"] = [nodes[v] for v in shuffled["tail"]]
    shuffled["head"] = [nodes[v] for v in shuffled["head"]]
    supply = [0] * len(nodes)
    for v, amount in zip(nodes, network["supply"], strict=True):
        supply[v] = amount
    shuffled |= {"num_nodes": len(nodes), "supply": supply}
    found, again = kernels.min_cost_flow(**network), kernels.min_cost_flow(**shuffled)
    assert (again.status, again.cost) == (found.status, found.cost)
    assert again.verify()


@given(networks(), st.data())
def test_a_start_from_another_network_changes_nothing(network, data):
    before = kernels.min_cost_flow(**network)
    m, n = len(network["tail"]), network["num_nodes"]
    other = dict(network)
    other["cost"] = data.draw(st.lists(st.integers(-3, 6), min_size=m, max_size=m))
    other["supply"] = data.draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    cold = kernels.min_cost_flow(**other, algorithm="network_simplex")
    for algorithm in ALGORITHMS:
        warm = kernels.min_cost_flow(**other, algorithm=algorithm, warm_start=before)
        assert (warm.status, warm.cost) == (cold.status, cold.cost)
        assert warm.verify()


@given(networks(infinite=False))
def test_networkx_agrees(network):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from((v, {"demand": -s}) for v, s in enumerate(network["supply"]))
    surplus = -sum(network["supply"])
    if surplus > 0:
        graph.add_node("unmet", demand=-surplus)
        graph.add_edges_from(("unmet", v, {"weight": 0}) for v, s in enumerate(network["supply"]) if s < 0)
    columns = (network[key] for key in ("tail", "head", "capacity", "cost"))
    for t, h, capacity, cost in zip(*columns, strict=True):
        graph.add_edge(t, h, capacity=capacity, weight=cost)
    found = kernels.min_cost_flow(**{key: value for key, value in network.items() if key != "lower"})
    try:
        expected = nx.network_simplex(graph)[0]
    except nx.NetworkXUnfeasible:
        expected = None
    assert (found.cost if found.status == "optimal" else None) == expected


@given(networks(), st.integers(1, 60))
def test_a_limit_on_the_work_never_makes_an_answer_up(network, max_nodes):
    known = kernels.min_cost_flow(**network)
    for algorithm in ALGORITHMS:
        soon = kernels.min_cost_flow(**network, algorithm=algorithm, max_nodes=max_nodes)
        if soon.status == "timeout":
            assert (len(soon.flow), len(soon.potential), soon.verify()) == (0, 0, False)
        else:
            assert (soon.status, soon.cost, soon.verify()) == (known.status, known.cost, True)


@pytest.mark.parametrize("name", FAMILIES)
def test_cost_scaling_solves_every_family(name):
    instance = FAMILIES[name](8)
    arrays = instance.tail, instance.head, instance.capacity, instance.cost, instance.supply
    found = kernels.min_cost_flow(instance.num_nodes, *arrays, algorithm="cost_scaling")
    assert found.status == "optimal"
    assert found.verify()
    assert found.cost == kernels.min_cost_flow(instance.num_nodes, *arrays, algorithm="network_simplex").cost


# Steps for a node: pushes, relabels and nodes reached by shortest paths.
@pytest.mark.parametrize(
    ("family", "load", "most"),
    [
        ("scheduling", 0.5, 20),
        ("scheduling", 0.95, 40),
        ("scheduling", 1.5, 90),
        ("phase 2", 0.5, 15),
        ("phase 2", 0.95, 40),
        ("phase 2", 1.5, 90),
    ],
)
def test_cost_scaling_needs_few_steps(family, load, most):
    instance = workload(family, 1000, load).instance()
    arrays = instance.tail, instance.head, instance.capacity, instance.cost, instance.supply
    found = kernels.min_cost_flow(instance.num_nodes, *arrays, algorithm="cost_scaling")
    assert found.verify()
    assert found.steps <= most * instance.num_nodes


def test_a_warm_start_does_a_fraction_of_the_work():
    instance = workload("phase 2", 1000, 0.95).instance()
    arrays = instance.tail, instance.head, instance.capacity
    before = kernels.min_cost_flow(instance.num_nodes, *arrays, instance.cost, instance.supply)
    cost = instance.cost.copy()
    cost[-100:] += 20
    cold = kernels.min_cost_flow(instance.num_nodes, *arrays, cost, instance.supply, algorithm="cost_scaling")
    warm = kernels.min_cost_flow(instance.num_nodes, *arrays, cost, instance.supply, warm_start=before)
    assert warm.algorithm == "cost_scaling"
    assert (warm.cost, warm.verify()) == (cold.cost, True)
    assert 3 * warm.steps < cold.steps


def test_where_cost_scaling_has_far_to_go_the_simplex_takes_over():
    n = 2000
    tail = np.arange(n - 1)
    supply = np.where(np.arange(n) < n // 2, 1, -1)
    cost = np.random.default_rng(1).integers(0, 10**6, n - 1)
    found = kernels.min_cost_flow(n, tail, tail + 1, np.full(n - 1, 10**6), cost, supply)
    assert (found.status, found.algorithm, found.verify()) == ("optimal", "network_simplex", True)
    assert (
        kernels.min_cost_flow(n, tail, tail + 1, np.full(n - 1, n), cost, supply, max_nodes=100).status
        == "timeout"
    )


def test_cost_scaling_ends_where_waiting_costs_a_thousandfold():
    """Three sub-tasks of a phase of DRMaestro, two places, far dearer unscheduled nodes: it once went on for ever."""
    found = kernels.min_cost_flow(
        13,
        [0, 1, 2, 0, 1, 2, 6, 6, 8, 8, 3, 4, 5, 9, 10, 11],
        [6, 7, 8, 3, 4, 5, 10, 11, 9, 10, 12, 12, 12, 12, 12, 12],
        [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1],
        [0, 0, 0, 998654297, 998654296, 998654295, 998644, 998644, 998644, 998644, 0, 0, 0, 0, 0, 0],
        [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, -3],
        algorithm="cost_scaling",
        max_nodes=1000,
    )
    assert (found.status, found.cost, found.verify()) == ("optimal", 998654296 + 2 * 998644, True)


def test_a_proof_is_of_its_own_network():
    network = {"num_nodes": 2, "tail": [0], "head": [1], "capacity": [3], "cost": [2], "supply": [2, -2]}
    found = kernels.min_cost_flow(**network)
    assert kernels.verify_flow(**network, flow=found.flow, potential=found.potential, total=4)
    assert not kernels.verify_flow(**network, flow=found.flow, potential=found.potential, total=5)
    assert not kernels.verify_flow(**network, flow=[1], potential=found.potential, total=2)
    assert not kernels.verify_flow(**network, flow=found.flow, potential=[0, 3], total=4)
    assert not kernels.verify_flow(**network, flow=[2, 0], potential=found.potential, total=4)


def test_proofs_of_what_has_no_optimum():
    stuck = kernels.min_cost_flow(3, [0, 1], [1, 2], [1, 5], [1, 1], [2, 0, -2])
    assert (stuck.status, stuck.cut.tolist(), stuck.cost, stuck.verify()) == ("infeasible", [0], 0, True)
    endless = kernels.min_cost_flow(2, [0, 1], [1, 0], [kernels.INFINITE, np.inf], [-2, 1], [0, 0])
    assert (endless.status, endless.cycle.tolist(), endless.verify()) == ("unbounded", [0, 1], True)
    sent_nowhere = kernels.min_cost_flow(2, [0], [1], [5], [1], [2, -1])
    assert (sent_nowhere.status, sent_nowhere.cut.tolist()) == ("infeasible", [0, 1])


def test_totals_beyond_64_bits_are_exact():
    found = kernels.min_cost_flow(2, [0], [1], [2**50], [-(2**50)], [2**50, -(2**50)])
    assert (found.cost, found.verify()) == (-(2**100), True)


def test_arrays_that_fit_are_not_copied():
    tail, head = np.array([0], dtype=np.int32), np.array([1], dtype=np.int32)
    capacity = np.array([3])
    found = kernels.min_cost_flow(2, tail, head, capacity, [1.0], [1, -1])
    assert found.verify()
    capacity[0] = 0
    assert not found.verify()


def test_each_array_of_an_answer_is_made_once():
    found = kernels.min_cost_flow(2, [0], [1], [3], [1], [1, -1])
    assert found.flow is found.flow
    assert found.potential is found.potential
    assert found.cut is found.cut
    assert found.cycle is found.cycle


def test_options_at_their_defaults_take_the_same_way_to_the_same_answer():
    columns = [np.array([0, 1], dtype=np.int32), np.array([1, 2], dtype=np.int32)]
    columns += [np.array(numbers, dtype=np.int64) for numbers in ([3, 3], [1, 5], [2, 0, -2])]
    plain = kernels.min_cost_flow(3, *columns)
    for options in ({"timeout": 9.0}, {"max_nodes": 10**6}, {"algorithm": "".join(["au", "to"])}):
        assert repr(kernels.min_cost_flow(3, *columns, **options)) == repr(plain)
    assert plain.verify()


@pytest.mark.parametrize(
    "form",
    [
        np.ndarray.tolist,
        lambda column: np.repeat(column, 2)[::2],
        lambda column: column[::-1].copy()[::-1],
        lambda column: column.astype(column.dtype.newbyteorder()),
        lambda column: column.astype(np.int16),
        lambda column: column.astype(np.uint64).astype(float),
        lambda column: np.frombuffer(b" " + column.tobytes(), np.uint8)[1:].view(column.dtype),
        lambda column: np.ma.masked_array(column),
    ],
    ids=["list", "every second", "backward", "other bytes", "16 bits", "floats", "not aligned", "masked"],
)
def test_columns_of_any_form_are_the_same_network(form):
    columns = {
        "tail": np.array([0, 0, 1, 2], dtype=np.int32),
        "head": np.array([1, 2, 3, 3], dtype=np.int32),
        "capacity": np.array([3, 2, 3, 3]),
        "cost": np.array([1, 2, 3, 4]),
        "lower": np.array([0, 2, 0, 0]),
    }
    supply = np.array([4, 0, 0, -4])
    plain = kernels.min_cost_flow(4, **columns, supply=supply)
    assert (plain.cost, plain.flow.tolist()) == (20, [2, 2, 2, 2])
    for name, column in columns.items():
        found = kernels.min_cost_flow(4, **(columns | {name: form(column)}), supply=supply)
        assert (found.cost, found.flow.tolist(), found.verify()) == (20, [2, 2, 2, 2], True)
    found = kernels.min_cost_flow(np.int64(4), **columns, supply=supply)
    assert (found.cost, found.verify()) == (20, True)


@pytest.mark.parametrize("name", ["head", "capacity", "cost", "lower"])
@pytest.mark.parametrize("length", [0, 1, 3])
def test_arrays_of_another_length_are_named(name, length):
    def row(size, dtype=np.int64):
        return np.zeros(size, dtype=dtype)

    columns = {"tail": row(2, np.int32), "head": row(2, np.int32), "capacity": row(2), "cost": row(2)}
    other = row(length, np.int32 if name == "head" else np.int64)
    with pytest.raises(ValueError, match=f"{name} has {length} entries; the network has 2 arcs"):
        kernels.min_cost_flow(1, **(columns | {name: other}), supply=row(1))
    with pytest.raises(ValueError, match=f"supply has {length} entries; the network has 2 nodes"):
        kernels.min_cost_flow(2, **columns, supply=row(length))


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda solved: pickle.loads(pickle.dumps(solved))]
)
@pytest.mark.parametrize(
    "arguments",
    [
        (2, [0], [1], [2**50], [-(2**50)], [2**50, -(2**50)]),
        (3, [0, 1], [1, 2], [1, 5], [1, 1], [2, 0, -2]),
        (2, [0, 1], [1, 0], [kernels.INFINITE] * 2, [-2, 1], [0, 0]),
    ],
    ids=["optimal", "infeasible", "unbounded"],
)
def test_a_solution_is_copied_with_its_proof(arguments, again):
    solved = kernels.min_cost_flow(*arguments)
    kept = again(solved)
    assert repr(kept) == repr(solved)
    assert f"status='{solved.status}', flow=array(" in repr(solved)
    assert kept.verify()
    with pytest.raises(AttributeError):
        kept.cost = 0


def test_nothing_to_send():
    empty = kernels.min_cost_flow(0, [], [], [], [], [])
    assert (empty.status, empty.cost, empty.verify()) == ("optimal", 0, True)


def test_a_network_of_four_nodes():
    solution = kernels.min_cost_flow(4, [0, 0, 1, 2], [1, 2, 3, 3], [3, 2, 3, 3], [1, 2, 3, 4], [4, 0, 0, -4])
    assert (solution.status, solution.cost, solution.flow.tolist()) == ("optimal", 18, [3, 1, 3, 1])
    assert (solution.flow.dtype, solution.potential.dtype) == (np.int64, np.int64)


@pytest.mark.parametrize(
    ("supply", "status", "flow"),
    [
        (
            [2, -1, -1],
            "optimal",
            [1, 1, 0],
        ),  # in balance, both demands are met, although the second one is dear
        ([2, -2, -1], "optimal", [2, 0, 0]),  # demands in excess: nobody has to serve the second one
        ([2, -3, -9], "optimal", [2, 0, 0]),
        ([2, -1, -9], "optimal", [1, 1, 0]),  # but all supplies are sent
        ([0, -1, 0], "optimal", [0, 0, 0]),
        ([2, -1, 0], "infeasible", []),
        ([1, 0, 0], "infeasible", []),
    ],
    ids=str,
)
def test_a_demand_is_an_upper_limit_only_if_demands_exceed_supplies(supply, status, flow):
    for algorithm in ALGORITHMS:
        found = kernels.min_cost_flow(
            3, [0, 0, 1], [1, 2, 2], [5, 5, 5], [1, 7, 9], supply, algorithm=algorithm
        )
        assert (found.status, found.flow.tolist()) == (status, flow)
        assert found.verify()


def test_a_node_with_a_demand_sends_units_of_its_own_if_costs_are_negative():
    for supply, flow in (([-1, -1], [1, 0]), ([0, -1], [0, 0]), ([1, -1], [1, 0])):
        for algorithm in ALGORITHMS:
            found = kernels.min_cost_flow(2, [0, 1], [1, 0], [1, 1], [-5, 6], supply, algorithm=algorithm)
            assert (found.status, found.flow.tolist()) == ("optimal", flow)


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
        ("capacity", np.array([True, True]), "capacity has dtype bool"),
        ("cost", [2**70, 0], "cost has dtype object"),
        ("cost", np.array([2**63, 0], dtype=np.uint64), r"cost\[0\] = 9223372036854775808 is not an integer"),
        ("cost", [2.0**63, 0], r"cost\[0\] = 9.2\d*e\+18 is not an integer"),
        ("num_nodes", -1, "num_nodes = -1"),
        ("algorithm", "simplex", "algorithm = 'simplex' is not one of auto"),
        ("warm_start", 3, "warm_start = 3 is not a FlowSolution"),
        ("timeout", -1.0, "timeout = -1.0"),
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


REFUSED_COLUMNS = [
    ({"tail": [2**31 - 1]}, r"tail\[0\] = 2147483647 is not a node"),
    ({"tail": [-1]}, r"tail\[0\] = -1 is not a node"),
    ({"head": [2]}, r"head\[0\] = 2 is not a node"),
    ({"head": []}, "head has 0 entries"),
    ({"capacity": [1, 1]}, "capacity has 2 entries"),
    ({"cost": []}, "cost has 0 entries"),
    ({"supply": [1]}, "supply has 1 entries"),
    ({"lower": [0, 0]}, "lower has 2 entries"),
    ({"num_nodes": 2**31 - 2}, "supply has 2 entries"),
]


@pytest.mark.parametrize(("changed", "message"), REFUSED_COLUMNS)
def test_verifiers_read_nothing_beyond_the_columns(changed, message):
    network = {"num_nodes": 2, "tail": [0], "head": [1], "capacity": [1], "cost": [1], "supply": [1, -1]}
    assert kernels.verify_flow(**network, flow=[1], potential=[0, 1], total=1)
    with pytest.raises(ValueError, match=message):
        kernels.verify_flow(**network | changed, flow=[1], potential=[0, 0], total=1)


def test_a_solution_whose_arrays_were_changed_is_not_verified():
    tail, ones = np.array([0], dtype=np.int32), np.array([1])
    solution = kernels.min_cost_flow(2, tail, [1], ones, ones, [1, -1])
    assert solution.verify()
    tail[0] = 2**30
    with pytest.raises(ValueError, match=r"tail\[0\] = 1073741824"):
        solution.verify()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("algorithm", None, "algorithm = None is not one of auto, cost_scaling"),
        ("algorithm", 3, "algorithm = 3 is not one of"),
        ("structure", "yes", "structure = 'yes' is not True or False"),
        ("structure", None, "structure = None is not True or False"),
        ("structure", [], r"structure = \[\] is not True or False"),
    ],
)
def test_options_are_refused_by_name(option, value, message):
    with pytest.raises(ValueError, match=message):
        kernels.min_cost_flow(2, [0], [1], [3], [5], [2, -2], **{option: value})


def test_more_nodes_than_supplies_are_said_so():
    with pytest.raises(ValueError, match="supply has 2 entries; the network has 2147483646 nodes"):
        kernels.min_cost_flow(2**31 - 2, [0], [1], [3], [5], [2, -2])


def test_totals_are_whole_numbers():
    proof = (2, [0], [1], [3], [5], [2, -2], [2])
    proof += (kernels.min_cost_flow(*proof[:6]).potential,)
    for total in (10, np.int64(10), 10.0, np.float64(10)):
        assert kernels.verify_flow(*proof, total)
    assert not kernels.verify_flow(*proof, 2**200)
    for total in (10.5, np.nan, np.inf, "10", None):
        with pytest.raises(ValueError, match=r"total = .* is not an integer"):
            kernels.verify_flow(*proof, total)


INSTANCES = [build(8) for build in FAMILIES.values()]
INSTANCES += [
    workload(family, 10, load).instance() for family in ("scheduling", "phase 2") for load in (0.5, 1.5)
]


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: instance.name)
def test_instances_of_the_benchmarks_have_one_optimum(instance):
    """By every algorithm that is fast enough."""
    arrays = instance.tail, instance.head, instance.capacity, instance.cost, instance.supply
    costs = set()
    for algorithm in ("auto", "cost_scaling", "network_simplex", "successive_shortest_path"):
        found = kernels.min_cost_flow(instance.num_nodes, *arrays, algorithm=algorithm)
        assert found.status == "optimal"
        assert found.verify()
        costs.add(found.cost)
    assert len(costs) == 1
