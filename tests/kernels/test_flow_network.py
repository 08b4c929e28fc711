"""Networks that are kept between solutions: after any changes, the same optimum as from nothing."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from topoplace.kernels import INFINITE, FlowNetwork, min_cost_flow


class Scheduler(RuleBasedStateMachine):
    """A cluster of two racks whose jobs come and go, as a flow network that is kept and as one that is not."""

    @initialize(
        slots=st.integers(0, 3), racks=st.booleans(), demands=st.booleans(), load=st.sampled_from([2, 10])
    )
    def build(self, slots, racks, demands, load):
        self.network = FlowNetwork()
        self.load = load
        self.demands = demands
        (self.sink,) = self.network.add_nodes([0 if demands else -1000])
        self.machines = self.network.add_nodes([-slots if demands else 0] * 4)
        self.aggregator, *self.racks = self.network.add_nodes([0] * (3 if racks else 1))
        if not demands:
            self.exits = self.network.add_arcs(self.machines, [self.sink] * 4, [slots] * 4, [0, 1, 0, 2])
        above = np.repeat(self.racks, 2) if racks else [self.aggregator] * 4
        self.network.add_arcs(above, self.machines, [INFINITE] * 4, [1, 0, 2, 0])
        self.network.add_arcs(
            [self.aggregator] * len(self.racks),
            self.racks,
            [INFINITE] * len(self.racks),
            [0, 1][: len(self.racks)],
        )
        self.jobs: dict[int, dict[int, list[int]]] = {}  # by unscheduled node: its tasks, their arcs
        self.solved = None

    def task(self, unscheduled, draw):
        (task,) = self.network.add_nodes([1])
        places = [*self.machines, self.aggregator, *self.racks]
        heads = [*draw(st.lists(st.sampled_from(places), max_size=3)), unscheduled]
        costs = [draw(st.integers(0, 6)) for _ in heads[1:]] + [draw(st.integers(3, 20))]
        return int(task), self.network.add_arcs([task] * len(heads), heads, [1] * len(heads), costs).tolist()

    @rule(data=st.data(), size=st.integers(1, 5))
    def arrive(self, data, size):
        (unscheduled,) = self.network.add_nodes([-100 if self.demands else 0])
        if not self.demands:
            self.network.add_arcs(
                [unscheduled], [self.sink], [data.draw(st.sampled_from([100, 100, 3]))], [0]
            )
        tasks = [self.task(unscheduled, data.draw) for _ in range(min(size, self.load))]
        self.jobs[int(unscheduled)] = dict(tasks)

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def finish(self, data):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        self.network.remove_nodes([*self.jobs.pop(job), job])

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def finish_one(self, data):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        tasks = self.jobs[job]
        if tasks:
            task = data.draw(st.sampled_from(sorted(tasks)))
            del tasks[task]
            self.network.remove_nodes([task])

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), cost=st.integers(0, 25))
    def change_costs(self, data, cost):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        for arcs in self.jobs[job].values():
            self.network.set_cost([data.draw(st.sampled_from(arcs))], [cost])

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), capacity=st.sampled_from([0, 1, 2]))
    def change_an_option(self, data, capacity):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        for arcs in self.jobs[job].values():
            self.network.set_capacity(
                [data.draw(st.sampled_from(arcs[:-1] or arcs))], [max(capacity, int(len(arcs) == 1))]
            )

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), supply=st.integers(0, 1))
    def pause_or_resume(self, data, supply):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        tasks = (
            data.draw(st.lists(st.sampled_from(sorted(self.jobs[job])), unique=True))
            if self.jobs[job]
            else []
        )
        self.network.set_supply(tasks, [supply] * len(tasks))

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def another_option(self, data):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        for task, arcs in self.jobs[job].items():
            arcs[:0] = self.network.add_arcs([task], [self.machines[0]], [1], [2]).tolist()

    @rule(machine=st.integers(0, 3), capacity=st.integers(0, 4))
    def drain_or_grow(self, machine, capacity):
        if self.demands:
            self.network.set_supply([self.machines[machine]], [-capacity])
        else:
            self.network.set_capacity([self.exits[machine]], [capacity])

    @rule(machine=st.integers(0, 3), cost=st.integers(0, 9))
    def dearer_or_cheaper(self, machine, cost):
        if not self.demands:
            self.network.set_cost([self.exits[machine]], [cost])

    @precondition(lambda self: not self.demands and self.jobs)
    @rule(data=st.data(), cost=st.integers(0, 9))
    def raise_a_job(self, data, cost):
        job = data.draw(st.sampled_from(sorted(self.jobs)))
        columns = self.network.columns()
        self.network.set_cost(np.flatnonzero((columns.tail == job) & (columns.capacity > 0)), [cost])

    @rule()
    def another_machine(self):
        (machine,) = self.network.add_nodes([-1 if self.demands else 0])
        if not self.demands:
            self.network.add_arcs([machine], [self.sink], [1], [0])
        self.network.add_arcs([self.aggregator], [machine], [INFINITE], [1])

    @invariant()
    def same_as_from_nothing(self):
        if not hasattr(self, "network"):
            return
        found = self.network.solve()
        columns = self.network.columns()
        expected = min_cost_flow(
            columns.num_nodes,
            columns.tail,
            columns.head,
            columns.capacity,
            columns.cost,
            columns.supply,
            algorithm="network_simplex",
        )
        assert (found.status, found.cost) == (expected.status, expected.cost)
        assert found.verify()


TestScheduler = Scheduler.TestCase
TestScheduler.settings = settings(stateful_step_count=25, deadline=None)


def test_tasks_that_pause_and_resume_leave_the_network_a_scheduling_graph():
    network = FlowNetwork()
    sink, *machines = network.add_nodes([-40, 0, 0, 0])
    (aggregator,) = network.add_nodes([0])
    network.add_arcs(machines, [sink] * 3, [9] * 3, [0, 1, 2])
    network.add_arcs([aggregator] * 3, machines, [9] * 3, [3, 2, 1])
    tasks = network.add_nodes([1] * 20)
    network.add_arcs(tasks, [aggregator] * 20, [1] * 20, range(20))
    network.add_arcs(tasks, np.resize(machines, 20), [1] * 20, [1] * 20)
    for paused in (tasks[:3], tasks[2:12], tasks[5:9], tasks):
        network.set_supply(tasks, [0 if task in paused else 1 for task in tasks])
        found = network.solve()
        assert found.algorithm == "auto"
        assert found.verify()
        network.set_supply(paused[::2], [1] * len(paused[::2]))
        assert network.solve().verify()


def test_what_is_refused_names_argument_index_and_value():
    network = FlowNetwork()
    nodes = network.add_nodes([1, -1])
    arcs = network.add_arcs([0], [1], [1], [5])
    refused = [
        (lambda: network.add_arcs([0], [2], [1], [5]), r"head\[0\] = 2: there is no such node"),
        (lambda: network.add_arcs([0], [1], [-1], [5]), r"capacity\[0\] = -1"),
        (lambda: network.add_arcs([0, 1], [1], [1], [5]), "head has 1 values, tail has 2"),
        (lambda: network.remove_nodes([1, 1]), r"nodes\[1\] = 1: given twice"),
        (lambda: network.remove_arcs([7]), r"arcs\[0\] = 7: there is no such arc"),
        (lambda: network.set_cost(arcs, [1, 2]), "cost has 2 values, arcs has 1"),
        (lambda: network.set_supply([-1], [1]), r"nodes\[0\] = -1"),
    ]
    for change, message in refused:
        with pytest.raises(ValueError, match=message):
            change()
    assert (network.num_nodes, network.num_arcs, network.solve().cost) == (2, 1, 5)
    network.remove_nodes(nodes)
    assert (network.num_nodes, network.num_arcs, network.solve().cost) == (0, 0, 0)


def test_a_solution_is_verified_against_the_network_it_solves():
    network = FlowNetwork()
    network.add_nodes([1, -1])
    (arc,) = network.add_arcs([0], [1], [1], [5])
    solution = network.solve()
    assert solution.verify()
    network.set_cost([arc], [6])
    with pytest.raises(ValueError, match="has been changed since"):
        solution.verify()


def test_a_timeout_loses_nothing():
    network, sink = FlowNetwork(), 0
    network.add_nodes([-5000, *[0] * 200])
    network.add_arcs(np.arange(1, 201), [sink] * 200, [4] * 200, [0] * 200)
    rng = np.random.default_rng(0)
    tasks = network.add_nodes([1] * 780)
    for _ in range(4):
        network.add_arcs(tasks, rng.integers(1, 201, 780), [1] * 780, rng.integers(0, 50, 780))
    stopped = 0
    most = 300
    while (solution := network.solve(max_nodes=most)).status == "timeout":
        stopped += 1
        most *= 2  # one search may take any number of nodes, and begins anew
    columns = network.columns()
    again = min_cost_flow(*columns[:3], *columns[4:], algorithm="network_simplex")
    assert stopped > 0
    assert (solution.status, solution.cost) == (again.status, again.cost)
    assert solution.status == "infeasible" or solution.verify()


def test_a_second_thread_is_told_so():
    refused = 0
    while not refused:  # the solver's thread may be done before this one runs again
        network = large_network()
        solving = threading.Thread(target=network.solve)
        solving.start()
        while solving.is_alive():
            try:
                network.add_nodes([0])
            except RuntimeError:  # "the network is in use in another thread"
                refused += 1
        solving.join()
        assert network.solve().status in ("optimal", "infeasible")


def large_network():
    network = FlowNetwork()
    tasks, machines = 4000, 1000
    network.add_nodes([-tasks, *[0] * machines, *[1] * tasks])
    rng = np.random.default_rng(0)
    network.add_arcs(np.arange(1, machines + 1), [0] * machines, [4] * machines, [0] * machines)
    for _ in range(12):
        network.add_arcs(
            machines + 1 + np.arange(tasks),
            rng.integers(1, machines + 1, tasks),
            [1] * tasks,
            rng.integers(0, 10**6, tasks),
        )
    return network


def small_network():
    network = FlowNetwork()
    nodes = network.add_nodes([2, -2])
    network.add_arcs(nodes[:1], nodes[1:], [3], [5])
    return network


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_network_is_not_copied(again):
    with pytest.raises(TypeError, match="cannot be copied or pickled"):
        again(small_network())


@pytest.mark.parametrize("again", [copy.deepcopy, lambda solved: pickle.loads(pickle.dumps(solved))])
def test_a_solution_is_copied_with_its_network(again):
    network = small_network()
    solved = network.solve()
    kept = again(solved)
    network.set_cost([0], [6])
    assert kept.cost == 10
    assert kept.verify()
    with pytest.raises(ValueError, match="changed since"):
        again(solved).verify()


def test_only_names_of_algorithms_are_taken():
    with pytest.raises(ValueError, match="algorithm = 3 is not one of auto, "):
        small_network().solve(algorithm=3)
