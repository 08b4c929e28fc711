"""Waiting in tests for what other threads and processes do."""

from __future__ import annotations

import time
from collections.abc import Callable

WAIT = 120.0
"""Seconds in which anything happens, also on a busy machine."""


def until(done: Callable[[], object], what: str = "") -> None:
    """Wait until something is so; AssertionError that says `what` is missing if it takes longer than WAIT."""
    end = time.monotonic() + WAIT
    while not done():
        assert time.monotonic() < end, what or "it took too long"
        time.sleep(0.005)
