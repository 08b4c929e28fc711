"""Sets of one GPU of each machine, for jobs whose tasks must not share a machine."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice, product
from typing import TYPE_CHECKING

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
