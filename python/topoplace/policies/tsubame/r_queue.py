"""The queue that the TSUBAME paper proposes: nodes may be shared and GPUs borrowed (Fig. 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace.policies.tsubame.borrowing import can_lend
from topoplace.policies.tsubame.node_machines import ANY_GPUS, OWN_GPUS
from topoplace.policies.tsubame.node_queue import NodeQueue

if TYPE_CHECKING:
    from topoplace.policies.tsubame.node_machines import NodeMachines, Nodes
    from topoplace.policies.tsubame.node_needs import NodeNeeds


class RQueue(NodeQueue):
    """The queue that the paper proposes (Fig. 6): if exclusive nodes are too few, nodes are shared and GPUs borrowed.

    A job first takes the machines that it would get in `g-queue`. For its other nodes it takes any machines with enough
    free CPUs and memory. GPUs that these machines lack are borrowed from other machines, whose CPUs are not used.

    The paper leaves some points open. We decide them as follows:

    - Two processes of a job never share a machine.
    - Machines that have more of the GPUs that a node needs come first, then lower machine numbers.
    - All nodes take GPUs of their own machines before any node borrows.
    - GPUs are borrowed from machines with jobs before idle ones, then from machines with the fewest GPUs to lend,
      then from lower machine numbers.
    - A machine that lends a GPU counts as having a job, so it is no longer exclusive.
    - A job with `single_machine` or `anti_affinity` does not borrow.
    - GPUs that are only allocated in fixed partitions are lent as whole partitions, if other GPUs are too few. If
      partitions do not add up to the missing number, the nodes are chosen again, and machines that have fewer of the
      GPUs that a node needs come first.
    """

    name = "r-queue"

    def choose(
        self, needs: NodeNeeds, machines: NodeMachines, avoid: frozenset[int] = frozenset()
    ) -> Nodes | None:
        """Return nodes on exclusive machines first, then on machines with the most of the GPUs that a node needs.

        Return None if there are too few machines, or too few GPUs to borrow.
        """
        last = OWN_GPUS if needs.gpus_local else ANY_GPUS
        # With partitions, GPUs of the nodes' machines may leave a number that no partitions add up to.
        for fewest_first in (False, True) if machines.has_partitions and not needs.gpus_local else (False,):
            chosen = machines.first(needs, last, avoid, fewest_first=fewest_first)
            if chosen is None:
                return None
            if can_lend(needs, machines, chosen):
                return chosen
        return None
