"""The cheapest levels against every choice of levels."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace.moving.cheapest_levels import CheapestLevels, Shortage

COSTS = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0, 2.5, math.inf]), st.sampled_from([3.0, 4.0, 7.0, math.inf])).map(
        lambda pair: (0.0, *pair)
    ),
    min_size=1,
    max_size=5,
)


@given(costs=COSTS, data=st.data(), below=st.sampled_from([math.inf, 8.0]))
def test_no_choice_of_levels_is_cheaper(
    costs: list[tuple[float, ...]], data: st.DataObject, below: float
) -> None:
    jobs = st.integers(0, len(costs) - 1)
    conditions = data.draw(st.lists(st.dictionaries(jobs, st.integers(1, 2), min_size=1), max_size=4))
    gains = [(0, data.draw(st.integers(-1, 2)), data.draw(st.integers(2, 4))) for _ in costs]
    shortages = [Shortage(gains, data.draw(st.integers(-1, 10)))]
    levels = CheapestLevels(costs, shortages)
    known: list[dict[int, int]] = []
    for condition in ({}, *conditions):
        if condition:
            levels.require(condition)
            known.append(condition)
        expected = math.inf
        for choice in product(range(3), repeat=len(costs)):
            meets = all(any(choice[i] >= least for i, least in one.items()) for one in known)
            enough = sum(row[level] for row, level in zip(gains, choice, strict=True)) >= shortages[0].needed
            if meets and enough:
                expected = min(expected, sum(row[level] for row, level in zip(costs, choice, strict=True)))
        assert levels.bound() <= expected
        found = levels.solve(below)
        if expected >= below:
            assert found is None
            break  # more conditions only make it dearer
        assert found is not None
        assert found[0] == pytest.approx(expected)
        assert sum(row[level] for row, level in zip(costs, found[1], strict=True)) == pytest.approx(expected)
