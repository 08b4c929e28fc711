"""DRMaestro (Amaral's thesis, chapter 5): CPUs, GPUs and drives of a batch of jobs by minimum-cost flows, in phases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.placement import Deferred, Placement
from topoplace.policies.base import Explanation, Plan, QueuedJob, enough_suit, no_room
from topoplace.policies.drmaestro.costs import Costs
from topoplace.policies.drmaestro.decision import Candidate, Decision
from topoplace.policies.drmaestro.kinds import Kind, kind_key
from topoplace.policies.drmaestro.state import State

if TYPE_CHECKING:
    from topoplace.policies.drmaestro.state import Room

__all__ = ["Costs", "DRMaestro"]


class DRMaestro:
    """Places processes first, then each GPU where it is cheapest, near its process or over the network, then drives.

    Each phase is one minimum-cost flow over all jobs of a batch; a job that does not get everything waits (gang rule).
    The batch is the oldest jobs that ask together for no more than is free (Algorithm 4); when some of it cannot be
    placed, the next ones that ask for something else have their turn. Jobs bring `cpus`, `memory_gb`, `drives` and
    `processes`; a cluster without `hosts` has enough of everything but GPUs.

    disaggregate: whether GPUs may be on other machines than their process; without it all are local or the job waits.
    network_aware: whether costs follow the traffic at a place times what the job minds (section 5.6.5.1), and jobs that
    would miss their goal are put off, `max_postponements` times at most.
    profiles: of the applications, by the job's `profile`; one without is neutral. costs: equations 11 to 13.
    window: how many waiting jobs are looked at in one plan.

    Readings of what the thesis leaves open: a flow has one limit per machine, CPUs and memory are two, so eq. 10 bounds
    how many bundles a machine takes and what does not fit is placed again without the rest; W of eq. 13 is the time the
    job has waited; jobs that run are not moved, so they are no part of the flow, and what they hold is not free.
    """

    name = "drmaestro"

    def __init__(
        self,
        *,
        disaggregate: bool = True,
        network_aware: bool = False,
        profiles: Mapping[str, NetworkProfile] = MappingProxyType({}),
        costs: Costs | None = None,
        max_postponements: int = 10,
        window: int = 512,
    ) -> None:
        self.disaggregate = _checks.flag(disaggregate, "disaggregate", ValueError)
        self.network_aware = _checks.flag(network_aware, "network_aware", ValueError)
        _checks.instance(profiles, Mapping, "profiles", ValueError)
        for name, profile in profiles.items():
            _checks.instance(profile, NetworkProfile, f"profiles[{_checks.shown(name)}]", ValueError)
        self.profiles = dict(profiles)
        self.costs = costs or Costs()
        _checks.instance(self.costs, Costs, "costs", ValueError)
        self.max_postponements = _checks.integer(
            max_postponements, "max_postponements", ValueError, low=0, high=1 << 30
        )
        self.window = _checks.integer(window, "window", ValueError, low=1, high=1 << 30)

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Where the job would go if it were the only one; None when nothing fits or waiting is better."""
        result = next(self._choices(job, cluster), None)
        return result if isinstance(result, Placement) else None

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """The choice of `place`, then those with its processes elsewhere; the reason where there is none."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        found: dict[frozenset[int], Placement] = {}
        reason: Deferred | None = None
        for result in islice(self._choices(job, cluster), 2 * top):
            if isinstance(result, Deferred):
                reason = None if found else result
                break
            found.setdefault(frozenset(result.gpus), result)
            if len(found) == top:
                break
        if not found and reason is None:
            reason = self.never(self.kind(job, cluster), cluster) or self._no_room(job, cluster)
        return Explanation(self.name, tuple(found.values()), reason)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """What starts now, oldest first; what is put off for its goal, and what can never run."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        now = _checks.real(now, "now", ValueError, low=-math.inf)
        entries = _checked_entries(_checks.sequence(queue, "queue", ValueError)[: self.window])
        run = _Planning(self, cluster, entries, now)
        while batch := run.next_batch():
            run.decide(batch)
        return Plan(tuple(run.start), tuple(run.defer), tuple(run.reject))

    def __repr__(self) -> str:
        return f"DRMaestro(disaggregate={self.disaggregate}, network_aware={self.network_aware})"

    # ---- inside --------------------------------------------------------------------------------------------

    def state(self, cluster: Cluster) -> State:
        """The columns of a cluster, kept by it."""
        return cluster.view(self._build_state)

    def decision(self, cluster: Cluster, room: Room) -> Decision:
        """A decision on this room."""
        limit = self.max_postponements if self.network_aware else None
        return Decision(cluster.topology, room, self.costs, limit=limit)

    def kind(self, job: JobGraph, cluster: Cluster) -> Kind:
        """What the job asks for, the same object for all that ask for the same."""
        kept, key = self.state(cluster).kept, kind_key(job)
        if key not in kept:
            layout = self.state(cluster).layout
            profile = self.profiles.get(job.profile or "") if self.network_aware else None
            kept[key] = Kind(job, layout, profile, disaggregate=self.disaggregate)
        found: Kind = kept[key]
        return found

    def never(self, kind: Kind, cluster: Cluster) -> Deferred | None:
        """Why such a job could not even run on the idle cluster; None where it may."""
        kept = self.state(cluster).kept
        if (kind, "never") not in kept:
            kept[kind, "never"] = kind.never(cluster, self.state(cluster).layout)
        found: Deferred | None = kept[kind, "never"]
        return found

    def _build_state(self, cluster: Cluster) -> State:
        return State(cluster, self.profiles if self.network_aware else {})

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement | Deferred]:
        """The best placement, the best with no process on a machine of the first, and so on; or why it waits."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entry, kind = QueuedJob("job", job), self.kind(job, cluster)
        used: list[int] = []
        while job.num_tasks <= cluster.num_free:
            room = self.state(cluster).room()
            room.hosts[used] = -1
            candidate = Candidate(entry, kind, 0.0)
            results = self.decision(cluster, room).run([candidate])
            yield from (result for _, result in results if result)
            if not results or isinstance(results[0][1], Deferred):
                return
            used += candidate.hosts

    def _no_room(self, job: JobGraph, cluster: Cluster) -> Deferred:
        if job.num_tasks and not enough_suit(job, cluster):
            return no_room(job, cluster)
        where = "" if self.disaggregate else " beside the GPUs it needs"
        return Deferred(f"does not fit now: no machine has the CPUs and memory it needs free{where}")


def _checked_entries(entries: tuple[Any, ...]) -> tuple[QueuedJob, ...]:
    known: set[str] = set()
    for i, entry in enumerate(entries):
        _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
        job_id = _checks.text(entry.job_id, f"queue[{i}].job_id", ValueError)
        if job_id in known:
            raise ValueError(f"queue[{i}].job_id = {_checks.shown(job_id)} is in the queue twice")
        known.add(job_id)
    return entries


class _Planning:
    """One plan under way."""

    def __init__(self, policy: DRMaestro, cluster: Cluster, entries: Sequence[QueuedJob], now: float) -> None:
        self.policy, self.cluster, self.now = policy, cluster, now
        self.room = policy.state(cluster).room()
        self.waiting: list[tuple[QueuedJob, Kind]] = []
        self.start: list[tuple[str, Placement]] = []
        self.defer: list[tuple[str, Deferred]] = []
        self.reject: list[tuple[str, Deferred]] = []
        self._failed: set[tuple[Kind, bool]] = set()
        self._alone: list[QueuedJob] = []
        """Jobs that found no place beside others of their batch, and get a batch of their own."""
        for entry in entries:
            kind = policy.kind(entry.job, cluster)
            if never := policy.never(kind, cluster):
                self.reject.append((entry.job_id, never))
            else:
                self.waiting.append((entry, kind))

    def next_batch(self) -> list[Candidate]:
        """The oldest jobs that together ask for no more than is free; none of a kind that has found no place."""
        gpus, left = int(self.room.is_free.sum()), np.maximum(self.room.hosts, 0).sum(axis=0)
        batch: list[Candidate] = []
        alone = self._alone.pop() if self._alone else None
        for entry, kind in self.waiting:
            if alone is not None and entry is not alone:
                continue
            if gpus <= 0 and kind.job.num_tasks:
                continue
            asks_too_much = kind.job.num_tasks > gpus or (kind.needs > left).any()
            if not asks_too_much and self._group(entry, kind) not in self._failed:
                gpus, left = gpus - kind.job.num_tasks, left - kind.needs
                batch.append(Candidate(entry, kind, max(self.now - entry.submit_time, 0.0)))
        return batch if batch or alone is None else self.next_batch()

    def decide(self, batch: Sequence[Candidate]) -> None:
        """Place what can be placed of a batch; its kinds that could not are not tried again."""
        decision = self.policy.decision(self.cluster, self.room)
        results = decision.run(batch)
        for job, result in results:
            if isinstance(result, Placement):
                self.start.append((job.entry.job_id, result))
            elif result is not None:
                self.defer.append((job.entry.job_id, result))
                self._failed.add(self._group(job.entry, job.kind))
        found = {job for job, _ in results}
        lost = {self._group(job.entry, job.kind): job.entry for job in reversed(batch) if job not in found}
        if decision.disturbed and len(batch) > 1:
            self._alone += lost.values()
        else:
            self._failed.update(lost)
        decided = {job.entry.job_id for job, result in results if result is not None}
        self.waiting = [pair for pair in self.waiting if pair[0].job_id not in decided]

    def _group(self, entry: QueuedJob, kind: Kind) -> tuple[Kind, bool]:
        """Jobs of which one finds a place if the other does."""
        return kind, entry.postponed >= self.policy.max_postponements
