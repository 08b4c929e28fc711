"""A progress bar for simulations that take more than a second; it needs the package rich."""

from __future__ import annotations

import time
from threading import Lock, Timer
from types import TracebackType
from typing import Any, Self

_DELAY_SECONDS = 1.0
_UPDATES_PER_CHECK = 64


class Progress:
    """A progress bar on standard error that appears once a simulation has taken a second.

    total: number of jobs (or simulations) to finish. enabled: False, or a missing package rich, shows nothing. every:
    number of updates per look at the clock; with 1, each step may be long, and in a `with` block the bar appears after
    a second even if none is finished. done: how many were finished before.
    """

    def __init__(self, total: int, *, enabled: bool, every: int = _UPDATES_PER_CHECK, done: int = 0) -> None:
        self._total = total
        self._enabled = enabled
        self._every = every
        self._done = done
        self._lock = Lock()
        self._timer: Timer | None = None
        self._updates = 0
        self._started = time.monotonic() if enabled else 0.0
        self._bar: Any = None
        self._task: Any = None

    def update(self, done: int) -> None:
        """Show that `done` jobs are finished."""
        if not self._enabled:
            return
        self._updates += 1
        if self._updates % self._every:
            return
        with self._lock:
            if self._bar is None and time.monotonic() - self._started > _DELAY_SECONDS:
                self._open(done)
            self._done = done
            if self._bar is not None:
                self._bar.update(self._task, completed=done)

    def _open_in_time(self) -> None:
        with self._lock:
            if self._bar is None and self._timer is not None:
                self._open(self._done)

    def _open(self, done: int = 0) -> None:
        """Show the bar; the time left follows from what is finished after the first `done` jobs."""
        try:
            from rich.console import Console
            from rich.progress import Progress as Bar
        except ImportError:
            self._enabled = False
            return
        self._bar = Bar(transient=True, console=Console(stderr=True))
        self._task = self._bar.add_task("simulating", total=self._total, completed=done)
        self._bar.start()

    def __enter__(self) -> Self:
        if self._enabled and self._every == 1:
            self._timer = Timer(max(0.0, _DELAY_SECONDS), self._open_in_time)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._bar is not None:
                self._bar.stop()
