"""Planners with the other objectives of the paper, against all plans of small problems."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from topoplace_lab.capacity import (
    TABLE_II,
    CapacityJob,
    Catalogue,
    Problem,
    SearchPlanner,
    VariantPlanner,
    VMType,
    fewest_controllers,
    generate_jobs,
    plan_of,
    simulate_online,
)
from topoplace_lab.capacity.online.sizing import response
from topoplace_lab.capacity.planners.variant_planner import OBJECTIVES

SMALL = Catalogue((VMType("slow", "K80", 2, 1.0), VMType("fast", "V100", 2, 3.0)))


def problem_of(seed: int, jobs: int = 3) -> Problem:
    random = np.random.default_rng(seed)
    hours = random.uniform(1, 20, (jobs, 2, 2))
    return Problem(SMALL, 2, random.uniform(1, 20, jobs), random.uniform(0.3, 1.1, jobs), hours)


def cost_of(problem: Problem, objective: str, ways: list[tuple[int, int, int] | None]) -> float:
    """The cost of running each job on (node, type, GPUs) or letting it wait, by the words of section IV."""
    total, nodes = 0.0, {way[0] for way in ways if way}
    for job, way in enumerate(ways):
        if way is None:
            total += problem.waiting[job]
            continue
        _, vm_type, gpus = way
        hours = problem.hours[job, vm_type, gpus - 1]
        late, early = max(hours - problem.due[job], 0), max(problem.due[job] - hours, 0)
        price = SMALL[vm_type].cost_per_hour * hours
        if objective == "linear":
            total += problem.weight[job] * late + price * gpus / 2
        elif objective == "earliness":
            total += problem.weight[job] * (late + early) + price
        else:
            total += problem.weight[job] * (late + early / 2) + price / 2
    for node in nodes:
        here = [(job, way) for job, way in enumerate(ways) if way and way[0] == node]
        total += problem.idle * (2 - sum(way[2] for _, way in here))
        if objective == "convex":
            total += (
                min(SMALL[way[1]].cost_per_hour * problem.hours[job, way[1], way[2] - 1] for job, way in here)
                / 2
            )
    return float(total)


def legal(ways: list[tuple[int, int, int] | None]) -> bool:
    """Both nodes are rented, each with one type and at most its two GPUs."""
    here = [[way for way in ways if way and way[0] == node] for node in (0, 1)]
    return all(
        node and len({way[1] for way in node}) == 1 and sum(way[2] for way in node) <= 2 for node in here
    )


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("seed", range(6))
def test_the_plan_is_the_best_of_all_by_the_objective(objective: str, seed: int) -> None:
    problem = problem_of(seed)
    options: list[tuple[int, int, int] | None] = [None, *product((0, 1), (0, 1), (1, 2))]
    plans = [list(ways) for ways in product(options, repeat=3) if legal(list(ways))]
    best = min(cost_of(problem, objective, ways) for ways in plans)
    found: list[tuple[int, int, int] | None] = [None] * 3
    for number, node in enumerate(VariantPlanner(objective).plan(problem).nodes):
        for job, gpus in node.jobs:
            found[job] = (number, node.vm_type, gpus)
    assert legal(found)
    assert cost_of(problem, objective, found) == pytest.approx(best)


def test_a_convex_combination_of_nothing_else_is_the_papers_objective() -> None:
    problem = problem_of(7, 6)
    plan = VariantPlanner("convex", share=1.0).plan(problem)
    assert plan.cost.total == pytest.approx(SearchPlanner().plan(problem).cost.total)
    assert plan_of(problem, plan.nodes).cost.total == plan.cost.total


@pytest.mark.parametrize(
    ("arguments", "options", "named"),
    [
        (("soon",), {}, "objective"),
        (("convex",), {"share": 1.5}, "share"),
        (("convex",), {"seed": -1}, "seed"),
    ],
    ids=str,
)
def test_wrong_arguments_are_named(arguments: tuple[Any, ...], options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        VariantPlanner(*arguments, **options)


def test_jobs_take_their_true_times_and_planners_see_the_estimates() -> None:
    hours = np.full((1, 2, 2), 10.0)
    job = CapacityJob("a", 100.0, 1.0, hours[0])
    cheap = np.array([[10.0, 10.0], [1.0, 1.0]])
    seen = simulate_online([job], SMALL, 1, SearchPlanner(), periodic=False, estimates=[cheap])
    assert seen.vm_cost == 3.0 * 10  # the fast type looks cheaper: 3 $ instead of 10, and is not
    assert simulate_online([job], SMALL, 1, SearchPlanner(), periodic=False).vm_cost == 10.0
    jobs = generate_jobs(20, 5)
    same = [each.hours for each in jobs]
    results = [
        simulate_online(jobs, TABLE_II, 5, SearchPlanner(), periodic=False, estimates=given)
        for given in (None, same)
    ]
    assert results[0].total_cost == results[1].total_cost


@pytest.mark.parametrize(
    ("estimates", "named"),
    [
        ([], "estimates has 0 entries for 1 jobs"),
        ([np.full((2, 2), -1.0)], r"estimates\[0\]\[0, 0\]"),
        ([np.full((1, 2), 1.0)], r"estimates\[0\] is not for"),
        ([np.array([[1.0, np.inf], [1.0, 1.0]])], r"estimates\[0\] is not for"),
    ],
    ids=["none", "negative", "shape", "unknown"],
)
def test_estimates_are_for_the_ways_to_run_each_job(estimates: list[Any], named: str) -> None:
    job = CapacityJob("a", 100.0, 1.0, np.full((2, 2), 10.0))
    with pytest.raises(ValueError, match=named):
        simulate_online([job], SMALL, 1, SearchPlanner(), estimates=estimates)


def test_the_fewest_controllers_that_one_server_can_serve() -> None:
    moments = {5: (40.0, 3200.0), 10: (100.0, 20000.0), 40: (1.0, 1.0)}
    rate = 2 / 450
    assert response(*moments[5], rate) < 60 < response(*moments[10], rate)
    assert fewest_controllers(100, moments, rate, 60.0) == 20  # 40 nodes do not divide 100
    assert fewest_controllers(80, moments, rate, 60.0) == 2
    assert fewest_controllers(100, moments, rate, 1e9) == 10
    assert fewest_controllers(100, moments, rate, 10.0) is None
    assert response(40.0, 1600.0, 1 / 40) == float("inf")


@pytest.mark.parametrize(
    "arguments",
    [(0, {5: (1.0, 1.0)}, 0.1, 60.0), (10, [], 0.1, 60.0), (10, {5: (-1.0, 1.0)}, 0.1, 60.0)],
    ids=str,
)
def test_sizes_that_cannot_be_are_refused(arguments: Any) -> None:
    with pytest.raises(ValueError, match=r"num_nodes|moments|mean"):
        fewest_controllers(*arguments)
