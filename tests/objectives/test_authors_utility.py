"""The utility of SC'17's published code: costs grow with what they measure, and have a floor."""

from __future__ import annotations

import pytest

from topoplace.objectives.authors_utility import MIN_COST, communication_cost, job_utility, system_utility


@pytest.mark.parametrize("least", [0.0, 1.0, 40.0])
def test_no_distance_costs_the_least(least: float) -> None:
    assert communication_cost(2, 0.0, least=least, worst=80.0) == MIN_COST
    assert communication_cost(2, least + 8.0, least=least, worst=80.0) == pytest.approx(0.1)


def test_utility_falls_with_interference_above_its_floor() -> None:
    utilities = [job_utility(0.5, interference) for interference in (MIN_COST, 0.1, 0.4, 0.9)]
    assert utilities == sorted(set(utilities), reverse=True)
    assert job_utility(0.5, 0.0) == utilities[0]
    assert job_utility(MIN_COST, 0.0) == pytest.approx(1.0)


@pytest.mark.parametrize("cost", range(3))
def test_the_systems_utility_falls_with_each_cost(cost: int) -> None:
    def utility(value: float) -> float:
        costs = [0.3, 0.3, 0.3]
        costs[cost] = value
        return system_utility(*costs)

    utilities = [utility(value) for value in (0.1, 0.3, 0.6, 0.9)]
    assert utilities == sorted(set(utilities), reverse=True)
    assert all(0.0 < one < 1.0 for one in utilities)
    assert system_utility(MIN_COST, MIN_COST, MIN_COST) == pytest.approx(1.0)
