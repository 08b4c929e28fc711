"""What a policy is, and the base class that turns one search into a whole policy.

A third party writes either a class with the methods of `Policy`, or, shorter, a `SearchPolicy` with the one
method `best`; see `_template.py`.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Deferred

if TYPE_CHECKING:
    from topoplace.placement import Placement
    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

GpuSet = frozenset[int]
MAX_SEARCHED_GPUS = 4096
"""What the match kernel takes; each GPU is a vertex of its target."""


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job that waits: its id, what it needs, and when it was submitted (seconds)."""

    job_id: str
    job: JobGraph
    submit_time: float = 0.0
    postponed: int = 0
    """How often a plan has deferred it."""

    def __post_init__(self) -> None:
        _checks.instance(self.job, JobGraph, "job", ValueError)
        _checks.integer(self.postponed, "postponed", ValueError, low=0, high=1 << 62)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a policy would do with a queue now. Jobs in none of the fields simply wait.

    `start` is in the order to allocate in; `defer` tells why a job has to wait; `reject` names jobs that can never
    run on this topology, with the reason; `move` gives running jobs a new placement.
    """

    start: tuple[tuple[str, Placement], ...] = ()
    defer: tuple[tuple[str, Deferred], ...] = ()
    reject: tuple[tuple[str, Deferred], ...] = ()
    move: tuple[tuple[str, Placement], ...] = ()


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a policy decides as it does: its candidates, best first, each a different GPU set, or why there is none.

    `deferred` is None where `place` returns the first candidate; candidates may be given next to it when the policy
    would rather wait than take them.
    """

    policy: str
    candidates: tuple[Placement, ...]
    deferred: Deferred | None = None


@runtime_checkable
class Policy(Protocol):
    """Chooses GPUs for jobs. Reads the cluster it is shown and never changes it; same input, same answer."""

    @property
    def name(self) -> str:
        """How tables and the command line call it."""
        ...

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """The GPUs for `job` among the free ones of `cluster`; None when nothing fits or waiting is better."""
        ...

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """The `top` best candidates with their scores, and the reason where `place` returns None."""
        ...

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """What to start, defer, reject and move at time `now`, for the waiting jobs in order of the queue."""
        ...


class SearchPolicy(ABC):
    """A policy made from one search, `best`; requirements, ranking and the queue come with it.

    The queue is first in, first out, and its head blocks those behind it; only a job that can never run is set aside.
    """

    name: str

    @abstractmethod
    def best(
        self, job: JobGraph, cluster: Cluster, free: GpuSet, required: GpuSet = frozenset()
    ) -> Placement | None:
        """The best placement inside `free` that uses all of `required`, or None.

        `free` holds the free GPUs that meet the job's requirements, and at least as many as it has tasks; it may be
        smaller than `cluster.free_gpus()`. Best means the largest `rank`, and among equals the lexicographically
        smallest ascending GPU list.
        """

    def rank(self, job: JobGraph, placement: Placement) -> tuple[float, ...]:
        """What `best` maximises, most important first; empty where only the GPU ids matter."""
        return ()

    def objection(self, job: JobGraph, placement: Placement) -> Deferred | None:
        """Why the job should rather wait than take `placement`, its best; None to take it."""
        return None

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """The best placement of `job` on the free GPUs; None when nothing fits or the policy would rather wait."""
        _check_size(cluster)
        where = domains(job, cluster)
        if len(where) == 1 and len(where[0]) >= job.num_tasks:  # the usual case: nothing to be ranked
            placement = self.best(job, cluster, where[0])
        else:
            placement = next(self._ranked(job, cluster), None)
        return None if placement is None or self.objection(job, placement) else placement

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """The `top` best GPU sets, each with its best order and scores, and the reason where `place` gives None."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        _check_size(cluster)
        candidates = tuple(islice(self._ranked(job, cluster), top))
        if candidates:
            deferred = self.objection(job, candidates[0])
        else:
            deferred = never_fits(job, cluster.topology) or no_room(job, cluster)
        return Explanation(self.name, candidates, deferred)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start jobs from the head of the queue until one has to wait; set aside those that can never run."""
        start: list[tuple[str, Placement]] = []
        defer: list[tuple[str, Deferred]] = []
        reject: list[tuple[str, Deferred]] = []
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        with cluster.trial() as state:
            for i, entry in enumerate(_checks.sequence(queue, "queue", ValueError)):
                _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
                chosen = self.place(entry.job, state)
                if chosen is not None:
                    start.append((entry.job_id, chosen))
                    state.allocate(entry.job_id, chosen)
                elif never := never_fits(entry.job, cluster.topology):
                    reject.append((entry.job_id, never))
                else:
                    if enough_suit(entry.job, state):
                        defer.append((entry.job_id, no_room(entry.job, state)))
                    break
        return Plan(tuple(start), tuple(defer), tuple(reject))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def _ranked(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement]:
        """Best placements of different GPU sets, best first.

        Lawler's partition: the sets other than {a, b, c} are those without a, those with a but without b, and
        those with a and b but without c; the best of each part is found by `best` again.
        """

        def solve(free: GpuSet, required: GpuSet) -> None:
            if len(free) < job.num_tasks:
                return
            placement = self.best(job, cluster, free, required)
            if placement is not None:
                gpus = sorted(placement.gpus)
                order = ([-value for value in self.rank(job, placement)], gpus)
                heapq.heappush(parts, (order, placement, free, required))

        parts: list[tuple[tuple[list[float], list[int]], Placement, GpuSet, GpuSet]] = []
        for domain in domains(job, cluster):
            solve(domain, frozenset())
        while parts:
            (_, gpus), placement, free, required = heapq.heappop(parts)
            yield placement
            kept = required
            for gpu in gpus:
                if gpu not in required:
                    solve(free - {gpu}, kept)
                    kept |= {gpu}


def _check_size(cluster: Cluster) -> None:
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    if cluster.topology.num_gpus > MAX_SEARCHED_GPUS:
        raise ValueError(
            f"{cluster.topology.num_gpus} GPUs are more than this policy searches at once "
            f"(at most {MAX_SEARCHED_GPUS}); give it one part of the cluster after the other"
        )


def domains(job: JobGraph, cluster: Cluster) -> list[GpuSet]:
    """The sets of free GPUs `job` may be placed in: all that meet its requirements, or for `single_machine` those of
    each machine. For `anti_affinity` one GPU of each machine, the lowest: which one cannot matter to links between
    machines, but no claim is made that it is the best to give away.
    """
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    return domains_among(job, cluster.topology, cluster.free_gpus())


def enough_suit(job: JobGraph, cluster: Cluster) -> bool:
    """Whether enough free GPUs meet the requirements of `job`; their links may still not take it."""
    return any(len(domain) >= job.num_tasks for domain in domains(job, cluster))


def never_fits(job: JobGraph, topology: Topology) -> Deferred | None:
    """Why `job` could not even run on an idle `topology`; None if it has enough suitable GPUs."""
    if not job.num_tasks:
        return Deferred("never fits: it needs no GPU, and this policy gives nothing else")
    most = max(map(len, domains_among(job, topology, range(topology.num_gpus))), default=0)
    return _shortage("never fits", job, most, "the topology has") if most < job.num_tasks else None


def no_room(job: JobGraph, cluster: Cluster) -> Deferred:
    """Why `job`, which could run on an idle cluster, does not fit now."""
    most = max(map(len, domains(job, cluster)), default=0)
    if most < job.num_tasks:
        return _shortage("does not fit now", job, most, "free are")
    return Deferred(
        f"does not fit now: no {job.num_tasks} of the {most} free GPUs have links for every edge of the job"
    )


def _shortage(verdict: str, job: JobGraph, most: int, where: str) -> Deferred:
    wishes = [f" {job.gpu_model}" if job.gpu_model else "", " GPUs"]
    if job.gpu_memory_gb:
        wishes.append(f" of {job.gpu_memory_gb:g} GB or more")
    if job.single_machine:
        wishes.append(" on one machine")
    if job.anti_affinity:
        wishes.append(" on different machines")
    return Deferred(f"{verdict}: {job.num_tasks}{''.join(wishes)} needed, {where} {most}")


def domains_among(job: JobGraph, topology: Topology, gpus: Sequence[int]) -> list[GpuSet]:
    """As `domains`, where `gpus`, ascending, are the free ones."""
    if not job.num_tasks:
        return []
    if job.gpu_model or job.gpu_memory_gb:
        wanted = set(topology.select(suits_of(job)))
        gpus = [gpu for gpu in gpus if gpu in wanted]
    if job.anti_affinity and job.num_tasks > 1:
        alone = (gpu for gpu in gpus if topology.is_legal((gpu,)))
        return [frozenset(min(group) for group in _by_machine(alone, topology).values())]
    bound = frozenset(topology.partitioned_gpus)
    if not bound:
        return _unbound_domains(job, topology, gpus)
    unbound = [gpu for gpu in gpus if gpu not in bound]
    return [*_unbound_domains(job, topology, unbound), *_legal_sets(job, topology, bound.intersection(gpus))]


def _unbound_domains(job: JobGraph, topology: Topology, gpus: Sequence[int]) -> list[GpuSet]:
    if job.single_machine and topology.num_machines > 1:
        return [frozenset(group) for group in _by_machine(gpus, topology).values()]
    return [frozenset(gpus)]


def _by_machine(gpus: Iterable[int], topology: Topology) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    machine_of = topology.machine_of
    for gpu in gpus:
        groups.setdefault(int(machine_of[gpu]), []).append(gpu)
    return groups


def _legal_sets(job: JobGraph, topology: Topology, gpus: GpuSet) -> list[GpuSet]:
    """The partitions in `gpus` that are as large as `job`; where there is none, the largest of each machine, in the
    order of the machines, as far as they add up to the job.
    """
    free = [
        part for part in map(frozenset, topology.partitions) if len(part) <= job.num_tasks and part <= gpus
    ]
    exact = [part for part in free if len(part) == job.num_tasks]
    if job.single_machine:
        return [part for part in exact if len(_by_machine(part, topology)) == 1]
    if exact or topology.num_machines == 1:
        return exact
    largest: dict[int, GpuSet] = {}
    for part in free:
        machine = min(_by_machine(part, topology))
        largest[machine] = max(largest.get(machine, part), part, key=len)
    joined = _filled(largest.values(), job.num_tasks)
    return [joined] if len(joined) == job.num_tasks and topology.is_legal(joined) else []


def _filled(parts: Iterable[GpuSet], most: int) -> GpuSet:
    """The parts together, one after the other, as long as there are no more than `most` GPUs."""
    joined: GpuSet = frozenset()
    for part in parts:
        if len(joined) + len(part) <= most:
            joined |= part
    return joined


def suits_of(job: JobGraph) -> Callable[[Gpu], bool]:
    """Whether one GPU is of the model, and has the memory, that `job` asks for; unknown memory does not suit."""

    def suits(gpu: Gpu) -> bool:
        if job.gpu_model and gpu.model != job.gpu_model:
            return False
        return not job.gpu_memory_gb or (gpu.memory_gb or 0.0) >= job.gpu_memory_gb

    return suits
