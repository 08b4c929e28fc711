"""A busy cluster of real daemons: what is decided, what Slurm gives and what jobs see are the same, whatever dies.

With TOPOPLACE_SLURM=full, the numbers are those of the issue: 300 jobs, 100 kills, 10 restarts; this takes minutes.
"""

from __future__ import annotations

import os

import pytest

from slurm_jobs import SEES, mismatch, seen, wait_for
from slurm_load import Load, PlacerProcess
from topoplace_hosts.journal import Journal
from topoplace_hosts.slurm.testing import SlurmCluster

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


@pytest.mark.skipif(os.getuid() != 0, reason="only root can submit as another user")
def test_strange_jobs_of_one_user_do_not_delay_anothers(slurm: SlurmCluster) -> None:
    with SlurmCluster(slurm.topology, settings={"MaxArraySize": "10001"}) as fresh:
        count = 10_000 if FULL else 2_000
        fresh.submit(
            "--gres=gpu:1", f"--array=1-{count}", '--comment={"a":{"b\n":"\x1b[31m"}', script="sleep 0.1"
        )
        placer = PlacerProcess(fresh)
        placer.start()
        wait_for(lambda: placer.events("given_back"), lambda: None)
        job = fresh.submit("--gres=gpu:2", script=SEES, user=65534)
        wait_for(lambda: seen(fresh, job), lambda: None, timeout_s=120)
        assert placer.stop() == 0
        events = placer.events("given_back")
        assert all(one["reason"].isprintable() for one in events)
        decided = next(one for one in placer.events("decided") if one["job"] == job)
        before = sum(one["time"] < decided["time"] for one in events)
        assert before < 0.5 * count  # most of the strange jobs still waited
        with Journal(placer.journal, read_only=True) as journal:
            assert mismatch(fresh, journal, job) is None
