"""Carry out a plan that moves running jobs in a cluster, with one append to a journal."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from topoplace_hosts.journal.entry import Entry, Holding, Stage, named

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace_hosts.journal.journal import Journal


class Plan(Protocol):
    """A plan of `repair`."""

    @property
    def job_id(self) -> str:
        """Return the job for which the plan was made."""
        ...

    def carry_out(self, cluster: Cluster) -> None:
        """Change the cluster, all at once."""
        ...


def carry_out(plan: Plan, cluster: Cluster, journal: Journal, *, why: str = "") -> None:
    """Give a job the GPUs of a plan of `repair`, and write this to the journal: both are done, or neither.

    An entry for the job, and for each other one that makes way, are one append, which is on the disk when the function
    returns. After a crash before the job itself has moved, `reconcile` finds it where the scheduler has it: before the
    repair or after it.

    Raises:
        AllocationError: The plan cannot be carried out any more, as its own `carry_out` says.
        JournalError: The journal cannot be written.
    """
    before = dict(cluster.allocations)
    entries: list[Entry] = []
    try:
        with cluster.transaction():
            plan.carry_out(cluster)
            entries = _entries(plan, cluster, before, why)
            journal.append(*entries)
    except BaseException:  # an interrupt may come after the append: the journal knows
        latest = journal.latest()
        written = bool(entries) and all(latest.get(one.job_id) == one for one in entries)
        if written and cluster.allocations == before:
            plan.carry_out(cluster)
        raise


def _entries(plan: Plan, cluster: Cluster, before: Mapping[str, tuple[int, ...]], why: str) -> list[Entry]:
    """Return an entry for each job that has other GPUs than before, or none any more."""
    now, found = time.time(), list[Entry]()
    for job_id in before:
        gpus = cluster.gpus_of(job_id)
        if gpus and gpus != before[job_id]:
            holding = Holding.in_cluster(cluster, job_id)
            found.append(Entry(job_id, Stage.REPAIR, named(cluster.topology, gpus), why, now, holding))
        elif not gpus:
            found.append(Entry(job_id, Stage.ENDED, (), f"stopped for {plan.job_id}", now))
    return found
