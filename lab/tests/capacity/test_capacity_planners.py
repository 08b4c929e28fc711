"""Planners against brute force over all plans, against each other, and against the verifier."""

from __future__ import annotations

import itertools
import math
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topoplace import _core
from topoplace_lab.capacity import (
    TABLE_II,
    CapacityPlanner,
    Catalogue,
    FirstPrinciplePlanner,
    Plan,
    Planner,
    Problem,
    SearchPlanner,
    SharePlanner,
    VMType,
    generate_jobs,
    plan_of,
    simulate_online,
)
from topoplace_lab.capacity.planners import column_generation
from topoplace_lab.capacity.planners.column_generation import ColumnGeneration, cheapest
from topoplace_lab.capacity.planners.highs_model import Model, OutOfTimeError
from topoplace_lab.capacity.planners.native_tables import arrays_of, to_native

FORMULATIONS = ("columns", "tight", "printed")
LIMIT = 2.0123  # of no sum of the numbers in `problems`


def best_node(problem: Problem, jobs: tuple[int, ...]) -> float:
    """The least cost of a node with exactly these jobs, whatever its type and however its GPUs are divided."""
    best = math.inf
    for v, vm_type in enumerate(problem.catalogue):
        for gpus in itertools.product(range(1, vm_type.num_gpus + 1), repeat=len(jobs)):
            if sum(gpus) > vm_type.num_gpus:
                continue
            late, first = 0.0, math.inf
            for job, g in zip(jobs, gpus, strict=True):
                hours = float(problem.hours[job, v, g - 1])
                if hours == math.inf:
                    break
                late += problem.weight[job] * max(0.0, hours - max(problem.due[job], 0.0))
                first = min(first, hours * vm_type.cost_per_hour)
            else:
                best = min(best, late + first + problem.idle * (vm_type.num_gpus - sum(gpus)))
    return best


def brute_force(problem: Problem) -> float:
    """The least cost over all ways to put jobs on nodes or let them wait."""
    best = math.inf
    wait = []
    for job in range(problem.num_jobs):
        finite = problem.hours[job][np.isfinite(problem.hours[job])]
        late = max(0.0, problem.interval + finite.max() - max(problem.due[job], 0.0))
        wait.append(problem.postponement * problem.weight[job] * late)
    count = problem.used_nodes
    for where in itertools.product(range(-1, count), repeat=problem.num_jobs):
        groups = [tuple(j for j, n in enumerate(where) if n == node) for node in range(count)]
        if all(groups):
            waits = sum(cost for cost, n in zip(wait, where, strict=True) if n < 0)
            best = min(best, waits + sum(best_node(problem, group) for group in groups))
    return best


@st.composite
def problems(draw: st.DrawFn, most_jobs: int = 4, most_nodes: int = 3) -> Problem:
    """Small ones with many ties, some jobs that cannot run everywhere, and due dates that have passed."""
    price = st.sampled_from([0.0, 0.25, 1.0, 3.5])
    types = [VMType(f"type {i}", "any", draw(st.integers(1, 3)), draw(price)) for i in range(2)]
    catalogue = Catalogue(types)
    jobs = draw(st.integers(1, most_jobs))
    hours = np.full((jobs, 2, catalogue.max_gpus), math.inf)
    time = st.sampled_from([0.5, 1.0, 2.0, 2.5, 7.0, math.inf])
    for j in range(jobs):
        for v, vm_type in enumerate(types):
            for g in range(vm_type.num_gpus):
                hours[j, v, g] = draw(time)
        if not np.isfinite(hours[j]).any():
            hours[j, 0, 0] = 3.0
    due = [draw(st.sampled_from([-2.0, 0.0, 1.0, 3.0, 9.0])) for _ in range(jobs)]
    weight = [draw(st.sampled_from([0.0, 0.5, 1.0])) for _ in range(jobs)]
    idle = draw(st.sampled_from([0.0, 0.3, 1.0]))
    rho = draw(st.sampled_from([1.5, 100.0]))
    return Problem(catalogue, draw(st.integers(1, most_nodes)), due, weight, hours, 1.0, rho, idle)


def check(problem: Problem, plan: Plan) -> None:
    """By the definition, in C++: nothing twice, nothing too much, and the cost is the plan's."""
    assert len(plan.nodes) == problem.used_nodes
    assert _core.verify_capacity(*arrays_of(problem), to_native(plan.nodes), plan.cost.total) is None
    assert plan.bound <= plan.cost.total
    assert plan_of(problem, plan.nodes).cost == plan.cost


@pytest.mark.parametrize("formulation", FORMULATIONS)
@given(problem=problems())
@settings(max_examples=40)
def test_the_optimum_is_that_of_brute_force(formulation: str, problem: Problem) -> None:
    # The big-M of the printed model may take minutes even here; the others end long before their limit.
    timeout = 5.0 if formulation == "printed" else 60.0
    plan = CapacityPlanner(formulation, gap=0.0, timeout=timeout).plan(problem)
    check(problem, plan)
    best = brute_force(problem)
    assert plan.bound <= best + 1e-6 <= plan.cost.total + 2e-6
    if formulation == "printed" and plan.status == "timeout":
        return
    assert plan.status == "optimal"
    assert plan.cost.total == pytest.approx(best, abs=1e-6)
    assert plan.bound == pytest.approx(best, abs=1e-6)


@given(problem=problems(most_jobs=5))
def test_the_search_keeps_its_bound(problem: Problem) -> None:
    planner = SearchPlanner(price_steps=60, rounds=60)
    plan = planner.plan(problem)
    check(problem, plan)
    best = brute_force(problem)
    assert plan.bound <= best + 1e-9
    assert plan.cost.total >= best - 1e-9
    assert planner.plan(problem) == plan


@given(problem=problems(), prices=st.lists(st.sampled_from([0.0, -0.5, -3.0]), min_size=4, max_size=4))
def test_listed_nodes_are_all_there_are(problem: Problem, prices: list[float]) -> None:
    tables = _core.CapacityTables(*arrays_of(problem))
    price = np.array(prices[: problem.num_jobs])
    listed = _core.list_nodes(tables, price, LIMIT, 1 << 20, None)
    assert listed is not None
    found = sorted((vm_type, tuple(jobs)) for _, _, vm_type, jobs in listed)
    assert found == sorted(all_nodes(problem, price, LIMIT))
    assert all(reduced <= LIMIT for _, reduced, _, _ in listed)
    least = min((reduced for _, reduced, _, _ in _core.price_nodes(tables, price)), default=math.inf)
    everything = _core.list_nodes(tables, price, 1e9, 1 << 20, None)
    assert everything is not None
    assert least == pytest.approx(min(reduced for _, reduced, _, _ in everything))
    assert _core.list_nodes(tables, price, 1e9, len(everything) - 1, None) is None


def test_nodes_are_listed_among_any_number_of_jobs() -> None:
    run = np.zeros((100_000, 1, 1))
    tables = _core.CapacityTables(np.array([1], dtype=np.int32), np.zeros(1), run, run, np.ones(len(run)))
    listed = _core.list_nodes(tables, np.zeros(len(run)), 10.0, 1 << 20, None)
    assert listed is not None
    assert len(listed) == len(run)


def all_nodes(problem: Problem, price: Any, limit: float) -> list[tuple[int, tuple[tuple[int, int], ...]]]:
    gpus, open_, run, pay, wait = arrays_of(problem)
    found = []
    for v in range(len(gpus)):
        for shared in itertools.product(range(gpus[v] + 1), repeat=problem.num_jobs):
            jobs = [(j, g) for j, g in enumerate(shared) if g]
            if not jobs or sum(shared) > gpus[v]:
                continue
            cost = open_[v] + sum(run[j, v, g - 1] - wait[j] - price[j] for j, g in jobs)
            if cost + min(pay[j, v, g - 1] for j, g in jobs) <= limit:
                found.append((v, tuple(jobs)))
    return found


@st.composite
def extreme_problems(draw: st.DrawFn) -> Problem:
    """Costs from 1e-18 $ to 1e26 $ in one plan."""
    easy = draw(problems())
    hours = easy.hours * 10.0 ** draw(st.integers(-9, 8))
    weight = easy.weight * draw(st.sampled_from([1e-6, 1.0, 1e6]))
    postponement = draw(st.sampled_from([1.5, 1e9]))
    interval = draw(st.sampled_from([0.0, 1.0, 1e9]))
    idle = easy.idle * draw(st.sampled_from([1e-9, 1.0, 1e9]))
    return Problem(easy.catalogue, easy.num_nodes, easy.due, weight, hours, interval, postponement, idle)


@pytest.mark.parametrize(
    "planner",
    [
        CapacityPlanner(timeout=60.0),
        CapacityPlanner("tight", timeout=60.0),
        CapacityPlanner("printed", timeout=2.0),  # whose big-M never ends with some of these
        SearchPlanner(),
    ],
    ids=lambda planner: planner.name,
)
@given(problem=extreme_problems())
def test_nothing_false_is_claimed_of_costs_that_differ_by_magnitudes(planner: Any, problem: Problem) -> None:
    plan = planner.plan(problem)
    best = brute_force(problem)
    assert plan.bound <= best * (1 + 1e-9)
    if planner.name != "milp-printed" and isinstance(planner, CapacityPlanner):
        assert plan.status == "optimal"
        assert plan.cost.total <= best * (1 + planner.gap + 1e-6) / (1 - planner.gap)


def paper_sized(num_jobs: int, seed: int) -> Problem:
    """Five nodes of Table II, times as of section V-A but for their names."""
    random = np.random.default_rng(seed)
    speed = {"K80": 1.0, "M60": 1.3, "Quadro P600": 0.35, "GTX 1080Ti": 3.0}
    hours = np.full((num_jobs, len(TABLE_II), TABLE_II.max_gpus), math.inf)
    for j in range(num_jobs):
        work, scaling, bound = random.uniform(10, 120), random.uniform(0.6, 0.95), random.uniform(0.5, 1)
        for v, vm_type in enumerate(TABLE_II):
            gpus = np.arange(1, vm_type.num_gpus + 1)
            hours[j, v, : vm_type.num_gpus] = work / speed[vm_type.gpu_model] ** bound / gpus**scaling
    longest = np.where(np.isfinite(hours), hours, 0).max(axis=(1, 2))
    due = random.uniform(hours.min(axis=(1, 2)), 2 * longest)
    return Problem(TABLE_II, 5, due, random.uniform(0.36, 1.08, num_jobs), hours)


@pytest.mark.parametrize("num_jobs", [10, 30, 50])
@pytest.mark.parametrize("seed", range(3))
def test_at_the_papers_size_gaps_are_proven_and_the_search_is_near(num_jobs: int, seed: int) -> None:
    problem = paper_sized(num_jobs, seed)
    plan = CapacityPlanner().plan(problem)
    check(problem, plan)
    assert plan.status == "optimal"
    assert plan.gap <= 0.05
    exact = CapacityPlanner(gap=0.0).plan(problem)
    assert exact.status == "optimal"
    assert plan.bound <= exact.cost.total <= plan.cost.total
    near = SearchPlanner().plan(problem)
    check(problem, near)
    assert exact.cost.total <= near.cost.total * (1 + 1e-9)
    assert near.cost.total <= 1.05 * exact.cost.total


def test_formulations_agree_at_ten_jobs() -> None:
    problem = paper_sized(10, 0)
    columns, tight = (CapacityPlanner(name, gap=0.0).plan(problem) for name in ("columns", "tight"))
    assert columns.cost.total == pytest.approx(tight.cost.total)


def drawn(seed: int) -> Problem:
    """Return six jobs on three nodes, of which a few have an optimum that the linear relaxation does not prove."""
    random = np.random.default_rng(seed)
    catalogue = Catalogue([VMType("a", "any", 2, 1.0), VMType("b", "any", 3, 3.5)])
    hours = np.full((6, 2, 3), math.inf)
    hours[:, 0, :2] = random.choice([0.5, 1.0, 2.0, 2.5, 7.0], (6, 2))
    hours[:, 1, :] = random.choice([0.5, 1.0, 2.0, 2.5, 7.0], (6, 3))
    due = [float(one) for one in random.choice([-2, 0, 1, 3, 9], 6)]
    weight = [float(one) for one in random.choice([0.5, 1.0], 6)]
    rho, idle = (float(random.choice(some)) for some in ([1.5, 100.0], [0.0, 0.3, 1.0]))
    return Problem(catalogue, 3, due, weight, hours, 1.0, rho, idle)


LATER = ("_branch", "_choose", "_enumerate_columns", "_compact")
"""What `ColumnGeneration` tries one after the other where the relaxation and the local search leave a gap."""


@pytest.mark.parametrize(
    ("seed", "most_listed", "tried"),
    [
        (1, None, LATER[:1]),
        (16, None, LATER[:1]),
        (18, None, LATER[:3]),
        (22, None, LATER[:3]),
        (18, 0, LATER),  # too many columns to list: the compact model
    ],
)
def test_a_gap_of_the_relaxation_is_closed(
    seed: int, most_listed: int | None, tried: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    if most_listed is not None:
        monkeypatch.setattr(column_generation, "_MAX_LISTED", most_listed)
    calls: list[str] = []
    for name in LATER:
        step = getattr(ColumnGeneration, name)

        def noted(self: ColumnGeneration, name: str = name, step: Any = step) -> None:
            calls.append(name)
            step(self)

        monkeypatch.setattr(ColumnGeneration, name, noted)
    problem = drawn(seed)
    plan = CapacityPlanner("columns", gap=0.0).plan(problem)
    check(problem, plan)
    assert tuple(calls) == tried
    assert plan.status == "optimal"
    assert plan.cost.total == pytest.approx(CapacityPlanner("tight", gap=0.0).plan(problem).cost.total)


def test_time_that_is_up_leaves_a_plan_and_a_bound() -> None:
    problem = paper_sized(30, 1)
    for planner in (
        CapacityPlanner(gap=0.0, timeout=0.0),
        CapacityPlanner("tight", timeout=0.0),
        SearchPlanner(timeout=0.0),
    ):
        plan = planner.plan(problem)
        check(problem, plan)
        assert plan.status == "timeout"
        assert 0 <= plan.bound < plan.cost.total


@pytest.mark.parametrize("formulation", ["tight", "printed"])
@pytest.mark.parametrize(
    ("num_jobs", "num_nodes", "timeout"),
    [
        (400, 80, 0.0),  # no time to build a model of a million columns,
        (400, 80, 0.3),  # nor to hand it to the solver,
        (80, 20, 1.0),  # which works for seconds without a look at its clock
    ],
)
def test_large_models_keep_the_deadline(
    formulation: str, num_jobs: int, num_nodes: int, timeout: float
) -> None:
    problem = Problem.of(generate_jobs(num_jobs, num_nodes), TABLE_II, num_nodes)
    started = time.monotonic()
    plan = CapacityPlanner(formulation, gap=0.0, timeout=timeout).plan(problem)
    assert time.monotonic() - started < timeout + 0.5
    check(problem, plan)
    assert plan.status == "timeout"


def test_a_model_that_runs_out_of_time_leaves_the_bound_of_the_search() -> None:
    problem = paper_sized(40, 0)
    searched = SearchPlanner().plan(problem)
    for formulation in ("tight", "printed"):
        plan = CapacityPlanner(formulation, gap=0.0, timeout=1.0).plan(problem)
        assert plan.status == "timeout"
        assert plan.cost.total <= searched.cost.total
        assert plan.bound >= searched.bound > 0


def test_building_a_model_ends_at_its_deadline() -> None:
    model = Model(deadline=time.monotonic())
    with pytest.raises(OutOfTimeError):
        model.add_columns((1,), binary=True)
    with pytest.raises(OutOfTimeError):
        model.add_rows(1)


@pytest.mark.parametrize(
    "planner", [*map(CapacityPlanner, FORMULATIONS), SearchPlanner(), SharePlanner()], ids=lambda p: p.name
)
def test_no_job_needs_no_node(planner: Planner) -> None:
    assert isinstance(planner, Planner)
    plan = planner.plan(Problem.of([], TABLE_II, 5))
    assert plan.nodes == ()
    assert plan.cost.total == 0.0


def test_a_signal_ends_the_solution_of_a_model() -> None:
    def stop(_number: int, _frame: Any) -> None:
        raise InterruptedError

    problem = Problem.of(generate_jobs(80, 20), TABLE_II, 20)  # whose presolve is deaf for seconds
    planner = CapacityPlanner("printed", gap=0.0, timeout=60.0)
    before = signal.signal(signal.SIGALRM, stop)
    started = time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        with pytest.raises(InterruptedError):
            planner.plan(problem)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - started < 1.5


def test_planners_refuse_what_makes_no_sense() -> None:
    with pytest.raises(ValueError, match="formulation = 'magic' is not one of columns, tight, printed"):
        CapacityPlanner("magic")
    with pytest.raises(ValueError, match="gap = nan"):
        CapacityPlanner(gap=math.nan)
    with pytest.raises(ValueError, match="rounds = -1"):
        SearchPlanner(rounds=-1)


@given(problem=problems(most_jobs=5, most_nodes=4))
def test_shares_leave_no_job_waiting_beside_a_free_node(problem: Problem) -> None:
    plan = SharePlanner(rounds=60).plan(problem)
    assert plan_of(problem, plan.nodes).cost == plan.cost
    assert not plan.postponed or len(plan.nodes) == problem.num_nodes
    assert SharePlanner(rounds=60).plan(problem) == plan


@pytest.mark.parametrize("seed", range(2))
def test_shares_cost_less_in_the_end_than_what_ends_first(seed: int) -> None:
    jobs = generate_jobs(30, 3, seed)
    paid = {
        planner.name: simulate_online(jobs, TABLE_II, 3, planner, periodic=False).total_cost
        for planner in (SharePlanner(), SearchPlanner(), FirstPrinciplePlanner("edf", sharing=True))
    }
    assert paid["shares"] < 0.95 * min(paid["search"], paid["edf-sharing"])


def test_threads_that_share_tables_get_the_same_plans() -> None:
    problem = paper_sized(20, 3)
    tables = _core.CapacityTables(*arrays_of(problem))

    def ask(_: int) -> object:
        found = _core.search_capacity(tables, 5, [], 200, 100, 7, None, None)
        counters = found.rounds, found.improvements, found.knapsacks
        return found.nodes, found.cost, found.bound, found.complete, *counters

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(ask, range(8))) == [ask(0)] * 8


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"gpus": np.array([1, 9], dtype=np.int32)}, r"gpus\[1\] = 9 is not in 1..most_gpus"),
        ({"open": np.array([math.nan, 0.0])}, r"open\[0\] = -?nan is not finite"),
        ({"wait": np.array([1.0, math.inf])}, r"wait\[1\] = inf is not finite"),
        ({"run": np.full((2, 2, 2), math.inf)}, r"run\[0\] and pay: both finite"),
        ({"pay": np.zeros((2, 2, 3))}, "pay has the wrong shape"),
        ({"open": np.zeros(3)}, "open has the wrong shape"),
    ],
)
def test_the_border_refuses_tables_that_make_no_sense(change: dict[str, Any], message: str) -> None:
    tables = {
        "gpus": np.array([1, 2], dtype=np.int32),
        "open": np.zeros(2),
        "run": np.zeros((2, 2, 2)),
        "pay": np.zeros((2, 2, 2)),
        "wait": np.ones(2),
    }
    assert len(_core.price_nodes(_core.CapacityTables(**tables), np.zeros(2))) == 3
    with pytest.raises(ValueError, match=message):
        _core.CapacityTables(**{**tables, **change})


def test_prices_and_starts_are_checked() -> None:
    tables = _core.CapacityTables(*arrays_of(paper_sized(3, 0)))
    with pytest.raises(ValueError, match=r"price\[1\] is not finite"):
        _core.price_nodes(tables, np.array([0.0, math.nan, 0.0]))
    with pytest.raises(ValueError, match="one value per job needed"):
        _core.list_nodes(tables, np.zeros(2), 0.0, 10, None)
    with pytest.raises(ValueError, match=r"num_nodes = 4 is not in 0..3"):
        _core.search_capacity(tables, 4, [], 1, 1, 0, None, None)
    with pytest.raises(ValueError, match=r"start\[0\] has a job twice"):
        _core.search_capacity(tables, 1, [(7, [(0, 1), (0, 1)])], 1, 1, 0, None, None)


@given(
    limits=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=3),
    count=st.integers(0, 6),
    data=st.data(),
)
def test_the_cheapest_nodes_within_limits(
    limits: list[tuple[int, int]], count: int, data: st.DataObject
) -> None:
    cost = st.sampled_from([-2.0, 0.0, 1.5, math.inf])
    least = np.array([data.draw(cost) for _ in limits])
    best = math.inf
    for counts in itertools.product(*(range(low, high + 1) for low, high in limits)):
        if sum(counts) == count:
            total = sum(n * float(one) for n, one in zip(counts, least, strict=True) if n)
            best = min(best, total)
    ordered = tuple((min(pair), max(pair)) for pair in limits)
    if all(low <= high for low, high in limits):
        assert cheapest(count, ordered, least) == best
