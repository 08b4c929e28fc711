"""The tasks of a job with groups that each machine gets: each required group is in one domain of its level.

The groups are packed into the levels of the cluster (`kernels.pack_groups`): few domains from the top down. Preferred
groups are required one after the other, as many as possible. To reduce communication between machines, tasks of a group
on several machines, and equal groups, are then exchanged (`kernels.distribute`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from topoplace import kernels
from topoplace.engine.gangs.packing import DomainTree, Forest, Packed, packed
from topoplace.engine.level_chain import Together, preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask, finite, members
from topoplace.errors import DeadlineError, SearchTimeoutError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels.limits import Countdown, check_deadline

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


def divided(
    request: JobRequest, offers: Offers, view: ClusterView, timeout: float | None = None
) -> list[Part] | None:
    """Return the tasks that each of these machines gets, with as many preferred groups as possible.

    Return None if no division has all required groups together, or the search ends before it finds one.

    timeout: limit in seconds on all that makes the first division better; None for no limit.
    """
    if not len(offers):
        return None
    domains, countdown = DomainTree(request, offers, view), Countdown(timeout)
    required = required_of(request.job)
    best = _first(request, domains, countdown)
    if best is None:
        return None
    for wishes in _wishes(request.job):
        if countdown.is_up:
            break
        fulfilled, best = _most(request, domains, required, wishes, best, countdown)
        required = [*required, *wishes[:fulfilled]]
    leaf_of = assigned(request, domains, best, view, countdown)
    order = np.argsort(leaf_of, kind="stable")
    return [
        Part(*domains.place(leaf), list(tasks))
        for leaf, tasks in groupby(order.tolist(), key=lambda task: int(leaf_of[task]))
    ]


def can_be_divided(request: JobRequest, offers: Offers, view: ClusterView) -> bool:
    """Return True if `divided` finds a division."""
    return len(offers) > 0 and _any(request, DomainTree(request, offers, view)) is not None


def _first(request: JobRequest, domains: DomainTree, countdown: Countdown) -> Packed | None:
    """Return a packing with all required groups together; None if there is none, or the search ends before one.

    countdown: ends the search for even shares. With a limit, a packing is first found without them.
    """
    job, left = request.job, countdown.left
    found = None if left is None and job.balanced else _any(request, domains)
    if job.balanced and (left is None or found) and not countdown.is_up:
        with suppress(SearchTimeoutError):
            return packed(domains, required_of(job), range(request.size), job.balanced, countdown.left)
    return found


def _any(request: JobRequest, domains: DomainTree) -> Packed | None:
    with suppress(SearchTimeoutError):
        return packed(domains, required_of(request.job), range(request.size))
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
    countdown: Countdown,
) -> tuple[int, Packed]:
    """Return how many of `wishes`, the first ones, are found to be fulfilled in time, and the packing with them."""

    def packing_of(number: int) -> Packed | None:
        together, tasks = [*required, *wishes[:number]], range(request.size)
        if not countdown.is_up:
            with suppress(SearchTimeoutError):
                return packed(domains, together, tasks, request.job.balanced, countdown.left)
        return None

    fulfilled, best = _most_packed(len(wishes), packing_of)
    return fulfilled, best or packing


_MAX_SIZE = 1 << 22
"""Limit on tasks, or groups, times the places among which they are exchanged."""


def assigned(
    request: JobRequest,
    domains: DomainTree,
    packed: Packed,
    view: ClusterView,
    countdown: Countdown | None = None,
) -> Ints:
    """Return (k,) the leaf of each task; countdown: ends the exchange of tasks."""
    forest, shares = packed
    leaf_of = np.empty(request.size, dtype=np.int64)
    order = np.argsort(forest.inner, kind="stable")
    leaf_of[order] = np.repeat(shares[:, 1], shares[:, 2])
    if request.job.edges:
        with suppress(DeadlineError), (countdown or Countdown(None)).block():
            _exchange(request, domains, forest, leaf_of, view)
        check_deadline()  # that of the caller
    return leaf_of


def _exchange(
    request: JobRequest, domains: DomainTree, forest: Forest, leaf_of: Ints, view: ClusterView
) -> None:
    """Exchange equal groups, and then the tasks of each group, for less communication between the leaves.

    `leaf_of` is right after each exchange, whenever a deadline ends them.
    """
    ends = request.job.edge_array[:, :2].astype(np.int64)
    weight = request.job.edge_array[:, 2]
    tasks_of = _sets(forest.inner, len(forest.parent))
    kind_of = _kinds(forest)
    groups = forest.inner[ends]
    for equal, mine in _with_edges(kind_of, groups, groups[:, 0] != groups[:, 1]):
        leaves_of = [leaf_of[tasks_of[group]] for group in equal.tolist()]
        places = [int(leaves[0]) for leaves in leaves_of]
        order = _cheaper(np.searchsorted(equal, groups[mine]), weight[mine], places, domains, view)
        for group, place in zip(equal.tolist(), order, strict=True):
            leaf_of[tasks_of[group]] = leaves_of[place]
    for tasks, mine in _with_edges(forest.inner, ends, np.ones(len(ends), dtype=np.bool_)):
        leaves = leaf_of[tasks]
        order = _cheaper(np.searchsorted(tasks, ends[mine]), weight[mine], leaves.tolist(), domains, view)
        leaf_of[tasks] = leaves[order]


def _kinds(forest: Forest) -> Ints:
    """Return (g,) a number for each group, the same for equal ones without groups inside; -1 for others."""
    has_inside = np.bincount(np.array(forest.parent[1:], dtype=np.int64), minlength=len(forest.parent)) > 0
    kinds = np.column_stack((forest.parent, forest.depth, forest.own))
    found = np.unique(kinds, axis=0, return_inverse=True)[1].reshape(-1)
    return np.where(has_inside | (kinds[:, 0] < 0), -1, found)


def _sets(number_of: Ints, count: int) -> list[Ints]:
    """Return the things of each number below `count`, ascending."""
    order = np.argsort(number_of, kind="stable")
    return np.split(order, np.searchsorted(number_of[order], np.arange(count + 1)))[1:-1]


def _with_edges(set_of: Ints, ends: Ints, counts: NDArray[np.bool_]) -> Iterator[tuple[Ints, Ints]]:
    """Yield each set of several things that has edges inside, ascending, and the numbers of those edges.

    set_of: the number of each thing's set; -1 for none. ends: (e, 2). counts: (e,) whether an edge counts.
    """
    sets = set_of[ends]
    inside = np.flatnonzero(counts & (sets[:, 0] == sets[:, 1]) & (sets[:, 0] >= 0))
    count = int(set_of.max(initial=-1)) + 1
    edges = _sets(sets[inside, 0], count)
    for things, mine in zip(_sets(set_of, count), edges, strict=True):
        if mine.size:
            yield things, inside[mine]


def _cheaper(
    ends: Ints,
    weight: NDArray[np.float64],
    leaves: Sequence[int],
    domains: DomainTree,
    view: ClusterView,
) -> list[int]:
    """Return which of the places each thing gets, for less communication; `leaves`: that of the place of each.

    ends, weight: the edges between different things.
    """
    check_deadline()
    different, block, room = np.unique(leaves, return_inverse=True, return_counts=True)
    if len(different) < 2 or len(different) * len(leaves) > _MAX_SIZE:
        return list(range(len(leaves)))
    low, high = np.sort(ends, axis=1).T
    pairs, where = np.unique(low * len(leaves) + high, return_inverse=True)
    sums = np.bincount(where, weights=weight)
    edges = np.column_stack((pairs // len(leaves), pairs % len(leaves), sums))
    classes = view.classes
    places = map(domains.place, different.tolist())
    firsts = [classes.gpus_of[machine][next(members(usable))] for machine, usable in places]
    distance = finite(classes.between(firsts, view.cluster.topology))
    found = kernels.distribute(kernels.Graph.from_edges(len(leaves), edges), room, distance, starts=2)
    assert found is not None  # there is a place for each
    by_block: list[int] = np.argsort(block, kind="stable").tolist()
    first: list[int] = np.cumsum(room).tolist()
    order: list[int] = []
    blocks: list[int] = found.block_of.tolist()
    for at in blocks:
        first[at] -= 1
        order.append(by_block[first[at]])
    return order
