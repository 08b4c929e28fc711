"""A bar with the time left for work that does not report how far it is, such as a search or reading a file."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import IO, Any, Self

_DELAY_S = 1.0
_BETWEEN_UPDATES_S = 0.2


class Waiting:
    """Shows a bar on standard error while the `with` block takes longer than a second.

    what: what is done, such as "searching". fraction: returns how much of it is done, 0 to 1. limit_s: the work ends
    after this time at the latest, in seconds. With neither, the bar shows only how long it has taken. Nothing is shown
    if standard error is not a terminal, or without the package rich.
    """

    def __init__(
        self, what: str, *, fraction: Callable[[], float] | None = None, limit_s: float | None = None
    ) -> None:
        self.what = what if limit_s is None or fraction else f"{what}, at most {limit_s:g} s"
        self._fraction = fraction
        self._limit_s = limit_s
        self._ended = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        if sys.stderr is not None and sys.stderr.isatty():
            self._thread = Thread(target=self._show, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self) -> None:
        began = time.monotonic()
        if self._ended.wait(_DELAY_S):
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        except ImportError:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
        with Progress(*columns, transient=True, console=Console(stderr=True)) as bar:
            task = bar.add_task(self.what, total=None if self._done(began) is None else 1.0)
            while not self._ended.is_set():
                bar.update(task, completed=self._done(began) or 0.0)
                self._ended.wait(_BETWEEN_UPDATES_S)

    def _done(self, began: float) -> float | None:
        """Return how much is done, None if that is not known."""
        if self._fraction is not None:
            return self._fraction()
        if not self._limit_s:
            return None
        return min(1.0, (time.monotonic() - began) / self._limit_s)


def reading(file: IO[Any], source: str) -> Waiting:
    """Return the bar for reading a file, which follows the position in it; `source` is its name."""
    try:
        number = file.fileno()
        size = os.fstat(number).st_size
    except OSError:  # standard input that was kept in memory
        return Waiting(f"reading {source}")
    return Waiting(
        f"reading {source}", fraction=lambda: min(1.0, os.lseek(number, 0, os.SEEK_CUR) / max(size, 1))
    )
