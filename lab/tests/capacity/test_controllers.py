"""Local controllers: what each rule does, and that the result does not depend on where controllers work."""

from __future__ import annotations

import concurrent.futures
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capacity_streams import SMALL, AnyPlanner, jobs_of
from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    ControllerView,
    DueDateAware,
    FirstPrinciplePlanner,
    LeastLoaded,
    RoundRobin,
    SizeAware,
    audit_events,
    generate_jobs,
    simulate_online,
)
from topoplace_lab.capacity.online.dispatch import RULES

PLANNER = FirstPrinciplePlanner("edf", sharing=True)


def job(hours, due=100.0, submit=0.0):
    table = np.full((3, 4), np.inf)
    table[1, 0] = hours
    return CapacityJob(f"{hours} {due} {submit}", due, 1.0, table, submit)


def view(*jobs, num_nodes=1):
    return ControllerView(num_nodes, jobs)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@given(jobs=jobs_of(), nodes=st.integers(1, 5), data=st.data())
def test_each_controller_minds_its_own_nodes_and_jobs(rule, jobs, nodes, data):
    count = data.draw(st.integers(1, nodes))
    result = simulate_online(
        jobs, SMALL, nodes, AnyPlanner(), num_controllers=count, dispatch=rule, periodic=False
    )
    counted = audit_events(result.events, jobs, SMALL, nodes)
    assert counted.vm_cost + counted.tardiness_cost == pytest.approx(result.total_cost, abs=1e-6)
    own = [nodes // count + (k < nodes % count) for k in range(count)]
    for event in result.events:
        assert event["node"] < own[event["controller"]]
    for i in range(len(jobs)):
        assert len(set(result.events["controller"][result.events["job"] == i].tolist())) == 1


@given(jobs=jobs_of())
def test_round_robin_goes_by_arrival(jobs):
    result = simulate_online(jobs, SMALL, 3, PLANNER, num_controllers=3)
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].submit, i))
    assert result.jobs["controller"][order].tolist() == [i % 3 for i in range(len(jobs))]


@given(jobs=jobs_of())
def test_a_controller_decides_as_if_it_were_alone(jobs):
    jobs = sorted(jobs, key=lambda one: one.submit)
    both = simulate_online(jobs, SMALL, 4, PLANNER, num_controllers=2)
    apart = [simulate_online(jobs[k::2], SMALL, 2, PLANNER) for k in range(2)]
    assert both.total_cost == pytest.approx(sum(one.total_cost for one in apart))
    for k, one in enumerate(apart):
        assert both.jobs["end"][k::2].tolist() == one.jobs["end"].tolist()


def test_least_loaded_goes_where_the_least_work_per_node_is_left():
    loads = [
        view((job(8.0), 0.5)),
        view((job(9.0), 0.5), (job(1.0), 0.1), num_nodes=2),
        view((job(3.0), 1.0)),
    ]
    assert LeastLoaded().choose([job(1.0)], loads) == 1
    assert LeastLoaded().choose([job(1.0)], [view(), view()]) == 0


def test_due_date_aware_does_not_count_what_is_due_later():
    loads = [view((job(50.0, due=90.0), 1.0)), view((job(2.0, due=5.0), 1.0))]
    assert DueDateAware().choose([job(1.0, due=10.0)], loads) == 0
    assert DueDateAware().choose([job(1.0, due=95.0)], loads) == 1
    assert DueDateAware().choose([job(1.0, due=1.0)], loads) == 1, "of equal ones, where the least is left"


def test_size_aware_keeps_short_from_long():
    arrived, chosen = [], {}
    for hours in [1.0, 9.0] * 20:
        arrived.append(job(hours))
        chosen[hours] = SizeAware().choose(arrived, [view(), view()])
    assert chosen == {1.0: 0, 9.0: 1}


@given(jobs=jobs_of(), nodes=st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_size_aware_sends_longer_jobs_no_lower(jobs, nodes):
    views = [view(num_nodes=count) for count in nodes]
    chosen = [SizeAware().choose([*jobs, one], views) for one in sorted(jobs, key=lambda job: job.gpu_hours)]
    assert chosen == sorted(chosen)
    assert chosen[-1] < len(nodes)


def test_a_rule_that_looks_sees_jobs_as_they_are_then():
    seen = []

    class Looks:
        name, needs_state = "looks", True

        def choose(self, arrived, controllers):
            seen.append([[round(left, 6) for _, left in one.jobs] for one in controllers])
            return len(arrived) % 2

    jobs = [job(4.0), job(2.0, submit=1.0), job(1.0, submit=3.0)]
    simulate_online(jobs, SMALL, 2, PLANNER, num_controllers=2, dispatch=Looks(), periodic=False)
    assert seen == [[[], []], [[], [0.75]], [[], [0.25]]]


def test_a_rule_that_names_no_controller_is_refused():
    class Beyond:
        name, needs_state = "beyond", False

        def choose(self, arrived, controllers):
            return len(controllers)

    with pytest.raises(ValueError, match=r"dispatch 'beyond' = 2 is not in 0\.\.1"):
        simulate_online([job(1.0)], SMALL, 2, PLANNER, num_controllers=2, dispatch=Beyond())


class DaskLike:
    """What we use of `dask.distributed.Client`; values travel pickled, as they do there."""

    def map(self, function, items, *, pure):
        assert not pure
        return [
            pickle.dumps(pickle.loads(pickle.dumps(function))(pickle.loads(pickle.dumps(i)))) for i in items
        ]

    def gather(self, futures):
        return [pickle.loads(future) for future in futures]


class RayLike:
    """What we use of the module `ray`."""

    class Task:
        def __init__(self, function):
            self.function = function

        def remote(self, item):
            return pickle.dumps(self.function(pickle.loads(pickle.dumps(item))))

    remote = Task

    def get(self, references):
        return [pickle.loads(reference) for reference in references]


def dask():
    distributed = pytest.importorskip("distributed")
    return distributed.Client(processes=False, n_workers=1, dashboard_address=None)


def same_on(executor, rule):
    jobs = generate_jobs(30, 6, seed=2)
    arguments = {"num_controllers": 3, "dispatch": rule, "periodic": False}
    here = simulate_online(jobs, TABLE_II, 6, PLANNER, **arguments)
    there = simulate_online(jobs, TABLE_II, 6, PLANNER, executor=executor, **arguments)
    assert (here.events == there.events).all()
    assert here.total_cost == there.total_cost
    for name in set(here.decisions.dtype.names) - {"seconds"}:
        assert (here.decisions[name] == there.decisions[name]).all()


@pytest.mark.parametrize("rule", [RoundRobin(), LeastLoaded()], ids=lambda rule: rule.name)
@pytest.mark.parametrize("executor", [DaskLike(), RayLike()], ids=["dask-like", "ray-like"])
def test_the_result_is_the_same_whatever_the_engine(executor, rule):
    same_on(executor, rule)


@pytest.mark.parametrize("rule", [RoundRobin(), LeastLoaded()], ids=lambda rule: rule.name)
def test_the_result_is_the_same_in_threads(rule):
    with concurrent.futures.ThreadPoolExecutor(2) as executor:
        same_on(executor, rule)


def test_the_result_is_the_same_in_processes():
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        same_on(executor, LeastLoaded())


@pytest.mark.filterwarnings("ignore")
def test_the_result_is_the_same_on_dask():
    with dask() as client:
        same_on(client, LeastLoaded())


@pytest.mark.filterwarnings("ignore")
def test_the_result_is_the_same_on_ray():
    ray = pytest.importorskip("ray")
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    try:
        same_on(ray, RoundRobin())
    finally:
        ray.shutdown()


@settings(max_examples=10)
@given(jobs=jobs_of())
def test_controllers_travel(jobs):
    """What executors do to a controller, between any two arrivals."""

    class Travels:
        def map(self, function, items):
            return [pickle.loads(pickle.dumps(function(item))) for item in items]

    arguments = {"num_controllers": 2, "dispatch": DueDateAware(), "periodic": False}
    here = simulate_online(jobs, SMALL, 2, AnyPlanner(), **arguments)
    there = simulate_online(jobs, SMALL, 2, AnyPlanner(), executor=Travels(), **arguments)
    assert (here.events == there.events).all()
