"""What monitoring tells of runs."""

from __future__ import annotations

import math

import pytest

from topoplace_lab.telemetry import FinishedRun, Observer, Reading, TelemetryLog


@pytest.mark.parametrize(("start", "end"), [(5.0, 4.0), (-math.inf, 4.0), (5.0, math.inf), (math.nan, 4.0)])
def test_times_of_a_run_that_cannot_be_are_refused(start: float, end: float) -> None:
    with pytest.raises(ValueError, match=rf"start = {start}, end = {end}: must be finite"):
        FinishedRun("job", None, 1, 0, start, end)


def test_a_run_may_take_no_time() -> None:
    assert FinishedRun("job", None, 1, 0, 5.0, 5.0).seconds == 0.0


@pytest.mark.parametrize("load", [-0.1, math.inf, math.nan])
def test_a_load_that_cannot_be_is_refused_by_job_and_machine(load: float) -> None:
    with pytest.raises(ValueError, match=rf"sent\['a'\]\[3\] = {load} is not a finite number of at least 0"):
        Reading(1.0, {"a": {3: load}})
    with pytest.raises(ValueError, match="time = inf is not finite"):
        Reading(math.inf, {})
    assert Reading(1.0, {"a": {3: 0.0}}).sent == {"a": {3: 0.0}}


def test_a_log_replays_in_the_order_of_time_and_runs_first() -> None:
    log, again = TelemetryLog(), TelemetryLog()
    assert isinstance(log, Observer)
    readings = [Reading(time, {}) for time in (3.0, 1.0, 2.0)]
    runs = [
        FinishedRun(name, None, 1, 0, 0.0, end) for name, end in (("late", 2.0), ("early", 1.0), ("x", 2.0))
    ]
    for reading in readings:
        log.measured(reading)
    for run in runs:
        log.finished(run)
    order: list[object] = []
    again.measured = again.finished = order.append  # type: ignore[method-assign]
    log.replay(again)
    assert order == [runs[1], readings[1], runs[0], runs[2], readings[2], readings[0]]
    assert (log.readings, log.runs) == (readings, runs)
