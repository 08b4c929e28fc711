"""The GPUs of a job's nodes: those of the nodes' own machines first, then borrowed ones."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple

from topoplace.engine.gpu_sets import unions
from topoplace.engine.machines.machine_class import members

if TYPE_CHECKING:
    from topoplace.policies.tsubame.node_machines import NodeMachines, Nodes
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class NodesGpus(NamedTuple):
    """The GPUs of all nodes of a job."""

    gpus: tuple[int, ...]
    """The numbers of the GPUs in the topology, node after node."""
    remote: tuple[int, ...]
    """The GPUs outside the pool of their node's machine."""


def can_lend(needs: NodeNeeds, machines: NodeMachines, nodes: Nodes) -> bool:
    """Return True if the GPUs that the machines of `nodes` lack can be borrowed from other machines."""
    missing = needs.total_gpus - sum(len(node.own) for _, node in nodes)
    return missing <= 0 or _lent_partitions(machines, missing, nodes) is not None


def gpus_of_nodes(needs: NodeNeeds, machines: NodeMachines, nodes: Nodes) -> NodesGpus:
    """Return the GPUs of nodes, which must be on different machines with enough CPUs and memory."""
    gpus_of = machines.view.classes.gpus_of
    blocks = [[gpus_of[machine][local] for local in node.own] for machine, node in nodes]
    missing = needs.total_gpus - sum(map(len, blocks))
    remote = _fill(needs, machines, nodes, blocks, _borrowed(machines, nodes, missing)) if missing else []
    return NodesGpus(tuple(chain.from_iterable(blocks)), tuple(remote))


def _borrowed(machines: NodeMachines, nodes: Nodes, count: int) -> list[int]:
    """Return `count` free GPUs for lending, after the machines of `nodes` have used their own for the job.

    If GPUs outside partitions are too few, partitions are lent first. Other lenders are machines with jobs first, then
    those with the fewest lendable GPUs, then by machine number.
    """
    gpus_of = machines.view.classes.gpus_of
    borrowed: list[int] = list(chain.from_iterable(_lent_partitions(machines, count, nodes) or ()))
    for machine, lent in machines.lenders(count, nodes):
        borrowed += [gpus_of[machine][local] for local in lent]
    return borrowed[:count]


def _lent_partitions(machines: NodeMachines, count: int, nodes: Nodes) -> list[tuple[int, ...]] | None:
    """Return partitions, at most one of each machine, that with GPUs outside partitions add up to `count` GPUs to lend.

    Larger partitions and lower machine numbers come first. None if there are none; [] if the GPUs outside partitions
    suffice. nodes: machines that first use their own GPUs for the job; they lend no partition then.
    """
    outside = machines.num_lendable() - sum(len(node.own) for _, node in nodes if node.lendable)
    if count <= outside:
        return []
    using = {machine for machine, node in nodes if node.own}
    classes, groups = machines.view.classes, list[list[tuple[int, tuple[int, ...]]]]()
    for machine, gpus in enumerate(classes.gpus_of if machines.has_partitions else ()):
        if classes.of(machine).partitions and machine not in using:
            free = (tuple(gpus[i] for i in members(part)) for part in machines.of_machine(machine).partitions)
            groups.append(sorted(((len(part), part) for part in free), key=lambda sized: -sized[0]))
    return next(unions(groups, count - outside, count), None)


def _fill(
    needs: NodeNeeds,
    machines: NodeMachines,
    nodes: Nodes,
    blocks: list[list[int]],
    borrowed: list[int],
) -> list[int]:
    """Append borrowed GPUs to each list in `blocks` that is too short; return the remote ones among them.

    blocks: the GPUs of each node. A borrowed GPU is remote if it is not in the pool of its node's machine.
    """
    pool_of, machine_of = machines.view.pool_of, machines.view.classes.machine_of
    rest, remote = iter(borrowed), list[int]()
    for (host, _), block in zip(nodes, blocks, strict=True):
        more = list(islice(rest, needs.gpus - len(block)))
        block += more
        remote += (gpu for gpu in more if pool_of[machine_of[gpu]] != pool_of[host])
    return remote
