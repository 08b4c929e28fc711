"""A bar with the time left, for anything that may take longer than a second; it needs the package rich."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from threading import Event, Thread
from types import TracebackType
from typing import Self

_DELAY_S = 1.0
_BETWEEN_UPDATES_S = 0.2


class Progress:
    """A bar on standard error, shown once the `with` block takes longer than a second.

    what: the name of the work, such as "searching". fraction: returns the share of the work that is done, 0 to 1.
    limit_s: the work ends after this many seconds at the latest. With neither, the bar shows only the elapsed time.
    enabled: whether to show the bar; None means on terminals only. Without the package rich, nothing is shown.
    """

    def __init__(
        self,
        what: str,
        *,
        fraction: Callable[[], float] | None = None,
        limit_s: float | None = None,
        enabled: bool | None = None,
    ) -> None:
        self.what = what if limit_s is None or fraction else f"{what}, at most {limit_s:g} s"
        self._fraction = fraction
        self._limit_s = limit_s
        self._enabled = enabled
        self._ended = Event()
        self._thread: Thread | None = None

    def __enter__(self) -> Self:
        on_terminal = sys.stderr is not None and sys.stderr.isatty()
        if on_terminal if self._enabled is None else self._enabled:
            self._thread = Thread(target=self._show, args=(self._done(time.monotonic()),), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _show(self, before: float | None) -> None:
        """Show the bar until the work ends; the time left follows from what is done after `before`."""
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
            task = bar.add_task(self.what, total=None if before is None else 1.0)
            bar.update(
                task, completed=before or 0.0
            )  # rich ignores the first step where it measures the speed
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
