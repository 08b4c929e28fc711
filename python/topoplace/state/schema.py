"""The tables of a journal in each version of their form, and how an older form becomes the present one.

Version 1 has no reasons. SQLite keeps the version in `user_version`, and `application_id` says that the file is ours.
"""

from __future__ import annotations

import sqlite3

from topoplace.errors import JournalError

VERSION = 2
"""The version that this library writes; it reads all up to this one."""
APPLICATION_ID = 0x746F706F  # "topo"

_CREATE = (
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, time REAL NOT NULL,"
    " job_id TEXT NOT NULL, stage TEXT NOT NULL, gpus TEXT NOT NULL, why TEXT NOT NULL DEFAULT '')",
    "CREATE INDEX entries_of_job ON entries (job_id, number)",
)
_UPGRADES = {1: ("ALTER TABLE entries ADD COLUMN why TEXT NOT NULL DEFAULT ''",)}
"""What makes the next version of each older one."""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables of a new file, or bring those of an older version up to date, in one transaction."""
    version = known_version(connection)
    if version == VERSION:
        return
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        steps = (
            _CREATE if version == 0 else [step for old in range(version, VERSION) for step in _UPGRADES[old]]
        )
        for step in steps:
            connection.execute(step)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {VERSION}")


def known_version(connection: sqlite3.Connection) -> int:
    """Return the version of the file, 0 if it is empty; JournalError if it is no journal, or a newer one."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise JournalError("the file is an SQLite database, but not a journal of topoplace")
    if version > VERSION:
        raise JournalError(f"the journal has version {version}; this topoplace reads up to {VERSION}")
    return int(version)


def columns(version: int) -> str:
    """Return the columns of an entry for SELECT, in the order of the fields of `Entry`."""
    return f"job_id, stage, gpus, {'why' if version > 1 else repr('')}, time"
