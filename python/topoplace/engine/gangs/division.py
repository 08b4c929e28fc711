"""The tasks of a job with groups that each machine gets: each required group is in one domain of its level.

The groups are packed into the levels of the cluster: few domains from the top down. Preferred groups are required one
after the other, as many as possible. To reduce communication between machines, tasks of a group on several machines,
and equal groups, are then exchanged (`task_division.hpp`).
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from topoplace import _core
from topoplace.engine.gangs.packing import DomainTree, rows_of
from topoplace.engine.level_chain import preferred_of, required_of
from topoplace.engine.machines.machine_class import Mask
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from topoplace.engine.gangs.offers import Offers
    from topoplace.engine.level_chain import Together
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.topology.topology import Topology

    Ints = NDArray[np.int64]

_MOST_APART: Final = 4096
"""Limit on the GPUs of a topology without templates, whose distances are a table of all pairs."""
_NO_EDGES: Final = np.empty((0, 3))
_NO_GPUS: Final = np.empty(0, np.int32)


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
    job, tree = request.job, DomainTree(request, offers, view)
    distances = distances_of(view.cluster.topology) if job.edges else None
    leaf_of = _core.divide_tasks(
        tree.native,
        request.size,
        *tree.required(job),
        rows_of(preferred_of(job), tree.depth_of),
        tree.depth_of[job.balanced] - 1 if job.balanced else -1,
        _NO_EDGES if distances is None else job.edge_array,
        distances,
        _NO_GPUS if distances is None else tree.first_gpus(),
        timeout,
    )
    if leaf_of is None:
        return None
    order = np.argsort(leaf_of, kind="stable")
    return [
        Part(*tree.place(tree.first_leaf + leaf), list(tasks))
        for leaf, tasks in groupby(order.tolist(), key=leaf_of.tolist().__getitem__)
    ]


def distances_of(topology: Topology) -> _core.GpuDistances | None:
    """Return the distances by which tasks are exchanged; None if their table would be too large."""
    is_small = topology.tiling is not None or topology.num_gpus <= _MOST_APART
    return topology.pairs.native if is_small else None


def can_be_divided(request: JobRequest, offers: Offers, view: ClusterView) -> bool:
    """Return True if `divided` finds a division."""
    if not len(offers):
        return False
    tree = DomainTree(request, offers, view)
    return _core.can_be_divided(tree.native, request.size, *tree.required(request.job))


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
        found = _lack_of(request, domains, level, list(groups))
        if found:
            return found
    if domains.packed(required, range(request.size), request.size) is None:
        return "not all of its groups fit at the same time"
    return None


def _lack_of(request: JobRequest, domains: DomainTree, level: str, groups: Sequence[Together]) -> str | None:
    """Return how many of the groups of one level fit, and what the domain with the most room lacks; None if all do."""
    placed, shares = _count_together(request.job, domains, groups)
    if placed == len(groups):
        return None
    sizes = sorted({len(group.tasks) for group in groups})
    many = f"groups of {sizes[0]}" if len(sizes) == 1 else f"groups of {sizes[0]} to {sizes[-1]}"
    what = f"{placed} of {len(groups)} {many} fit within a {level}"
    size = len(groups[placed].tasks)
    left = domains.left(shares)
    domain_of = domains.domains_of(level)
    room = np.bincount(domain_of, weights=left).astype(np.int64)
    best = int(room.argmax())
    name = domains.name(level, best)
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
) -> tuple[int, Ints | None]:
    """Return how many of these groups, the first ones, fit at the same time, and how; fewer are no harder."""
    required = required_of(job)
    low, best = 0, None
    high = middle = len(groups)
    while low < high:
        tasks = {task for group in groups[:middle] for task in group.tasks}
        inside = [one for one in required if tasks.issuperset(one.tasks)]
        found = domains.packed(inside, sorted(tasks), job.num_tasks)
        if found is None:
            high = middle - 1
        else:
            low, best = middle, found
        middle = (low + high + 1) // 2
    return low, best
