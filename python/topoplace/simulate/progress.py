"""A progress bar for simulations that take more than a second; it needs the package rich."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any, Self

_DELAY_SECONDS = 1.0
_UPDATES_PER_CHECK = 64


class Progress:
    """A progress bar on standard error that appears once a simulation has taken a second.

    total: number of jobs (or simulations) to finish. enabled: False, or a missing package rich, shows nothing. every:
    number of updates per look at the clock.
    """

    def __init__(self, total: int, *, enabled: bool, every: int = _UPDATES_PER_CHECK) -> None:
        self._total = total
        self._enabled = enabled
        self._every = every
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
        if self._bar is None and time.monotonic() - self._started > _DELAY_SECONDS:
            self._open(done)
        if self._bar is not None:
            self._bar.update(self._task, completed=done)

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
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
