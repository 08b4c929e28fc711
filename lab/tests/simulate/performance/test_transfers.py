"""What jobs send, and the run times their users ask for: columns of a workload."""

from __future__ import annotations

import math

import numpy as np
import pytest

import topoplace as tp

Transfers, Workload = tp.simulate.Transfers, tp.simulate.Workload
JOBS = [tp.JobGraph.ring(1), tp.JobGraph.ring(2)]
SENT = Transfers(network_gb=22, network_connections=100, gpu_gb=0.5, gpu_connections=100_000)


def test_columns_reach_the_jobs() -> None:
    workload = Workload(JOBS, [0, 1], [5, 6], transfers=[None, SENT], requested_time=[60, math.nan])
    first, second = workload
    assert (first.transfers, first.requested_time) == (None, 60.0)
    assert second.transfers == SENT
    assert np.isnan(second.requested_time)


def test_columns_that_are_not_given_are_unknown() -> None:
    for job in Workload(JOBS, [0, 1], [5, 6]):
        assert job.transfers is None
        assert np.isnan(job.requested_time)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"transfers": [SENT]}, "transfers: 1 rows, jobs has 2"),
        ({"transfers": [None, 3]}, r"transfers\[1\] = 3 is not a Transfers"),
        ({"requested_time": [1.0]}, "requested_time: 1 rows, jobs has 2"),
        ({"requested_time": [math.nan, -1.0]}, r"requested_time\[1\] = -1.0, not a time"),
        ({"requested_time": [math.inf, 1.0]}, r"requested_time\[0\] = inf, not a time"),
    ],
)
def test_bad_columns_are_refused(columns: dict[str, list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Workload(JOBS, [0, 1], [5, 6], **columns)


@pytest.mark.parametrize("field", ["network_gb", "network_connections", "gpu_gb", "gpu_connections"])
@pytest.mark.parametrize("amount", [-1.0, math.nan, math.inf, "1", True])
def test_bad_transfers_are_refused(field: str, amount: float) -> None:
    with pytest.raises(ValueError, match=f"{field} = "):
        Transfers(**{field: amount})
