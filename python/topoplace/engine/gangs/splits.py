"""The machines that share a job: in a given order, or the fewest ones, the closest in the network first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.gangs.offers import Ints, MachineOffer, Offers
from topoplace.engine.machines.machine_class import Mask

if TYPE_CHECKING:
    from topoplace.topology.fabric import Fabric

MAX_SPLITS = 16
"""Maximum number of splits over machines that are tried per job."""
_MAX_ADDED = 1 << 14
"""Limit on offers times GPUs of the job in the search for partitions that add up."""
MachineSplit = list[tuple[int, Mask]]
"""The machines that share a job, each with its offered GPUs; together at least one GPU per task.

For an anti-affine job, there is one machine per task, each with the GPUs of which the task gets one.
"""


def fill(offers: Iterable[MachineOffer], size: int, *, anti_affine: bool = False) -> MachineSplit | None:
    """Return the split of a job that accepts offers in the given order until it has at least `size` GPUs, else None.

    A machine whose GPUs are only allocated in fixed partitions contributes its largest partition that does not exceed
    the GPUs still needed. anti_affine: accept each offer for one GPU.
    """
    split: MachineSplit = []
    left = size
    for offer in offers:
        mask = offer.single_gpus if anti_affine else offer.gpus_for(left)
        if mask:
            split.append((offer.machine, mask))
            left -= 1 if anti_affine else min(left, mask.bit_count())
            if not left:
                return split
    return None


def in_order(offers: Sequence[MachineOffer], size: int, *, anti_affine: bool) -> Iterator[MachineSplit]:
    """Yield at most one split of a job of `size` GPUs: over the offers in the given order, else largest offers first.

    The second order is tried because fixed GPU partitions may add up to `size` only then.
    """
    split = fill(offers, size, anti_affine=anti_affine)
    split = split or fill(_largest_first(offers), size, anti_affine=anti_affine)
    if split:
        yield split


def smallest_first(offers: Sequence[MachineOffer]) -> Sequence[MachineOffer]:
    """Return the offers by size, ties by machine."""
    if isinstance(offers, Offers):
        return offers.smallest_first()
    return sorted(offers, key=lambda offer: (offer.size, offer.machine))


def nearest(
    offers: Sequence[MachineOffer], size: int, fabric: Fabric | None, *, anti_affine: bool = False
) -> Iterator[MachineSplit]:
    """Yield splits of a job of `size` GPUs: first over the fewest machines, the closest in the network first.

    Splits over more machines follow, by number of machines and then by offered GPUs.
    Closeness is the innermost fabric level with a domain that contains all machines of the split. Ties go to the domain
    with the fewest offered GPUs, then to the lowest machine number. There is no split if the offers are too small.
    """
    if isinstance(offers, Offers) and offers.is_simple and not anti_affine:
        yield from _nearest_of_columns(offers, size, fabric)
        return
    overall = _fewest(offers, size, anti_affine)
    if overall is None:
        return
    more: list[tuple[tuple[int, int, int], MachineSplit]] = []
    for groups in _domains(offers, fabric):
        for rank, split in sorted(_ranked(groups, size, anti_affine), key=lambda entry: entry[0]):
            if len(split) == len(overall):
                yield split
            else:
                more.append((rank, split))
    yield overall
    for _, split in sorted(more, key=lambda entry: entry[0]):
        yield split


def adding_up(offers: Sequence[MachineOffer], size: int) -> MachineSplit | None:
    """Return the split over the fewest machines whose numbers of tasks add up to `size`; None without one.

    A machine with partitions gets as many tasks as one partition has GPUs. A machine without partitions may get any
    number of tasks, fewer than its offered GPUs. If offers times GPUs are many, only the first offers are used.
    """
    fewest: dict[int, list[tuple[MachineOffer, int]]] = {0: []}
    for offer in offers[: max(_MAX_ADDED // size, 1)]:
        sizes = {part.bit_count() for part in offer.partitions} if offer.partitions else range(1, size + 1)
        possible = [count for count in sizes if count <= offer.max_tasks]
        for total, split in sorted(fewest.items(), reverse=True):
            for count in possible:
                known = fewest.get(total + count)
                if total + count <= size and (known is None or len(known) > len(split) + 1):
                    fewest[total + count] = [*split, (offer, count)]
    if size not in fewest:
        return None
    return [(offer.machine, offer.gpus_for(count)) for offer, count in fewest[size]]


def _ranked(
    groups: Iterable[Sequence[MachineOffer]], size: int, anti_affine: bool
) -> Iterator[tuple[tuple[int, int, int], MachineSplit]]:
    for group in groups:
        room = sum(one.size for one in group)
        if room >= size and (split := _fewest(group, size, anti_affine)):
            yield (len(split), room, group[0].machine), split


def _domains(offers: Sequence[MachineOffer], fabric: Fabric | None) -> Iterator[list[Sequence[MachineOffer]]]:
    """Yield for each fabric level, innermost first, the offers grouped by the machine's domain.

    A level of rails yields an empty list, since its domains contain GPUs instead of whole machines. Machines without a
    domain at a level are in no group.
    """
    for level in fabric.levels if fabric else ():
        groups: dict[str, list[MachineOffer]] = {}
        for offer in offers:
            domain = level.domains[offer.machine]
            if domain is not None and not level.rail:
                groups.setdefault(domain, []).append(offer)
        yield list(groups.values())


def _fewest(offers: Sequence[MachineOffer], size: int, anti_affine: bool) -> MachineSplit | None:
    """Return a split over few machines, the fewest unless GPUs come in fixed partitions; None if offers are too small.

    It takes the largest offers first, but for the last part of the job the smallest offer that suffices. For an
    anti-affine job, it takes one GPU from each of the machines with the smallest offers.
    """
    if anti_affine:
        return fill(smallest_first(offers), size, anti_affine=True)
    split = fill(_largest_first(offers), size)
    if split is None:
        return None
    left = size - sum(mask.bit_count() for _, mask in split[:-1])
    used = {machine for machine, _ in split[:-1]}
    tight = [offer for offer in offers if offer.machine not in used and offer.size >= left]
    last = fill(sorted(tight, key=lambda offer: (offer.size, offer.machine)), left)
    if last is not None and len(last) == 1:
        split[-1] = last[0]
    return split


def _largest_first(offers: Iterable[MachineOffer]) -> list[MachineOffer]:
    return sorted(offers, key=lambda offer: (-offer.size, offer.machine))


# ---- the same for offers in columns -----------------------------------------------------------------------------


def _nearest_of_columns(offers: Offers, size: int, fabric: Fabric | None) -> Iterator[MachineSplit]:
    """Yield the splits of `nearest` for a job without anti-affinity, on machines without partitions."""
    if offers.sizes.sum() < size:
        return
    overall, _, _ = by_domain(offers, np.zeros(len(offers), dtype=np.int64), size)
    more: list[tuple[tuple[int, int, int], Ints]] = []
    for level in fabric.levels if fabric else ():
        if level.rail:
            continue
        codes = level.codes[offers.machines]
        inside = np.flatnonzero(codes >= 0)
        counts, rooms, firsts = by_domain(offers.at(inside), codes[inside], size)
        possible = np.flatnonzero(rooms >= size)
        for domain in possible[np.lexsort((firsts[possible], rooms[possible], counts[possible]))].tolist():
            rank = (int(counts[domain]), int(rooms[domain]), int(firsts[domain]))
            its = np.flatnonzero(codes == domain)
            if rank[0] == overall[0]:
                yield _fewest_of_columns(offers.at(its), size)
            else:
                more.append((rank, its))
    yield _fewest_of_columns(offers, size)
    for _, its in sorted(more, key=lambda entry: entry[0]):
        yield _fewest_of_columns(offers.at(its), size)


def by_domain(offers: Offers, codes: Ints, size: int) -> tuple[Ints, Ints, Ints]:
    """Return, by domain, the smallest number of machines with room for the job, the offered GPUs, and the first
    machine.

    codes: the domain of each offer. The number of machines has no meaning in a domain without enough room.
    """
    num_domains = int(codes.max(initial=-1)) + 1
    rooms = np.bincount(codes, weights=offers.sizes, minlength=num_domains).astype(np.int64)
    firsts = np.zeros(num_domains, dtype=np.int64)
    firsts[codes[::-1]] = offers.machines[::-1]
    counts, left = np.zeros(num_domains, dtype=np.int64), np.full(num_domains, size, dtype=np.int64)
    for gpus in (
        np.flatnonzero(np.bincount(offers.sizes)[1:])[::-1] + 1
    ):  # without offers of partitions too large
        of_size = np.bincount(codes[offers.sizes == gpus], minlength=num_domains)
        taken = np.minimum(of_size, -(-left // gpus))
        counts += taken
        left = np.maximum(left - taken * gpus, 0)
    return counts, rooms, firsts


def _fewest_of_columns(offers: Offers, size: int) -> MachineSplit:
    """Return the split of `_fewest`; the offers have room for the job."""
    order = np.argsort(-offers.sizes, kind="stable")
    total = np.cumsum(offers.sizes[order])
    last = int(np.searchsorted(total, size))
    left = size - int(total[last] - offers.sizes[order[last]])
    others = order[last:]
    tight = others[offers.sizes[others] >= left]
    chosen = [*order[:last].tolist(), int(min(tight, key=lambda at: (offers.sizes[at], at)))]
    split: MachineSplit = []
    for position in chosen:
        offer = offers[position]
        mask = offer.gpus_for(size)
        split.append((offer.machine, mask))
        size -= min(size, mask.bit_count())
    return split
