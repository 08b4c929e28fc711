"""Unions of partitions (fixed GPU sets), at most one of each machine, that have a wanted number of GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")
Groups = Sequence[Sequence[tuple[int, Item]]]
"""The partitions of each machine, as pairs: number of GPUs, and the partition in any form."""


def largest_union(groups: Groups[Item], most: int) -> int:
    """Return the largest number of GPUs, at most `most`, that a union of partitions has; 0 if all are larger."""
    return _sums(groups, most)[0].bit_length() - 1


def unions(groups: Groups[Item], least: int, most: int) -> Iterator[list[Item]]:
    """Yield every union of partitions that has `least` to `most` GPUs in all, as the list of its partitions.

    Earlier machines, and earlier partitions of a machine, are preferred. The search meets no dead ends: the time
    between two results grows only with the number of partitions.
    """
    sums = _sums(groups, most)
    wanted = (1 << most + 1) - (1 << max(least, 0))

    def possible(machine: int, total: int) -> bool:
        return bool(sums[machine] << total & wanted)

    stack: list[tuple[int, int, tuple[Item, ...]]] = [(0, 0, ())] if possible(0, 0) else []
    while stack:
        machine, total, chosen = stack.pop()
        if machine == len(groups):
            yield list(chosen)
            continue
        after = [(total, chosen)]
        after += ((total + size, (*chosen, part)) for size, part in reversed(groups[machine]))
        stack.extend((machine + 1, added, union) for added, union in after if possible(machine + 1, added))


def _sums(groups: Groups[Item], most: int) -> list[int]:
    """Return, for the machines from each one on, a bit mask of the numbers of GPUs, 0..most, that unions can have."""
    within = (1 << most + 1) - 1
    sums = [1]
    for group in reversed(groups):
        sums.append(sums[-1])
        for size in {size for size, _ in group}:
            sums[-1] |= sums[-2] << size & within
    return sums[::-1]
