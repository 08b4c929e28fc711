"""Which place each task of a job with groups gets, for less communication between machines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.engine.gangs.domain_tree import DomainTree, Forest, Together
from topoplace.engine.machines.machine_class import finite, members

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest

    Ints = NDArray[np.int64]

_MAX_SIZE = 1 << 22
"""Most tasks, or groups, times the places among which they are exchanged."""


def assigned(
    request: JobRequest,
    domains: DomainTree,
    together: Sequence[Together],
    packing: kernels.GroupPacking,
    view: ClusterView,
) -> Ints:
    """Return (k,) the leaf of each task."""
    forest = Forest(together, domains.depth_of, range(request.size))
    leaf_of = np.full(request.size, -1)
    shares = packing.shares.astype(np.int64)
    for group in np.unique(shares[:, 0]).tolist():
        mine = shares[shares[:, 0] == group]
        leaf_of[forest.tasks_of(group)] = np.repeat(mine[:, 1], mine[:, 2])
    if request.job.edges:
        _exchange(request, domains, forest, leaf_of, view)
    return leaf_of


def _exchange(
    request: JobRequest, domains: DomainTree, forest: Forest, leaf_of: Ints, view: ClusterView
) -> None:
    """Exchange equal groups, and then the tasks of each group, for less communication between the leaves."""
    a, b, weight = request.job.edge_array.T
    ends = a.astype(np.int64), b.astype(np.int64)
    groups = forest.inner[ends[0]], forest.inner[ends[1]]
    has_inside = np.bincount(np.array(forest.parent[1:], dtype=np.int64), minlength=len(forest.parent)) > 0
    kinds: dict[tuple[int, int, int], list[int]] = {}
    for group, (parent, depth) in enumerate(zip(forest.parent, forest.depth, strict=True)):
        if group and not has_inside[group]:
            kinds.setdefault((parent, depth, int(forest.own[group])), []).append(group)
    for equal in kinds.values():
        places = [leaf_of[forest.tasks_of(group)] for group in equal]
        number = np.full(len(forest.parent), -1)
        number[equal] = np.arange(len(equal))
        order = _cheaper(
            number[groups[0]], number[groups[1]], weight, [int(one[0]) for one in places], domains, view
        )
        for i, group in enumerate(equal):
            leaf_of[forest.tasks_of(group)] = places[order[i]]
    for group in range(len(forest.parent)):
        tasks = forest.tasks_of(group)
        if len(tasks) > 1 and (leaf_of[tasks] != leaf_of[tasks[0]]).any():
            number = np.full(len(forest.inner), -1)
            number[tasks] = np.arange(len(tasks))
            mine = leaf_of[tasks]
            order = _cheaper(number[ends[0]], number[ends[1]], weight, mine.tolist(), domains, view)
            leaf_of[tasks] = mine[order]


def _cheaper(
    a: Ints,
    b: Ints,
    weight: NDArray[np.float64],
    leaves: Sequence[int],
    domains: DomainTree,
    view: ClusterView,
) -> list[int]:
    """Return which of the places each thing gets, for less communication; `leaves`: that of the place of each.

    a, b, weight: the edges between things, by their numbers; -1 for other things.
    """
    unchanged = list(range(len(leaves)))
    counts = np.flatnonzero((a >= 0) & (b >= 0) & (a != b))
    different, block, room = np.unique(leaves, return_inverse=True, return_counts=True)
    if not counts.size or len(different) < 2 or len(different) * len(leaves) > _MAX_SIZE:
        return unchanged
    low, high = np.minimum(a[counts], b[counts]), np.maximum(a[counts], b[counts])
    pairs, where = np.unique(low * len(leaves) + high, return_inverse=True)
    sums = np.bincount(where, weights=weight[counts])
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
