"""A dict for what can be made again."""

from __future__ import annotations

from typing import TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_MOST = 1 << 16


class Bounded(dict[Key, Value]):
    """Forgets everything when it is full, so that what is kept for speed cannot grow for ever."""

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= _MOST:
            self.clear()
        super().__setitem__(key, value)
