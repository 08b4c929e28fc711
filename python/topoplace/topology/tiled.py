"""Lazy sequences of the GPUs, links or partitions of a whole cluster, made from its machine templates."""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar, cast, overload

Item = TypeVar("Item")
_MAX_SHOWN = 3


class TiledSequence(Sequence[Item], Generic[Item]):
    """The items of all machines in one sequence; each item is made on access from an item of its machine's template."""

    def __init__(
        self,
        template_of: Sequence[int],
        items: Sequence[Sequence[Any]],
        make: Callable[[int, Any], Item],
    ) -> None:
        """Store the arguments; machine i has `make(i, item)` for each item of its template, `items[template_of[i]]`."""
        self._template_of, self._items, self._make = template_of, items, make
        sizes = [len(found) for found in items]
        self._ends = tuple(accumulate(sizes[template] for template in template_of))

    def __len__(self) -> int:
        return self._ends[-1]

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(index, slice):
            return tuple(self[i] for i in range(*index.indices(len(self))))
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} of {len(self)}")
        place = index % len(self)
        machine = bisect_right(self._ends, place)
        items = self._items[self._template_of[machine]]
        return self._make(machine, items[place - self._ends[machine] + len(items)])

    def __iter__(self) -> Iterator[Item]:
        for machine, template in enumerate(self._template_of):
            for item in self._items[template]:
                yield self._make(machine, item)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | TiledSequence):
            return NotImplemented
        items = cast("Sequence[object]", other)
        return len(self) == len(items) and all(map(operator.eq, self, items))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:_MAX_SHOWN]))
        return f"({shown}{f', … {len(self)} in all' if len(self) > _MAX_SHOWN else ''})"
