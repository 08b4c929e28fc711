"""What monitoring tells of runs."""

from __future__ import annotations

import math

import pytest

from topoplace.engine.telemetry import FinishedRun


@pytest.mark.parametrize(("start", "end"), [(5.0, 4.0), (-math.inf, 4.0), (5.0, math.inf), (math.nan, 4.0)])
def test_times_of_a_run_that_cannot_be_are_refused(start: float, end: float) -> None:
    with pytest.raises(ValueError, match=rf"start = {start}, end = {end}: must be finite"):
        FinishedRun("job", None, 1, 0, start, end)


def test_a_run_may_take_no_time() -> None:
    assert FinishedRun("job", None, 1, 0, 5.0, 5.0).seconds == 0.0
