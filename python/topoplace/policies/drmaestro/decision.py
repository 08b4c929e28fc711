"""The decision about one batch of jobs: run the three phases and build the placements (Algorithm 5 of the thesis)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace.cluster.hosts import needs_hosts, tasks_hosted
from topoplace.engine.admission import Limits, candidate_gpu_sets_among, joined_gpu_sets_among
from topoplace.jobs.network_profile import traffic
from topoplace.objectives.links import job_link_scores
from topoplace.placement import Placement, Refusal
from topoplace.policies.drmaestro import phases
from topoplace.policies.drmaestro.costs import LOCAL, Costs, Prices
from topoplace.policies.drmaestro.phases import WAITS, Builder

if TYPE_CHECKING:
    from topoplace.engine.plan import QueuedJob
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.policies.drmaestro.bundles import Bundle, JobBundles
    from topoplace.policies.drmaestro.free_resources import FreeResources
    from topoplace.policies.drmaestro.network import NetworkLoad
    from topoplace.topology.topology import Topology


@dataclass(slots=True, eq=False)
class Candidate:
    """A job of the batch, with the machines, GPUs and drives found for it so far."""

    entry: QueuedJob
    needs: JobBundles
    waited: float
    """Seconds, or rounds, that the job has waited."""
    hosts: list[int] = field(default_factory=list[int])
    """The machine of each bundle."""
    gpus: list[int] = field(default_factory=list[int])
    """The GPU of each task."""
    drives: list[int] = field(default_factory=list[int])
    """The machine of each drive."""

    @property
    def machines(self) -> list[int]:
        """Return the machine of each process of the job."""
        return self.hosts * self.needs.processes if self.needs.single_bundle else self.hosts

    @property
    def host_of_task(self) -> list[int]:
        """Return, for each task, the machine of the process that drives its GPU."""
        machines, num_tasks = self.machines, self.needs.job.num_tasks
        return [machines[task * len(machines) // num_tasks] for task in range(num_tasks)]


Places = list[list[int]]
"""For each job, the place of each of its sub-tasks in one phase, or WAITS."""


class Decision:
    """The decision about one batch of jobs: which of them start, and where.

    `run` takes the resources of these jobs from the free ones, and adds their traffic to the network load.
    """

    def __init__(
        self,
        topology: Topology,
        free: FreeResources,
        network: NetworkLoad,
        costs: Costs,
        *,
        limit: int | None,
        retry: bool = True,
    ) -> None:
        """Keep references to `free` and `network`, which `run` changes.

        limit: number of times that a job may be deferred because it would miss its goal; None if network load is
        ignored. retry: True solves a phase again for sub-tasks that it left out; False is Algorithm 5 as printed, one
        mapping per phase.
        """
        self.topology = topology
        self.free = free
        self.network = network
        self.costs = costs
        self.prices = Prices(costs, network)
        self.limit = limit
        self.retry = retry
        self._touched: set[int] = set()
        self.disturbed = False
        """True if a job without success competed with others, so that a waiting job might fit in its own batch."""

    def run(self, batch: Sequence[Candidate]) -> list[tuple[Candidate, Placement | Refusal | None]]:
        """Return each job for which all resources were found, with its outcome.

        The outcome is a placement, unless `limit` is given. In that case, it is a refusal for a job that would miss its
        goal and was postponed fewer than `limit` times. It is None for a job that would share a machine's network with
        a job placed earlier in this batch; such a job must be retried.
        """
        found = self._phases(batch)
        results = [(job, self._settled(job)) for job in found]
        if self.free.columns.partitions_of:
            others = (job for job in batch if job not in found)
            results += [(job, self._settled(job)) for job in others if self._partition(job)]
        return results

    # ---- phases --------------------------------------------------------------------------------------------

    def _phases(self, batch: Sequence[Candidate]) -> list[Candidate]:
        """Run the three phases (processes, GPUs, drives); return the jobs for which all resources were found."""
        left = self.free.copy()

        def hosts(jobs: Sequence[Candidate]) -> Places:
            return self._hosts(jobs, left.copy())

        placed = self._all_or_nothing(batch, hosts, _set_hosts)
        homeless = len(batch) - len(placed)
        placed = [job for job in placed if self._bind(job, left)]
        remote = [job for job in placed if not job.needs.gpus_local and job.needs.job.num_tasks]
        served = self._all_or_nothing(remote, lambda jobs: self._gpus(jobs, left), self._set_gpus(left))
        lost: set[Candidate] = set(remote) - set(served)
        stored = [job for job in placed if job not in lost and job.needs.job.drives]
        kept = self._all_or_nothing(stored, lambda jobs: self._drives(jobs, left), _set_drives)
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
        """Solve one phase of the decision, and return the jobs that are placed completely (the gang rule).

        While some jobs are placed only in part, the phase is solved again without them; if there are several such jobs,
        the first of them stays. Without `retry`, all of them are left out. solve: returns for each job the places of
        its processes, GPUs or drives. take: stores the places of a complete job.
        """
        jobs: list[Candidate] = list(batch)
        while jobs:
            places = solve(jobs)
            partial = [job for job, own in zip(jobs, places, strict=True) if 0 < own.count(WAITS) < len(own)]
            if not partial or not self.retry:
                whole = [(job, own) for job, own in zip(jobs, places, strict=True) if WAITS not in own]
                for job, own in whole:
                    take(job, own)
                return [job for job, _ in whole]
            self.disturbed = True
            gone = set(partial[1:] or partial)
            jobs = [job for job in jobs if job not in gone]
        return []

    def _hosts(self, jobs: Sequence[Candidate], left: FreeResources) -> Places:
        """Run phase 1, processes: return for each job the machine of each bundle, or WAITS if there is none.

        A bundle is a process with its CPUs, memory and local GPUs. The flow network has one limit per machine for CPUs
        and memory together. So a flow may put a bundle on a machine where it does not fit; such bundles are placed
        again in a further round.
        """
        places: Places = [[WAITS] * len(job.needs.bundles) for job in jobs]
        open_tasks = [(j, b) for j, job in enumerate(jobs) for b in range(len(job.needs.bundles))]
        waits = self._waits(jobs)
        while open_tasks:
            found = self._host_round(jobs, open_tasks, left, waits, places)
            refused: list[tuple[int, int]] = []
            for (j, b), machine in zip(open_tasks, found, strict=True):
                if machine == WAITS:
                    continue
                if _take_host(left, jobs[j].needs, jobs[j].needs.bundles[b], machine):
                    places[j][b] = machine
                else:
                    refused.append((j, b))
            self.disturbed |= bool(refused)
            if not self.retry or len(refused) == sum(machine != WAITS for machine in found):
                break  # no bundle fits where the flow put it
            open_tasks = refused
        return places

    def _host_round(
        self,
        jobs: Sequence[Candidate],
        tasks: Sequence[tuple[int, int]],
        left: FreeResources,
        waits: Any,
        places: Places,
    ) -> list[int]:
        builder = Builder()
        asked: dict[Any, tuple[JobBundles, Bundle, list[int]]] = {}
        for j, b in tasks:
            needs = jobs[j].needs
            alone = needs.anti_affine
            bundle = needs.largest if alone else needs.bundles[b]
            key = (id(needs), bundle, j if alone else None)
            asked[key] = needs, bundle, [m for m in places[j] if m != WAITS] if alone else []
            builder.add(j, key)
        offers = {
            key: phases.offer_hosts(left, *asked[key], count=count, prices=self.prices)
            for key, count in builder.counts().items()
        }
        bundles = [bundle for _, bundle, _ in asked.values()]
        found: list[int] = builder.solve(offers, phases.slots(left, bundles, len(tasks)), waits).tolist()
        return found

    def _gpus(self, jobs: Sequence[Candidate], left: FreeResources) -> Places:
        """Run phase 2, GPUs: return for each job the place (machine and GPU make) of each task's GPU, or WAITS.

        At equal network load, local GPUs cost less than remote ones. If jobs compete for local GPUs at equal cost, the
        older job gets them.
        """
        builder = Builder()
        asked = {id(job.needs): job.needs for job in jobs}
        local = self._local_gpus(jobs, left)
        for j, job in enumerate(jobs):
            needs = job.needs
            for _ in range(needs.job.num_tasks):
                far, near = next(local[needs])
                builder.add(j, id(needs), far + len(jobs) - j, near)
        offers: dict[Any, phases.Offer] = {
            key: phases.offer_gpus(left, needs, builder.counts()[key], self.prices)
            for key, needs in asked.items()
        }
        found = builder.solve(offers, left.gpus.ravel(), self._waits(jobs))
        return _split(found.tolist(), [job.needs.job.num_tasks for job in jobs])

    def _local_gpus(
        self, jobs: Sequence[Candidate], left: FreeResources
    ) -> dict[JobBundles, Iterator[tuple[int, list[tuple[int, int]]]]]:
        """Return for each `JobBundles` the iterator `phases.local_gpus`, which yields one item per task of its jobs."""
        hosts: dict[JobBundles, list[int]] = {}
        for job in jobs:
            hosts.setdefault(job.needs, []).extend(job.host_of_task)
        return {needs: phases.local_gpus(left, needs, where, self.prices) for needs, where in hosts.items()}

    def _drives(self, jobs: Sequence[Candidate], left: FreeResources) -> Places:
        """Run phase 3, drives: return for each job the machine of each drive, or WAITS if there is none.

        A machine with a process of the job costs less than others.
        """
        builder = Builder()
        here = int(self.costs.place(np.ones(()), LOCAL))
        for j, job in enumerate(jobs):
            near = [(host, here) for host in sorted(set(job.hosts))]
            for _ in range(job.needs.job.drives):
                builder.add(j, None, preferred=near)
        offers = {
            key: phases.offer_drives(left, count, self.prices) for key, count in builder.counts().items()
        }
        found = builder.solve(offers, np.maximum(left.hosts[:, 2], 0), self._waits(jobs))
        return _split(found.tolist(), [job.needs.job.drives for job in jobs])

    def _waits(self, jobs: Iterable[Candidate]) -> Any:
        return self.costs.wait(np.array([job.waited for job in jobs]))

    def _partition(self, job: Candidate) -> bool:
        """Assign to the job, on a cluster with fixed partitions, the first choice of GPUs that `_fits` accepts.

        Return False if there is none. Jobs that need drives, or no GPU, are not considered.
        """
        asked = job.needs.job
        if asked.drives or not asked.num_tasks:
            return False
        choices = self._choices(asked)
        if job.needs.gpus_local and needs_hosts(asked):
            choices = chain(
                self._choices(asked, tasks_hosted(asked, self.free.hosts, at_best=False)), choices
            )
        return any(self._fits(job, gpus) for choice in choices for gpus in self._orders(choice))

    def _choices(self, asked: JobGraph, limits: Limits = None) -> Iterator[list[int]]:
        """Yield the lowest GPUs of each set that the job may get: of one set first, then joined with partitions.

        limits: the most tasks for each machine; None for no limit.
        """
        free: list[int] = np.flatnonzero(self.free.free_mask).tolist()
        for gpus in candidate_gpu_sets_among(asked, self.topology, free, limits):
            if len(gpus) >= asked.num_tasks:
                yield sorted(gpus)[: asked.num_tasks]
        for gpus, required in joined_gpu_sets_among(asked, self.topology, free, limits):
            yield sorted(required.union(sorted(gpus - required)[: asked.num_tasks - len(required)]))

    def _orders(self, gpus: list[int]) -> Iterator[list[int]]:
        """Yield the GPUs ascending, but with those of each of their machines first, where the first process runs."""
        own = self.free.columns.machine_list
        for first in dict.fromkeys(own[gpu] for gpu in gpus):
            yield sorted(gpus, key=lambda gpu: (own[gpu] != first, gpu))

    def _fits(self, job: Candidate, gpus: list[int]) -> bool:
        """Assign to the job these GPUs, with each process on the machine of its first GPU.

        Return False if the machines lack CPUs or memory, or if a GPU would be remote although it must be local. Also
        return False if the topology allows only certain GPU sets (its partitions), and these GPUs are none of them.
        """
        own, bundles = self.free.columns.machine_list, job.needs.bundles
        hosts = [own[gpus[-(-b * len(gpus) // len(bundles))]] for b in range(len(bundles))]
        wanted = np.zeros_like(self.free.hosts[:, :2])
        for host, bundle in zip(hosts, bundles, strict=True):
            wanted[host] += bundle.needs
        if (wanted > self.free.hosts[:, :2])[hosts].any():
            return False
        job.gpus, job.hosts = gpus, hosts
        return not (job.needs.gpus_local and self._remote(job)) and self.topology.is_legal(gpus)

    # ---- results -------------------------------------------------------------------------------------------

    def _bind(self, job: Candidate, left: FreeResources) -> bool:
        """Take the GPUs that must be local to the job's processes out of `left`, after phase 1 chose the machines.

        Return False, and take nothing, if there are too few.
        """
        needs = job.needs
        for host, bundle in zip(job.hosts, needs.bundles, strict=True):
            gpus = _local_gpus(left, needs, host, bundle.gpus) if bundle.gpus_local else []
            if len(gpus) == needs.job.num_tasks:
                gpus = _near_each_other(needs, gpus, left)
            job.gpus += gpus
            for gpu in gpus:
                left.set_free(gpu, free=False)
        if needs.gpus_local and len(job.gpus) < needs.job.num_tasks:
            for gpu in job.gpus:
                left.set_free(gpu, free=True)
            return False
        return True

    def _set_gpus(self, left: FreeResources) -> Callable[[Candidate, list[int]], None]:
        def take(job: Candidate, places: list[int]) -> None:
            """Take the lowest free GPU of each place (machine and GPU make).

            They are distributed so that tasks get GPUs on the machine or in the pool of their process where possible.
            If the GPUs' topology counts and all are at one place, take those nearest to each other there.
            """
            gpus: list[int] = []
            for place, count in Counter(places).items():
                gpus += left.lowest(place, count)
            job.gpus = _near_each_other(job.needs, _nearest_first(job, gpus, left), left)
            for gpu in job.gpus:
                left.set_free(gpu, free=False)

        return take

    def _settled(self, job: Candidate) -> Placement | Refusal | None:
        """Return the job's placement and take its resources.

        If `limit` is given, return a refusal instead for a job that would miss its goal and was postponed fewer than
        `limit` times. Then also return None if the job would send over the network of a machine where another job of
        this batch, placed before, sends.
        """
        profile = job.needs.profile
        host_shares, remote = job.needs.host_shares(job.hosts), self._remote(job)
        sent = list(traffic(profile, job.gpus, host_shares, remote, self.free.columns.machine_list))
        if self.limit is not None and self._touched.intersection(machine for machine, own in sent if own):
            return None
        load = max((float(self.network.load[machine]) for machine, _ in sent), default=0.0)
        slowdown = profile.slowdown(load, remote=bool(remote))
        if self.limit is not None and slowdown > self.costs.goal and job.entry.postponed < self.limit:
            return Refusal(
                f"postponed: it would take {slowdown:.3f} times as long as on an idle network now, "
                f"its goal is {self.costs.goal:g}"
            )
        self._use(job, sent, remote=bool(remote))
        scores = {
            **job_link_scores(job.entry.job, job.gpus, self.topology),
            **self.costs.scores(load, slowdown),
        }
        return Placement(
            tuple(job.gpus),
            topology=self.topology,
            scores=scores,
            job=job.entry.job,
            hosts=host_shares,
            remote=remote,
            drives=tuple(job.drives),
        )

    def _remote(self, job: Candidate) -> tuple[int, ...]:
        """Return the job's remote GPUs: those outside the pool of their process's machine."""
        own, pool_of = self.free.columns.machine_list, self.free.pool_of
        return tuple(
            gpu
            for gpu, host in zip(job.gpus, job.host_of_task, strict=True)
            if pool_of[own[gpu]] != pool_of[host]
        )

    def _use(self, job: Candidate, sent: Iterable[tuple[int, float]], *, remote: bool) -> None:
        free = self.free
        for host, bundle in zip(job.hosts, job.needs.bundles, strict=True):
            free.hosts[host, :2] -= bundle.needs
        for gpu in job.gpus:
            free.set_free(gpu, free=False)
        for machine in job.drives:
            free.hosts[machine, 2] -= 1
        self.network.send(sent, job.needs.profile.sensitivity(remote=remote))
        self._touched.update(machine for machine, own in sent if own)


def _set_hosts(job: Candidate, places: list[int]) -> None:
    job.hosts = places


def _set_drives(job: Candidate, places: list[int]) -> None:
    job.drives = places


def _take_host(left: FreeResources, needs: JobBundles, bundle: Bundle, machine: int) -> bool:
    """Take the resources of a bundle from a machine; return False, and take nothing, if it does not fit."""
    if (left.hosts[machine, :2] < bundle.needs).any():
        return False
    if bundle.gpus_local:
        gpus = _local_gpus(left, needs, machine, bundle.gpus)
        if len(gpus) < bundle.gpus:
            return False
        for gpu in gpus:
            left.set_free(gpu, free=False)
    left.hosts[machine, :2] -= bundle.needs
    return True


def _local_gpus(free: FreeResources, needs: JobBundles, host: int, count: int) -> list[int]:
    """Return at most `count` free suitable GPUs that are local to the machine `host`.

    The machine's own GPUs come first, then those of other machines in its pool, if these count as local.
    """
    found: list[int] = []
    for machine in [host] if needs.own_machine_only else free.pool(host):
        if len(found) == count:
            break
        first = machine * len(needs.suits)
        suitable = [free.lowest(first + int(make), count) for make in np.flatnonzero(needs.suits)]
        rank, make_of = needs.memory_rank, free.columns.make_of
        found += sorted(
            (gpu for gpus in suitable for gpu in gpus), key=lambda gpu: (rank[make_of[gpu]], gpu)
        )[: count - len(found)]
    return found


def _near_each_other(needs: JobBundles, gpus: list[int], free: FreeResources) -> list[int]:
    """Return GPUs nearest to each other at the one place of `gpus`, those of all tasks.

    Return `gpus` if they are at several places (machine and GPU make), or if the job does not look at links.
    """
    places = {int(free.columns.place_of[gpu]) for gpu in gpus}
    if needs.gpu_topology is None or len(places) != 1:
        return gpus
    return needs.gpu_topology.gpus(places.pop(), free)


def _nearest_first(job: Candidate, gpus: Sequence[int], free: FreeResources) -> list[int]:
    """Return the GPU of each task, an order of `gpus` in which tasks get local GPUs as far as possible.

    A task prefers a GPU on its process's machine, then one in its pool, and else takes any GPU that is left.
    """
    own, pool = free.columns.machine_list, free.pool_of
    of_machine, of_pool = dict[int, list[int]](), dict[int, list[int]]()
    for gpu in sorted(gpus, reverse=True):  # so that `pop` takes the lowest one
        of_machine.setdefault(own[gpu], []).append(gpu)
        of_pool.setdefault(int(pool[own[gpu]]), []).append(gpu)
    rest = set(gpus)

    def taken(stack: list[int]) -> int | None:
        while stack:
            if (gpu := stack.pop()) in rest:
                rest.remove(gpu)
                return gpu
        return None

    chosen: list[int | None] = []
    for host in job.host_of_task:
        own_gpu = taken(of_machine.get(host, []))
        chosen.append(taken(of_pool.get(int(pool[host]), [])) if own_gpu is None else own_gpu)
    left = iter(sorted(rest))
    return [next(left) if gpu is None else gpu for gpu in chosen]


def _split(places: list[int], sizes: Sequence[int]) -> Places:
    parts = iter(places)
    return [[next(parts) for _ in range(size)] for size in sizes]
