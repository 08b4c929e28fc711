"""One decision: the phases for a batch of jobs, one after the other, and what they come to together (Algorithm 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.jobs.network_profile import traffic
from topoplace.placement import Deferred, Placement
from topoplace.policies.across import link_scores
from topoplace.policies.base import domains_among
from topoplace.policies.drmaestro import build
from topoplace.policies.drmaestro.build import Builder
from topoplace.policies.drmaestro.costs import LOCAL, Costs
from topoplace.policies.drmaestro.phase import WAITS

if TYPE_CHECKING:
    from topoplace.policies.base import QueuedJob
    from topoplace.policies.drmaestro.kinds import Bundle, Kind
    from topoplace.policies.drmaestro.state import Room
    from topoplace.topology.topology import Topology


@dataclass(slots=True, eq=False)
class Candidate:
    """A job of the batch, and what the phases have found for it so far."""

    entry: QueuedJob
    kind: Kind
    waited: float
    hosts: list[int] = field(default_factory=list[int])
    """The machine of each bundle."""
    gpus: list[int] = field(default_factory=list[int])
    drives: list[int] = field(default_factory=list[int])

    @property
    def machines(self) -> list[int]:
        """The machine of each process."""
        return self.hosts * self.kind.job.processes if self.kind.together else self.hosts

    def host_of(self, task: int) -> int:
        """The machine of a task's process."""
        return self.machines[task * len(self.machines) // self.kind.job.num_tasks]


Places = list[list[int]]
"""For each job the place of each of its sub-tasks, or WAITS."""


class Decision:
    """Places jobs on the room it is given, which it uses up."""

    def __init__(self, topology: Topology, room: Room, costs: Costs, *, limit: int | None) -> None:
        """limit: how often a job may be put off for its goal; None where nobody looks at the network."""
        self.topology = topology
        self.room = room
        self.costs = costs
        self.limit = limit
        self._touched: set[int] = set()
        self.disturbed = False
        """Whether a job has been in the way of others and then did not start: one that waits might start alone."""

    def run(self, batch: Sequence[Candidate]) -> list[tuple[Candidate, Placement | Deferred | None]]:
        """The jobs of the batch that get all they ask for, in its order: placed, or put off for their goal.

        None for one that would share a network with another of the batch, which no cost knew of: it may try again.
        """
        found = self._phases(batch)
        results = [(job, self._settled(job)) for job in found]
        if self.room.layout.partitioned.any():
            others = (job for job in batch if job not in found)
            results += [(job, self._settled(job)) for job in others if self._partition(job)]
        return results

    # ---- phases --------------------------------------------------------------------------------------------

    def _phases(self, batch: Sequence[Candidate]) -> list[Candidate]:
        """The jobs for all of whose sub-tasks there is a place."""
        left = self.room.copy()

        def hosts(jobs: Sequence[Candidate]) -> Places:
            return self._hosts(jobs, left.copy())

        placed = self._all_or_nothing(batch, hosts, _set_hosts)
        homeless = len(batch) - len(placed)
        placed = [job for job in placed if self._bind(job, left)]
        free = [job for job in placed if not job.kind.bound and job.kind.job.num_tasks]
        served = self._all_or_nothing(free, lambda jobs: self._gpus(jobs, left), self._set_gpus(left))
        lost: set[Candidate] = set(free) - set(served)
        stored = [job for job in placed if job not in lost and job.kind.job.drives]
        kept = self._all_or_nothing(stored, lambda jobs: self._drives(jobs, left), _set_storage)
        lost |= set(stored) - set(kept)
        found = [job for job in placed if job not in lost]
        self.disturbed |= len(found) + homeless < len(batch)
        return found

    def _all_or_nothing(
        self,
        batch: Sequence[Candidate],
        solve: Callable[[Sequence[Candidate]], Places],
        take: Callable[[Candidate, list[int]], None],
    ) -> list[Candidate]:
        """The jobs all of whose sub-tasks have a place (the gang rule).

        What is given to a part of a job is of no use to it, so the phase is solved again without such a job: with
        several, the oldest stays when the others go.
        """
        jobs: list[Candidate] = list(batch)
        while jobs:
            places = solve(jobs)
            partial = [job for job, own in zip(jobs, places, strict=True) if 0 < own.count(WAITS) < len(own)]
            if not partial:
                whole = [(job, own) for job, own in zip(jobs, places, strict=True) if WAITS not in own]
                for job, own in whole:
                    take(job, own)
                return [job for job, _ in whole]
            self.disturbed = True
            gone = set(partial[1:] or partial)
            jobs = [job for job in jobs if job not in gone]
        return []

    def _hosts(self, jobs: Sequence[Candidate], left: Room) -> Places:
        """Phase 1. Rounds, as CPUs and memory are two limits and a flow knows one: what does not fit tries again."""
        places: Places = [[WAITS] * len(job.kind.bundles) for job in jobs]
        open_tasks = [(j, b) for j, job in enumerate(jobs) for b in range(len(job.kind.bundles))]
        waits = self._waits(jobs)
        while open_tasks:
            found = self._host_round(jobs, open_tasks, left, waits, places)
            refused: list[tuple[int, int]] = []
            for (j, b), machine in zip(open_tasks, found, strict=True):
                if machine == WAITS:
                    continue
                if _take_host(left, jobs[j].kind, jobs[j].kind.bundles[b], machine):
                    places[j][b] = machine
                else:
                    refused.append((j, b))
            self.disturbed |= bool(refused)
            if len(refused) == sum(machine != WAITS for machine in found):
                break  # nothing fits as it was offered
            open_tasks = refused
        return places

    def _host_round(
        self,
        jobs: Sequence[Candidate],
        tasks: Sequence[tuple[int, int]],
        left: Room,
        waits: Any,
        places: Places,
    ) -> list[int]:
        builder = Builder()
        asked: dict[Any, tuple[Kind, Bundle, list[int]]] = {}
        for j, b in tasks:
            kind = jobs[j].kind
            bundle = kind.largest if kind.spread else kind.bundles[b]
            key = (id(kind), bundle, j if kind.spread else None)
            asked[key] = kind, bundle, [m for m in places[j] if m != WAITS] if kind.spread else []
            builder.add(j, key)
        offers = {
            key: build.offer_hosts(left, *asked[key], count=count, costs=self.costs)
            for key, count in builder.counts().items()
        }
        bundles = [bundle for _, bundle, _ in asked.values()]
        found: list[int] = builder.solve(offers, build.slots(left, bundles, len(tasks)), waits).tolist()
        return found

    def _gpus(self, jobs: Sequence[Candidate], left: Room) -> Places:
        """Phase 2: each GPU by itself, near its process where that can be; of equal jobs the older ones' are."""
        builder = Builder()
        asked: dict[Any, tuple[Kind, list[int]]] = {}
        local = self._local_gpus(jobs, left)
        for j, job in enumerate(jobs):
            kind = job.kind
            key = (id(kind), j if kind.apart else None)
            asked[key] = kind, job.machines
            for _ in range(kind.job.num_tasks):
                far, near = (0, []) if kind.apart else next(local[kind])
                builder.add(j, key, far + len(jobs) - j, near)
        offers = {
            key: build.offer_gpus(left, *asked[key], count, self.costs)
            for key, count in builder.counts().items()
        }
        found = builder.solve(offers, left.gpus.ravel(), self._waits(jobs))
        return _split(found.tolist(), [job.kind.job.num_tasks for job in jobs])

    def _local_gpus(
        self, jobs: Sequence[Candidate], left: Room
    ) -> dict[Kind, Iterator[tuple[int, list[tuple[int, int]]]]]:
        """By kind, for each task of its jobs in turn."""
        hosts: dict[Kind, list[int]] = {}
        for job in jobs:
            hosts.setdefault(job.kind, []).extend(map(job.host_of, range(job.kind.job.num_tasks)))
        return {kind: build.local_gpus(left, kind, where, self.costs) for kind, where in hosts.items()}

    def _drives(self, jobs: Sequence[Candidate], left: Room) -> Places:
        """Phase 3: each drive by itself, near a process where that can be."""
        builder = Builder()
        here = int(self.costs.place(np.ones(1), LOCAL)[0])
        for j, job in enumerate(jobs):
            near = [(host, here) for host in sorted(set(job.hosts)) if left.hosts[host, 2] > 0]
            for _ in range(job.kind.job.drives):
                builder.add(j, None, 0, near)
        offers = {key: build.offer_drives(left, count, self.costs) for key, count in builder.counts().items()}
        found = builder.solve(offers, np.maximum(left.hosts[:, 2], 0), self._waits(jobs))
        return _split(found.tolist(), [job.kind.job.drives for job in jobs])

    def _waits(self, jobs: Iterable[Candidate]) -> Any:
        return self.costs.wait(np.array([job.waited for job in jobs]))

    def _partition(self, job: Candidate) -> bool:
        """GPUs that can be given as partitions only: the first set with room for the processes beside it, if any."""
        kind = job.kind
        free: list[int] = np.flatnonzero(self.room.is_free).tolist()
        if kind.job.drives or not kind.job.num_tasks:
            return False
        return any(
            self._fits(job, sorted(domain)[: kind.job.num_tasks])
            for domain in domains_among(kind.job, self.topology, free)
            if len(domain) >= kind.job.num_tasks
        )

    def _fits(self, job: Candidate, gpus: list[int]) -> bool:
        """Take these GPUs, and the machines of the first of each process; False where that cannot be."""
        own, bundles = self.room.layout.machine_list, job.kind.bundles
        hosts = [own[gpus[-(-b * len(gpus) // len(bundles))]] for b in range(len(bundles))]
        wanted = np.zeros_like(self.room.hosts[:, :2])
        for host, bundle in zip(hosts, bundles, strict=True):
            wanted[host] += bundle.needs
        remote = any(own[gpu] not in hosts for gpu in gpus)
        if (wanted > self.room.hosts[:, :2])[hosts].any() or (remote and job.kind.bound):
            return False
        job.gpus, job.hosts = gpus, hosts
        return self.topology.is_legal(gpus)

    # ---- results -------------------------------------------------------------------------------------------

    def _bind(self, job: Candidate, left: Room) -> bool:
        """Take what phase 1 has found from what is left for phase 2; False where bound GPUs are not there."""
        for host, bundle in zip(job.hosts, job.kind.bundles, strict=True):
            gpus = _local_gpus(left, job.kind, host, bundle.gpus) if bundle.bound else []
            job.gpus += gpus
            for gpu in gpus:
                left.set_free(gpu, free=False)
        if all(bundle.bound for bundle in job.kind.bundles) and len(job.gpus) < job.kind.job.num_tasks:
            for gpu in job.gpus:
                left.set_free(gpu, free=True)
            return False
        return True

    def _set_gpus(self, left: Room) -> Callable[[Candidate, list[int]], None]:
        def take(job: Candidate, places: list[int]) -> None:
            """The lowest free GPUs of each place, each for a task whose process is near it where there is one."""
            gpus: list[int] = []
            for place in places:
                (gpu,) = left.lowest(place, 1)
                left.set_free(gpu, free=False)
                gpus.append(gpu)
            job.gpus = _nearest_first(job, gpus, left)

        return take

    def _settled(self, job: Candidate) -> Placement | Deferred | None:
        """The placement, whose resources are taken; or why the job rather waits."""
        kind, room = job.kind, self.room
        shares = kind.shares(job.hosts)
        own = room.layout.machine_list
        remote = tuple(
            gpu
            for task, gpu in enumerate(job.gpus)
            if room.pool_of[own[gpu]] != room.pool_of[job.host_of(task)]
        )
        sent = list(traffic(kind.profile, job.gpus, shares, remote, own))
        if self.limit is not None and self._touched.intersection(machine for machine, own in sent if own):
            return None
        load = max((float(room.load[machine]) for machine, _ in sent), default=0.0)
        slowdown = kind.profile.slowdown(load, remote=bool(remote))
        if self.limit is not None and slowdown > self.costs.goal and job.entry.postponed < self.limit:
            return Deferred(
                f"postponed: it would take {slowdown:.3f} times as long as on an idle network now, "
                f"its goal is {self.costs.goal:g}"
            )
        self._use(job, sent, remote=bool(remote))
        scores = {
            **link_scores(job.entry.job, job.gpus, self.topology),
            "network_load": load,
            "network_slowdown": slowdown,
            "utility": float(self.costs.utility(np.array([slowdown]))[0]),
        }
        return Placement(
            tuple(job.gpus),
            topology=self.topology,
            scores=scores,
            job=job.entry.job,
            hosts=shares,
            remote=remote,
            drives=tuple(job.drives),
        )

    def _use(self, job: Candidate, sent: Iterable[tuple[int, float]], *, remote: bool) -> None:
        room = self.room
        for host, bundle in zip(job.hosts, job.kind.bundles, strict=True):
            room.hosts[host, :2] -= bundle.needs
        for gpu in job.gpus:
            room.set_free(gpu, free=False)
        for machine in job.drives:
            room.hosts[machine, 2] -= 1
        room.send(sent, job.kind.profile.sensitivity(remote=remote))
        self._touched.update(machine for machine, own in sent if own)


def _set_hosts(job: Candidate, places: list[int]) -> None:
    job.hosts = places


def _set_storage(job: Candidate, places: list[int]) -> None:
    job.drives = places


def _take_host(left: Room, kind: Kind, bundle: Bundle, machine: int) -> bool:
    """Take a bundle from a machine; False, and nothing taken, where it does not fit."""
    if (left.hosts[machine, :2] < bundle.needs).any():
        return False
    if bundle.bound:
        gpus = _local_gpus(left, kind, machine, bundle.gpus)
        if len(gpus) < bundle.gpus:
            return False
        for gpu in gpus:
            left.set_free(gpu, free=False)
    left.hosts[machine, :2] -= bundle.needs
    return True


def _local_gpus(room: Room, kind: Kind, host: int, count: int) -> list[int]:
    """So many free GPUs that are local to a machine: its own, lowest numbers first, then those of its pool."""
    found: list[int] = []
    for machine in [host] if kind.own else room.pool(host):
        if len(found) == count:
            break
        first = machine * len(kind.suits)
        suitable = [room.lowest(first + int(make), count) for make in np.flatnonzero(kind.suits)]
        found += sorted(gpu for gpus in suitable for gpu in gpus)[: count - len(found)]
    return found


def _nearest_first(job: Candidate, gpus: Sequence[int], room: Room) -> list[int]:
    """The GPUs in an order of tasks in which no task has a remote one that could have a local one."""
    rest = sorted(gpus)
    own, pool = room.layout.machine_list, room.pool_of
    chosen: list[int | None] = []
    for task in range(len(gpus)):
        host = job.host_of(task)
        near = [gpu for gpu in rest if pool[own[gpu]] == pool[host]]
        first = min(near, key=lambda gpu: (own[gpu] != host, gpu), default=None)
        if first is not None:
            rest.remove(first)
        chosen.append(first)
    left = iter(rest)
    return [next(left) if gpu is None else gpu for gpu in chosen]


def _split(places: list[int], sizes: Sequence[int]) -> Places:
    parts = iter(places)
    return [[next(parts) for _ in range(size)] for size in sizes]
