"""Scheduling graphs solved as assignments: the same optimum as the general algorithms find, proven on the network."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace import kernels


class Graph:
    """A network under construction."""

    def __init__(self) -> None:
        self.supply: list[int] = []
        self.arcs: list[tuple[int, int, int, int]] = []

    def node(self, supply: int = 0) -> int:
        self.supply.append(supply)
        return len(self.supply) - 1

    def arc(self, tail: int, head: int, capacity: int, cost: int) -> None:
        self.arcs.append((tail, head, capacity, cost))

    def network(self, order: list[int] | None = None) -> dict[str, object]:
        arcs = self.arcs if order is None else [self.arcs[i] for i in order]
        tail, head, capacity, cost = (list(column) for column in zip(*arcs, strict=True))
        return {
            "num_nodes": len(self.supply),
            "tail": tail,
            "head": head,
            "capacity": capacity,
            "cost": cost,
            "supply": self.supply,
        }


@st.composite
def scheduling_graphs(draw, *, most_tasks=12):
    """Tasks, machines in racks, aggregators over racks and over aggregators, unscheduled nodes; one sink or many.

    Mostly as schedulers make them; some with capacities that bind, dead ends, parallel arcs, too little room or tasks
    that supply nothing.
    """
    graph = Graph()
    cost = st.integers(draw(st.sampled_from([-3, 0])), draw(st.sampled_from([1, 9])))
    tasks = [
        graph.node(supply)
        for supply in draw(st.lists(st.sampled_from([0, 1, 1, 1]), min_size=1, max_size=most_tasks))
    ]
    count = len(tasks)
    one_sink = draw(st.booleans())
    sink = graph.node(-count - draw(st.sampled_from([0, 0, 2]))) if one_sink else -1
    machines = [graph.node() for _ in range(draw(st.integers(1, 5)))]
    slots = draw(st.sampled_from([[1], [2], [0, 1, 3], [4]]))
    for machine in machines:
        room = draw(st.sampled_from(slots))
        if not one_sink:
            graph.supply[machine] = -room
            continue
        for _ in range(draw(st.sampled_from([1, 1, 1, 2]))):
            graph.arc(machine, sink, room, draw(cost))
    wide = draw(st.sampled_from([count, 4, kernels.INFINITE]))
    racks = [graph.node() for _ in range(draw(st.integers(0, 2)))]
    for i, machine in enumerate(machines):
        if racks:
            graph.arc(racks[i % len(racks)], machine, wide, draw(cost))
    aggregators = [graph.node() for _ in range(draw(st.integers(0, 2)))]
    below = racks or machines
    for aggregator in aggregators:
        for node in below:
            graph.arc(aggregator, node, wide, draw(cost))
        below = [aggregator]
    jobs = [graph.node(0 if one_sink else -count) for _ in range(draw(st.integers(0, 3)))]
    for job in jobs:
        if one_sink:
            graph.arc(job, sink, draw(st.sampled_from([count, count, 1])), draw(cost))
    target = st.sampled_from(machines + racks + aggregators)
    for i, task in enumerate(tasks):
        for node in draw(st.lists(target, max_size=4)):
            graph.arc(task, node, draw(st.sampled_from([1, 1, 1, 0, 2])), draw(cost))
        if jobs:
            graph.arc(task, jobs[i % len(jobs)], 1, draw(st.integers(2, 12)))
    if not graph.arcs:
        graph.arc(tasks[0], machines[0], 1, 0)
    if sum(graph.supply) > 0:
        graph.supply[machines[0]] -= sum(graph.supply)
    order = draw(st.permutations(range(len(graph.arcs)))) if draw(st.booleans()) else None
    return graph.network(order)


@given(scheduling_graphs())
def test_structure_and_general_algorithms_agree(network):
    found = kernels.min_cost_flow(**network)
    other = kernels.min_cost_flow(**network, algorithm="successive_shortest_path")
    assert (found.status, found.cost) == (other.status, other.cost)
    assert found.verify()


@given(scheduling_graphs(most_tasks=40))
def test_structure_and_network_simplex_agree_on_more_tasks(network):
    found = kernels.min_cost_flow(**network)
    other = kernels.min_cost_flow(**network, algorithm="network_simplex")
    assert (found.status, found.cost) == (other.status, other.cost)
    assert found.verify()


def plain(tasks: int, machines: int, slots: int, seed: int, *, capacity_between: int | None = None) -> Graph:
    """Each task may choose two machines, any machine through an aggregator and racks of three, or to wait."""
    rng = np.random.default_rng(seed)
    graph = Graph()
    sink = graph.node(-tasks)
    nodes = [graph.node() for _ in range(machines)]
    racks = [graph.node() for _ in range(-(-machines // 3))]
    aggregator, waiting = graph.node(), graph.node()
    for i, machine in enumerate(nodes):
        graph.arc(machine, sink, slots, 0)
        graph.arc(racks[i // 3], machine, slots, int(rng.integers(3)))
    for rack in racks:
        graph.arc(aggregator, rack, capacity_between or 3 * slots, 0)
    graph.arc(waiting, sink, tasks, 0)
    for _ in range(tasks):
        task = graph.node(1)
        for machine in rng.choice(machines, 2, replace=False):
            graph.arc(task, nodes[machine], 1, int(rng.integers(20)))
        graph.arc(task, aggregator, 1, int(rng.integers(10, 30)))
        graph.arc(task, waiting, 1, int(rng.integers(40, 99)))
    return graph


@pytest.mark.parametrize("load", [0.5, 0.95, 1.0, 1.5, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_scheduling_graphs_are_recognised(load, seed):
    network = plain(round(load * 120), 30, 4, seed).network()
    found = kernels.min_cost_flow(**network)
    assert found.algorithm == "auto"  # none of the general ones
    assert found.verify()
    assert found.cost == kernels.min_cost_flow(**network, algorithm="cost_scaling").cost


@pytest.mark.parametrize("load", [0.5, 1.5])
def test_arcs_of_hubs_may_come_in_any_order(load):
    graph = plain(round(load * 120), 30, 4, 0)
    found = kernels.min_cost_flow(**graph.network())
    rng = np.random.default_rng(1)
    backward = range(len(graph.arcs) - 1, -1, -1)
    for order in (list(backward), *(rng.permutation(len(graph.arcs)).tolist() for _ in range(5))):
        other = kernels.min_cost_flow(**graph.network(order))
        assert other.algorithm == "auto"
        assert other.verify()
        assert other.cost == found.cost


@given(st.data())
def test_assignments_have_the_optimum_of_the_network_simplex(data):
    tasks = data.draw(st.integers(2, 9))
    room = data.draw(st.lists(st.sampled_from([1, 1, 1, 2]), min_size=tasks, max_size=tasks + 2))
    cost = st.integers(*data.draw(st.sampled_from([(0, 2), (-5, 20), (0, 1 << 30)])))
    graph = Graph()
    nodes = [graph.node(1) for _ in range(tasks)]
    places = [graph.node(-units) for units in room]
    for i, task in enumerate(nodes):
        for place in {places[i], *data.draw(st.sets(st.sampled_from(places)))}:
            graph.arc(task, place, 1, data.draw(cost))
    found = kernels.min_cost_flow(**graph.network())
    assert found.algorithm == "auto"
    assert found.verify()
    assert found.cost == kernels.min_cost_flow(**graph.network(), algorithm="network_simplex").cost


@pytest.mark.parametrize("load", [0.5, 1.5])
def test_tasks_that_supply_nothing_are_set_aside(load):
    graph = plain(round(load * 120), 30, 4, 0)
    tasks = [node for node, supply in enumerate(graph.supply) if supply == 1]
    for task in tasks[::3]:
        graph.supply[task] = 0
    found = kernels.min_cost_flow(**graph.network())
    assert found.algorithm == "auto"
    assert found.verify()
    assert found.cost == kernels.min_cost_flow(**graph.network(), algorithm="network_simplex").cost


def test_a_capacity_that_binds_is_left_to_the_general_algorithms():
    network = plain(60, 15, 4, 0, capacity_between=2).network()
    found = kernels.min_cost_flow(**network)
    assert found.algorithm != "auto"
    assert found.verify()


def test_costs_at_the_edge_of_64_bits_are_left_to_the_general_algorithms():
    graph = plain(10, 5, 2, 0)
    graph.arcs[-1] = (*graph.arcs[-1][:3], 1 << 56)
    found = kernels.min_cost_flow(**graph.network())
    assert found.algorithm != "auto"
    assert found.verify()


def test_a_deadline_stops_the_search():
    network = plain(3000, 200, 4, 0).network()
    found = kernels.min_cost_flow(**network, max_nodes=1)
    assert found.status == "timeout"
    assert len(found.flow) == 0
