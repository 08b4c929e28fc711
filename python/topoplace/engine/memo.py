"""A cache of limited size that drops its older half when full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

Key = TypeVar("Key")
Value = TypeVar("Value")

_LIMIT = 1 << 16
_MISSING: Final = object()


def _nothing() -> None:
    pass


class Memo(dict[Key, Value]):
    """A cache dictionary of limited size; when it is full, inserting drops the older half of its entries.

    Several threads may use it, also without Python's lock: entries that another thread drops or adds cause no error.
    """

    def __init__(self, limit: int = _LIMIT, forgot: Callable[[], None] = _nothing) -> None:
        """Store at most `limit` entries; call `forgot` whenever entries were dropped."""
        super().__init__()
        self._limit = limit
        self._forgot = forgot

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= self._limit:
            # Without Python's lock, only `copy` is one step for subclasses of dict: others may add meanwhile.
            for oldest in list(self.copy())[: self._limit // 2]:
                self.pop(oldest, None)
            self._forgot()
        super().__setitem__(key, value)

    def get_or_build(self, key: Key, build: Callable[[], Value]) -> Value:
        """Return the cached value of this key; if it is missing, call `build` and cache its result."""
        found: Any = self.get(key, _MISSING)  # one look: another thread may drop the key after a test for it
        if found is _MISSING:
            found = build()
            if len(self) < self._limit:
                super().__setitem__(key, found)
            else:
                self[key] = found
        value: Value = found
        return value
