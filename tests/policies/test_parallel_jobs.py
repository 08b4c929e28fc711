"""Hybrid jobs on busy fabrics under least-time, against the best placements that long annealing found."""

from __future__ import annotations

from pathlib import Path
from statistics import fmean

import pytest

import topoplace as tp
from parallel_jobs import instances
from thoroughness import share


def test_no_job_is_slower_than_after_long_annealing(shared: Path) -> None:
    if not (shared / "data/parallel").is_dir():
        pytest.skip("needs the best known placements of hybrid jobs")
    ratios: list[float] = []
    taken: list[float] = []
    proven = 0
    for one in share(instances(shared), 3, of=5):
        placement = tp.place(one.job, one.cluster)
        assert placement is not None, one.name
        (seconds, of_uplinks), (best, best_of_uplinks) = one.time(placement.gpus), one.time(one.best)
        ratios.append(seconds / best)
        if abs(ratios[-1] - 1) < 1e-9:
            taken.append(of_uplinks / best_of_uplinks)
        assert placement.spread("tensor", "machine")[0] == 1, one.name
        best_time = tp.communication_time(one.job, one.best, one.cluster.topology).seconds
        assert placement.bound is not None, one.name
        assert 0 < placement.bound <= min(best_time, placement.time) * (1 + 1e-9), one.name
        proven += placement.time <= 1.05 * placement.bound
    assert max(ratios) <= 1.05
    assert fmean(ratios) <= 0.9
    assert sum(ratio <= 1 + 1e-9 for ratio in ratios) >= 0.9 * len(ratios)
    assert fmean(taken) <= 1.05
    assert proven >= 0.6 * len(ratios)
