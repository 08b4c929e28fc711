"""Exchange of tasks of a job with groups, for less communication between machines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.engine.gangs.domain_tree import DomainTree
from topoplace.engine.gangs.packing import Forest, Packed
from topoplace.engine.machines.machine_class import finite, members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

    Ints = NDArray[np.int64]

_MAX_SIZE = 1 << 22
"""Limit on tasks, or groups, times the places among which they are exchanged."""


def assigned(request: JobRequest, domains: DomainTree, packed: Packed, view: ClusterView) -> Ints:
    """Return (k,) the leaf of each task."""
    forest, shares = packed
    leaf_of = np.empty(request.size, dtype=np.int64)
    order = np.argsort(forest.inner, kind="stable")
    leaf_of[order] = np.repeat(shares[:, 1], shares[:, 2])
    if request.job.edges:
        _exchange(request, domains, forest, leaf_of, view)
    return leaf_of


def _exchange(
    request: JobRequest, domains: DomainTree, forest: Forest, leaf_of: Ints, view: ClusterView
) -> None:
    """Exchange equal groups, and then the tasks of each group, for less communication between the leaves."""
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
    distance = finite(_between(firsts, view))
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


def _between(gpus: Sequence[int], view: ClusterView) -> NDArray[np.float64]:
    """Return the distances between GPUs of different machines or sockets."""
    classes, topology = view.classes, view.cluster.topology
    machines = [classes.machine_of[gpu] for gpu in gpus]
    if len(set(machines)) == len(machines):
        return classes.between(gpus, topology)
    return np.array([[topology.distance(u, v) if u != v else 0.0 for v in gpus] for u in gpus])
