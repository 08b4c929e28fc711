"""A step of training: parameters come back from its own times, and bad input is named."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topoplace_lab.simulate import TrainingStep

PARAMETERS = st.floats(1e-4, 1.0)


@given(PARAMETERS, PARAMETERS, PARAMETERS)
def test_a_fit_finds_the_step_whose_times_it_gets(fixed: float, sample: float, gigabytes: float) -> None:
    step = TrainingStep(fixed, sample, gigabytes)
    points = [(1, math.inf), (64, math.inf), (1, 40.0), (128, 20.0)]
    found = TrainingStep.fit((batch, speed, step.seconds(batch, speed)) for batch, speed in points)
    assert found.seconds(7, 11.0) == pytest.approx(step.seconds(7, 11.0), rel=1e-6)
    assert step.speed_for(7, step.seconds(7, 11.0)) == pytest.approx(11.0, rel=1e-6)


def test_times_by_hand() -> None:
    step = TrainingStep(fixed_s=1.0, sample_s=0.5, gigabytes=20.0)
    assert step.compute_s(4) == 3.0
    assert step.communication_s(40.0) == 0.5
    assert step.communication_s(math.inf) == 0.0
    assert step.seconds(4, 20.0) == 4.0
    assert step.communication_share(4, 20.0) == 0.25
    assert step.link_use(4, 20.0) == 5.0
    empty = TrainingStep(0.0, 0.0, 0.0)
    assert (empty.communication_share(1, 1.0), empty.link_use(1, 1.0)) == (0.0, math.inf)


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "three or more"),
        ([(1, 40.0, 1.0)] * 3, "two batch sizes and two link speeds"),
        ([(1, 40.0, 1.0), (2, 40.0, 2.0), (1, 20.0)], r"steps\[2\] = .*must be \(batch, gb_per_s, seconds\)"),
        ([(0, 40.0, 1.0)], r"steps\[0\]: batch = 0"),
        ([(1, -1.0, 1.0)], r"steps\[0\]: gb_per_s = -1"),
        ([(1, 40.0, math.inf)], r"steps\[0\]: seconds = inf"),
        ([(1, math.inf, 2.0), (2, math.inf, 3.0), (1, 40.0, 1.0)], "must not be negative"),
    ],
)
def test_bad_steps_are_named(steps: list[tuple[float, float, float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TrainingStep.fit(steps)


def test_bad_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="gigabytes = -1"):
        TrainingStep(0.0, 0.0, -1.0)
    step = TrainingStep(1.0, 0.5, 20.0)
    with pytest.raises(ValueError, match="batch = 0"):
        step.seconds(0, 1.0)
    with pytest.raises(ValueError, match="gb_per_s = nan"):
        step.link_use(1, math.nan)
    with pytest.raises(ValueError, match=r"seconds = 1: must be more than the 1\.5 s of computing"):
        step.speed_for(1, 1.0)
