"""A journal keeps whole transactions, whatever happens to the process that writes it or to the end of its file."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from interrupts import interrupt_at
from topoplace import JobGraph
from topoplace.errors import JournalError
from topoplace.mig import MigSlice
from topoplace_hosts.journal import Entry, Holding, Journal, Stage, schema
from topoplace_hosts.journal.entry import parsed

GPUS = (("n1", "GPU6"), ("n1", "GPU3"))


def test_entries_are_read_back(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.set_topology("abc")
        journal.append(Entry("7", Stage.INTENT, GPUS, "fastest ring"), Entry("8", Stage.INTENT, GPUS[:1]))
        journal.append(Entry("7", Stage.TOLD, GPUS))
        journal.append(Entry("8", Stage.CONFIRMED, GPUS[:1]))
    with Journal(tmp_path / "j") as journal:
        assert journal.topology_digest == "abc"
        assert journal.num_appends == 3
        assert list(journal.in_flight()) == ["7"]
        assert list(journal.allocations()) == ["8"]
        assert journal.latest()["7"].gpus == GPUS
        first, second = journal.history("7")
        assert (first.stage, first.why, second.stage) == (Stage.INTENT, "fastest ring", Stage.TOLD)
        assert time.time() - 3600 < first.time <= second.time
        assert len(list(journal.history())) == 4


def test_reader_beside_the_writer(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, Journal(tmp_path / "j", read_only=True) as reader:
        assert not reader.latest()
        journal.append(Entry("7", Stage.TOLD, GPUS))
        assert list(reader.latest()) == ["7"]
        with pytest.raises(JournalError, match="for reading only"):
            reader.append(Entry("8", Stage.TOLD))


def test_one_writer_only(tmp_path: Path) -> None:
    with Journal(tmp_path / "j"), pytest.raises(JournalError, match="another program writes this journal"):
        Journal(tmp_path / "j")
    Journal(tmp_path / "j").close()


def test_pruned_jobs_have_left_their_gpus(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(Entry("1", Stage.TOLD, GPUS, time=10.0), Entry("2", Stage.TOLD, GPUS, time=10.0))
        journal.append(Entry("1", Stage.ENDED, time=20.0), Entry("3", Stage.WITHDRAWN, time=99.0))
        journal.append(Entry("4", Stage.TOLD, GPUS, time=99.0))
        assert journal.prune(before=50.0) == 2
        assert list(journal.latest()) == ["2", "3", "4"]
        journal.append(Entry("5", Stage.TOLD, time=99.0))
        assert journal.num_appends == 4


def test_what_a_job_holds_is_read_back(tmp_path: Path) -> None:
    graph = JobGraph.ring(2).with_(bandwidth_sensitive=True)
    holdings = [
        Holding(graph, 0.25),
        Holding(graph, slices=(MigSlice("1g.5gb", 3), MigSlice("2g.10gb", 0))),
        Holding(None, hosts=(("n1", 2.5, 16.0), ("n2", 0, 0)), drives=("n2",), remote=GPUS[:1]),
    ]
    entries = [Entry(str(i), Stage.TOLD, GPUS, holding=one) for i, one in enumerate(holdings)]
    with Journal(tmp_path / "j") as journal:
        journal.append(*entries)
        journal.append(Entry("0", Stage.ENDED, time=5.0))
    with Journal(tmp_path / "j") as journal:
        assert [one.holding for one in journal.history() if one.stage is Stage.TOLD] == holdings
        journal.append(Entry("1", Stage.ENDED, time=5.0))
        journal.prune(before=50.0)
        assert [one.holding for one in journal.latest().values()] == [holdings[2], Holding()]


@pytest.mark.parametrize(
    ("holding", "message"),
    [
        ('{"gpu_fraction": 2.0}', "gpu_fraction = 2.0"),
        ('{"slices": [["1g.5gb"]]}', r"slices\[0\] = .* is not a profile and a start"),
        ('{"slices": [["1g.5gb", 0]]}', "slices: 1 for 2 GPUs"),
        ('{"hosts": [["n1", 1]]}', r"hosts\[0\] = .* is not a machine, CPUs and memory"),
        ('{"graph": "none"}', "the job graph 'none' is missing"),
        ('{"odd": 1}', "has unknown fields"),
        ("[1]", "is not an object"),
        ("[", "is not JSON"),
    ],
)
def test_damaged_holdings_are_named(tmp_path: Path, holding: str, message: str) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(Entry("7", Stage.TOLD, GPUS))
    with closing(sqlite3.connect(tmp_path / "j")) as damaged:
        damaged.execute("UPDATE entries SET holding = ?", (holding,))
        damaged.commit()
    with Journal(tmp_path / "j") as journal, pytest.raises(JournalError, match=message):
        journal.latest()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"job_id": ""}, "job_id = '' is not a non-empty string"),
        ({"stage": "told"}, "stage = 'told' is not a Stage"),
        ({"time": -1.0}, "time = -1.0 is not at least 0"),
        ({"gpus": [("n1",)]}, r"gpus\[0\] = \('n1',\) is not a machine and a GPU"),
        ({"gpus": ["n1"]}, r"gpus\[0\] = 'n1' is not a sequence"),
        ({"gpus": [("n1", 3)]}, r"gpus\[0\] = 3 is not a non-empty string"),
        ({"why": 3}, "why = 3 is not a non-empty string"),
    ],
)
def test_wrong_entries_are_refused(entry: dict[str, object], message: str) -> None:
    given = {"job_id": "1", "stage": Stage.TOLD} | entry
    with pytest.raises(JournalError, match=message):
        Entry(**given)  # type: ignore[arg-type]


# ---- one writer, whatever happens -----------------------------------------------------------------------------


def test_a_file_has_one_writer_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("j")  # also before the file is there
    (tmp_path / "folder").symlink_to(tmp_path)
    names = ["j", "link", "folder/j", "folder/link"]
    for first in names:
        with Journal(tmp_path / first):
            for second in names:
                with pytest.raises(JournalError, match="another program writes this journal"):
                    Journal(tmp_path / second)
    assert not (tmp_path / "link.lock").exists()


def test_a_file_with_several_names_is_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    (tmp_path / "other").hardlink_to(tmp_path / "j")
    for name in ("j", "other"):
        with pytest.raises(JournalError, match="has several names"):
            Journal(tmp_path / name)
    (tmp_path / "other").unlink()
    Journal(tmp_path / "j").close()


def test_links_in_a_circle_are_refused(tmp_path: Path) -> None:
    (tmp_path / "j").symlink_to("k")
    (tmp_path / "k").symlink_to("j")
    with pytest.raises(JournalError, match="/j: "):
        Journal(tmp_path / "j")


def test_an_append_may_be_interrupted_anywhere(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, Journal(tmp_path / "j", read_only=True) as reader:
        for line in range(1, 200):
            entry = Entry(str(line), Stage.TOLD, GPUS, holding=Holding(JobGraph.ring(2)))
            before = set(reader.latest())
            tracing = sys.gettrace()
            sys.settrace(interrupt_at(line, "topoplace_hosts/journal/journal.py"))
            try:
                journal.append(entry)
                is_done = True
            except KeyboardInterrupt:
                is_done = False
            finally:
                sys.settrace(tracing)
            assert journal.latest() == reader.latest()
            assert set(reader.latest()) - before in (set(), {str(line)})
            journal.append(Entry("after", Stage.TOLD, GPUS))
            if is_done:
                break
    assert line > 20


def test_a_forked_process_neither_writes_nor_keeps_the_lock(tmp_path: Path) -> None:
    code = """
import os, sys, time
from topoplace_hosts.journal import Entry, Journal, Stage
journal = Journal(sys.argv[1])
child = os.fork()
if child == 0:
    try:
        journal.append(Entry("child", Stage.TOLD))
    except Exception as error:
        print("refused:", error, flush=True)
    journal.close()
    time.sleep(60)
    os._exit(0)
time.sleep(0.5)
journal.append(Entry("parent", Stage.TOLD))
print(child, flush=True)
os._exit(0)
"""
    run = subprocess.Popen([sys.executable, "-c", code, tmp_path / "j"], stdout=subprocess.PIPE, text=True)
    assert run.stdout is not None
    said, child = run.stdout.readline(), int(run.stdout.readline())
    run.wait()
    try:
        assert "has forked; open it again" in said
        with Journal(tmp_path / "j") as journal:  # though the child lives
            assert list(journal.latest()) == ["parent"]
    finally:
        os.kill(child, signal.SIGKILL)
        run.stdout.close()


# ---- files --------------------------------------------------------------------------------------------------------


def test_what_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a text that is long enough to look like a file of pages " * 99, "utf-8")
    with pytest.raises(JournalError, match="text: file is not a database"):
        Journal(tmp_path / "text")
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(JournalError, match="SQLite database, but not a journal of topoplace"):
        Journal(tmp_path / "other")
    with pytest.raises(JournalError, match="there is no such file"):
        Journal(tmp_path / "none", read_only=True)
    with pytest.raises(JournalError, match="a directory, not a journal"):
        Journal(tmp_path, read_only=True)
    for read_only in (True, False):
        with pytest.raises(JournalError, match="n: File name too long"):
            Journal("n" * 300, read_only=read_only)
    (tmp_path / "empty").touch()
    with pytest.raises(JournalError, match="empty, not a journal"):
        Journal(tmp_path / "empty", read_only=True)
    with pytest.raises(JournalError, match="No such file or directory"):
        Journal(tmp_path / "nowhere" / "j")


def test_other_versions_are_refused(tmp_path: Path) -> None:
    Journal(tmp_path / "j").close()
    newer = sqlite3.connect(tmp_path / "j")
    newer.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    newer.close()
    with pytest.raises(JournalError, match="has version 5; this topoplace reads versions 3 to 4"):
        Journal(tmp_path / "j", read_only=True)


def test_damaged_entries_are_named(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(Entry("7", Stage.TOLD, GPUS))
    damaged = sqlite3.connect(tmp_path / "j")
    damaged.execute("UPDATE entries SET gpus = '[[1]]'")
    damaged.commit()
    damaged.close()
    with Journal(tmp_path / "j") as journal, pytest.raises(JournalError, match=r"gpus\[0\] = \[1\]"):
        journal.latest()


def appends_and_latest(path: Path, *, read_only: bool) -> None:
    with Journal(path, read_only=read_only) as journal:
        assert journal.num_appends == 1
        journal.latest()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            "UPDATE sqlite_master SET sql = 'CREATE ' || x'9c' || ' facts' WHERE name = 'facts'",
            "damaged",
        ),
        ("UPDATE sqlite_master SET sql = 'garbage'", "malformed database schema"),
        ("UPDATE sqlite_master SET rootpage = 99", "malformed|disk image"),
        ("DELETE FROM sqlite_master WHERE name = 'entries'", "no such table"),
        ("UPDATE entries SET batch = 'x'", "batch = 'x' is not an integer"),
        ("UPDATE entries SET batch = 9e999", "batch = inf is not an integer"),
    ],
)
def test_damaged_tables_are_named(tmp_path: Path, damage: str, message: str) -> None:
    path = tmp_path / "j"
    with Journal(path) as journal:
        journal.append(Entry("7", Stage.INTENT, GPUS))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = 1")
        connection.execute(damage)
        connection.commit()
    for read_only in (True, False):
        with pytest.raises(JournalError, match=f"^{re.escape(str(path))}: .*({message})"):
            appends_and_latest(path, read_only=read_only)


def test_gpus_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"^gpus = None is not JSON"):
        parsed(None)  # type: ignore[arg-type]


def test_a_path_with_nul_is_refused(tmp_path: Path) -> None:
    for read_only in (True, False):
        with pytest.raises(JournalError, match=r"^path = .* has a NUL character"):
            Journal(f"{tmp_path}/a\0b", read_only=read_only)


def test_gpus_that_are_no_json_are_named(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        journal.append(Entry("7", Stage.TOLD, GPUS))
    damaged = sqlite3.connect(tmp_path / "j")
    damaged.execute("UPDATE entries SET gpus = '[['")
    damaged.commit()
    damaged.close()
    with Journal(tmp_path / "j") as journal, pytest.raises(JournalError, match=r"gpus = '\[\[' is not JSON"):
        journal.latest()


def test_a_failed_append_leaves_the_journal_usable(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        with sqlite3.connect(tmp_path / "j") as other:
            other.execute("ALTER TABLE entries RENAME TO gone")
        with pytest.raises(JournalError, match=r"/j: no such table"):
            journal.append(Entry("7", Stage.TOLD, GPUS))
        other.execute("ALTER TABLE gone RENAME TO entries")
        other.close()
        journal.append(Entry("8", Stage.TOLD, GPUS))
        assert list(journal.latest()) == ["8"]


def test_an_append_that_fails_in_its_middle_leaves_nothing(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal:
        with closing(sqlite3.connect(tmp_path / "j")) as other:
            other.execute(
                "CREATE TRIGGER full BEFORE INSERT ON entries WHEN NEW.job_id = '8'"
                " BEGIN SELECT RAISE(ABORT, 'no room'); END"
            )
        with pytest.raises(JournalError, match=r"/j: no room"):
            journal.append(Entry("7", Stage.TOLD, GPUS), Entry("8", Stage.TOLD, GPUS))
        assert not journal.latest()
        journal.append(Entry("9", Stage.TOLD, GPUS))
        assert list(journal.latest()) == ["9"]
    with Journal(tmp_path / "j", read_only=True) as reader:
        assert list(reader.latest()) == ["9"]


def test_a_journal_says_where_it_is(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, Journal(tmp_path / "j", read_only=True) as reader:
        assert journal.path == reader.path == tmp_path / "j"
        assert repr(journal) == f"Journal({str(tmp_path / 'j')!r})"
        assert repr(reader) == f"Journal({str(tmp_path / 'j')!r}, read_only=True)"


def test_log_cut_at_every_byte_of_its_last_page(tmp_path: Path) -> None:
    """A torn write: the last whole transaction is there and nothing of the torn one, at more than 1,000 cuts."""
    with Journal(tmp_path / "j") as journal:
        for number in range(30):
            journal.append(*(Entry(f"{number}.{part}", Stage.TOLD, GPUS, "why " * 40) for part in range(3)))
        whole = (tmp_path / "j").read_bytes(), Path(f"{tmp_path / 'j'}-wal").read_bytes()
    page = 24 + 1024  # a header, and a page
    cuts = range(len(whole[1]) - page, len(whole[1]) + 1)
    torn, log = tmp_path / "torn", tmp_path / "torn-wal"
    right = 0
    for cut in cuts:
        for path in tmp_path.glob("torn*"):
            path.unlink()
        torn.write_bytes(whole[0])
        log.write_bytes(whole[1][:cut])
        with Journal(torn, read_only=True) as journal:
            last = 30 if cut == len(whole[1]) else 29
            right += journal.num_appends == last and len(journal.latest()) == 3 * last
    assert right == len(cuts) >= 1_000


WRITER = """
import sys
from topoplace_hosts.journal import Entry, Journal, Stage
with Journal(sys.argv[1]) as journal:
    while True:
        number = journal.num_appends + 1
        journal.append(*(Entry(f"{number}.{part}", Stage.TOLD, (("n1", "GPU0"),), "why") for part in range(3)))
        print(number, flush=True)
"""


def killed_writer(path: Path, after_s: float) -> int:
    """Append without pause in another process, which is killed; return the last append that it said was done."""
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        done = [writer.stdout.readline()]
        time.sleep(after_s)
        writer.kill()
        done += writer.stdout.read().splitlines(keepends=True)
    return max(int(line) for line in done if line.endswith("\n"))


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """What was said to be done is there, each append whole; at most the one under way when it was killed is more."""
    moments = random.Random(7)
    for _ in range(12):
        said = killed_writer(tmp_path / "j", moments.uniform(0.0, 0.05))
        with Journal(tmp_path / "j") as journal:
            assert said <= journal.num_appends <= said + 1
            assert len(journal.latest()) == 3 * journal.num_appends


def test_copy_of_a_journal_in_use(tmp_path: Path) -> None:
    """A copy of the file and its log, as a backup takes it, is a journal."""
    with Journal(tmp_path / "j") as journal:
        journal.append(Entry("7", Stage.TOLD, GPUS))
        shutil.copy(tmp_path / "j", tmp_path / "copy")
        shutil.copy(f"{tmp_path / 'j'}-wal", tmp_path / "copy-wal")
    with Journal(tmp_path / "copy") as journal:
        assert list(journal.latest()) == ["7"]


def test_another_thread_is_refused(tmp_path: Path) -> None:
    with Journal(tmp_path / "j") as journal, ThreadPoolExecutor(1) as others:
        with pytest.raises(JournalError, match="only the thread that opened the journal may use it"):
            others.submit(journal.latest).result()
        assert journal.latest() == {}
