"""Limits for several searches together: a deadline for all searches of a thread, and a budget of search tree nodes."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from threading import local
from typing import TypeVar

from topoplace import _checks, _core
from topoplace.errors import DeadlineError
from topoplace.kernels.arguments import INT64_MAX, node_limit

_T = TypeVar("_T")
_ITEMS_A_LOOK = 256
"""Items between two readings of the clock; an item takes microseconds."""


class _Ends(local):
    end: float | None = None


_ends = _Ends()


@contextmanager
def deadline(seconds: float) -> Generator[None]:
    """Open a block in which every search of this thread raises DeadlineError once this many seconds have passed.

    A search that is cut short returns no answer, so that no caller caches an incomplete one. The deadline of a
    surrounding block also holds.
    """
    before = _ends.end
    end = time.monotonic() + seconds
    try:
        _set(end if before is None else min(end, before))
        yield
    finally:
        _set(before)


class Countdown:
    """The time left for several steps that share one limit."""

    def __init__(self, seconds: float | None) -> None:
        """Start now; seconds: the time limit, None for no limit."""
        self._end = math.inf if seconds is None else time.monotonic() + seconds

    @property
    def left(self) -> float | None:
        """Return the remaining seconds, at least 0; None for no limit."""
        return None if self._end == math.inf else max(0.0, self._end - time.monotonic())

    @property
    def half(self) -> float | None:
        """Return half of the remaining seconds; None for no limit."""
        return None if (left := self.left) is None else left / 2

    @property
    def is_up(self) -> bool:
        """Return True if no time is left."""
        return self.left == 0

    def block(self) -> AbstractContextManager[None]:
        """Return a block in which every search raises DeadlineError once no time is left."""
        return nullcontext() if (left := self.left) is None else deadline(left)


def check_deadline() -> None:
    """Raise DeadlineError if the deadline of the surrounding block has passed; do nothing outside such a block."""
    if _ends.end is not None and time.monotonic() >= _ends.end:
        raise DeadlineError("the time for this decision is up")


def until_deadline(items: Iterable[_T]) -> Iterator[_T]:
    """Yield the items, for loops over all jobs or machines; raise DeadlineError once the deadline of the block has
    passed.
    """
    left = iter(items)
    while some := list(islice(left, _ITEMS_A_LOOK)):
        yield from some
        if len(some) == _ITEMS_A_LOOK:
            check_deadline()


def _set(end: float | None) -> None:
    _ends.end = end
    _core.set_deadline(None if end is None else end - time.monotonic())


class WorkBudget:
    """Search tree nodes that several searches may visit together: at least 0, or None for no limit."""

    __slots__ = ("_left",)

    def __init__(self, nodes: int | None = None) -> None:
        self._left = (
            None if nodes is None else _checks.integer(nodes, "nodes", ValueError, low=0, high=INT64_MAX)
        )

    @property
    def left(self) -> int | None:
        """Return the number of nodes left; None if there is no limit."""
        return self._left

    @property
    def spent(self) -> bool:
        """Return True if no node is left."""
        return self._left == 0

    def limit(self, max_nodes: int | None) -> int | None:
        """Return the node limit of the next search: the smaller of `max_nodes` and the remaining nodes."""
        max_nodes = node_limit(max_nodes)
        if self._left is None or max_nodes is None:
            return max_nodes if self._left is None else self._left
        return min(max_nodes, self._left)

    def charge(self, nodes: int) -> None:
        """Subtract the nodes that a search visited."""
        nodes = _checks.integer(nodes, "nodes", ValueError, low=0, high=INT64_MAX)
        if self._left is not None:
            self._left = max(0, self._left - nodes)
