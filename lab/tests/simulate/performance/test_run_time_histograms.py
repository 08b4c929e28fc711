"""Run times drawn from histograms of earlier runs."""

from __future__ import annotations

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.simulate import (
    NetworkContention,
    RemoteCopies,
    RunTimeHistogram,
    RunTimeHistograms,
    Workload,
)
from topoplace_lab.telemetry import FinishedRun


def drawn(histogram: RunTimeHistogram, count: int = 2000) -> list[float]:
    random = np.random.default_rng(0)
    return [histogram.drawn(random) for _ in range(count)]


def test_times_are_drawn_as_often_as_they_were_counted() -> None:
    histogram = RunTimeHistogram.of([1.0] * 6 + [9.0] * 2, bins=4)
    assert histogram == RunTimeHistogram((1.0, 3.0, 5.0, 7.0, 9.0), (6, 0, 0, 2))
    times = np.array(drawn(histogram))
    assert np.mean(times < 3) == pytest.approx(0.75, abs=0.03)
    assert not ((times > 3) & (times < 7)).any()
    assert times.min() >= 1
    assert times.max() <= 9


def test_runs_that_all_took_equally_long_are_drawn_exactly() -> None:
    assert set(drawn(RunTimeHistogram.of([62.0, 62.0]), 5)) == {62.0}


@pytest.mark.parametrize(
    ("edges", "counts", "message"),
    [
        ((1.0,), (1,), "edges has 1 entries"),
        ((2.0, 1.0), (1,), r"edges\[1\]"),
        ((-1.0, 1.0), (1,), r"edges\[0\]"),
        ((1.0, 2.0), (-1,), r"counts\[0\]"),
        ((1.0, 2.0), (0,), "counts: at least one"),
    ],
    ids=["too few", "descending", "negative time", "negative count", "nothing"],
)
def test_wrong_histograms_are_refused(
    edges: tuple[float, ...], counts: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        RunTimeHistogram(edges, counts)


def test_wrong_run_times_are_refused() -> None:
    with pytest.raises(ValueError, match="seconds: at least one"):
        RunTimeHistogram.of([])
    with pytest.raises(ValueError, match=r"seconds\[1\]"):
        RunTimeHistogram.of([1.0, -1.0])
    with pytest.raises(ValueError, match="bins"):
        RunTimeHistogram.of([1.0], bins=0)


def test_a_job_takes_a_drawn_time_on_top_of_what_its_model_says() -> None:
    runs = [FinishedRun(str(i), "a", 1, 0, 0.0, 50.0) for i in range(3)]
    profiles = {"a": tp.NetworkProfile(0.2, 0.5, 0.2)}
    model = RunTimeHistograms.of_runs(
        [*runs, FinishedRun("x", None, 1, 0, 0.0, 7.0)], NetworkContention(profiles)
    )
    assert set(model.histograms) == {"a"}
    job = tp.JobGraph.independent(1)
    known, unknown = job.with_(profile="a"), job.with_(profile="b")

    def run_times(*jobs: tp.JobGraph) -> list[float]:
        workload = Workload(list(jobs), [0.0] * len(jobs), [10.0] * len(jobs))
        policy = tp.policies.get("fcfs")
        result = tp.simulate(tp.machines.get("minsky"), workload, policy, performance=model)
        return [record.run_time for record in result.records]

    assert run_times(known, unknown) == [50.0, 10.0]
    slowdown = profiles["a"].slowdown(0.2, remote=False)
    assert run_times(known, known) == pytest.approx([50 * slowdown] * 2)


def test_wrong_models_are_refused() -> None:
    with pytest.raises(ValueError, match=r"histograms\['a'\]"):
        RunTimeHistograms({"a": 3})  # type: ignore[dict-item]
    with pytest.raises(ValueError, match="RunTimeHistograms cannot be around it"):
        RunTimeHistograms({}, RemoteCopies())
