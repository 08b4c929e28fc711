"""Carry out a repair in a cluster, with one entry in a journal."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from topoplace_hosts.journal.entry import Entry, Holding, Stage, named

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.moving.repairs import Repair
    from topoplace_hosts.journal.journal import Journal


def carry_out(plan: Repair, cluster: Cluster, journal: Journal, *, why: str = "") -> None:
    """Give a job the GPUs of a plan of `repair`, and write this to the journal: both are done, or neither.

    The entry, one append, is on the disk when the function returns. After a crash before the job itself has moved,
    `reconcile` finds it where the scheduler has it: before the repair or after it.

    Raises:
        AllocationError: The plan cannot be carried out any more, as `Repair.carry_out` says.
        JournalError: The journal cannot be written.
    """
    entry: Entry | None = None
    try:
        with cluster.transaction():
            plan.carry_out(cluster)
            gpus = named(cluster.topology, cluster.gpus_of(plan.job_id))
            holding = Holding.in_cluster(cluster, plan.job_id)
            entry = Entry(plan.job_id, Stage.REPAIR, gpus, why, time.time(), holding)
            journal.append(entry)
    except BaseException:  # an interrupt may come after the append: the journal knows
        written = entry is not None and journal.latest().get(plan.job_id) == entry
        if written and cluster.gpus_of(plan.job_id) == plan.gpus:
            plan.carry_out(cluster)
        raise
