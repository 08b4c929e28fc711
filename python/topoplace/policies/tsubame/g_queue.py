"""The queue in use on TSUBAME 2.5: exclusive nodes (Fig. 5 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.tsubame.node_machines import EXCLUSIVE
from topoplace.policies.tsubame.node_queue import NodeQueue

if TYPE_CHECKING:
    from topoplace.policies.tsubame.node_machines import NodeMachines, Nodes
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class GQueue(NodeQueue):
    """The queue in use on TSUBAME 2.5 (Fig. 5): each machine runs at most one job at a time.

    A job starts on the lowest-numbered machines that run no job and have the GPUs, CPUs and memory of one node.
    """

    name = "g-queue"

    def choose(
        self, needs: NodeNeeds, machines: NodeMachines, avoid: frozenset[int] = frozenset()
    ) -> Nodes | None:
        """Return nodes on the lowest-numbered idle machines that have the resources of a node; None if there are too
        few.
        """
        return machines.first(needs, EXCLUSIVE, avoid)
