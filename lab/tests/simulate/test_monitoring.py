"""What an observer of a simulation is told, and when."""

from __future__ import annotations

import pytest

import topoplace as tp
from topoplace_lab.simulate import (
    ExecutionEnvironment,
    FixedTime,
    NetworkContention,
    Observer,
    TelemetryLog,
    Workload,
    simulate,
)

PROFILES = {"a": tp.NetworkProfile(0.2, 0.5, 0.1)}


def watched(every: float, *, submit: tuple[float, ...] = (0.0, 5.0), seconds: float = 12.0) -> TelemetryLog:
    """Simulate jobs of "a" with one GPU each on a machine of four, and return what an observer was told."""
    job, log = tp.JobGraph.independent(1).with_(profile="a"), TelemetryLog()
    assert isinstance(log, Observer)
    simulate(
        tp.machines.get("minsky"),
        Workload([job] * len(submit), list(submit), [seconds] * len(submit), list("abcdef")[: len(submit)]),
        tp.policies.get("fcfs"),
        performance=NetworkContention(PROFILES),
        observer=log,
        measure_every=every,
    )
    return log


def test_readings_come_at_multiples_of_the_interval_while_jobs_run() -> None:
    log = watched(4.0, submit=(1.0, 6.0, 101.0))
    first_end, second_end, third_end = (run.end for run in log.runs)
    assert first_end > 13.0  # slowed down by the other
    times = [reading.time for reading in log.readings]
    assert times == [t for t in (4.0, 8.0, 12.0, 16.0) if t < second_end] + [104.0, 108.0, 112.0]
    assert third_end == 113.0


def test_a_reading_has_the_load_of_each_running_job_by_machine() -> None:
    log = watched(4.0)
    assert [dict(reading.sent) for reading in log.readings] == [
        {"a": {0: 0.1}},
        {"a": {0: 0.1}, "b": {0: 0.1}},
        {"a": {0: 0.1}, "b": {0: 0.1}},
        {"b": {0: 0.1}},
    ]


def test_runs_are_told_when_they_end() -> None:
    run, other = watched(100.0).runs
    assert (run.job_id, run.application, run.num_gpus, run.num_remote) == ("a", "a", 1, 0)
    assert run.start == 0.0
    assert other.end == run.seconds + 5.0
    assert not watched(100.0).readings


def test_an_observer_changes_nothing() -> None:
    job = tp.JobGraph.independent(3).with_(profile="a")
    workload = Workload([job] * 6, [float(i) for i in range(6)], [7.0] * 6)

    def ends(**watching: object) -> list[float]:
        result = simulate(
            *(tp.machines.get("minsky"), workload, tp.policies.get("best-fit")),
            performance=NetworkContention(PROFILES),
            **watching,  # type: ignore[arg-type]
        )
        return [record.end for record in result.records]

    assert ends(observer=TelemetryLog(), measure_every=0.5) == ends()


@pytest.mark.parametrize(
    ("watching", "message"),
    [
        ({"observer": TelemetryLog()}, "measure_every = None: must be given together with observer"),
        ({"measure_every": 1.0}, "observer = None: must be given together with measure_every"),
        ({"observer": 3, "measure_every": 1.0}, "observer"),
        ({"observer": TelemetryLog(), "measure_every": 0.0}, "measure_every = 0"),
        ({"observer": TelemetryLog(), "measure_every": 1e-18}, "measure_every = 1e-18 is not in 1e-06"),
        (
            {"observer": TelemetryLog(), "measure_every": 1.0, "performance": FixedTime()},
            "performance = FixedTime: an observer needs a model with the method `sent`",
        ),
    ],
    ids=["no interval", "no observer", "no such object", "zero", "too small", "no traffic"],
)
def test_wrong_arguments_are_named(watching: dict[str, object], message: str) -> None:
    workload = Workload([tp.JobGraph.independent(1)], [1.0], [5.0])
    arguments = {"performance": NetworkContention(PROFILES), **watching}
    with pytest.raises(ValueError, match=message):
        simulate(
            tp.machines.get("minsky"),
            workload,
            tp.policies.get("fcfs"),
            **arguments,  # type: ignore[arg-type]
        )


def test_models_around_another_pass_on_what_jobs_send() -> None:
    topology, job = tp.machines.get("minsky"), tp.JobGraph.independent(1).with_(profile="a")
    submitted = next(iter(Workload([job], [0.0], [5.0])))
    placement = tp.Placement((0,), topology=topology)
    around = ExecutionEnvironment("container", NetworkContention(PROFILES))
    assert list(around.sent(submitted, placement)) == [(0, 0.1)]
    assert list(ExecutionEnvironment("container").sent(submitted, placement)) == []
