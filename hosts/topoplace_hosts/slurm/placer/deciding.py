"""Decide for the waiting jobs of one cycle, and give jobs back to Slurm."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import partial

from topoplace.cluster.cluster import Cluster
from topoplace.engine.policy import Policy
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Refusal
from topoplace_hosts.journal import Entry, Holding, Journal, Stage
from topoplace_hosts.journal.entry import named
from topoplace_hosts.log import Log
from topoplace_hosts.request_fields import RequestError
from topoplace_hosts.slurm import gres, task_places
from topoplace_hosts.slurm.client.jobs import SlurmJob, node_names
from topoplace_hosts.slurm.client.nodes import SlurmNodes
from topoplace_hosts.slurm.metrics import Figures
from topoplace_hosts.slurm.placer import orders
from topoplace_hosts.slurm.placer.decision import JobDecision, decide
from topoplace_hosts.slurm.placer.fairness import Turns
from topoplace_hosts.slurm.placer.requests import SlurmRequests
from topoplace_hosts.slurm.placer.settings import PlacerSettings
from topoplace_hosts.slurm.placer.waiting import Needs, admissible, needs_of, why_not_yet
from topoplace_hosts.slurm.request import SlurmRequest

_MAX_SET_BACK = 6
_MAX_TRIES = 3
_MAX_GIVEN_BACK = 20
"""Limit on the jobs given back to Slurm in one cycle: thousands at once would queue before decided jobs."""


@dataclass(slots=True)
class _Wait:
    """What is remembered of a waiting job; a placer that starts again begins from scratch."""

    since: float | None = None
    """When there were enough GPUs for it, and it was not decided, on the monotonic clock."""
    not_before: float = -math.inf
    set_back: int = 0
    """How often it did not start where it was ordered to."""
    given_back: int = 0
    """How often Slurm was asked to choose for it."""


class Deciding:
    """The decisions of a placer; each one changes the cluster, and is written to the journal."""

    def __init__(
        self,
        policy: Policy,
        cluster: Cluster,
        journal: Journal,
        settings: PlacerSettings,
        figures: Figures,
        write_log: Log,
        keeps_old: bool,
        monotonic: Callable[[], float],
    ) -> None:
        self._monotonic = monotonic
        self._policy = policy
        self._cluster = cluster
        self._journal = journal
        self._settings = settings
        self._figures = figures
        self._log = write_log
        self._keeps_old = keeps_old
        self._turns = Turns()
        self._waits: dict[str, _Wait] = {}
        self._refused: dict[tuple[SlurmRequest, frozenset[str]], Refusal] = {}
        self._free: frozenset[int] = frozenset()
        self.requests = SlurmRequests()
        self.graphs: dict[str, JobGraph] = {}
        """The job graphs of decided jobs, which policies use for their neighbours."""

    def set_back(self, job_id: str) -> None:
        """Make a job that did not start wait before its next decision; longer each time."""
        wait = self._waits.setdefault(job_id, _Wait())
        wait.set_back = min(wait.set_back + 1, _MAX_SET_BACK)
        wait.not_before = self._monotonic() + self._settings.interval * 2**wait.set_back

    def orders_for(
        self,
        waiting: Sequence[SlurmJob],
        starting: Sequence[SlurmJob],
        present: Collection[str],
        nodes: SlurmNodes,
        now: float,
    ) -> list[str]:
        """Decide about `waiting` jobs, write the decisions to the journal, and return the orders for scontrol.

        starting: jobs whose CPUs are taken, although `nodes` does not show it. present: ids of all jobs; see
        `main_ids`. now: seconds since 1970.
        """
        self._forget([*waiting, *starting])
        cycle = _Cycle(nodes, _cpus_of(starting), present, now, self._monotonic())
        lines: list[str] = []
        entries: list[Entry] = []
        start = last = time.process_time()
        for job in self._turns.order(waiting):
            decided = self._outcome(job, cycle)
            now_s = time.process_time()
            spent, last = now_s - last, now_s
            self._turns.charge(job, spent)
            if isinstance(decided, JobDecision):
                entries.append(self._entry(job, decided, spent, now))
                cycle.take(decided.where.nodes, job)
                lines += orders.start_at(job, decided.where, self._places(job, decided))
            else:
                lines += decided
            if last - start > self._settings.decision_s:
                break
        else:
            self._turns.start_over()
        self._turns.next_cycle()
        self._journal.append(*entries)
        return lines

    # ---- one job -------------------------------------------------------------------------------------------

    def _outcome(self, job: SlurmJob, cycle: _Cycle) -> JobDecision | Sequence[str]:
        """Return the decision about a job, or the lines that give it back to Slurm, () if it waits."""
        request = self.requests.get(job.job_id)
        wait = self._waits.setdefault(job.job_id, _Wait())
        if request is None or wait.not_before > cycle.monotonic:
            return ()
        if isinstance(request, RequestError):
            return self._given_back(job, job_gpus(job), "refused request", str(request), cycle)
        if why := why_not_yet(job, cycle.present, cycle.now):
            self._figures.deferred[why] += 1
            wait.since = None
            return ()
        names = cycle.admissible(needs_of(job, request.nodelist, request.exclude))
        if names is None:
            return self._given_back(
                job, request.gpus, "unknown rule", job.features or request.nodelist, cycle
            )
        found = self._decision(job, request, names, cycle.now)
        if isinstance(found, JobDecision):
            self._cluster.allocate(job.job_id, found.placement, found.graph)
            self.graphs[job.job_id] = found.graph
            return found
        if found.permanent:
            return self._given_back(job, request.gpus, "cannot be placed", found.reason, cycle)
        return self._waits_on(job, request, names, found, cycle)

    def _decision(
        self, job: SlurmJob, request: SlurmRequest, names: frozenset[str], now: float
    ) -> JobDecision | Refusal:
        """Ask the policy, unless it has refused an equal job and nothing became free since."""
        free = frozenset(self._cluster.free_gpus())
        if not free <= self._free:
            self._refused.clear()
        self._free = free
        kept = self._kept(job)
        key = request, names
        if not kept and key in self._refused:
            return self._refused[key]
        ask = partial(decide, self._policy, self._cluster, request, kept=kept, now=now)
        home = self._home(job.job_id)
        found = ask(home) if home <= names and len(home) == request.nodes else None
        if not isinstance(found, JobDecision):
            found = ask(names)
        if isinstance(found, Refusal) and not kept:
            self._refused[key] = found
        return found

    def _home(self, job_id: str) -> frozenset[str]:
        """Return the nodes on which a requeued job ran last; none if it has not run."""
        known = self._journal.history(job_id) if job_id in self._journal.latest() else ()
        ran = [entry.gpus for entry in known if entry.stage is Stage.CONFIRMED]
        return frozenset([machine for machine, _ in ran[-1]] if ran else ())

    def _kept(self, job: SlurmJob) -> tuple[int, ...]:
        """Return the devices that an old Slurm goes on to ask for."""
        if job.devices is None or not self._keeps_old:
            return ()
        topology = self._cluster.topology
        gpus = [gpu for entry in self._journal.history(job.job_id) for gpu in entry.gpus]
        known = {name: number for number, name in enumerate(named(topology, range(topology.num_gpus)))}
        local = {topology.local_index[known[gpu]] for gpu in gpus if gpu in known}
        return tuple(sorted(local | set(job.devices)))

    def _waits_on(
        self, job: SlurmJob, request: SlurmRequest, names: frozenset[str], refusal: Refusal, cycle: _Cycle
    ) -> Sequence[str]:
        """Note that a job waits; once that takes too long although there are enough GPUs, give it back."""
        wait = self._waits[job.job_id]
        if not self._has_room(request, names):
            self._figures.deferred["no room"] += 1
            wait.since = None
            return ()
        self._figures.deferred["policy"] += 1
        if wait.since is None:
            wait.since = cycle.monotonic
            self._log("deferred", job=job.job_id, user=job.user, reason=refusal.reason)
        if cycle.monotonic - wait.since <= self._settings.patience:
            return ()
        return self._given_back(job, request.gpus, "patience", refusal.reason, cycle)

    def _has_room(self, request: SlurmRequest, names: frozenset[str]) -> bool:
        """Return True if Slurm could start the job now, as far as GPUs count."""
        owner = self._cluster.owner
        enough = 0
        for node in names & self._cluster.topology.gpus_of.keys():
            free = sum(owner(gpu) is None for gpu in self._cluster.topology.gpus_of[node])
            enough += free >= request.gpus
        return enough >= request.nodes

    def _given_back(self, job: SlurmJob, gpus: int, kind: str, reason: str, cycle: _Cycle) -> Sequence[str]:
        """Return the lines after which Slurm chooses the job's GPUs.

        The job is released a cycle later than it could be, behind jobs that have their orders: Slurm would
        otherwise choose their GPUs for it. An old Slurm refuses to forget devices; then the job is decided on.
        """
        wait = self._waits[job.job_id]
        wait.given_back += 1
        if gres.count_in(job.tres) != (gpus, None):
            if wait.given_back > _MAX_TRIES:
                wait.given_back, wait.since = 0, None
                return ()
            return orders.anywhere(job.job_id, gpus)
        if wait.given_back == 1 or cycle.given_back >= _MAX_GIVEN_BACK:
            return ()
        cycle.given_back += 1
        self._figures.given_back[kind] += 1
        self._log("given_back", job=job.job_id, user=job.user, kind=kind, reason=reason)
        return (orders.release(job.job_id),)

    def _places(self, job: SlurmJob, decided: JobDecision) -> str:
        """Return the text that tells a job where its tasks are; the log says if it has none."""
        places = task_places.written(self._cluster.topology, decided.placement.gpus)
        if not places:
            self._log("places_not_noted", job=job.job_id, user=job.user, tasks=len(decided.placement.gpus))
        return places

    def _entry(self, job: SlurmJob, decided: JobDecision, spent_s: float, now: float) -> Entry:
        placement, where = decided.placement, decided.where
        scores = {name: round(value, 6) for name, value in placement.scores.items() if math.isfinite(value)}
        wait = self._waits.pop(job.job_id, _Wait())
        latency = max(0.0, now - max(job.submitted, job.eligible))
        self._figures.decided += 1
        self._figures.note_latency(latency)
        self._log(
            "decided",
            job=job.job_id,
            user=job.user,
            nodes=where.nodes,
            gpus=where.numbers,
            policy=self._policy.name,
            scores=scores,
            waited_s=round(latency, 3),
            cpu_s=round(spent_s, 6),
        )
        if wait.set_back:
            self._waits[job.job_id] = _Wait(set_back=wait.set_back)
        why = ", ".join(f"{name} {value:g}" for name, value in list(scores.items())[:3])
        gpus = named(placement.topology, placement.gpus)
        return Entry(
            job.job_id,
            Stage.INTENT,
            gpus,
            f"{self._policy.name}: {why}" if why else self._policy.name,
            now,
            Holding.of_placement(placement),
        )

    def _forget(self, present: Sequence[SlurmJob]) -> None:
        known = {job.job_id for job in present}
        self.requests.forget_all_but(known)
        for job_id in self._waits.keys() - known:
            del self._waits[job_id]
        for job_id in self.graphs.keys() - known - self._cluster.allocations.keys():
            del self.graphs[job_id]


class _Cycle:
    """What is the same for all jobs of a cycle: nodes, time, and the CPUs of jobs that are about to start."""

    def __init__(
        self,
        nodes: SlurmNodes,
        taken_cpus: dict[str, int],
        present: Collection[str],
        now: float,
        monotonic: float,
    ) -> None:
        self.now = now
        """Seconds since 1970, as Slurm and the journal write times."""
        self.monotonic = monotonic
        """The same moment on a clock that is never set, for how long something takes."""
        self.given_back = 0
        self.present = present
        self._nodes = nodes
        self._taken = taken_cpus
        self._known: dict[Needs, frozenset[str] | None] = {}

    def admissible(self, needs: Needs) -> frozenset[str] | None:
        """Return the nodes on which Slurm would start such a job; see `waiting.admissible`."""
        if needs not in self._known:
            self._known[needs] = admissible(needs, self._nodes, self._taken)
        return self._known[needs]

    def take(self, nodes: Sequence[str], job: SlurmJob) -> None:
        """Count the CPUs of a job that was decided."""
        _add_cpus(self._taken, nodes, job)
        self._known.clear()


def _cpus_of(starting: Sequence[SlurmJob]) -> dict[str, int]:
    taken: dict[str, int] = {}
    for job in starting:
        _add_cpus(taken, node_names(job.nodes if job.runs else job.required_nodes), job)
    return taken


def _add_cpus(taken: dict[str, int], nodes: Sequence[str], job: SlurmJob) -> None:
    for node in nodes:
        taken[node] = taken.get(node, 0) + math.ceil(job.cpus / job.num_nodes)


def job_gpus(job: SlurmJob) -> int:
    """Return the GPUs per node that a job with an invalid request to topoplace asks Slurm for; at least 1."""
    found = gres.count_in(job.tres)
    return found[0] if found else 1
