"""Allocate the nodes of a job from the free resources: GPUs of the nodes' own machines first, then borrowed ones."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np

from topoplace.engine.gpu_sets.partition_unions import unions

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.policies.tsubame.node_needs import NodeNeeds


def can_lend(needs: NodeNeeds, free: FreeResources, hosts: Ints, count: int) -> bool:
    """Return True if `count` GPUs can be borrowed after the machines `hosts` have used their own GPUs for the job."""
    if count <= 0:
        return True
    outside = int(_lendable(needs, free, hosts).sum())
    used = hosts[needs.suitable(free)[hosts] > 0] if count > outside else hosts
    return _lent_partitions(needs, free, count, outside, used.tolist()) is not None


def take_nodes(
    needs: NodeNeeds, free: FreeResources, hosts: list[int], cpus: list[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Take one node on each of the machines `hosts`, with so many CPUs, from the free resources.

    Returns the GPUs of all nodes, node after node, and those among them that are remote: outside the pool of their
    node's machine. The machines must be different, and each must have what a node needs, including GPUs it can borrow.
    """
    free.hosts[hosts, 0] -= cpus
    free.hosts[hosts, 1] -= needs.megabytes
    free.has_job[hosts] = True
    blocks = [needs.pick(free, host, needs.gpus) for host in hosts]
    own = list(chain.from_iterable(blocks))
    free.take(own)
    missing = needs.total_gpus - len(own)
    used = [host for host, block in zip(hosts, blocks, strict=True) if block]
    remote = _fill(needs, free, hosts, blocks, _borrow(needs, free, missing, used)) if missing else []
    return tuple(chain.from_iterable(blocks)), tuple(remote)


def _borrow(needs: NodeNeeds, free: FreeResources, count: int, used: list[int]) -> list[int]:
    """Take `count` free GPUs for lending, and return them.

    If GPUs outside partitions are too few, partitions are lent first. Other lenders are machines with jobs first, then
    those with the fewest lendable GPUs, then by machine number. used: machines whose own GPUs the job has taken.
    """
    lendable = _lendable(needs, free)
    parts = _lent_partitions(needs, free, count, int(lendable.sum()), used)
    borrowed: list[int] = list(chain.from_iterable(parts or ()))
    counts: list[int] = lendable.tolist()
    for machine in np.lexsort((lendable, ~free.has_job)).tolist():  # sorting is stable
        if count > len(borrowed) and counts[machine]:
            borrowed += needs.pick(free, machine, count - len(borrowed))
    free.take(borrowed)
    return borrowed


def _lent_partitions(
    needs: NodeNeeds, free: FreeResources, count: int, outside: int, used: list[int]
) -> list[tuple[int, ...]] | None:
    """Return partitions, at most one of each machine, that with GPUs outside partitions add up to `count` GPUs to lend.

    Larger partitions and lower machine numbers come first. None if there are none; [] if `outside`, the number of GPUs
    outside partitions, suffices. used: machines that lend no partition because the job has taken GPUs there.
    """
    if count <= outside:
        return []
    lenders = sorted(free.columns.partitions_of.keys() - used)
    parts = [sorted(needs.partitions(machine, free), key=len, reverse=True) for machine in lenders]
    return next(unions([[(len(part), part) for part in own] for own in parts], count - outside, count), None)


def _fill(
    needs: NodeNeeds, free: FreeResources, hosts: list[int], blocks: list[list[int]], borrowed: list[int]
) -> list[int]:
    """Append borrowed GPUs to each list in `blocks` that is too short; return the remote ones among them.

    blocks: the GPUs of the node on each machine in `hosts`. A borrowed GPU is remote if it is not in the pool of its
    node's machine.
    """
    rest, remote = iter(borrowed), list[int]()
    for host, block in zip(hosts, blocks, strict=True):
        more = list(islice(rest, needs.gpus - len(block)))
        block += more
        pool = free.pool_of[host]
        remote += (gpu for gpu in more if free.pool_of[free.columns.machine_list[gpu]] != pool)
    return remote


def _lendable(needs: NodeNeeds, free: FreeResources, hosts: Ints | None = None) -> Ints:
    """Return an array with the number of free GPUs that each machine may lend to the job.

    GPUs that are only allocated in fixed partitions do not count. hosts: machines that first use up to `needs.gpus` of
    their GPUs for the job themselves.
    """
    counts = needs.whole_gpus(free).copy()
    counts[list(free.columns.partitions_of)] = 0
    if hosts is not None:
        counts[hosts] = np.maximum(counts[hosts] - needs.gpus, 0)
    return counts
