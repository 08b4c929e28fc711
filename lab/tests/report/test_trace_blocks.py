"""The interval of a difference on one trace: which of its blocks count."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import topoplace as tp
from topoplace_lab.report import comparison, trace_blocks
from topoplace_lab.report.trace_blocks import turnaround_ratio
from topoplace_lab.simulate import Result, Workload, simulate


def replayed(slowdown: np.ndarray, seconds: float = 10.0) -> tuple[Result, Result]:
    """Return one job after another alone on a GPU, and the same jobs where each takes so many times as long."""
    count = len(slowdown)
    topology, policy = tp.Topology.from_links(1, []), tp.policies.get("fcfs")
    jobs = [tp.JobGraph.ring(1)] * count
    submit = [1000.0 * i for i in range(count)]
    times = (np.full(count, seconds), seconds * slowdown)
    first, other = (simulate(topology, Workload(jobs, submit, own), policy) for own in times)
    return first, replace(other, policy="other")


def test_an_equal_loss_of_every_job_is_certain() -> None:
    found = turnaround_ratio(*replayed(np.full(400, 0.75)))
    assert found is not None
    assert (found.low, found.high, found.num_blocks) == (pytest.approx(0.75), pytest.approx(0.75), 20)
    assert str(found) == "20 blocks of the trace's jobs"


def test_what_hangs_on_one_block_has_a_wide_interval() -> None:
    slowdown = np.ones(400)
    slowdown[40:60] = 0.1
    found = turnaround_ratio(*replayed(slowdown))
    assert found is not None
    assert found.high == pytest.approx(1)  # the block is not drawn in more than a third of the draws
    assert 0.8 < found.low < np.mean(slowdown)


def test_the_interval_is_that_of_independent_blocks() -> None:
    slowdown = np.random.default_rng(1).normal(1.0, 0.1, 2500)
    found = turnaround_ratio(*replayed(slowdown))
    assert found is not None
    sums = slowdown.reshape(50, 50).mean(axis=1)
    margin = 1.96 * sums.std() / np.sqrt(50)
    assert found.low == pytest.approx(slowdown.mean() - margin, abs=margin / 5)
    assert found.high == pytest.approx(slowdown.mean() + margin, abs=margin / 5)


def test_few_jobs_and_other_jobs_have_none() -> None:
    assert turnaround_ratio(*replayed(np.ones(99))) is None
    first, other = replayed(np.ones(100))[0], replayed(np.ones(101))[0]
    with pytest.raises(ValueError, match="other: must have the jobs of first"):
        turnaround_ratio(first, other)


def test_the_conclusion_says_what_the_interval_is_over() -> None:
    slowdown = np.ones(400)
    slowdown[40:60] = 0.1
    for values, said in (
        (slowdown, "20 blocks of the trace's jobs: chance may explain it)"),
        (
            np.full(400, 0.75),
            "(95 % interval 25.0 to 25.0 %, 20 blocks of the trace's jobs), all of it by placement",
        ),
    ):
        results = replayed(values)
        figures = [result.summary() for result in results]
        scenario = comparison.Scenario("one", "jobs", None)
        rows = [
            comparison.row_of(scenario, result.policy, [of_one])
            for result, of_one in zip(results, figures, strict=True)
        ]
        interval = trace_blocks.of_best(rows, results)
        sentence = comparison.conclusion(rows, have_one_queue=True, over_blocks=interval)
        assert sentence.startswith("other: jobs finish ")
        assert said in sentence
        assert trace_blocks.of_best(rows[::-1], results[::-1]) is None
