"""Journal: decisions in a file that survives kill -9 and power cuts, as SQLite with a write-ahead log.

A transaction is one append. SQLite adds it to the log with a checksum and waits until it is on the disk
(`synchronous=FULL`). A log that ends in the middle of a transaction is read up to the last whole one.

The lock of the writer belongs to the file, not to the name it was opened by: symbolic links are followed first. A file
with several names (hard links) is refused, as SQLite keeps one log for each name. A forked process has neither the lock
nor the connection of its parent.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import time
import weakref
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeVar

from topoplace import _checks
from topoplace._file_lock import FileLock
from topoplace.errors import JournalError
from topoplace.jobs.job_graph import JobGraph
from topoplace_hosts.journal import schema
from topoplace_hosts.journal.entry import Entry, Stage, parsed, parsed_holding, written, written_holding

_PAGE_BYTES = 1024
"""Entries are short: smaller pages make an append write less."""
_WAIT_S = 5.0
_Result = TypeVar("_Result")
_LATEST = "number IN (SELECT max(number) FROM entries GROUP BY job_id)"


class Journal:
    """A file of decisions. One program writes it; others may read it meanwhile with `read_only=True`.

    Use a journal from one thread, and close it, best in a `with` block.

    Raises:
        JournalError: If the file cannot be used, or another program writes it.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        """Open the journal at `path`; without `read_only`, create it if it is missing."""
        self._path = Path(path)
        if "\0" in str(self._path):
            raise JournalError(f"path = {_checks.shown(str(self._path))} has a NUL character")
        self._process = os.getpid()
        self._read_only = _checks.flag(read_only, "read_only", JournalError)
        if self._read_only and (why := _why_no_file(self._path)):
            raise JournalError(f"path = {self._path}: {why}")
        self._latest: dict[str, Entry] | None = None
        self._graphs: dict[str, JobGraph] = {}
        self._lock = None if self._read_only else _locked(self._path)
        try:
            self._connection = self._opened()
            self._prepare()
        except BaseException:
            self._unlock()
            raise
        _open_journals.add(self)

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self._path

    def append(self, *entries: Entry) -> None:
        """Add entries in one transaction, which is on the disk when the method returns.

        An entry whose time is 0 gets the present time.
        """
        if not entries:
            return
        now = time.time()
        timed = [one if one.time else replace(one, time=now) for one in entries]
        latest = self._known_latest()
        self._latest = None  # after an interrupt, they are read from the file
        graphs = {
            one.holding.graph: _name_of(one.holding.graph) for one in timed if one.holding.graph is not None
        }
        rows = [self._row(one, graphs) for one in timed]

        def write(connection: sqlite3.Connection) -> None:
            (batch,) = connection.execute("SELECT coalesce(max(batch), 0) + 1 FROM entries").fetchone()
            connection.executemany(
                "INSERT OR IGNORE INTO graphs VALUES (?, ?)",
                [(name, graph.to_json()) for graph, name in graphs.items()],
            )
            connection.executemany(
                "INSERT INTO entries (batch, time, job_id, stage, gpus, why, holding, graph)"
                f" VALUES ({batch}, ?, ?, ?, ?, ?, ?, ?)",
                rows,
            )

        self._write(write)
        for one in timed:
            latest.pop(one.job_id, None)
            latest[one.job_id] = one
        self._latest = latest

    @staticmethod
    def _row(entry: Entry, graphs: Mapping[JobGraph, str]) -> tuple[Any, ...]:
        graph = None if entry.holding.graph is None else graphs[entry.holding.graph]
        holding = written_holding(entry.holding, graph)
        return entry.time, entry.job_id, entry.stage.value, written(entry.gpus), entry.why, holding, graph

    @property
    def topology_digest(self) -> str | None:
        """Return the digest of the topology for which the decisions were made; None if it was never set."""
        return self.fact("topology")

    def set_topology(self, digest: str) -> None:
        """Keep the digest of the topology (`Topology.digest`) for which decisions are made from now on."""
        self.set_fact("topology", _checks.text(digest, "digest", JournalError))

    def fact(self, name: str) -> str | None:
        """Return the text kept under a name by `set_fact`; None if there is none."""
        with self._errors():
            row = self._connection.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def set_fact(self, name: str, value: str) -> None:
        """Keep a text under a name and replace any other; an equal text is not written again."""
        if self.fact(name) != value:
            self._write(
                lambda connection: connection.execute(
                    "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value)
                )
            )

    def in_flight(self) -> Mapping[str, Entry]:
        """Return the last entry of each job whose decision is at the stage intent, told or repair, by job id."""
        return {job_id: one for job_id, one in self.latest().items() if one.stage.in_flight}

    def allocations(self) -> Mapping[str, Entry]:
        """Return the last entry of each job that was confirmed on its GPUs, by job id."""
        return {job_id: one for job_id, one in self.latest().items() if one.stage is Stage.CONFIRMED}

    def latest(self) -> Mapping[str, Entry]:
        """Return the last entry of each job, in the order of these entries, by job id."""
        return MappingProxyType(self._known_latest())

    def _known_latest(self) -> dict[str, Entry]:
        """Return what `latest` shows; a journal that is written by this program alone is read once."""
        if self._read_only or self._latest is None:
            self._latest = {one.job_id: one for one in self._entries(f"WHERE {_LATEST} ORDER BY number")}
        return self._latest

    def history(self, job_id: str | None = None) -> Iterable[Entry]:
        """Return all entries of a job, or of all jobs, oldest first."""
        if job_id is None:
            return tuple(self._entries("ORDER BY number"))
        return tuple(self._entries("WHERE job_id = ? ORDER BY number", job_id))

    @property
    def num_appends(self) -> int:
        """Return the number of the last append, counted from 1; 0 for an empty journal."""
        with self._errors():
            (count,) = self._connection.execute("SELECT coalesce(max(batch), 0) FROM entries").fetchone()
            return _checks.integer(count, "batch", JournalError, low=0, high=2**63 - 1)

    def prune(self, before: float) -> int:
        """Remove the jobs that left their GPUs before a time in seconds since 1970; return the number of removed
        entries."""
        limit = _checks.real(before, "before", JournalError)
        self._latest = None

        def remove(connection: sqlite3.Connection) -> int:
            gone = connection.execute(
                f"DELETE FROM entries WHERE job_id IN (SELECT job_id FROM entries WHERE {_LATEST}"
                " AND stage IN ('withdrawn', 'ended') AND time < ?)"
                " AND batch < (SELECT max(batch) FROM entries)",
                (limit,),
            ).rowcount
            connection.execute(
                "DELETE FROM graphs WHERE name NOT IN (SELECT graph FROM entries WHERE graph IS NOT NULL)"
            )
            return gone

        self._graphs.clear()
        return self._write(remove)

    def close(self) -> None:
        """Close the file; what was appended is already on the disk."""
        if self._process == os.getpid():
            self._connection.close()
            self._unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Journal({str(self._path)!r}{', read_only=True' if self._read_only else ''})"

    # ---- the file ------------------------------------------------------------------------------------------

    def _opened(self) -> sqlite3.Connection:
        with self._errors():
            mode = "ro" if self._read_only else "rwc"
            connection = sqlite3.connect(
                f"{self._path.resolve().as_uri()}?mode={mode}",
                uri=True,
                timeout=_WAIT_S,
                isolation_level=None,
            )
        try:
            with self._errors():
                if not self._read_only:
                    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("PRAGMA synchronous = FULL")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self) -> None:
        """Create the tables of a new file; JournalError if it is no journal of this version."""
        try:
            with self._errors():
                if not self._read_only:
                    schema.prepare(self._connection)
                version = schema.known_version(self._connection)
            if version == 0:
                raise JournalError(f"{self._path}: the file is empty, not a journal")
        except BaseException:
            self._connection.close()
            raise

    def _entries(self, where: str, *values: str) -> Iterator[Entry]:
        with self._errors():
            rows = self._connection.execute(
                f"SELECT job_id, stage, gpus, why, time, holding, graph FROM entries {where}", values
            ).fetchall()
            self._read_graphs({row[-1] for row in rows if row[-1] is not None})
            for job_id, stage, gpus, why, when, holding, _ in rows:
                held = parsed_holding(holding, self._graphs)
                yield Entry(job_id, _stage(stage), parsed(gpus), why, when, held)

    def _read_graphs(self, names: set[str]) -> None:
        """Read those of the job graphs with these names that are not known yet."""
        for name in names - self._graphs.keys():
            row = self._connection.execute("SELECT graph FROM graphs WHERE name = ?", (name,)).fetchone()
            if row is not None:
                try:
                    self._graphs[name] = JobGraph.from_json(row[0])
                except (ValueError, TypeError) as error:
                    raise JournalError(f"the job graph {name}: {error}") from None

    def _write(self, change: Callable[[sqlite3.Connection], _Result]) -> _Result:
        """Return what `change` returns, whose statements are one transaction."""
        if self._read_only:
            raise JournalError(f"{self._path}: the journal is open for reading only")
        with self._errors():
            connection = self._connection
            if connection.in_transaction:  # an interrupt came between its begin and its end
                connection.execute("ROLLBACK")
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = change(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Raise JournalError with the path for errors of SQLite, and for what is wrong with the tables."""
        if self._process != os.getpid():
            raise JournalError(f"{self._path}: the process that opened the journal has forked; open it again")
        try:
            yield
        except sqlite3.Error as error:
            other_thread = isinstance(error, sqlite3.ProgrammingError) and "thread" in str(error)
            why = "only the thread that opened the journal may use it" if other_thread else error
            raise JournalError(f"{self._path}: {why}") from None
        except UnicodeDecodeError:  # of a message of SQLite that cites the damaged place
            raise JournalError(f"{self._path}: its tables are damaged") from None
        except JournalError as error:
            if not str(error).startswith(str(self._path)):
                error.args = (f"{self._path}: {error}",)
            raise

    def leave_to_parent(self) -> None:
        """Give up a forked process's lock, and keep its connection unused: closing it would end the log."""
        self._unlock()
        _left_to_parents.append(self._connection)

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _stage(text: str) -> Stage:
    return Stage(_checks.one_of(text, "stage", [stage.value for stage in Stage], JournalError))


def _name_of(graph: JobGraph) -> str:
    """Return the name under which a journal keeps a job graph: a digest."""
    return hashlib.sha256(graph.to_json().encode("ascii")).hexdigest()[:32]


def _why_no_file(path: Path) -> str | None:
    """Return why `path` cannot be read as a file; None if it can."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return "there is no such file"
    except OSError as error:  # such as a name that is too long
        return str(error.strerror)
    if stat.S_ISDIR(mode):
        return "a directory, not a journal"
    return None if stat.S_ISREG(mode) else "neither a file nor a link to one"


def _locked(path: Path) -> FileLock:
    """Return the lock of the file that `path` leads to; its file is next to it."""
    try:
        real = path.resolve()
        if real.is_file() and real.stat().st_nlink > 1:
            raise JournalError(f"{path}: the file has several names (hard links); remove all but one")
        return FileLock(Path(f"{real}.lock"))
    except BlockingIOError as error:
        raise JournalError(f"{path}: another program writes this journal: {error.strerror}") from None
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from None
    except RuntimeError:  # Python 3.12 and older
        raise JournalError(f"{path}: its symbolic links go in a circle") from None


_open_journals: weakref.WeakSet[Journal] = weakref.WeakSet()
_left_to_parents: list[sqlite3.Connection] = []
"""Connections of parents, which a forked process must neither use nor close."""


def _after_fork() -> None:
    for journal in tuple(_open_journals):
        journal.leave_to_parent()


os.register_at_fork(after_in_child=_after_fork)
