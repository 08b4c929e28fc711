"""A log beside another scheduler: what the policy would give, and what that scheduler gave."""

from __future__ import annotations

import pytest

import topoplace as tp
from scontrol_texts import node, running, waiting
from topoplace.snapshot.log_only import Logged, log_only

DGX1 = tp.machines.get("dgx1-v100")
FREE = node("n1", 8, "0-3") + node("n2", 8)
OLD = running("17", "n1", "0-3")


def test_a_job_is_logged_when_it_fits_and_when_it_runs() -> None:
    """Slurm gives job 20 the GPUs 0, 3, 5 and 6 of an idle DGX-1: no ring over NVLinks."""
    jobs = waiting("20", "TresPerNode=gres/gpu:4", priority=9) + waiting(
        "21", "TresPerNode=gres/gpu:8", more="NumNodes=2"
    )
    before = tp.snapshot.read(FREE + OLD + jobs, DGX1)
    (first,) = log_only(before)
    assert (first.job_id, first.would_get, first.got) == ("20", {"n1": [4, 5, 6, 7]}, None)
    assert log_only(before, [first]) == ()

    nodes = node("n1", 8, "0-3") + node("n2", 8, "0,3,5-6")
    after = tp.snapshot.read(nodes + OLD + running("20", "n2", "0,3,5-6"), DGX1)
    (second,) = log_only(after, [first])
    assert (second.would_get, second.got) == (first.would_get, {"n2": [0, 3, 5, 6]})
    assert first.would_take is not None
    assert second.takes is not None
    assert second.takes > first.would_take == second.would_take
    assert log_only(after, [first, second]) == ()


def test_lines_are_read_as_they_were_written() -> None:
    one = Logged("102_3", {"n1": [0]}, None, {"n2": [1]}, 0.5)
    assert Logged.from_json(one.to_json()) == one
    for line in ("", "{}", "[1]", '{"job_id": 3, "would_get": {}, "would_take": 1}', "{" * 9999):
        with pytest.raises(tp.SnapshotError):
            Logged.from_json(line)


def test_held_jobs_and_those_that_wait_are_not_logged() -> None:
    jobs = waiting("20", "TresPerNode=gres/gpu:1").replace("=Resources", "=Dependency")
    found = tp.snapshot.read(FREE + OLD + jobs + waiting("21", "TresPerNode=gres/gpu:9"), DGX1)
    assert log_only(found) == ()
