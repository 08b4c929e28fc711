"""Dictionaries that iterate in the order of Python 2, on which SC'17's published simulator depends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

V = TypeVar("V")

_LEAST_SLOTS = 8
_LARGE = 50000


class IntDict(Generic[V]):
    """A dictionary of non-negative integer keys that iterates in the order of CPython 2.7.

    It is a hash table with open addressing. A key's low bits give its first slot; if that is in use, all its bits
    determine the next slots to try. A deleted key leaves a mark, which a search skips and an insertion reuses. At two
    thirds full, the table is rebuilt.
    """

    def __init__(self) -> None:
        self._slots: list[int | None] = [None] * _LEAST_SLOTS
        self._filled = 0  # slots in use or marked
        self._values: dict[int, V] = {}

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[int]:
        return iter([key for key in self._slots if key is not None and key != _DELETED])

    def __getitem__(self, key: int) -> V:
        return self._values[key]

    def __contains__(self, key: int) -> bool:
        return key in self._values

    def __setitem__(self, key: int, value: V) -> None:
        if key not in self._values:
            slot = self._slot(key)
            self._filled += self._slots[slot] is None
            self._slots[slot] = key
        self._values[key] = value
        if self._filled * 3 >= len(self._slots) * 2:
            self._rebuild(len(self._values) * (2 if len(self._values) > _LARGE else 4))

    def __delitem__(self, key: int) -> None:
        del self._values[key]
        self._slots[self._slots.index(key)] = _DELETED

    def _slot(self, key: int) -> int:
        """Return the slot for a new key: the first in its probe sequence that was deleted, else the first empty one."""
        mask = len(self._slots) - 1
        index = bits = key
        deleted: int | None = None
        while (found := self._slots[index & mask]) is not None:
            if found == _DELETED and deleted is None:
                deleted = index & mask
            index = index * 5 + bits + 1
            bits >>= 5
        return index & mask if deleted is None else deleted

    def _rebuild(self, more_than: int) -> None:
        keys = list(self)
        size = _LEAST_SLOTS
        while size <= more_than:
            size *= 2
        self._slots = [None] * size
        self._filled = len(keys)
        for key in keys:
            self._slots[self._slot(key)] = key


_DELETED = -1


def copied(keys: Sequence[int]) -> list[int]:
    """Return `keys` in the order in which Python 2 iterates over a dictionary into which they were inserted in turn."""
    copy = IntDict[None]()
    for key in keys:
        copy[key] = None
    return list(copy)
