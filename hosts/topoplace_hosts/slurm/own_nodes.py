"""A policy for jobs whose groups of `machine` each get their own machine, as Slurm divides a job among nodes."""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from topoplace.engine.plan import Explanation, Plan
from topoplace.engine.queueing import checked_queue
from topoplace.jobs.groups import MACHINE
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.plan import QueuedJob
    from topoplace.engine.policy import Policy
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement

_SPARE = "other groups of the job have a machine of their own"


class OwnNodes:
    """Wraps a policy so that each of a job's groups of `machine` gets its own machine.

    If the policy puts several groups on one machine, it decides once more. Each machine then has only as many free GPUs
    as the largest group needs; these GPUs are not chosen by a search. If groups still share a machine, there is no
    placement.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    @property
    def name(self) -> str:
        """Return the name of the wrapped policy."""
        return self._policy.name

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Return the policy's placement with a machine for each group; None if there is none."""
        groups = _groups(job)
        found = self._policy.place(job, cluster)
        if found is None or _are_apart(groups, found, cluster):
            return found
        with _at_most(max(map(len, groups)), cluster):
            found = self._policy.place(job, cluster)
        return found if found is not None and _are_apart(groups, found, cluster) else None

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """Return the policy's explanation with the candidates that have a machine for each group."""
        groups = _groups(job)
        found = self._policy.explain(job, cluster, top)
        if len(groups) < 2:
            return found
        kept = _apart(groups, found, cluster)
        if not kept.candidates and found.candidates:
            with _at_most(max(map(len, groups)), cluster):
                kept = _apart(groups, self._policy.explain(job, cluster, top), cluster)
        return kept

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Return what starts now, deciding job by job in the order of the queue; ValueError for a wrong queue."""
        start: list[tuple[str, Placement]] = []
        defer: list[tuple[str, Refusal]] = []
        with cluster.what_if() as state:
            for entry in checked_queue(queue, cluster):
                found = self.place(entry.job, state)
                if found is None:
                    refusal = self.explain(entry.job, state, 1).refusal
                    defer.append((entry.job_id, refusal or Refusal(f"{self.name} places it nowhere")))
                else:
                    state.allocate(entry.job_id, found, entry.job)
                    start.append((entry.job_id, found))
        return Plan(start=tuple(start), defer=tuple(defer))


def _groups(job: JobGraph) -> list[tuple[int, ...]]:
    """Return the groups of tasks that a machine each must have."""
    return [group.tasks for group in job.groups if group.within == MACHINE]


def _are_apart(groups: Collection[tuple[int, ...]], found: Placement, cluster: Cluster) -> bool:
    """Return True if no two groups are on one machine."""
    machine_of = cluster.topology.machine_of
    return len({int(machine_of[found.gpus[tasks[0]]]) for tasks in groups}) == len(groups)


def _apart(groups: Collection[tuple[int, ...]], found: Explanation, cluster: Cluster) -> Explanation:
    """Return an explanation with the candidates that have a machine for each group."""
    kept = tuple(one for one in found.candidates if _are_apart(groups, one, cluster))
    refusal = found.refusal
    if not kept and refusal is None:
        refusal = Refusal(f"no {len(groups)} machines have room for a part of the job each")
    complete = found.complete and len(kept) == len(found.candidates)
    return replace(found, candidates=kept, refusal=refusal, complete=complete)


@contextmanager
def _at_most(count: int, cluster: Cluster) -> Generator[None]:
    """Open a block in which no machine has more than `count` free GPUs."""
    left: dict[int, int] = {}
    machine_of, spare = cluster.topology.machine_of.tolist(), list[int]()
    for gpu in cluster.free_gpus():
        machine = machine_of[gpu]
        left[machine] = left.get(machine, count) - 1
        if left[machine] < 0:
            spare.append(gpu)
    with cluster.what_if():
        if spare:
            cluster.hold(spare, reason=_SPARE)
        yield
