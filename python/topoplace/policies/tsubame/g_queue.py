"""The queue that TSUBAME 2.5 had: exclusive nodes (Fig. 5 of the paper)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.tsubame.node_queue import NodeQueue, exclusive_machines

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class GQueue(NodeQueue):
    """The queue that TSUBAME 2.5 had (Fig. 5): each machine runs at most one job at a time.

    A job starts on the lowest-numbered machines that run no job and have the GPUs, CPUs and memory of one node.
    """

    name = "g-queue"

    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the lowest-numbered idle machines that have all a node needs, one per node; None if too few."""
        return needs.first_nodes(exclusive_machines(needs, free), free)

    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return True if the job asks for more nodes than there are machines without jobs."""
        return needs.nodes > free.num_unused
