"""The queue TSUBAME 2.5 had (Fig. 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.tsubame.node_queue import NodeQueue, exclusive_machines

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class GQueue(NodeQueue):
    """The queue TSUBAME 2.5 had (Fig. 5): a node is given to one job at a time.

    A job starts on the first machines, in their order, that have no job at all and the GPUs, CPUs and memory each of
    its nodes asks for.
    """

    name = "g-queue"

    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the first machines without a job that have everything."""
        found = exclusive_machines(needs, free)
        return found if len(found) == needs.nodes else None

    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return whether there are fewer machines without jobs than nodes."""
        return needs.nodes > free.num_unused
