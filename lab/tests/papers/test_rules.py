from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace_lab.papers.claims import FITTED, IDENTITY, ClaimedQuantity
from topoplace_lab.papers.rules import (
    ANY,
    DIFFERS,
    NOT_COMPARABLE,
    ORDER_ONLY,
    REPRODUCED,
    Equal,
    Ranges,
    alike,
    between,
    near,
    ordered,
)
from topoplace_lab.simulate.processes import Runner
from topoplace_lab.simulate.samples import Sample, t_975

ROW = ClaimedQuantity("1", "quantity", "2")


def test_the_interval_is_that_of_students_t() -> None:
    sample = Sample.of([4.0, 5.0, 6.0, 9.0])
    assert sample.mean == 6.0
    assert sample.margin == pytest.approx(3.182 * np.std(sample.values, ddof=1) / 2)
    assert (sample.low, sample.high) == (6.0 - sample.margin, 6.0 + sample.margin)
    assert f"{sample:.1f}" == "6.0 [2.6, 9.4]"
    assert f"{Sample((0.25,)):.0%}" == "25%"
    assert (Sample((3.0,)).low, Sample((3.0,)).high) == (3.0, 3.0)
    assert Sample.of([math.inf, 1.0]).low == math.inf


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=2, max_size=8),
    bounds=st.sampled_from([(0.0, 1.0), (0.0, math.inf), (-math.inf, 1.0)]),
)
def test_an_interval_does_not_leave_what_is_possible(
    shares: list[float], bounds: tuple[float, float]
) -> None:
    sample = Sample.of(shares, bounds)
    assert bounds[0] - 1e-9 <= sample.low <= sample.mean + 1e-9
    assert sample.mean - 1e-9 <= sample.high <= bounds[1] + 1e-9


def test_an_interval_far_from_its_bounds_is_the_usual_one() -> None:
    values = [0.5, 0.501, 0.499, 0.5005]
    usual, bounded = Sample.of(values), Sample.of(values, (0.0, 1.0))
    assert bounded.low == pytest.approx(usual.low, rel=1e-5)
    assert bounded.high == pytest.approx(usual.high, rel=1e-5)


def test_quantiles_beyond_the_table() -> None:
    assert t_975(30) == pytest.approx(2.0423, abs=1e-3)
    assert t_975(31) == pytest.approx(2.0395, abs=1e-4)
    assert t_975(120) == pytest.approx(1.9799, abs=1e-4)


def test_nineteen_of_twenty_intervals_hold_the_mean() -> None:
    drawn = np.random.default_rng(0).normal(7.0, 2.0, (2000, 10))
    held = [sample.low <= 7.0 <= sample.high for sample in map(Sample.of, drawn.tolist())]
    assert np.mean(held) == pytest.approx(0.95, abs=0.02)


def test_arithmetic_is_seed_by_seed() -> None:
    one, two = Sample.of([1.0, 2.0]), Sample.of([2.0, 4.0])
    assert two.minus(one).values == (1.0, 2.0)
    assert two.over(one).values == (2.0, 2.0)
    assert one.times(10).values == (10.0, 20.0)
    with pytest.raises(ValueError, match="zip"):
        two.minus(Sample.of([1.0]))


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((1.10,), REPRODUCED),
        ((1.30,), ORDER_ONLY),
        ((0.90,), DIFFERS),
        (([1.09, 1.10, 1.11],), REPRODUCED),
        (([1.29, 1.30, 1.31],), ORDER_ONLY),
        (([0.89, 0.90, 0.91],), DIFFERS),
        (([0.80, 1.10, 1.40],), NOT_COMPARABLE),  # the mean is the paper's, by chance
        (([0.99, 1.00, 1.01],), DIFFERS),  # not the paper's; whether the order holds does not matter
        (([1.10, 1.15, 1.20],), ORDER_ONLY),  # perhaps the paper's, above 1 for certain
    ],
)
def test_the_interval_decides(values: tuple[float | list[float], ...], verdict: str) -> None:
    rule = near(1.1, tolerance=0.05).or_order("above 1", (1.01, math.inf))
    given = [Sample.of(value) if isinstance(value, list) else value for value in values]
    assert rule.verdict(*given) == verdict


def test_an_order_that_chance_may_have_made_is_none() -> None:
    rule = ordered("above 0", (1e-9, math.inf))
    verdicts = [
        rule.verdict(Sample.of(values)) for values in ([1.0, 1.1, 1.2], [-1.0, 1.0, 3.0], [-1.0, -1.1, -1.2])
    ]
    assert verdicts == [ORDER_ONLY, NOT_COMPARABLE, DIFFERS]


def test_every_value_has_its_range() -> None:
    rule = Ranges(((0.0, 1.0), ANY), (ANY, (5.0, math.inf)), "a, order only b")
    assert [rule.verdict(*values) for values in ((1.0, 0.0), (2.0, 5.0), (2.0, 4.9))] == [
        REPRODUCED,
        ORDER_ONLY,
        DIFFERS,
    ]
    with pytest.raises(ValueError, match="zip"):
        rule.verdict(1.0)
    assert alike(2.0, 8.0, factor=2.0).verdict(4.0, 4.0) == REPRODUCED
    assert alike(2.0, 8.0, factor=2.0).verdict(4.1, 4.0) == DIFFERS
    assert between(0.0, 1.0, "up to 1").verdict(math.nan) == DIFFERS


def test_what_could_not_fail_is_no_result() -> None:
    rule = near(2.0, tolerance=0.1).or_order("above 0", (0.0, math.inf))
    assert [ROW.judged("", rule, value).verdict for value in (2.0, 3.0, -1.0)] == [
        REPRODUCED,
        ORDER_ONLY,
        DIFFERS,
    ]
    fitted = [ROW.judged("", rule, value, fitted="the rate") for value in (2.0, 3.0, -1.0)]
    assert [claim.verdict for claim in fitted] == [FITTED, FITTED, DIFFERS]
    assert fitted[0].why == "reproduced within 0.1, order only above 0; fitted by the rate"
    assert [ROW.identity("", Equal((2,)), value).verdict for value in (2, 3)] == [IDENTITY, DIFFERS]
    assert ROW.of_the_paper("2.1", "rounded").verdict == IDENTITY
    assert ROW.not_comparable("-", "not stated").verdict == NOT_COMPARABLE


def test_results_are_in_the_order_of_the_calls_however_many_processes_run() -> None:
    calls = [(base, 2) for base in range(5)]
    for processes in (1, 2):
        assert Runner(processes).results(pow, calls) == [0, 1, 4, 9, 16]
    with pytest.raises(ValueError, match="jobs = 0"):
        Runner(0)
