"""The same placement with fewer moves: replicas that do the same swap their places."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.moving.replicas import roles_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from topoplace.jobs.job_graph import JobGraph


def nearer(
    job: JobGraph,
    old: Sequence[int],
    gpus: Sequence[int],
    machine_of: NDArray[np.int32],
    usable: Collection[int],
) -> Iterator[tuple[int, ...]]:
    """Yield placements that are often as fast as `gpus`, with fewer moves; those of fewer moves come first.

    The replicas swap their places so that the most tasks stay on their machines. There, tasks keep the GPUs that they
    had: all that are usable, then only those that the placement has, too.

    Args:
        old: The former GPU of each task; -1 for none.
        machine_of: (GPUs,) the machine of each GPU.
        usable: The former GPUs on which tasks may stay.
    """
    swapped = _swapped(job, old, gpus, machine_of)
    here = [gpu if gpu in usable else -1 for gpu in old]
    yield _at_home(here, swapped, machine_of)
    taken = set(gpus)
    yield _at_home([gpu if gpu in taken else -1 for gpu in here], swapped, machine_of)


def _swapped(
    job: JobGraph, old: Sequence[int], gpus: Sequence[int], machine_of: NDArray[np.int32]
) -> list[int]:
    """Return the GPU of each task if whole replicas swap their places so that the most tasks stay on their machines."""
    replicas = list(roles_of(job).replicas)
    count, found = len(replicas), list(gpus)
    if sum(map(len, replicas)) != len(gpus):
        return found
    pairs, stay = _overlaps(replicas, old, gpus, machine_of)
    apart, all_of = 2 * count, np.arange(count)
    tail = np.concatenate([pairs[:, 0], all_of, np.full(count, apart)])
    head = np.concatenate([pairs[:, 1] + count, np.full(count, apart), all_of + count])
    capacity = np.ones(len(tail), np.int64)
    cost = np.concatenate([-stay, np.zeros(2 * count, np.int64)])
    supply = np.concatenate([np.ones(count, np.int64), -np.ones(count, np.int64), [0]])
    flow = np.asarray(kernels.min_cost_flow(apart + 1, tail, head, capacity, cost, supply).flow)
    place_of: dict[int, int] = {
        int(tail[arc]): int(head[arc]) - count for arc in np.flatnonzero(flow[: len(pairs)])
    }
    others = iter(sorted(set(range(count)).difference(place_of.values())))
    for number, replica in enumerate(replicas):
        there = replicas[place_of[number] if number in place_of else next(others)]
        for task, place in zip(replica, there, strict=True):
            found[task] = gpus[place]
    return found


def _overlaps(
    replicas: Sequence[tuple[int, ...]],
    old: Sequence[int],
    gpus: Sequence[int],
    machine_of: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs (replica, place) in which the place leaves tasks of the replica on their old machines, and the
    number of these tasks.
    """
    stay: Counter[tuple[int, int]] = Counter()
    for tasks in zip(*replicas, strict=True):
        places: dict[int, list[int]] = defaultdict(list)
        for number, task in enumerate(tasks):
            places[int(machine_of[gpus[task]])].append(number)
        for number, task in enumerate(tasks):
            if old[task] >= 0:
                stay.update((number, place) for place in places[int(machine_of[old[task]])])
    return np.array(list(stay), np.int64).reshape(-1, 2), np.array(list(stay.values()), np.int64)


def _at_home(old: Sequence[int], gpus: Sequence[int], machine_of: NDArray[np.int32]) -> tuple[int, ...]:
    """Return the GPU of each task if those on their old machine keep their GPU; -1 in `old` for one that cannot."""
    found, free = [-1] * len(gpus), set(gpus)
    for task, (was, now) in enumerate(zip(old, gpus, strict=True)):
        if was >= 0 and machine_of[was] == machine_of[now]:
            found[task] = was
            free.discard(was)
    left: Mapping[int, list[int]] = defaultdict(list)
    for gpu in sorted(free, reverse=True):
        left[int(machine_of[gpu])].append(gpu)
    for task, now in enumerate(gpus):
        if found[task] < 0:
            found[task] = left[int(machine_of[now])].pop()
    return tuple(found)
