"""The queue the paper proposes (Fig. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.policies.tsubame.borrowing import can_lend
from topoplace.policies.tsubame.node_queue import NodeQueue, exclusive_machines

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class RQueue(NodeQueue):
    """The queue the paper proposes (Fig. 6): where exclusive nodes are too few, nodes are shared and GPUs borrowed.

    A job first takes the nodes it would have in `g-queue`, then machines, with jobs or not, that have the CPUs and
    memory and find the GPUs on themselves or on any others. A lender's CPUs are not counted.

    Readings of what the paper leaves open: two processes of a job never share a machine. Machines with more of the
    GPUs a node needs come first, so that few are borrowed, and then the lower number. All nodes take their own GPUs
    before any borrows. Lenders are machines with jobs before idle ones, so that idle ones stay whole, then those with
    the fewest free GPUs, which no job can use where they are, then the lower number. A lender has a job: it is not
    exclusive any more. A job of `single_machine` or `anti_affinity` does not borrow, and GPUs that are given as
    partitions only are not lent.
    """

    name = "r-queue"

    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the exclusive nodes, then those with most of the GPUs themselves."""
        first = exclusive_machines(needs, free)
        if len(first) == needs.nodes:
            return first
        return self._shared(needs, free, first)

    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return whether there are fewer free GPUs than it needs on all its nodes."""
        return needs.total_gpus > free.num_free

    def _shared(self, needs: NodeNeeds, free: FreeResources, first: Ints) -> Ints | None:
        """Return the nodes `first`, and others; None where these, or the GPUs they would borrow, are too few."""
        own = np.minimum(needs.suitable(free), needs.gpus)
        fits = needs.hosting(free)
        if needs.gpus_local:
            fits &= own == needs.gpus
        fits[first] = False
        others = np.flatnonzero(fits)
        if len(first) + len(others) < needs.nodes:
            return None
        others = others[np.argsort(-own[others], kind="stable")]
        chosen = np.concatenate((first, others[: needs.nodes - len(first)]))
        return chosen if can_lend(needs, free, chosen, needs.total_gpus - int(own[chosen].sum())) else None
