"""Interrupts at chosen lines of modules."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any


def interrupt_at(line: int, *modules: str) -> Callable[..., Any]:
    """Return a trace function that raises KeyboardInterrupt at a line of modules, counted as they run.

    modules: how the names of their files end.
    """
    left = line

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        nonlocal left
        if not frame.f_code.co_filename.endswith(modules):
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise KeyboardInterrupt
        return trace

    return trace
