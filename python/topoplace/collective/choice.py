"""The set of free GPUs whose rings carry the most; of sets that tie, the one that costs other jobs the least."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.collective.prepared import gpu_numbers
from topoplace.collective.rated_sets import (
    Masks,
    RatedSets,
    SetChoice,
    Wanted,
    grade_floor,
    grades,
    mask_of,
    masks_of,
    members_of,
    rated_sets,
)
from topoplace.topology.links.nccl_rates import Rates
from topoplace.topology.topology import Topology

_MOST_SETS = 13_000
"""Limit on the sets that are all rated, enough for all sets of 8 of 16 GPUs."""


def left_bandwidth(topology: Topology, free: Collection[int], *, rates: Rates | str = DEFAULT_RATES) -> float:
    """Return the sum over set sizes of the best GB/s among the GPUs in `free`, on a machine of up to 64 GPUs.

    For each size from 2 on, the `ring_bandwidth` of the best set of this size counts. Sizes stop before the machine has
    more than 4,096 sets: machines of up to 12 GPUs count all sizes, 16 GPUs sizes 2 to 4, and 64 GPUs only pairs.

    Raises:
        ValueError: Names a wrong GPU.
    """
    numbers = gpu_numbers(topology, free, "free")
    return float(rated_sets(topology, rates).left(mask_of(numbers), np.zeros(1, np.uint64))[0])


def best_set(topology: Topology, wanted: Wanted, *, rates: Rates | str = DEFAULT_RATES) -> SetChoice | None:
    """Return the best set of GPUs of a machine of up to 64 GPUs; None if there are too few.

    The best set has the largest `ring_bandwidth`, in steps of 10 %. Ties go to the set with the smallest loss of the
    others' `left_bandwidth`, then to the smallest GPU list. Of more than 13,000 sets, only a few are rated.
    """
    sets = rated_sets(topology, rates)
    known = sets.choices.get(wanted)
    if known is None:
        known = _best(sets, topology.num_gpus, wanted)
        sets.keep(wanted, known)
    return known


def ranked_sets(
    topology: Topology, wanted: Wanted, *, rates: Rates | str = DEFAULT_RATES
) -> Iterator[SetChoice]:
    """Yield the sets that `best_set` compares, best first."""
    sets = rated_sets(topology, rates)
    masks, known, exact = _candidates(sets, topology.num_gpus, wanted)
    found = sets.gb_per_s(masks) if known is None else known
    graded = grades(found) if wanted.by_rings else np.zeros(len(masks))
    for grade in np.unique(graded)[::-1].tolist():
        tied = np.flatnonzero(graded == grade)
        lost = sets.lost(wanted.stays, masks[tied])
        for i in np.argsort(lost, kind="stable").tolist():
            yield SetChoice(members_of(int(masks[tied[i]])), float(found[tied[i]]), float(lost[i]), exact)


def _best(sets: RatedSets, num_gpus: int, wanted: Wanted) -> SetChoice | None:
    masks, found, exact = _candidates(sets, num_gpus, wanted)
    if not len(masks):
        return None
    if wanted.by_rings:
        if found is None:
            masks, found = sets.fastest(masks)
        else:
            tied = found >= grade_floor(float(found.max()))
            masks, found = masks[tied], found[tied]
    lost = sets.lost(wanted.stays, masks)
    i = int(lost.argmin())
    gb_per_s = sets.gb_per_s(masks[i : i + 1])[0] if found is None else found[i]
    return SetChoice(members_of(int(masks[i])), float(gb_per_s), float(lost[i]), exact)


def _candidates(
    sets: RatedSets, num_gpus: int, wanted: Wanted
) -> tuple[Masks, NDArray[np.float64] | None, bool]:
    """Return sets in the order of their GPU lists, their GB/s if these are known, and True if these are all sets."""
    size, free, required = wanted.size, wanted.free, wanted.required
    spare, others = size - required.bit_count(), free & ~required
    if spare < 0 or required & ~free or others.bit_count() < spare:
        return np.zeros(0, np.uint64), None, True
    if size in sets.listed_sizes:
        masks, rates = sets.listed(size)
        inside = np.flatnonzero((masks | np.uint64(free)) == np.uint64(free))
        if required:
            inside = inside[(masks[inside] & np.uint64(required)) == np.uint64(required)]
        return masks[inside], rates[inside], True
    members = members_of(others)
    if math.comb(len(members), spare) <= _MOST_SETS:
        return masks_of(members, spare) | np.uint64(required), None, True
    return _near_sets(sets, members, spare, required, num_gpus), None, False


def _near_sets(sets: RatedSets, members: tuple[int, ...], spare: int, required: int, num_gpus: int) -> Masks:
    """Return the lowest GPUs, and for each GPU the set that grows from it, the fastest pairs first."""
    pair_rates = _pair_rates(sets, num_gpus)
    found = {mask_of(members[:spare]) | required}
    for first in members:
        chosen = [first, *members_of(required)]
        left = [gpu for gpu in members if gpu != first]
        for _ in range(spare - 1):
            gain = pair_rates[np.ix_(left, chosen)].sum(axis=1)
            chosen.append(left.pop(int(gain.argmax())))
        found.add(mask_of(chosen))
    return np.array(sorted(found, key=members_of), dtype=np.uint64)


def _pair_rates(sets: RatedSets, num_gpus: int) -> NDArray[np.float64]:
    matrix = np.zeros((num_gpus, num_gpus))
    masks, gb_per_s = sets.listed(2)
    for mask, rate in zip(masks.tolist(), gb_per_s.tolist(), strict=True):
        u, v = members_of(mask)
        matrix[u, v] = matrix[v, u] = rate
    return matrix
