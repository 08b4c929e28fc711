"""The tasks of a job with groups that each machine gets: each required group is in one domain of its level.

The groups are packed into the levels of the cluster (`kernels.pack_groups`): few domains from the top down. Preferred
groups are required one after the other, as many as possible. To reduce communication between machines, tasks of a group
on several machines, and equal groups, are then exchanged (`kernels.distribute`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace.engine.gangs.domain_tree import DomainTree
from topoplace.engine.gangs.exchange import assigned
from topoplace.engine.gangs.packing import Packed, packed
from topoplace.engine.machines.machine_class import Mask
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.together import Together, preferred_of, required_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

    Ints = NDArray[np.int64]


class Part(NamedTuple):
    """The tasks of a job that one machine gets."""

    machine: int
    usable: Mask
    """The machine's GPUs that the tasks may use, at least one for each."""
    tasks: list[int]


def divided(request: JobRequest, offers: Offers, view: ClusterView) -> list[Part] | None:
    """Return the tasks that each of these machines gets, with as many preferred groups as possible.

    Return None if no division has all required groups together, or the search ends before it finds one.
    """
    if not len(offers):
        return None
    domains = DomainTree(request, offers, view)
    required = required_of(request.job)
    best = _first(request, domains)
    if best is None:
        return None
    for wishes in _wishes(request.job):
        fulfilled, best = _most(request, domains, required, wishes, best)
        required = [*required, *wishes[:fulfilled]]
    leaf_of = assigned(request, domains, best, view)
    order = np.argsort(leaf_of, kind="stable")
    return [
        Part(*domains.place(leaf), list(tasks))
        for leaf, tasks in groupby(order.tolist(), key=lambda task: int(leaf_of[task]))
    ]


def can_be_divided(request: JobRequest, offers: Offers, view: ClusterView) -> bool:
    """Return True if `divided` finds a division."""
    return len(offers) > 0 and _first(request, DomainTree(request, offers, view)) is not None


def _first(request: JobRequest, domains: DomainTree) -> Packed | None:
    """Return a packing with all required groups together; None if there is none, or the search ends before one."""
    try:
        return packed(domains, required_of(request.job), range(request.size), request.job.balanced)
    except SearchTimeoutError:
        return None


def part_jobs(job: JobGraph, parts: Sequence[Part]) -> list[JobGraph]:
    """Return each part as a job: the part's tasks, numbered in their order, and the edges among them."""
    part_of = np.empty(job.num_tasks, dtype=np.int64)
    place = np.empty(job.num_tasks, dtype=np.int64)
    for number, part in enumerate(parts):
        part_of[part.tasks], place[part.tasks] = number, np.arange(len(part.tasks))
    a, b = job.edge_array[:, :2].astype(np.int64).T
    inside = np.flatnonzero(part_of[a] == part_of[b])
    inside = inside[np.argsort(part_of[a[inside]], kind="stable")]
    first = np.searchsorted(part_of[a[inside]], np.arange(len(parts) + 1))
    rows = np.column_stack((place[a[inside]], place[b[inside]], job.edge_array[inside, 2]))
    made: dict[tuple[int, bytes], JobGraph] = {}
    found: list[JobGraph] = []
    for number, part in enumerate(parts):
        mine = rows[first[number] : first[number + 1]]
        key = len(part.tasks), mine.tobytes()
        if key not in made:
            edges = [(int(u), int(v), weight) for u, v, weight in mine.tolist()]
            one = JobGraph.from_edges(len(part.tasks), edges, name=job.name)
            made[key] = one.with_(bandwidth_sensitive=job.bandwidth_sensitive, profile=job.profile)
        found.append(made[key])
    return found


def lack(request: JobRequest, offers: Offers, view: ClusterView) -> str | None:
    """Return the groups that do not fit on these machines, and what the nearest domain lacks; None if all fit.

    Example: "7 of 8 groups of 16 fit within a rack; 'r4' lacks 2 GPUs". Raise SearchTimeoutError if the search reaches
    its limit without an answer.
    """
    if not len(offers):
        return None
    domains = DomainTree(request, offers, view)
    required = sorted(
        required_of(request.job), key=lambda one: (domains.depth_of[one.level], -len(one.tasks))
    )
    for level, groups in groupby(required, key=lambda one: one.level):
        found = _lack_of(request, domains, level, list(groups), view)
        if found:
            return found
    if packed(domains, required, range(request.size)) is None:
        return "not all of its groups fit at the same time"
    return None


def _lack_of(
    request: JobRequest, domains: DomainTree, level: str, groups: Sequence[Together], view: ClusterView
) -> str | None:
    """Return how many of the groups of one level fit, and what the domain with the most room lacks; None if all do."""
    placed, packing = _count_together(request.job, domains, groups)
    if placed == len(groups):
        return None
    sizes = sorted({len(group.tasks) for group in groups})
    many = f"groups of {sizes[0]}" if len(sizes) == 1 else f"groups of {sizes[0]} to {sizes[-1]}"
    what = f"{placed} of {len(groups)} {many} fit within a {level}"
    size = len(groups[placed].tasks)
    left = domains.left(None if packing is None else packing.shares)
    domain_of = domains.domains_of(level)
    room = np.bincount(domain_of, weights=left).astype(np.int64)
    best = int(room.argmax())
    name = domains.name(level, best, view)
    inside = {
        len(one.tasks) for one in required_of(request.job) if one.level == MACHINE and len(one.tasks) < size
    }
    if level != MACHINE and len(inside) == 1:
        each = inside.pop()
        mine = domain_of == best
        whole = int((np.bincount(domains.domains_of(MACHINE)[mine], weights=left[mine]) // each).sum())
        if (few := size // each - whole) > 0:
            return f"{what}; {name} lacks {_count(few, 'machine')} with {_count(each, 'free GPU')}"
    if room[best] < size:
        return f"{what}; {name} lacks {_count(size - int(room[best]), 'GPU')}"
    return f"{what}; {name} has {_count(int(room[best]), 'GPU')}, but not for the groups inside"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number > 1)}"


def _count_together(
    job: JobGraph, domains: DomainTree, groups: Sequence[Together]
) -> tuple[int, Packed | None]:
    """Return how many of these groups, the first ones, fit at the same time, and how."""
    required = required_of(job)

    def packing_of(number: int) -> Packed | None:
        tasks = {task for group in groups[:number] for task in group.tasks}
        inside = [one for one in required if tasks.issuperset(one.tasks)]
        return packed(domains, inside, sorted(tasks))

    return _most_packed(len(groups), packing_of)


def _most_packed(high: int, packing_of: Callable[[int], Packed | None]) -> tuple[int, Packed | None]:
    """Return the largest number up to `high` that has a packing, and it; 0 if there is none. Fewer are no harder."""
    low, best = 0, None
    middle = high
    while low < high:
        found = packing_of(middle)
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
        middle = (low + high + 1) // 2
    return low, best


# ---- preferred groups ----------------------------------------------------------------------------------------


def _wishes(job: JobGraph) -> Iterator[list[Together]]:
    """Yield the preferred groups, equal ones in one list, the largest first."""
    ordered = sorted(set(preferred_of(job)), key=lambda wish: (-len(wish.tasks), wish.level, wish.tasks))
    for _, equal in groupby(ordered, key=lambda wish: (len(wish.tasks), wish.level)):
        yield list(equal)


def _most(
    request: JobRequest,
    domains: DomainTree,
    required: Sequence[Together],
    wishes: Sequence[Together],
    packing: Packed,
) -> tuple[int, Packed]:
    """Return how many of `wishes`, the first ones, can be fulfilled, and the packing with them."""

    def packing_of(number: int) -> Packed | None:
        try:
            return packed(domains, [*required, *wishes[:number]], range(request.size), request.job.balanced)
        except SearchTimeoutError:
            return None

    fulfilled, best = _most_packed(len(wishes), packing_of)
    return fulfilled, best or packing
