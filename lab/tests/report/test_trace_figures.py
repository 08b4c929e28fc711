"""The figures of a workload are those that counting job by job gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace_lab.report import trace_figures
from topoplace_lab.simulate import Workload

JOBS = st.lists(
    st.tuples(st.integers(1, 4), st.sampled_from([0.25, 0.5, 1.0]), st.integers(0, 20), st.integers(0, 20)),
    min_size=1,
    max_size=12,
)


@given(JOBS)
def test_the_load_is_the_sum_of_the_jobs(rows: list[tuple[int, float, int, int]]) -> None:
    jobs = [tp.JobGraph.independent(k).with_(gpu_fraction=share) for k, share, _, _ in rows]
    workload = Workload(jobs, [row[2] for row in rows], [row[3] for row in rows])
    figures = trace_figures.described(workload)
    begin, end = min(row[2] for row in rows), max(row[2] + row[3] for row in rows)
    in_use = [
        sum(k * share for k, share, submit, length in rows if submit <= second < submit + length)
        for second in range(begin, max(end, begin + 1))
    ]
    assert figures["peak_gpus"] == max(in_use)
    assert figures["gpu_hours"] == pytest.approx(sum(in_use) / 3600)
    assert figures["mean_gpus"] == pytest.approx(sum(in_use) / (end - begin) if end > begin else 0)
    assert sum(one["jobs"] for one in figures["sizes"].values()) == figures["jobs"] == len(rows)
    assert sum(one["gpu_hours"] for one in figures["sizes"].values()) == pytest.approx(figures["gpu_hours"])
    assert figures["span"] == np.ptp([row[2] for row in rows])


def test_gaps_of_a_poisson_process_vary_by_one() -> None:
    figures = trace_figures.described(Workload.poisson(20_000, 3.0, 5.0, [1]))
    assert figures["gaps"]["mean"] == pytest.approx(3, rel=0.03)
    assert figures["gaps"]["variation"] == pytest.approx(1, rel=0.03)
    assert figures["run_time"]["mean"] == pytest.approx(5, rel=0.03)


def test_one_job_has_no_gap() -> None:
    figures = trace_figures.described(Workload([tp.JobGraph.ring(2)], [5.0], [0.0]))
    assert (figures["gaps"]["mean"], figures["mean_gpus"], figures["span"]) == (0, 0, 0)
    with pytest.raises(ValueError, match="the workload has no jobs"):
        trace_figures.described(Workload([], [], []))
