"""Placements of jobs whose rings run in channels, beside the best known ones (`data/channels`)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean

import pytest

import topoplace as tp
from channel_cases import ChannelCase, cases
from thoroughness import share
from topoplace.policies import LeastTime

WITHOUT_NVLS = "nccl-2.30-rings"
ROUNDING = 1 + 1e-9
SLACK = 1.0101
"""Times within 1 % count as equal."""


def _ratio(case: ChannelCase) -> float:
    """Return the time of the answer over the best known one; the bound and `optimal` must be true."""
    found = LeastTime(rates=WITHOUT_NVLS).place(case.job, case.cluster)
    assert found is not None, case.name
    best = min(float(one["time"]) for one in case.placements)
    assert found.time == pytest.approx(
        tp.communication_time(case.job, found.gpus, case.cluster.topology, rates=WITHOUT_NVLS).seconds
    )
    assert found.bound is None or found.bound <= min(best, found.time) * ROUNDING, case.name
    assert not found.optimal or found.time <= best * SLACK, case.name
    return found.time / best


def test_busy_clusters(shared: Path, record_property: Callable[[str, object], None]) -> None:
    ratios = {case.name: _ratio(case) for case in share(cases(shared, "instances"), 0, of=4)}
    as_good = sum(ratio <= SLACK for ratio in ratios.values()) / len(ratios)
    record_property("mean", round(mean(ratios.values()), 4))
    record_property("worst", max(ratios, key=lambda name: ratios[name]))
    assert mean(ratios.values()) <= 1.00
    assert max(ratios.values()) <= 1.03
    assert as_good >= 0.95


@pytest.mark.parametrize("name", ["small", "hand"])
def test_cases_whose_optimum_is_known(shared: Path, name: str) -> None:
    slower = {case.name: ratio for case in cases(shared, name) if (ratio := _ratio(case)) > SLACK}
    assert slower == {}
