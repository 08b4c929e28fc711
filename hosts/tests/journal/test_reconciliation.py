"""A cluster is rebuilt from what the scheduler has; what the journal says otherwise is healed, counted and returned."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from topoplace import Cluster, JobGraph, machines
from topoplace_hosts.journal import Entry, Journal, Stage, reconcile
from topoplace_hosts.journal.entry import named

MACHINE = machines.get("dgx1-v100")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal(tmp_path / "j") as journal:
        yield journal


def told(job_id: str, *gpus: int, stage: Stage = Stage.TOLD) -> Entry:
    return Entry(job_id, stage, named(MACHINE, gpus), "why")


def test_progress_is_no_difference(journal: Journal) -> None:
    journal.append(told("a", 0, 3), told("b", 1, stage=Stage.INTENT), told("c", 2, stage=Stage.CONFIRMED))
    cluster = Cluster(MACHINE)
    assert reconcile(cluster, {"a": [0, 3]}, journal, pending={"b": [1]}) == ()
    stages = {job_id: entry.stage for job_id, entry in journal.latest().items()}
    assert stages == {"a": Stage.CONFIRMED, "b": Stage.TOLD, "c": Stage.ENDED}
    assert dict(cluster.allocations) == {"a": (0, 3), "b": (1,)}
    appends = journal.num_appends
    assert reconcile(cluster, {"a": [0, 3]}, journal, pending={"b": [1]}) == ()
    assert journal.num_appends == appends == 2


def test_the_scheduler_is_right(journal: Journal) -> None:
    journal.append(told("moved", 0, 3), told("withdrawn", 1), told("same", 6, 7))
    cluster = Cluster(MACHINE)
    cluster.allocate("moved", [0, 3])
    cluster.allocate("withdrawn", [1])
    found = reconcile(cluster, {"moved": [0, 2], "unknown": [1], "same": [7, 6]}, journal)
    assert [(one.job_id, one.kind) for one in found] == [
        ("moved", "moved"),
        ("unknown", "unknown"),
        ("withdrawn", "withdrawn"),
    ]
    assert found[0].journal == named(MACHINE, [0, 3])
    assert found[0].scheduler == named(MACHINE, [0, 2])
    assert dict(cluster.allocations) == {"moved": (0, 2), "unknown": (1,), "same": (7, 6)}
    assert journal.latest()["moved"].gpus == named(MACHINE, [0, 2])
    assert journal.latest()["withdrawn"].stage is Stage.WITHDRAWN
    assert reconcile(cluster, {"moved": [0, 2], "unknown": [1], "same": [7, 6]}, journal) == ()


def test_a_restarted_program_has_the_same_cluster(journal: Journal) -> None:
    before = Cluster(MACHINE)
    job = JobGraph.ring(2).with_(bandwidth_sensitive=True)
    before.allocate("a", [0, 3], job)
    journal.append(told("a", 0, 3, stage=Stage.CONFIRMED))
    after = Cluster(MACHINE)
    assert reconcile(after, {"a": [0, 3]}, journal, graphs={"a": job}) == ()
    assert after.snapshot() == before.snapshot()


def test_jobs_keep_drained_gpus(journal: Journal) -> None:
    cluster = Cluster(MACHINE)
    cluster.drain(3)
    reconcile(cluster, {"a": [2, 3]}, journal)
    assert cluster.gpus_of("a") == (2, 3)
    assert cluster.drained_gpus() == (3,)


def test_overlapping_jobs_are_named(journal: Journal) -> None:
    cluster = Cluster(MACHINE)
    found = reconcile(cluster, {"a": [0, 1], "b": [1, 2]}, journal)
    assert [(one.job_id, one.kind) for one in found] == [("b", "overlap"), ("a", "unknown"), ("b", "unknown")]
    assert cluster.gpus_of("b") == (2,)


def test_a_job_whose_gpus_all_belong_to_others_has_none(journal: Journal) -> None:
    cluster = Cluster(MACHINE)
    found = reconcile(cluster, {"a": [0, 1], "b": [1, 0]}, journal)
    assert [one.job_id for one in found if one.kind == "overlap"] == ["b"]
    assert cluster.gpus_of("b") == ()


def test_a_graph_of_another_size_is_left_out(journal: Journal) -> None:
    cluster = Cluster(MACHINE)
    reconcile(cluster, {"a": [0, 3]}, journal, graphs={"a": JobGraph.ring(3)})
    assert cluster.gpus_of("a") == (0, 3)
    assert "a" not in cluster.jobs


def test_a_job_that_comes_back_is_decided_anew(journal: Journal) -> None:
    journal.append(told("a", 0))
    cluster = Cluster(MACHINE)
    reconcile(cluster, {"a": [0]}, journal)
    assert reconcile(cluster, {}, journal) == ()
    journal.append(told("a", 5))
    assert reconcile(cluster, {"a": [5]}, journal) == ()
    assert [entry.stage.value for entry in journal.history("a")] == [
        "told",
        "confirmed",
        "ended",
        "told",
        "confirmed",
    ]


def test_a_job_that_runs_is_not_where_it_was_ordered_to_start(journal: Journal) -> None:
    journal.append(told("a", 1))
    cluster = Cluster(MACHINE)
    (found,) = reconcile(cluster, {"a": [0]}, journal, pending={"a": [1]})
    assert (found.kind, found.scheduler) == ("moved", named(MACHINE, [0]))
    assert dict(cluster.allocations) == {"a": (0,)}
    assert (journal.latest()["a"].stage, journal.latest()["a"].gpus) == (Stage.CONFIRMED, named(MACHINE, [0]))


def test_a_job_that_the_journal_does_not_know_takes_no_gpu_from_one_that_it_knows(journal: Journal) -> None:
    journal.append(told("known", 0, 1, stage=Stage.CONFIRMED))
    cluster = Cluster(MACHINE)
    found = reconcile(cluster, {"stranger": [0, 2], "known": [0, 1]}, journal)
    assert dict(cluster.allocations) == {"known": (0, 1), "stranger": (2,)}
    assert [(one.job_id, one.kind) for one in found] == [("stranger", "overlap"), ("stranger", "unknown")]
