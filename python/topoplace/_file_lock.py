"""The lock of a file: one program at a time holds it, and loses it when its process ends, however that ends."""

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
    """A file that this process has locked until `close`; a forked process does not have the lock of its parent.

    The file says which process that is, for the error of others, and it stays when the lock is given up.
    """

    def __init__(self, path: Path) -> None:
        """Lock the file at `path`, created if missing.

        BlockingIOError, whose `strerror` says who holds it, if that is another; OSError if it cannot be locked at all.
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
        """Give the lock up."""
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
