"""The queue that the TSUBAME paper proposes: nodes may be shared and GPUs borrowed (Fig. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from topoplace.policies.tsubame.borrowing import can_lend
from topoplace.policies.tsubame.node_queue import NodeQueue, exclusive_machines

if TYPE_CHECKING:
    from topoplace.engine.free_resources import FreeResources, Ints
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class RQueue(NodeQueue):
    """The queue that the paper proposes (Fig. 6): if exclusive nodes are too few, nodes are shared and GPUs borrowed.

    A job first takes the machines that it would get in `g-queue`. For its other nodes it takes any machines with enough
    free CPUs and memory. GPUs that these machines lack are borrowed from other machines, whose CPUs are not used.

    The paper leaves some points open. We decide them as follows:

    - Two processes of a job never share a machine.
    - Machines that have more of the GPUs a node needs come first, then lower machine numbers.
    - All nodes take GPUs of their own machines before any node borrows.
    - GPUs are borrowed from machines with jobs before idle ones, then from machines with the fewest GPUs to lend,
      then from lower machine numbers.
    - A machine that lends a GPU counts as having a job, so it is no longer exclusive.
    - A job with `single_machine` or `anti_affinity` does not borrow.
    - GPUs that are only allocated in fixed partitions are lent as whole partitions, if other GPUs are too few. If
      partitions do not add up to what is missing, machines that have fewer of the GPUs a node needs come first.
    """

    name = "r-queue"

    def choose(self, needs: NodeNeeds, free: FreeResources) -> Ints | None:
        """Return the machine of each node: exclusive machines first, then those with most of the GPUs a node needs.

        None if the machines, or the GPUs to borrow, are too few.
        """
        exclusive = exclusive_machines(needs, free)
        found = needs.first_nodes(exclusive, free)
        return self._shared(needs, free, exclusive) if found is None else found

    def cannot_fit_by_count(self, needs: NodeNeeds, free: FreeResources) -> bool:
        """Return True if the job needs more GPUs on all its nodes together than are free in the cluster."""
        return needs.total_gpus > free.num_free

    def _shared(self, needs: NodeNeeds, free: FreeResources, first: Ints) -> Ints | None:
        """Return the machines `first`, then machines to share; None if machines or GPUs to borrow are too few."""
        own = np.minimum(needs.suitable(free), needs.gpus)
        fits = needs.hosting(free)
        if needs.gpus_local:
            fits &= own == needs.gpus
        fits[first] = False
        others = np.flatnonzero(fits)
        # With partitions, GPUs of the nodes' machines may leave a number that no partitions add up to.
        for key in (-own, own) if free.columns.partitions_of else (-own,):
            others = others[np.argsort(key[others], kind="stable")]
            chosen = needs.first_nodes(np.concatenate((first, others)), free)
            if chosen is None:
                return None
            if can_lend(needs, free, chosen, needs.total_gpus - int(own[chosen].sum())):
                return chosen
        return None
