"""How the time of a call grows with its input; unlike seconds, that says the same on any machine."""

from __future__ import annotations

import gc
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_TIMES: Final = 8
_MOST: Final = 24
"""Eight times the input may take three times as long as it would if time grew with the input; 64 is quadratic."""
_LEAST_SECONDS: Final = 0.01
"""Shorter times count as this long, as they are mostly noise."""


def assert_linear(call: Callable[[int], object], size: int) -> None:
    """Assert that the CPU time of a call grows about as its input does, from an eighth of `size` to `size`."""
    small, large = (min(_cpu_seconds(call, one) for _ in range(3)) for one in (size // _TIMES, size))
    growth = large / max(small, _LEAST_SECONDS)
    assert growth < _MOST, f"{_TIMES} times the input takes {growth:.0f} times as long"


def _cpu_seconds(call: Callable[[int], object], size: int) -> float:
    gc.collect()
    gc.disable()  # its passes grow with all that other tests have left
    start = time.process_time()
    try:
        call(size)
    finally:
        gc.enable()
    return time.process_time() - start
