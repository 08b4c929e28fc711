"""The machines of a cluster in the order in which the nodes of jobs get them, and in which they lend GPUs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_conditions import ConditionTable, RankedMachines, Sight

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.policies.tsubame.node_needs import NodeNeeds

EXCLUSIVE: Final = (0.0,)
"""The key of machines without jobs that have all GPUs of a node."""
OWN_GPUS: Final = (1.0,)
"""The key of machines with jobs that have all GPUs of a node."""
ANY_GPUS: Final = (math.inf,)


class NodeGpus(NamedTuple):
    """The GPUs that a machine in one condition has for one node, by their local numbers."""

    own: tuple[int, ...]
    """The GPUs that the node gets, no more than it needs: the lowest ones, or a whole partition."""
    usable: Mask
    """The free GPUs that meet the job's requirements."""
    lendable: Mask
    """The usable GPUs that the machine can lend one by one; none on a machine with fixed partitions."""
    partitions: tuple[Mask, ...]
    """The free partitions whose GPUs all meet the requirements."""
    is_used: bool
    """True if a job holds a GPU of the machine or runs a process on it."""
    machine_class: MachineClass


Nodes = list[tuple[int, NodeGpus]]
"""The nodes of a job: the machine of each, and the GPUs that it has for the node."""


class NodeMachines:
    """All machines, ranked for nodes of one kind: the same number of GPUs, of the same model and memory."""

    def __init__(
        self, view: ClusterView, request: JobRequest, gpus: int, most_memory_gb: float = math.inf
    ) -> None:
        """Store the arguments. gpus: number of GPUs of a node. most_memory_gb: limit on the memory of each GPU, GB."""
        self.view = view
        topology = view.cluster.topology
        self._request, self._gpus, self._most_memory_gb = request, gpus, most_memory_gb
        self.has_partitions = bool(topology.partitions)
        self._only_partitions = self.has_partitions and topology.fabric is None
        conditions = view.conditions(Sight(gpu_use=True, processes=True))
        table = ConditionTable(conditions, self._node_gpus)
        self._of = table.of
        self.of_machine = table.of_machine
        self._best_first = RankedMachines(table, self._key)
        self._fewest_first = RankedMachines(table, self._key_of_few)
        self._lenders = RankedMachines(table, _lender_key)

    def _node_gpus(self, machine_class: MachineClass, state: MachineState) -> NodeGpus:
        usable = state.free & self._request.suitable(machine_class, self._most_memory_gb)
        if not (machine_class.partitions or self._only_partitions):
            own = tuple(members(usable))[: self._gpus]
            return NodeGpus(own, usable, usable, (), state.is_used, machine_class)
        free = (part for part in machine_class.partitions if part & usable == part)
        partitions = tuple(sorted(free, key=lambda part: list(members(part))))
        fits = (part for part in partitions if part.bit_count() == self._gpus)
        own = tuple(members(next(fits, 0)))
        return NodeGpus(own, usable, 0, partitions, state.is_used, machine_class)

    def _key(self, node: NodeGpus) -> tuple[float, ...]:
        missing = self._gpus - len(node.own)
        return EXCLUSIVE if not (missing or node.is_used) else (1.0 + missing,)

    def _key_of_few(self, node: NodeGpus) -> tuple[float, ...]:
        key = self._key(node)
        return key if key == EXCLUSIVE else (1.0 + len(node.own),)

    # ---- machines for nodes --------------------------------------------------------------------------------

    def first(
        self,
        needs: NodeNeeds,
        last: tuple[float, ...],
        avoid: frozenset[int] = frozenset(),
        *,
        fewest_first: bool = False,
    ) -> Nodes | None:
        """Return the nodes of a job on the first machines with the CPUs and memory; None if there are too few.

        Exclusive machines come first, then those with the most of the GPUs that a node needs; with `fewest_first`,
        those with the fewest. Ties go to the lowest number. If too few of these have the extra unit of CPUs that some
        nodes need, later machines replace the last ones. last: the key of the last machines that may be used. avoid:
        machines to leave out.
        """
        ranking = (self._fewest_first if fewest_first else self._best_first).now()

        def first(count: int, cpus: int) -> dict[int, int]:
            found = ranking.in_order(count + len(avoid), last, cpus, needs.megabytes)
            return dict([one for one in found if one[0] not in avoid][:count] if avoid else found)

        chosen = first(needs.nodes, needs.cpus)
        if len(chosen) < needs.nodes:
            return None
        if needs.more:
            able = first(needs.more, needs.cpus + needs.unit)
            if len(able) < needs.more:
                return None
            later = able.keys() - chosen.keys()
            leaving = [machine for machine in chosen if machine not in able][-len(later) :] if later else []
            for machine in leaving:
                del chosen[machine]
            chosen.update(able)
        return [(machine, self._of(condition)) for machine, condition in chosen.items()]

    # ---- lending -------------------------------------------------------------------------------------------

    def num_lendable(self) -> int:
        """Return the number of free GPUs that may be lent one by one."""
        return sum(int(key[1]) * machines for key, machines in self._lenders.now().counts())

    def lenders(self, count: int, nodes: Nodes) -> list[tuple[int, list[int]]]:
        """Return machines with the local numbers of the GPUs that they lend, in the order in which they lend them.

        Machines with jobs come first, then those with the fewest GPUs to lend, then lower machine numbers. count:
        number of GPUs to borrow; there may be more or fewer in the result. nodes: the job's own nodes, each of which
        takes its GPUs first.
        """
        using = dict(nodes)
        found = self._lenders.now().in_order(count + len(nodes), ANY_GPUS)
        lenders = [
            (not node.is_used, machine, list(members(node.lendable)))
            for machine, node in ((machine, self._of(condition)) for machine, condition in found)
            if machine not in using
        ]
        # The job's own machines have a job now, so that they come sooner than the ranking tells.
        lenders += [
            (False, machine, list(members(node.lendable))[len(node.own) :]) for machine, node in nodes
        ]
        lenders.sort(key=lambda entry: (entry[0], len(entry[2]), entry[1]))
        return [(machine, gpus) for _, machine, gpus in lenders]


def _lender_key(node: NodeGpus) -> tuple[float, ...] | None:
    return (float(not node.is_used), float(node.lendable.bit_count())) if node.lendable else None
