"""Sets of GPUs that a job may get together: one GPU of each machine, and unions of partitions of several machines."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from topoplace.topology.topology import Topology

_MAX_SETS = 256
_MAX_SEEDS = 64


def by_machine(gpus: Iterable[int], topology: Topology) -> Mapping[int, list[int]]:
    """Return the given GPUs of each machine, by machine number."""
    groups: dict[int, list[int]] = {}
    machine_of = topology.machine_of
    for gpu in gpus:
        groups.setdefault(int(machine_of[gpu]), []).append(gpu)
    return groups


def one_per_machine(gpus: Sequence[int], topology: Topology) -> list[tuple[int, ...]]:
    """Return sets of one of `gpus`, which are ascending, from each of their machines; the lowest ones first.

    GPUs of a machine are of one kind if they have equal links to other machines; only the lowest GPU of a kind is used.
    If there are at most 256 sets of such GPUs, all are returned. Otherwise there is one set for each of up to 64 kinds,
    such as a rail: from each machine, the GPU of this kind, or the one with the fastest link to the set's first GPU.
    """
    groups = by_machine(gpus, topology).values()
    keys = topology.pairs.attachments
    if keys is None:
        return [tuple(group[0] for group in groups)]
    kinds = [{keys[gpu]: gpu for gpu in reversed(group)} for group in groups]
    lowest_first = [sorted(kind.values()) for kind in kinds]
    if math.prod(map(len, kinds)) <= _MAX_SETS:
        return list(product(*lowest_first))
    seeds: dict[Hashable, int] = {}
    for group in lowest_first:
        for gpu in group:
            seeds.setdefault(keys[gpu], gpu)
    lowest = tuple(group[0] for group in lowest_first)
    near = (_nearest(kind, seed, kinds, topology) for kind, seed in islice(seeds.items(), _MAX_SEEDS))
    return list(dict.fromkeys((lowest, *near)))


def _nearest(
    kind: Hashable, seed: int, kinds: Sequence[Mapping[Hashable, int]], topology: Topology
) -> tuple[int, ...]:
    """Return, for each machine, its GPU of this kind, or else the one with the fastest link to `seed`."""

    def speed(gpu: int) -> tuple[float, int]:
        return topology.link(seed, gpu).gb_per_s, -gpu

    return tuple(own[kind] if kind in own else max(own.values(), key=speed) for own in kinds)


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
