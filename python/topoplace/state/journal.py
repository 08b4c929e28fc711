"""Journal: decisions in a file that survives kill -9 and power cuts, as SQLite with a write-ahead log.

A transaction is one append. SQLite adds it to the log with a checksum and waits until it is on the disk
(`synchronous=FULL`), so a log that ends in the middle of a transaction is read up to the last whole one.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import IO, Self

from topoplace import _checks
from topoplace.errors import JournalError
from topoplace.state import schema
from topoplace.state.entry import Entry, Stage, parsed, written

_PAGE_BYTES = 1024
"""Entries are short: smaller pages make an append write less."""
_WAIT_S = 5.0
_LATEST = "number IN (SELECT max(number) FROM entries GROUP BY job_id)"


class Journal:
    """A file of decisions. One program writes it; others may read it meanwhile with `read_only=True`.

    Use a journal from one thread, and close it, best in a `with` block. JournalError says what is wrong with a file,
    and that another program writes it.
    """

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool = False) -> None:
        """Open the journal at `path`; without `read_only`, create it if it is missing.

        A file of an older version is read as it is, and brought up to date before it is written.
        """
        self._path = Path(path)
        self._read_only = _checks.flag(read_only, "read_only", JournalError)
        if self._read_only and not self._path.is_file():
            why = "a directory, not a journal" if self._path.is_dir() else "there is no such file"
            raise JournalError(f"{self._path}: {why}")
        self._latest: dict[str, Entry] | None = None
        self._lock = None if self._read_only else _locked(self._path)
        try:
            self._connection = self._opened()
            self._version = self._prepared()
        except BaseException:
            self._unlock()
            raise

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self._path

    def append(self, *entries: Entry) -> None:
        """Add entries in one transaction, which is on the disk when the method returns.

        An entry without a time gets that of now.
        """
        if not entries:
            return
        now = time.time()
        timed = [one if one.time else replace(one, time=now) for one in entries]
        latest = self._known_latest()
        with self._transaction() as connection:
            (batch,) = connection.execute("SELECT coalesce(max(batch), 0) + 1 FROM entries").fetchone()
            connection.executemany(
                "INSERT INTO entries (batch, time, job_id, stage, gpus, why) VALUES (?, ?, ?, ?, ?, ?)",
                [(batch, one.time, one.job_id, one.stage.value, written(one.gpus), one.why) for one in timed],
            )
        for one in timed:
            latest.pop(one.job_id, None)
            latest[one.job_id] = one

    @property
    def topology_digest(self) -> str | None:
        """Return the digest of the topology for which the decisions were made; None if it was never set."""
        with self._errors():
            row = self._connection.execute("SELECT value FROM facts WHERE name = 'topology'").fetchone()
        return None if row is None else str(row[0])

    def set_topology(self, digest: str) -> None:
        """Keep the digest of the topology (`Topology.digest`) for which decisions are made from now on."""
        _checks.text(digest, "digest", JournalError)
        with self._transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO facts VALUES ('topology', ?)", (digest,))

    def in_flight(self) -> Mapping[str, Entry]:
        """Return the last entry of each job whose decision is at the stage intent or told, by job id."""
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
        return int(count)

    def prune(self, before: float) -> int:
        """Remove the jobs that left their GPUs before a time, in seconds since 1970; return how many entries went."""
        limit = _checks.real(before, "before", JournalError)
        self._latest = None
        with self._transaction() as connection:
            gone = connection.execute(
                f"DELETE FROM entries WHERE job_id IN (SELECT job_id FROM entries WHERE {_LATEST}"
                " AND stage IN ('withdrawn', 'ended') AND time < ?)"
                " AND batch < (SELECT max(batch) FROM entries)",
                (limit,),
            )
            return gone.rowcount

    def close(self) -> None:
        """Close the file; what was appended is already on the disk."""
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
                f"{self._path.absolute().as_uri()}?mode={mode}",
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

    def _prepared(self) -> int:
        """Return the version of the tables, after they were created or brought up to date."""
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
        return version

    def _entries(self, where: str, *values: str) -> Iterator[Entry]:
        with self._errors():
            rows = self._connection.execute(
                f"SELECT {schema.columns(self._version)} FROM entries {where}", values
            ).fetchall()
        for job_id, stage, gpus, why, when in rows:
            yield Entry(job_id, _stage(stage), parsed(gpus), why, when)

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        if self._read_only:
            raise JournalError(f"{self._path}: the journal is open for reading only")
        with self._errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Raise JournalError with the path for errors of SQLite, and for what is wrong with the tables."""
        try:
            yield
        except sqlite3.Error as error:
            raise JournalError(f"{self._path}: {error}") from None
        except JournalError as error:
            if not str(error).startswith(str(self._path)):
                error.args = (f"{self._path}: {error}",)
            raise

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None


def _stage(text: str) -> Stage:
    return Stage(_checks.one_of(text, "stage", [stage.value for stage in Stage], JournalError))


def _locked(path: Path) -> IO[bytes]:
    """Return the lock file beside `path`, locked until it is closed or this process ends in any way."""
    try:
        lock = open(f"{path}.lock", "ab")  # noqa: SIM115 - it stays open
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise JournalError(f"{path}: another program writes this journal") from None
    return lock
