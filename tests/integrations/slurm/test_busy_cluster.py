"""A busy cluster of real daemons: what is decided, what Slurm gives and what jobs see are the same, whatever dies.

With TOPOPLACE_SLURM=full, the numbers are those of the issue: 300 jobs, 100 kills, 10 restarts; this takes minutes.
"""

from __future__ import annotations

import os

import pytest

from slurm_load import Load, PlacerProcess
from topoplace.testing.slurm import SlurmCluster

FULL = os.environ.get("TOPOPLACE_SLURM") == "full"


@pytest.mark.parametrize(
    ("num_jobs", "kills", "restarts"),
    [(300, 0, 0), (300, 100, 10)] if FULL else [(60, 0, 0), (60, 12, 2)],
    ids=["calm", "killed"],
)
def test_no_mismatch_and_no_job_that_never_starts(
    slurm: SlurmCluster, num_jobs: int, kills: int, restarts: int
) -> None:
    with SlurmCluster(slurm.topology) as fresh:
        placer = PlacerProcess(fresh)
        load = Load(num_jobs, kills, restarts)
        load.run(fresh, placer, timeout_s=600 if FULL else 120)
        assert load.mismatches(fresh, placer) == []
        assert load.never_started(fresh) == []
        assert load.decided(fresh, placer) >= 0.8 * num_jobs
