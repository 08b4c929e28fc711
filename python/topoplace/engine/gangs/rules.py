"""The requirements of a job on the machines that share it: levels of the fabric, their number, equal local GPUs."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, islice
from math import comb
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace.engine import admission
from topoplace.engine.admission import needs_of, never
from topoplace.engine.gangs.offers import Offers, idle_offers
from topoplace.engine.gangs.splits import MAX_SPLITS, MachineSplit, adding_up, by_domain, nearest
from topoplace.engine.machines.machine_class import Mask, mask_of, members
from topoplace.errors import SearchTimeoutError
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import Ints, MaxTasks
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.fabric import Fabric, Level

Splits = Callable[[Offers], Iterable[MachineSplit]]
"""Function that returns the ways to split a job over the machines of some offers, best first."""
_MAX_MASKS: Final = 16
"""Limit on the sets of local GPUs that are tried for each number of GPUs per machine, for a job with `same_gpus`."""
_FEW_GPUS: Final = 16
"""Largest number of local GPUs whose sets are all counted in a table."""
_MAX_SUBSETS: Final = 1 << 12
"""On a machine with more subsets of one size than this, only the lowest GPUs are tried."""


def nearest_of(request: JobRequest, view: ClusterView) -> Splits:
    """Return the rule that splits the job over the fewest machines, the nearest first; see `nearest`."""
    fabric = view.cluster.topology.fabric
    return lambda offers: nearest(offers, request.size, fabric, anti_affine=request.anti_affine)


def allowed_splits(
    request: JobRequest, offers: Offers, view: ClusterView, splits_of: Splits
) -> Iterator[MachineSplit]:
    """Yield the splits that meet the job's requirements on its machines, best first.

    splits_of: the policy's rule; without requirements, its splits are yielded as they are. Otherwise there is one split
    for each domain of the level `within`, or of the preferred level: over the fewest machines first, then in the domain
    with the fewest offered GPUs. If the preferred level has no split, splits over all machines follow.
    """
    job, fabric = request.job, view.cluster.topology.fabric
    if not (request.limits_machines or job.prefer):
        yield from splits_of(offers)
        return
    seen: set[frozenset[int]] = set()
    for levels in ([job.within, job.prefer], [job.within]) if job.prefer else ([job.within],):
        named = [_level(fabric, name) for name in levels if name]
        for split in _best_first(_domains(offers, named, request), request, view, splits_of):
            machines = frozenset(machine for machine, _ in split)
            if machines not in seen:
                seen.add(machines)
                yield split


def _best_first(
    domains: Iterable[_Domain], request: JobRequest, view: ClusterView, splits_of: Splits
) -> Iterator[MachineSplit]:
    """Yield the best split of each domain: over the fewest machines first, then by room, then by first machine.

    domains: by `least_rank`. A domain is looked into only when no split found so far is sure to come before its own.
    """
    found: list[tuple[_Rank, MachineSplit]] = []
    for domain in domains:
        while found and found[0][0] <= domain.least_rank:
            yield heapq.heappop(found)[1]
        split = next(_splits_inside(request, domain.offers(), view, splits_of), None)
        if split is not None:
            heapq.heappush(found, ((len(split), domain.least_rank[1], split[0][0]), split))
    while found:
        yield heapq.heappop(found)[1]


def has_domain(request: JobRequest, view: ClusterView, offers: Offers) -> bool:
    """Return False if no domain of the level `within` offers enough GPUs for the job, so that no search finds any."""
    if not request.job.within or not offers.is_simple:
        return True
    inside = _level(view.cluster.topology.fabric, request.job.within).codes[offers.machines]
    alone = int(offers.sizes[inside < 0].max(initial=0))
    rooms = np.bincount(inside[inside >= 0], weights=offers.sizes[inside >= 0], minlength=1)
    return max(alone, int(rooms.max())) >= request.size


def why_never(request: JobRequest, view: ClusterView, max_tasks_of: MaxTasks) -> Refusal | None:
    """Return why no machines can ever meet the job's requirements on machines, even all idle and in service.

    Return None if some can, or if the job has no such requirement. Fixed partitions are ignored, as not all of their
    unions can be tried: the answer is None if single GPUs would be enough.
    """
    job = request.job
    if not (request.limits_machines or request.is_divided):
        return None
    offers = idle_offers(max_tasks_of, request, view, at_best=True).without_partitions()
    fits_one = request.fits_any_machine and int(offers.sizes.max(initial=0)) >= request.size
    if fits_one:
        return None
    if request.is_divided:
        lack, is_certain = _lack_of_groups(request, offers, view)
        is_never = lack is not None and is_certain
        return never(f"{needs_of(job, hosts=True)}, and on the idle cluster {lack}") if is_never else None
    if next(allowed_splits(request, offers, view, nearest_of(request, view)), None) is not None:
        return None
    return never(f"{needs_of(job, hosts=True)} {_wishes(request)}, the idle cluster has no such machines")


def why_not_now(
    request: JobRequest, view: ClusterView, offers: Offers, lack: str | None, *, may_reslice: bool = False
) -> Refusal:
    """Return why a job, which could run on an idle cluster, cannot start now.

    For a job with requirements on its machines, the reason counts machines by `Standing`: those of the whole cluster,
    and those of the domain with the most GPUs. offers: what the machines offer now. lack: the reason for other jobs if
    enough suitable GPUs are free. may_reslice: True if GPUs may be resliced.
    """
    job, cluster = request.job, view.cluster
    if request.is_divided:
        lack = _lack_of_groups(request, offers, view)[0] or lack
    if request.is_divided or not request.limits_machines:
        return admission.why_not_now(job, cluster, lack, may_reslice=may_reslice)
    wishes = f"no machines have {request.size} GPUs free {_wishes(request)}"
    reason = admission.why_not_now(job, cluster, wishes, may_reslice=may_reslice).reason
    from topoplace.engine.gangs.machine_counts import counted, standings

    found = standings(request, view, offers)
    if job.within:
        reason += _best_domain(request, _level(cluster.topology.fabric, job.within), offers, found)
    whole = counted(found, int(offers.sizes.sum()), f"all {len(found)} machines")
    return Refusal(f"{reason}; {whole}")


def _lack_of_groups(request: JobRequest, offers: Offers, view: ClusterView) -> tuple[str | None, bool]:
    """Return which groups have no room, None if all have; and False if a search ended before that was known."""
    from topoplace.engine.gangs import division

    try:
        return division.lack(request, offers, view), True
    except SearchTimeoutError:
        return "the search for places of its groups ended without an answer", False


def _best_domain(request: JobRequest, level: Level, offers: Offers, found: Ints) -> str:
    """Return the counts of the machines in the domain with the most GPUs, if those are too few for the job, else ""."""
    inside = level.codes[offers.machines]
    rooms = np.bincount(inside[inside >= 0], weights=offers.sizes[inside >= 0])
    if not rooms.size or rooms.max() >= request.size:
        return ""
    from topoplace.engine.gangs.machine_counts import counted

    best = int(rooms.argmax())
    machines = np.flatnonzero(level.codes == best)
    counts = counted(found[machines], int(rooms[best]), f"its {len(machines)} machines")
    return f"; the most are in {level.name} {level.domains[int(machines[0])]!r}: {counts}"


def _wishes(request: JobRequest) -> str:
    job = request.job
    wishes = [f"within one {job.within}"] if job.within else []
    wishes += [f"on machines of different {request.spread}"] if request.spread else []
    wishes += (
        [f"on at most {job.max_machines} machine{'s' * (job.max_machines > 1)}"] if job.max_machines else []
    )
    wishes += ["with the same local numbers on each machine"] if job.same_gpus else []
    return ", ".join(wishes)


def _level(fabric: Fabric | None, name: str) -> Level:
    assert fabric is not None  # `engine.requirements` has refused unknown levels
    return next(level for level in fabric.levels if level.name == name)


# ---- inside one domain ---------------------------------------------------------------------------------------


_Rank = tuple[int, int, int]
"""Rank of a split in a domain: its number of machines, the GPUs that the domain's machines offer, and its first
machine.
"""


class _Domain(NamedTuple):
    """A combination of domains that has room for the job."""

    least_rank: _Rank
    """What the rank of no split of it is below."""
    offers: Callable[[], Offers]


def _domains(offers: Offers, levels: Sequence[Level], request: JobRequest) -> list[_Domain]:
    """Return the combinations of domains with room for the job, by `least_rank`; without a level, one."""
    if not levels:
        return [_Domain((0, int(offers.sizes.sum()), 0), lambda: offers)]
    codes = [level.codes[offers.machines] for level in levels]
    known = np.flatnonzero(np.min(codes, axis=0) >= 0)
    if not known.size:
        return []
    combined = codes[0][known]
    for other in codes[1:]:
        combined = combined * (int(other.max()) + 1) + other[known]
    _, domain = np.unique(combined, return_inverse=True)
    inside = offers.at(known)
    counts, rooms, lowest = by_domain(inside, domain, request.size)
    if request.anti_affine:
        counts = np.full_like(counts, request.size)
    places = np.bincount(domain) if request.anti_affine else rooms
    order = np.argsort(domain, kind="stable")
    first = np.searchsorted(domain[order], np.arange(len(rooms) + 1))
    possible = np.flatnonzero(places >= request.size)
    ranked: list[int] = possible[np.lexsort((lowest[possible], rooms[possible], counts[possible]))].tolist()
    return [
        _Domain(
            (int(counts[number]), int(rooms[number]), int(lowest[number])),
            partial(inside.at, order[first[number] : first[number + 1]]),
        )
        for number in ranked
    ]


def _splits_inside(
    request: JobRequest, offers: Offers, view: ClusterView, splits_of: Splits
) -> Iterator[MachineSplit]:
    """Yield the splits over these offers that meet all requirements but `within`, those of the policy's rule first."""
    job = request.job
    most = job.max_machines or len(offers)
    for some in _same_gpus(offers, request, most) if job.same_gpus else (offers,):
        if request.spread:
            some = one_per_domain(some, _level(view.cluster.topology.fabric, request.spread))
        for splits in (splits_of(some), nearest_of(request, view)(some), _exact(some, request)):
            yield from (split for split in islice(splits, MAX_SPLITS) if len(split) <= most)


def _exact(offers: Offers, request: JobRequest) -> Iterator[MachineSplit]:
    """Yield a split whose partitions add up to the job, where others that take large ones first may leave a rest."""
    if not (offers.is_simple or request.anti_affine):
        yield from filter(None, [adding_up(offers, request.size)])


def one_per_domain(offers: Offers, level: Level, used: Collection[int] = ()) -> Offers:
    """Return the largest offer of each domain of a level; machines in no domain are left out.

    used: machines, by number, that come before larger ones.
    """
    order = np.lexsort((-offers.sizes, ~np.isin(offers.machines, list(used))))
    order = order[level.codes[offers.machines[order]] >= 0]
    _, firsts = np.unique(level.codes[offers.machines[order]], return_index=True)
    return offers.at(np.sort(order[firsts]))


def _same_gpus(offers: Offers, request: JobRequest, max_machines: int) -> Iterator[Offers]:
    """Yield offers of the same local GPUs on enough machines, for the fewest machines first."""
    largest = 1 if request.anti_affine else int(offers.sizes.max(initial=0))
    for count in range(min(largest, request.size), 0, -1):
        machines = request.size // count
        if request.size % count or machines > max_machines:
            continue
        for mask in _masks(offers, count, machines):
            yield offers.of_gpus(mask)


def _masks(offers: Offers, count: int, machines: int) -> list[Mask]:
    """Return sets of `count` local GPUs that at least `machines` offers contain, the most frequent ones first."""
    kinds = Counter[tuple[Mask, tuple[Mask, ...]]]()
    for offer, number in offers.kinds():
        if offer.max_tasks >= count:
            kinds[offer.usable, offer.partitions] += number
    widest = max((usable.bit_length() for usable, _ in kinds), default=0)
    if widest <= _FEW_GPUS and not any(partitions for _, partitions in kinds):
        return _masks_of_few(
            {usable: number for (usable, _), number in kinds.items()}, widest, count, machines
        )
    subsets = {subset for usable, partitions in kinds for subset in _subsets(usable, partitions, count)}
    frequent = Counter(
        {subset: sum(n for kind, n in kinds.items() if _has(kind, subset)) for subset in subsets}
    )
    found = [subset for subset, number in frequent.items() if number >= machines]
    return sorted(found, key=lambda subset: (-frequent[subset], sorted(members(subset))))[:_MAX_MASKS]


def _masks_of_few(kinds: Mapping[Mask, int], gpus: int, count: int, machines: int) -> list[Mask]:
    """Return `_masks` by a table of all sets of so many local GPUs.

    kinds: how many offers have each set of usable GPUs, at least `count` of them.
    """
    frequent, is_tried = np.zeros(1 << gpus, np.int64), np.zeros(1 << gpus, np.int64)
    for usable, number in kinds.items():
        frequent[usable] = number
        is_tried[usable] = comb(usable.bit_count(), count) <= _MAX_SUBSETS
    firsts = [mask_of(list(members(usable))[:count]) for usable in kinds if not is_tried[usable]]
    for gpu in range(gpus):  # each set gets the sum of those that have its GPUs and more
        for sums in (frequent, is_tried):
            with_and_without = sums.reshape(-1, 2, 1 << gpu)
            with_and_without[:, 0] += with_and_without[:, 1]
    bits = np.arange(1 << gpus)[:, None] >> np.arange(gpus) & 1
    is_tried[firsts] = 1
    found = np.flatnonzero((bits.sum(axis=1) == count) & (is_tried > 0) & (frequent >= machines))
    order = np.lexsort((*(1 - bits[found, ::-1].T), -frequent[found]))
    masks: list[Mask] = found[order[:_MAX_MASKS]].tolist()
    return masks


def _subsets(usable: Mask, partitions: tuple[Mask, ...], count: int) -> Iterable[Mask]:
    if partitions:
        return [part for part in partitions if part.bit_count() == count]
    gpus = list(members(usable))
    if comb(len(gpus), count) > _MAX_SUBSETS:
        return [mask_of(gpus[:count])]
    return map(mask_of, combinations(gpus, count))


def _has(kind: tuple[Mask, tuple[Mask, ...]], subset: Mask) -> bool:
    usable, partitions = kind
    return subset in partitions if partitions else subset & usable == subset
