"""A repair is one entry of a journal; after a crash at any moment, the job is before or after it."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from interrupts import interrupt_at
from topoplace.errors import JournalError
from topoplace_hosts.journal import Entry, Holding, Journal, Stage, carry_out, keep, recall, reconcile
from topoplace_hosts.journal.entry import named

TOPOLOGY = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2)
RING = tp.JobGraph.ring(2).with_(bandwidth_sensitive=True)
OLD, LOST = (0, 3), 3


def started(journal: Journal) -> tp.Cluster:
    """Return a cluster in which a job has lost a GPU, and others run, as the journal says."""
    cluster = tp.Cluster(TOPOLOGY.with_unhealthy([LOST]))
    for job_id, gpus, graph in (("train", OLD, RING), ("other", (4, 5), None)):
        cluster.record(job_id, gpus, graph)
        holding = Holding.in_cluster(cluster, job_id)
        journal.append(Entry(job_id, Stage.CONFIRMED, named(TOPOLOGY, gpus), holding=holding))
    return cluster


def held_in(cluster: tp.Cluster) -> dict[str, tuple[tuple[int, ...], Holding]]:
    """Return what each job holds."""
    return {
        job_id: (cluster.gpus_of(job_id), Holding.in_cluster(cluster, job_id))
        for job_id in cluster.native.job_ids()
    }


def a_plan(cluster: tp.Cluster) -> Any:
    return tp.repair("train", cluster).plans[0]


def rebuilt(
    cluster: tp.Cluster, train: Sequence[int], path: Path
) -> tuple[tp.Cluster, list[tuple[str, str]]]:
    """Return what a restarted program has if the scheduler says where the job is, and the differences."""
    again = tp.Cluster(cluster.topology)
    with Journal(path) as journal:
        found = reconcile(again, {"other": (4, 5), "train": train}, journal)
        assert reconcile(again, {"other": (4, 5), "train": train}, journal) == ()
        assert journal.latest()["train"].gpus == named(TOPOLOGY, again.gpus_of("train"))
        assert journal.latest()["train"].stage is Stage.CONFIRMED
    return again, [(one.job_id, one.kind) for one in found]


def test_a_repair_is_one_entry_and_replays_to_the_same_state(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        appends, entries = journal.num_appends, len(tuple(journal.history()))
        carry_out(a_plan(cluster), cluster, journal, why="GPU 3 is broken")
        last = journal.latest()["train"]
        assert journal.num_appends == appends + 1
        assert len(tuple(journal.history())) == entries + 1
        assert (last.stage, last.why, last.holding.graph) == (Stage.REPAIR, "GPU 3 is broken", RING)
        assert list(journal.in_flight()) == ["train"]
    gpus = cluster.gpus_of("train")
    assert LOST not in gpus
    again, differences = rebuilt(cluster, gpus, tmp_path / "j")
    assert held_in(again) == held_in(cluster)
    assert differences == []


@pytest.mark.parametrize("repairs", [1, 2])
def test_a_job_that_has_not_moved_is_before_its_repairs(tmp_path: Path, repairs: int) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        before = cluster.copy()
        for _ in range(repairs):
            carry_out(a_plan(cluster), cluster, journal)
            cluster = cluster.with_topology(cluster.topology.with_unhealthy([cluster.gpus_of("train")[1]]))
    again, differences = rebuilt(before, OLD, tmp_path / "j")
    assert held_in(again) == held_in(before)
    assert differences == [("train", "withdrawn")]


def test_a_job_that_is_elsewhere_has_moved(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        carry_out(a_plan(cluster), cluster, journal)
        journal.append(Entry("train", Stage.CONFIRMED, named(TOPOLOGY, (8, 11))))
        cluster = tp.Cluster(cluster.topology)
        cluster.record("train", (8, 11), RING)
        cluster = cluster.with_topology(cluster.topology.with_unhealthy([8]))
        carry_out(a_plan(cluster), cluster, journal)
    _, differences = rebuilt(cluster, OLD, tmp_path / "j")
    assert differences == [("train", "moved")]


def test_a_job_that_died_in_its_repair_has_left(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        carry_out(a_plan(cluster), cluster, journal)
        (found,) = reconcile(tp.Cluster(TOPOLOGY), {"other": (4, 5)}, journal)
        assert (found.job_id, found.kind) == ("train", "withdrawn")
        assert journal.latest()["train"].stage.final


def test_what_cannot_be_carried_out_or_written_changes_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        plan, appends = a_plan(cluster), journal.num_appends
        before = cluster.snapshot()
        with pytest.raises(tp.AllocationError, match="without a GPU"):
            carry_out(replace(plan, placement=None), cluster, journal)
        with closing(sqlite3.connect(tmp_path / "j")) as other:
            other.execute(
                "CREATE TRIGGER full BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        with pytest.raises(JournalError, match="no room"):
            carry_out(plan, cluster, journal)
        assert cluster.snapshot() == before
        assert journal.num_appends == appends
    with Journal(tmp_path / "j", read_only=True) as reader, pytest.raises(JournalError, match="reading only"):
        carry_out(plan, cluster, reader)
    assert cluster.snapshot() == before


@dataclass(frozen=True)
class WithOthers:
    """A plan for which one other job moves and one stops."""

    job_id: str = "train"

    def carry_out(self, cluster: tp.Cluster) -> None:
        for job_id in ("train", "other", "third"):
            cluster.release(job_id)
        cluster.record("train", (0, 4), RING)
        cluster.record("other", (8, 9))


def test_others_that_make_way_are_in_the_same_append(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        cluster.record("third", (7,))
        journal.append(Entry("third", Stage.CONFIRMED, named(TOPOLOGY, (7,))))
        appends = journal.num_appends
        carry_out(WithOthers(), cluster, journal, why="GPU 3 is broken")
        assert journal.num_appends == appends + 1
        latest = journal.latest()
        assert {name: one.stage for name, one in latest.items()} == {
            "train": Stage.REPAIR,
            "other": Stage.REPAIR,
            "third": Stage.ENDED,
        }
        assert latest["third"].why == "stopped for train"
        assert latest["other"].gpus == named(TOPOLOGY, (8, 9))


# ---- interrupts, kills and torn writes -------------------------------------------------------------------------


def test_a_repair_may_be_interrupted_anywhere(tmp_path: Path) -> None:
    """Cluster and journal agree afterwards, at each line of both; some of the lines come after the write."""
    sides = set[Stage]()
    is_done, line = False, 0
    with Journal(tmp_path / "start") as journal:
        cluster = started(journal)
        plan = a_plan(cluster)
    while not is_done:
        line += 1
        path = tmp_path / str(line)
        path.write_bytes((tmp_path / "start").read_bytes())
        with Journal(path) as journal, cluster.what_if():
            tracing = sys.gettrace()
            sys.settrace(interrupt_at(line, "journal/journal.py", "journal/repairing.py"))
            try:
                carry_out(plan, cluster, journal)
                is_done = True
            except KeyboardInterrupt:
                pass
            finally:
                sys.settrace(tracing)
            last = journal.latest()["train"]
            assert last.gpus == named(TOPOLOGY, cluster.gpus_of("train")), line
            assert (last.stage is Stage.REPAIR) == (last.gpus != named(TOPOLOGY, OLD)), line
            sides.add(last.stage)
    assert line > 40
    assert sides == {Stage.CONFIRMED, Stage.REPAIR}


def test_a_log_that_is_cut_has_the_job_before_or_after_its_repair(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        before = cluster.copy()
        start = Path(f"{tmp_path / 'j'}-wal").stat().st_size
        carry_out(a_plan(cluster), cluster, journal)
        whole, log = (tmp_path / "j").read_bytes(), Path(f"{tmp_path / 'j'}-wal").read_bytes()
    assert start < len(log)
    for cut in (*range(start, len(log), 97), len(log)):
        (tmp_path / "torn").write_bytes(whole)
        (tmp_path / "torn-wal").write_bytes(log[:cut])
        is_there = cut == len(log)
        expected = cluster if is_there else before
        again, differences = rebuilt(cluster, expected.gpus_of("train"), tmp_path / "torn")
        assert held_in(again) == held_in(expected), cut
        assert differences == [], cut
        for path in tmp_path.glob("torn*"):
            path.unlink()


REPAIRER = """
import sys
import topoplace as tp
from topoplace_hosts.journal import Entry, Holding, Journal, Stage, carry_out
from topoplace_hosts.journal.entry import named
topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2)
cluster = tp.Cluster(topology)
with Journal(sys.argv[1]) as journal:
    cluster.allocate("train", (0, 3))
    journal.append(Entry("train", Stage.CONFIRMED, named(topology, (0, 3))))
    while True:
        lost = cluster.gpus_of("train")[:1]
        plan = tp.repair("train", cluster, lost=lost).plans[0]
        print(*plan.placement.gpus, flush=True)
        carry_out(plan, cluster, journal)
"""


def test_a_repair_is_whole_if_the_program_is_killed(tmp_path: Path) -> None:
    """The last repair that was begun is there or not; the one before it is."""
    moments = random.Random(7)
    for number in range(2):
        path = tmp_path / str(number)
        with subprocess.Popen(
            [sys.executable, "-c", REPAIRER, path], stdout=subprocess.PIPE, text=True
        ) as run:
            assert run.stdout is not None
            lines = [run.stdout.readline(), run.stdout.readline()]
            time.sleep(moments.uniform(0.0, 0.03))
            run.kill()
            lines += run.stdout.read().splitlines(keepends=True)
        *_, earlier, last = (tuple(map(int, line.split())) for line in lines if line.endswith("\n"))
        with Journal(path) as journal:
            entry = journal.latest()["train"]
            assert entry.stage is Stage.REPAIR
            assert entry.gpus in (named(TOPOLOGY, earlier), named(TOPOLOGY, last))
            assert journal.num_appends in (len(lines), len(lines) + 1)


def test_a_job_that_stops_for_a_repair_is_in_the_same_append(tmp_path: Path) -> None:
    """After a restart, the lent spare is still lent, its job still pre-emptible, and the repair gets it."""
    sound = tp.Topology.cluster(tp.machines.get("minsky"), 2, racks=1)
    cluster, low = tp.Cluster(sound), tp.JobGraph.ring(4).with_(priority=-1)
    cluster.allocate("train", range(4), tp.JobGraph.ring(4))
    assert cluster.hold_spares(level="rack", lent=True).held == ("machine1",)
    cluster.allocate("low", tp.place(low, cluster) or (), low)
    running = dict(cluster.allocations)
    with Journal(tmp_path / "j") as journal:
        for job_id, gpus in running.items():
            holding = Holding.in_cluster(cluster, job_id)
            journal.append(Entry(job_id, Stage.CONFIRMED, named(sound, gpus), holding=holding))
        keep(cluster, journal)
        again = tp.Cluster(sound)
        assert recall(again, journal) == ()
        reconcile(again, running, journal)
        assert again.snapshot() == cluster.snapshot()
        appends = journal.num_appends
        carry_out(tp.repair("train", again, lost=[0]).plans[0], again, journal)
        assert journal.num_appends == appends + 1
        last = journal.latest()
        assert (last["low"].stage, last["low"].why) == (Stage.ENDED, "stopped for train")
        assert last["train"].stage is Stage.REPAIR
    assert list(again.allocations) == ["train"]
    assert not again.held_gpus()


# ---- older journals --------------------------------------------------------------------------------------------


def test_a_journal_from_before_there_were_repairs_is_read_and_continued(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        cluster = started(journal)
        entries = tuple(journal.history())
    with closing(sqlite3.connect(tmp_path / "j")) as older:
        older.execute("PRAGMA user_version = 3")
    with Journal(tmp_path / "j", read_only=True) as reader:
        assert tuple(reader.history()) == entries
    with Journal(tmp_path / "j") as journal:
        assert tuple(journal.history()) == entries
        carry_out(a_plan(cluster), cluster, journal)
    with closing(sqlite3.connect(tmp_path / "j")) as newer:
        assert newer.execute("PRAGMA user_version").fetchone() == (4,)
