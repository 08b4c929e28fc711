"""The lock of a file: one process at a time holds it, and a process that ends, in any way, releases it."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import socket
import weakref
from pathlib import Path

_ABOUT_HOLDER = re.compile(r"process \d{1,10} on [\w.-]{1,255}")


class FileLock:
    """A file that this process holds locked until `close`; a forked child does not hold its parent's lock.

    The file contains the id of this process, for the error of others, and it stays when the lock is released.
    """

    def __init__(self, path: Path) -> None:
        """Lock the file at `path`, created if missing.

        Raise BlockingIOError if another process holds the lock; its `strerror` names the process. Raise OSError if the
        file cannot be locked at all.
        """
        self._file = open(path, "a+", encoding="utf-8", errors="replace")  # noqa: SIM115 - it stays open
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._file.truncate(0)
            self._file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            self._file.flush()
        except BlockingIOError:
            holder = self._holder()
            self._file.close()
            raise BlockingIOError(errno.EAGAIN, holder, str(path)) from None
        except OSError as error:
            self._file.close()
            raise OSError(error.errno, error.strerror, str(path)) from None
        _held.add(self)

    def close(self) -> None:
        """Release the lock."""
        self._file.close()

    def _holder(self) -> str:
        """Return which process holds the lock, as it wrote it down itself."""
        self._file.seek(0)
        said = self._file.read(400).strip()
        return said if _ABOUT_HOLDER.fullmatch(said) else "another process"


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()


def _after_fork() -> None:
    for lock in tuple(_held):
        lock.close()


os.register_at_fork(after_in_child=_after_fork)
