"""Logs as lines of JSON: the time in seconds since 1970, the event, and its fields."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

Log = Callable[..., None]
"""Writes one event: its name, and fields by name."""


def to_stderr(event: str, **fields: Any) -> None:
    """Write one line to standard error; characters outside ASCII, and line breaks in names, are escaped."""
    line = {"time": round(time.time(), 3), "event": event, **fields}
    sys.stderr.write(f"{json.dumps(line, default=str)}\n")  # at once: other threads write, too
    sys.stderr.flush()


def nowhere(event: str, **fields: Any) -> None:
    """Write nothing."""
