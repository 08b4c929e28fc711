"""The tables of a journal.

SQLite keeps their version in `user_version`, and `application_id` says that the file is ours.
"""

from __future__ import annotations

import sqlite3

from topoplace.errors import JournalError

VERSION = 4
"""The version that this library writes."""
OLDER = (3,)
"""The older versions that it reads: 3 has the same tables, and no entries of the stage `repair`."""
APPLICATION_ID = 0x746F706F  # "topo"

_CREATE = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE graphs (name TEXT PRIMARY KEY, graph TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, time REAL NOT NULL,"
    " job_id TEXT NOT NULL, stage TEXT NOT NULL, gpus TEXT NOT NULL, why TEXT NOT NULL, holding TEXT NOT NULL,"
    " graph TEXT REFERENCES graphs)",
    "CREATE INDEX entries_of_job ON entries (job_id, number)",
)


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file, or note in an older one that it has the present version; in one transaction."""
    known = known_version(connection)
    if known == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        for step in () if known else _CREATE:
            connection.execute(step)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def known_version(connection: sqlite3.Connection) -> int:
    """Return the version of a journal, or 0 for an empty file; JournalError for what this library does not read."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise JournalError("the file is an SQLite database, but not a journal of topoplace")
    if version not in (0, *OLDER, VERSION):
        raise JournalError(
            f"the journal has version {version}; this topoplace reads versions {OLDER[0]} to {VERSION}"
        )
    return int(version)
