"""Online capacity planning: whatever a planner does, work is conserved and the log alone explains the costs."""

from __future__ import annotations

import itertools
import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capacity_streams import GPUS, SMALL, AnyPlanner, Lazy, jobs_of
from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    CapacityPlanner,
    Cost,
    FirstPrinciplePlanner,
    LeastLoaded,
    Node,
    Plan,
    Problem,
    SearchPlanner,
    SharePlanner,
    audit_events,
    plan_of,
    simulate_online,
)
from topoplace_lab.capacity.planners.first_principles import ORDERS

PLANNERS = [FirstPrinciplePlanner(order, sharing) for order in ORDERS for sharing in (False, True)]
planners = st.sampled_from(PLANNERS) | st.builds(AnyPlanner, st.integers(0, 99))


def job(name, hours_on_two, due, weight=1.0, submit=0.0):
    """One that runs on the type with two GPUs only, as long with one as with two."""
    hours = np.full((3, 4), np.inf)
    hours[1, :2] = hours_on_two
    return CapacityJob(name, due, weight, hours, submit)


@given(jobs_of(), planners, st.integers(1, 3), st.booleans(), st.booleans())
def test_costs_counted_from_the_log_are_those_reported(jobs, planner, num_nodes, periodic, preemptive):
    result = simulate_online(jobs, SMALL, num_nodes, planner, periodic=periodic, preemptive=preemptive)
    counted = audit_events(result.events, jobs, SMALL, num_nodes)
    assert counted.vm_cost == pytest.approx(result.vm_cost, abs=1e-6)
    assert counted.tardiness_cost == pytest.approx(result.tardiness_cost, abs=1e-6)
    assert result.jobs["cost"].sum() == pytest.approx(result.tardiness_cost, abs=1e-6)
    assert result.total_cost == result.vm_cost + result.tardiness_cost


@given(jobs_of(), planners, st.integers(1, 3))
def test_every_job_ends_once_after_its_fastest_time(jobs, planner, num_nodes):
    result = simulate_online(jobs, SMALL, num_nodes, planner)
    ends = result.events[result.events["event"] == "end"]
    assert sorted(ends["job"].tolist()) == list(range(len(jobs)))
    for row, one in zip(result.jobs, jobs, strict=True):
        assert row["start"] >= one.submit - 1e-9
        assert row["end"] - row["start"] >= one.hours.min() * (1 - 1e-6) - 1e-6


@given(jobs_of(), planners, st.integers(1, 3))
def test_no_node_gives_away_more_gpus_than_its_type_has(jobs, planner, num_nodes):
    result = simulate_online(jobs, SMALL, num_nodes, planner)
    held: dict[tuple[int, int], int] = {}
    types: dict[int, int] = {}
    for event in result.events:
        node, kind = int(event["node"]), str(event["event"])
        if kind == "boot":
            assert node not in types
            types[node] = int(event["vm_type"])
        elif kind == "shutdown":
            del types[node]
        elif kind == "start":
            held[node, int(event["job"])] = int(event["gpus"])
            assert types[node] == event["vm_type"]
            assert sum(gpus for (where, _), gpus in held.items() if where == node) <= GPUS[types[node]]
        elif kind in ("stop", "end"):
            assert held.pop((node, int(event["job"]))) == event["gpus"]
        assert len(types) <= num_nodes
        assert node < num_nodes
    assert not held
    assert not types


@given(jobs_of(), planners)
def test_the_same_run_twice_is_the_same(jobs, planner):
    first, second = (simulate_online(jobs, SMALL, 2, planner) for _ in range(2))
    assert (first.events == second.events).all()
    assert (first.vm_cost, first.tardiness_cost) == (second.vm_cost, second.tardiness_cost)


def test_two_jobs_by_hand():
    jobs = [job("first", 4.0, due=3.0, weight=2.0), job("second", 1.0, due=9.0, submit=1.0)]
    result = simulate_online(jobs, SMALL, 1, FirstPrinciplePlanner("fifo"), periodic=False)
    assert result.jobs["end"].tolist() == [4.0, 5.0], "one node, one job at a time"
    assert result.vm_cost == pytest.approx(5 * 0.75)
    assert result.tardiness_cost == pytest.approx(2.0)
    shared = simulate_online(jobs, SMALL, 1, FirstPrinciplePlanner("fifo", sharing=True), periodic=False)
    assert shared.jobs["end"].tolist() == [4.0, 2.0]
    assert shared.vm_cost == pytest.approx(4 * 0.75)
    assert [str(event) for event in shared.events["event"]] == [
        *("submit", "boot", "start", "submit", "start", "end", "end", "shutdown")
    ]


def test_a_job_that_moves_to_a_faster_node_keeps_what_it_has_done():
    class Upgrade:
        name = "upgrade"

        def plan(self, problem):
            return plan_of(problem, [Node(0 if problem.due[0] > 9 else 2, ((0, 1),))])

    hours = np.full((3, 4), np.inf)
    hours[0, 0], hours[2, 0] = 8.0, 2.0
    (row,) = simulate_online([CapacityJob("a", 10.0, 1.0, hours)], SMALL, 1, Upgrade(), interval=1.0).jobs
    assert row["end"] == pytest.approx(1.0 + 2.0 * 7 / 8)
    assert row["stops"] == 1


def test_nodes_named_in_another_order_are_the_same_nodes():
    class Turning:
        """A node for each job, by turns from the first and from the last."""

        name = "turning"
        turn = 1

        def plan(self, problem):
            self.turn = -self.turn
            return plan_of(problem, [Node(1, ((i, 1),)) for i in range(problem.num_jobs)][:: self.turn])

    jobs = [job(name, 9.5, due=20.0) for name in "abc"]
    result = simulate_online(jobs, SMALL, 3, Turning())
    assert len(result.decisions) > 5
    assert not result.jobs["stops"].any()


def test_without_preemption_nothing_that_runs_is_touched():
    jobs = [job("long", 10.0, due=50.0), job("urgent", 1.0, due=1.0, weight=9.0, submit=0.5)]
    edf = FirstPrinciplePlanner("edf")
    waits = simulate_online(jobs, SMALL, 1, edf)
    goes = simulate_online(jobs, SMALL, 1, edf, preemptive=True)
    assert waits.jobs["end"].tolist() == [10.0, 11.0]
    assert goes.jobs["end"].tolist() == [11.0, 1.5]
    assert (waits.jobs["stops"].sum(), goes.jobs["stops"].tolist()) == (0, [1, 0])


def test_decisions_are_at_arrivals_ends_and_every_interval():
    jobs = [job("a", 2.5, due=9.0), job("b", 2.0, due=9.0, submit=0.75)]
    planner = AnyPlanner()
    times = simulate_online(jobs, SMALL, 2, FirstPrinciplePlanner("fifo", sharing=True)).decisions["time"]
    assert times.tolist() == [0.0, 0.75, 1.75, 2.5]
    rare = simulate_online(jobs, SMALL, 2, FirstPrinciplePlanner("fifo", sharing=True), periodic=False)
    assert rare.decisions["time"].tolist() == [0.0, 0.75, 2.5]
    assert rare.decisions["jobs"].tolist() == [1, 2, 1]
    assert simulate_online(jobs, SMALL, 2, planner, interval=0.1).summary()["decisions"] > 20


def test_no_jobs_cost_nothing():
    result = simulate_online([], SMALL, 2, Lazy())
    assert (result.total_cost, len(result.events), result.summary()["makespan"]) == (0, 0, 0)


def test_a_planner_that_runs_no_job_is_stopped():
    jobs = [job("a", 1.0, due=1.0)]
    with pytest.raises(RuntimeError, match="'lazy' leaves 1 jobs waiting for ever"):
        simulate_online(jobs, SMALL, 1, Lazy(), periodic=False)
    with pytest.raises(RuntimeError, match="'lazy' ran no job in 1000 decisions"):
        simulate_online(jobs, SMALL, 1, Lazy())


@pytest.mark.parametrize("preemptive", [True, False])
def test_an_endless_run_is_stopped(preemptive):
    jobs = [job("a", 1000.0, due=1.0)]
    with pytest.raises(RuntimeError, match="more than max_decisions = 50"):
        simulate_online(jobs, SMALL, 1, AnyPlanner(), preemptive=preemptive, max_decisions=50)


def test_an_impossible_plan_is_refused_with_the_planners_name():
    class Greedy:
        name = "greedy"

        def plan(self, problem):
            plan = plan_of(problem, [Node(1, ((0, 1),))])
            return type(plan)((Node(1, ((0, 9),)),), plan.postponed, plan.cost)

    with pytest.raises(ValueError, match=r"planner 'greedy' at 0 h: .*GPUs of job 0 = 9"):
        simulate_online([job("a", 1.0, due=1.0)], SMALL, 1, Greedy())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e[:-1], "are not returned"),
        (lambda e: e[e["event"] != "end"], "events.*jobs run on node"),
        (lambda e: _with(e, "end", "time", 3.0), r"events\[\d\]: job 0 ends with 0.75"),
        (lambda e: _with(e, "start", "gpus", 3), r"3 GPUs on node \(0, 0\): must be in 1\.\.2"),
        (lambda e: _with(e, "boot", "vm_type", 0), "job 0 cannot run there"),
        (lambda e: _with(e, "submit", "time", -1.0), r"events\[0\]: job 0 is submitted 1 h before its time"),
        (lambda e: _with(e, "submit", "job", -1), "job -1 is unknown: there are 1"),
        (lambda e: _with(e, "submit", "job", 1), "job 1 is unknown: there are 1"),
        (lambda e: _with(e, "boot", "vm_type", -1), "VM type -1 is unknown: there are 3"),
        (lambda e: _with(e, "boot", "vm_type", 3), "VM type 3 is unknown: there are 3"),
        (lambda e: _with(e, "start", "event", "begin"), "event 'begin' is unknown"),
        (lambda e: np.concatenate([e[:2], e[1:]]), r"events\[2\]: node \(0, 0\) is already rented"),
        (lambda e: np.concatenate([e[:3], e[2:]]), r"events\[3\]: job 0 is already running"),
        (lambda e: e[1:], r"events\[1\]: job 0 is not in the system"),
        (lambda e: e[:0], "job .* does not end"),
    ],
)
def test_a_log_that_was_tampered_with_does_not_pass(change, message):
    jobs = [job("a", 4.0, due=3.0)]
    result = simulate_online(jobs, SMALL, 1, FirstPrinciplePlanner("fifo"), periodic=False)
    audit_events(result.events, jobs, SMALL, 1)
    with pytest.raises(ValueError, match=message):
        audit_events(change(result.events), jobs, SMALL, 1)


def test_an_audit_with_another_catalogue_is_refused():
    with pytest.raises(ValueError, match=r"jobs\[0\]: hours has shape"):
        audit_events([], [job("a", 4.0, due=3.0)], TABLE_II, 1)


def _with(events, kind, column, value):
    changed = events.copy()
    changed[column][changed["event"] == kind] = value
    return changed


@pytest.mark.parametrize("planner", PLANNERS, ids=lambda planner: planner.name)
@given(jobs=jobs_of(), num_nodes=st.integers(1, 3))
def test_first_principles_take_the_cheapest_in_time_or_the_fastest(planner, jobs, num_nodes):
    problem = Problem.of(jobs, SMALL, num_nodes)
    plan = planner.plan(problem)
    order = ORDERS[planner.order](problem).tolist()
    first = next((node.vm_type, gpus) for node in plan.nodes for job, gpus in node.jobs if job == order[0])
    assert _badness(problem, planner, order[0], *first) == min(
        _badness(problem, planner, order[0], v, g)
        for v, most in enumerate(GPUS)
        for g in range(1, most + 1)
        if np.isfinite(problem.hours[order[0], v, g - 1])
    )
    if not planner.sharing:
        assert all(len(node.jobs) == 1 for node in plan.nodes)
        assert sorted(plan.postponed) == sorted(order[num_nodes:])


def _badness(problem, planner, job, vm_type, gpus):
    hours = problem.hours[job, vm_type, gpus - 1]
    share = gpus / GPUS[vm_type] if planner.sharing else 1.0
    cost = hours * problem.price[vm_type] * share
    return (True, hours, cost) if hours > problem.due[job] else (False, cost, hours)


def test_orders_are_by_submission_due_date_and_weight():
    jobs = [job("a", 1.0, 9.0, 1.0), job("b", 1.0, 3.0, 2.0), job("c", 1.0, 6.0, 5.0)]
    problem = Problem.of(jobs, SMALL, 3)
    assert {name: order(problem).tolist() for name, order in ORDERS.items()} == {
        "fifo": [0, 1, 2],
        "edf": [1, 2, 0],
        "ps": [2, 1, 0],
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_nodes": 0}, "num_nodes = 0 is not in"),
        ({"num_controllers": 3}, r"num_controllers = 3 is not in 1\.\.2"),
        ({"interval": 0.0}, "interval = 0.0 is not above 0"),
        ({"planner": 3}, "planner = 3 is not a Planner"),
        ({"planner": AnyPlanner}, "planner = AnyPlanner is a class; an object of it is needed"),
        ({"catalogue": list(SMALL)}, r"catalogue = \[.* is not a Catalogue"),
        ({"executor": ThreadPoolExecutor}, "executor = ThreadPoolExecutor is a class"),
        ({"jobs": [], "postponement": -1.0}, "postponement = -1.0 is not in"),
        ({"jobs": [], "idle": math.nan}, "idle = nan is not a finite number"),
        ({"dispatch": LeastLoaded}, "dispatch = LeastLoaded is a class; an object of it is needed"),
        ({"dispatch": "rr"}, "dispatch = 'rr' is not a DispatchRule"),
        ({"executor": 7}, "executor = 7 has no map"),
        ({"jobs": [job("a", 1.0, 1.0)] * 2}, r"jobs\[1\]: 'a' is also the id of jobs\[0\]"),
        ({"jobs": [CapacityJob("a", 1.0, 1.0, [[1.0]])]}, r"jobs\[0\]: hours has shape \(1, 1\)"),
        ({"max_decisions": 0}, "max_decisions = 0 is not in"),
    ],
)
def test_arguments_out_of_range_are_refused(arguments, message):
    usual = {"jobs": [job("a", 1.0, 1.0)], "catalogue": SMALL, "num_nodes": 2, "planner": AnyPlanner()}
    with pytest.raises(ValueError, match=message):
        simulate_online(**usual | arguments)


@pytest.mark.parametrize("planner", [SharePlanner(), SearchPlanner()], ids=lambda one: one.name)
def test_the_clock_and_the_costs_may_be_as_large_as_jobs_make_them(planner):
    jobs = [job("a", 2.4e8, 1e9, weight=1e9, submit=1e9), job("b", 1e9, 0.0, weight=1e9, submit=1e9)]
    result = simulate_online(jobs, SMALL, 1, planner, periodic=False, postponement=0.0)
    assert result.jobs["end"].max() > 1.9e9
    audit_events(result.events, jobs, SMALL, 1)


@pytest.mark.parametrize(
    "done",
    [lambda items: [], lambda items: items, lambda items: [None] * len(items), lambda items: items * 2],
    ids=["nothing", "no work", "no controllers", "twice"],
)
def test_an_executor_that_does_not_do_the_work_is_refused(done):
    class Idle:
        def map(self, function, items):
            return done(items)

    with pytest.raises(ValueError, match=r"executor = .*: its map must return all results in order"):
        simulate_online([job("a", 1.0, 1.0)], SMALL, 2, AnyPlanner(), executor=Idle())


@pytest.mark.parametrize("plan", [None, [Node(1, ((0, 1),))], Plan((3,), (), Cost(0, 0, 0, 0))])
def test_what_is_no_plan_is_refused_with_the_planners_name(plan):
    class Odd:
        name = "odd"

        def plan(self, problem):
            return plan

    with pytest.raises(
        ValueError, match=r"planner 'odd' at 0 h: (plan|nodes\[0\]) = .* is not a (Plan|Node)"
    ):
        simulate_online([job("a", 1.0, 1.0)], SMALL, 1, Odd())


@pytest.mark.parametrize(
    "planner", [*PLANNERS, CapacityPlanner(), SearchPlanner(), SharePlanner()], ids=lambda one: one.name
)
def test_planners_refuse_what_is_no_problem(planner):
    with pytest.raises(ValueError, match=r"problem = .* is not a Problem"):
        planner.plan([job("a", 1.0, 1.0)])


def test_an_unknown_order_is_refused():
    with pytest.raises(ValueError, match="order = 'lifo' is not one of fifo, edf, ps"):
        FirstPrinciplePlanner("lifo")
    with pytest.raises(ValueError, match=r"order = \['edf'\]"):
        FirstPrinciplePlanner(["edf"])


def test_brute_force_finds_nothing_cheaper_than_a_single_job_in_time():
    """With one job first principles are optimal: nothing else competes for the node."""
    for seed in range(20):
        random = np.random.default_rng(seed)
        hours = np.where(np.arange(4) < np.array(GPUS)[:, None], random.uniform(1, 9, (3, 4)), np.inf)
        one = CapacityJob("a", 20.0, 1.0, hours)
        result = simulate_online([one], SMALL, 1, FirstPrinciplePlanner("edf"))
        ways = itertools.product(range(3), range(4))
        best = min(hours[v, g] * SMALL[v].cost_per_hour for v, g in ways if g < GPUS[v])
        assert result.total_cost == pytest.approx(best)
