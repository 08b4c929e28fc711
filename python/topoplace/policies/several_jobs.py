"""Placement of several jobs at once, such as the replicas of a service: together, or spread over domains of a level.

The policy decides what fits, on a cluster whose other machines are temporarily held. Three ways are tried, each only if
the one before does not place all jobs: one after the other, by the policy's preference; the largest first; and all jobs
as one job of several roles (`JobGraph.joined`), whose groups are packed at the same time. With `spread`, the three ways
are: one after the other; a matching of jobs with domains; and a search over sets of domains.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations, islice
from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace import _checks, policies
from topoplace.cluster.cluster import Cluster
from topoplace.engine.level_chain import LevelChains
from topoplace.engine.policy import Policy
from topoplace.errors import SearchTimeoutError
from topoplace.jobs.groups import MACHINE
from topoplace.jobs.job_graph import JobGraph

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology

    Ints = NDArray[np.int64]

Found = dict[int, "Placement"]
"""The placements of some of the jobs, by index."""

_MAX_SUBSETS: Final = 256
"""Limit on sets of jobs that are tried after those that fit in order."""
_MAX_ASKED: Final = 512
"""Limit on sets of domains for which a search calls the policy."""
_MAX_STEPS: Final = 20_000
"""Limit on sets of domains that a search examines."""
_MAX_DEPTH: Final = 64
"""Largest number of jobs for which sets of domains are searched."""


def place_all(
    jobs: Sequence[JobGraph],
    cluster: Cluster,
    *,
    policy: Policy | str = policies.DEFAULT,
    together: str | None = None,
    spread: str | None = None,
    partial: bool = False,
) -> tuple[Placement | None, ...]:
    """Return placements of several jobs at once, such as the replicas of a service; the cluster does not change.

    The result has a placement for each job, None for a job without one. Without `partial`, either all jobs have one or
    none has. Allocate them in this order. Scores and proofs refer to the machines from which a job could choose.

    The search is exact on small clusters. If jobs do not fit one after the other, up to 256 other sets of jobs, or 512
    sets of domains, are tried.

    Args:
        policy: The policy that places each job, and so decides what fits.
        together: "machine" or a level of the fabric: all jobs are in one domain of this level, the one with the fewest
            free GPUs that has room. None for no such limit.
        spread: "machine" or a level of the fabric: no two jobs are in the same domain of this level. None for no such
            limit.
        partial: True to place as many jobs as fit, the first ones if there is a choice, instead of all or none.

    Raises:
        ValueError: Names a wrong argument, or a requirement that cannot be honoured.
    """
    listed = _checks.ordered(jobs, "jobs", ValueError)
    for i, job in enumerate(listed):
        _checks.instance(job, JobGraph, f"jobs[{i}]", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    partial = _checks.flag(partial, "partial", ValueError)
    chosen = policies.get(policy) if isinstance(policy, str) else policy
    _checks.instance(chosen, Policy, "policy", ValueError)
    domain_of = None if together is None else _domains(together, "together", cluster.topology)
    apart = None if spread is None else _domains(spread, "spread", cluster.topology)
    with cluster.what_if() as state:
        trial = _Trial(listed, state, chosen, partial=partial)
        found = trial.found_in(domain_of, apart)
    is_enough = partial or len(found) == len(listed)
    return tuple([found.get(i) if is_enough else None for i in range(len(listed))])


def _domains(level: object, what: str, topology: Topology) -> Ints:
    """Return the number of each machine's domain of a level; ValueError names an unknown level."""
    name = _checks.text(level, what, ValueError)
    known = [one.name for one in topology.levels if not one.rail]
    if name not in (MACHINE, *known):
        levels = ", ".join(map(repr, (MACHINE, *known)))
        raise ValueError(f"{what} = {name!r}: the levels whose domains are machines are {levels}")
    chain = topology.derived(LevelChains).of([] if name == MACHINE else [name], others=False)
    assert chain is not None  # machines are inside any level
    return chain[-1].codes


class _Trial:
    """Jobs that a policy places on a cluster whose state is lent, and in which all machines are held but some."""

    def __init__(self, jobs: Sequence[JobGraph], state: Cluster, policy: Policy, *, partial: bool) -> None:
        self.jobs, self.state, self.partial = jobs, state, partial
        number_of = {job: i for i, job in enumerate(jobs)}
        self.kinds = [number_of[job] for job in jobs]
        """A number for each job, the same for equal jobs."""
        self._policy = policy
        self._names = state.topology.machine_names
        free = np.array(state.free_gpus(), dtype=np.int64)
        self.free = np.bincount(state.topology.machine_of[free], minlength=len(self._names))
        """(m,) the number of free GPUs of each machine."""
        self._held: dict[int, list[int]] = {}
        for gpu in state.held_gpus():
            self._held.setdefault(int(state.topology.machine_of[gpu]), []).append(gpu)
        self._held_hosts = state.hosts.held_back
        state.hold(self._names)
        mark = "place_all"
        while any(state.runs(f"{mark} {i}") for i in range(len(jobs))):
            mark += "'"
        self._ids = [f"{mark} {i}" for i in range(len(jobs))]

    def found_in(self, domain_of: Ints | None, apart: Ints | None) -> Found:
        """Return the placements in one of the domains, the one with the fewest free GPUs that does, or anywhere.

        domain_of: the domain of each machine; None if the jobs need not be together. apart: the domains of which each
        job needs its own; None if they need none.
        """
        machines_of = _members(np.zeros(len(self._names), dtype=np.int64) if domain_of is None else domain_of)
        free = {domain: int(self.free[machines].sum()) for domain, machines in machines_of.items()}
        sizes = [job.num_tasks for job in self.jobs if not job.takes_parts]
        least = min(sizes, default=0) if self.partial else sum(sizes)
        best: Found = {}
        for domain in sorted(machines_of, key=lambda one: (free[one], one)):
            if len(best) == len(self.jobs) or free[domain] < least:
                continue
            machines = machines_of[domain]
            found = self._anywhere(machines) if apart is None else _Spreading(self, apart, machines).found()
            if len(found) > len(best):
                best = found
        return best

    def place(self, job: int) -> Placement | None:
        """Return where the policy places a job now."""
        return self._policy.place(self.jobs[job], self.state)

    def start(self, job: int, placement: Placement) -> None:
        """Allocate the placement of a job, until the caller's block ends."""
        self.state.allocate(self._ids[job], placement, self.jobs[job])

    @contextmanager
    def only(self, machines: Ints) -> Generator[None]:
        """Hold these machines no more in this block, but for what was held before; around it all are held."""
        for machine, name in zip(machines.tolist(), self._named(machines), strict=True):
            held = self._held.get(machine, [])
            if machine in self._held_hosts:
                self.state.unhold([gpu for gpu in self.state.topology.gpus_of[name] if gpu not in held])
            else:
                self.state.unhold([name])
                self.state.hold(held)
        try:
            yield
        finally:
            self.close(machines)

    def close(self, machines: Ints) -> None:
        """Hold machines again, in a block of `only`."""
        self.state.hold(self._named(machines))

    def _named(self, machines: Ints) -> list[str]:
        return [self._names[machine] for machine in machines.tolist()]

    # ---- jobs that share domains ---------------------------------------------------------------------------

    def _anywhere(self, machines: Ints) -> Found:
        """Return the placements on these machines: of all jobs, or with `partial` of as many as are found to fit."""
        everything = tuple(range(len(self.jobs)))
        best = self._all_of(everything, machines)
        if best is not None:
            return best
        found = self._in_order(everything, machines, skip=True) if self.partial else {}
        while self.partial and (more := self._some_of(len(found) + 1, machines)):
            found = more
        return found

    def _some_of(self, count: int, machines: Ints) -> Found | None:
        """Return the placements of `count` jobs that fit together, the first ones found; None if none are."""
        alike: dict[int, list[int]] = {}
        for job, kind in enumerate(self.kinds):
            alike.setdefault(kind, []).append(job)
        equal = list(alike.values())
        for numbers in islice(_numbers([len(jobs) for jobs in equal], count), _MAX_SUBSETS):
            chosen = sorted(job for jobs, number in zip(equal, numbers, strict=True) for job in jobs[:number])
            if found := self._all_of(tuple(chosen), machines):
                return found
        return None

    def _all_of(self, jobs: tuple[int, ...], machines: Ints) -> Found | None:
        """Return the placements of all these jobs, None if none are found."""
        sizes = [self.jobs[job].num_tasks for job in jobs if not self.jobs[job].takes_parts]
        if sum(sizes) > self.free[machines].sum():
            return None
        largest_first = tuple(sorted(jobs, key=lambda job: -self.jobs[job].num_tasks))
        for order in dict.fromkeys((jobs, largest_first)):
            found = self._in_order(order, machines)
            if len(found) == len(jobs):
                return found
        return self._as_one(jobs, machines)

    def _in_order(self, order: Sequence[int], machines: Ints, *, skip: bool = False) -> Found:
        """Return the placements of the jobs one after the other.

        skip: whether to go on after a job that does not fit.
        """
        found: Found = {}
        with self.state.what_if(), self.only(machines):
            for job in order:
                placement = self.place(job)
                if placement is not None:
                    found[job] = placement
                    self.start(job, placement)
                elif not skip:
                    break
        return found

    def _as_one(self, jobs: Sequence[int], machines: Ints) -> Found | None:
        """Return the placements of the jobs on the GPUs that they get as roles of one job; None if they do not."""
        try:
            roles = [self.jobs[job].with_(name=str(job)) for job in jobs]
            with self.only(machines):
                whole = self._policy.place(JobGraph.joined(roles), self.state)
        except (ValueError, SearchTimeoutError):  # the roles differ too much, or groups are not honoured
            return None
        if whole is None:
            return None
        found: Found = {}
        topology = self.state.topology
        first = 0
        with self.state.what_if():
            for job in jobs:
                own = whole.gpus[first : first + self.jobs[job].num_tasks]
                first += len(own)
                mine = np.unique(topology.machine_of[list(own)]).astype(np.int64)
                with self.only(mine):
                    others = (topology.gpus_of[self._names[machine]] for machine in mine.tolist())
                    self.state.hold([gpu for gpus in others for gpu in gpus if gpu not in own])
                    placement = self.place(job)
                    if placement is None:
                        return None
                    found[job] = placement
                    self.start(job, placement)
        return found


def _members(numbers: Ints) -> dict[int, Ints]:
    """Return the places of each number, ascending."""
    found, first = np.unique(numbers[order := np.argsort(numbers, kind="stable")], return_index=True)
    return dict(zip(found.tolist(), np.split(order, first[1:]), strict=True))


def _numbers(most: Sequence[int], total: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to take `total` things of several kinds, as the number of each, large numbers first.

    most: how many there are of each kind. Of more than 64 kinds, there are too many ways: none is yielded.
    """
    if total > sum(most) or len(most) > _MAX_DEPTH:
        return
    if not most:
        yield ()
        return
    for number in range(min(most[0], total), -1, -1):
        for others in _numbers(most[1:], total - number):
            yield number, *others


class _Spreading:
    """Jobs of which each gets domains of its own."""

    def __init__(self, trial: _Trial, domain_of: Ints, machines: Ints) -> None:
        self._trial = trial
        self._domain_of = domain_of
        self._machines_of = {domain: machines[at] for domain, at in _members(domain_of[machines]).items()}
        self._free = {domain: int(trial.free[own].sum()) for domain, own in self._machines_of.items()}
        self._domains = sorted(self._free, key=lambda domain: (self._free[domain], domain))
        self._fits: dict[tuple[int, frozenset[int]], bool] = {}
        self._asked = self._steps = 0

    def found(self) -> Found:
        """Return the placements of all jobs, or of as many as are found to fit; {} for fewer without `partial`."""
        jobs = range(len(self._trial.jobs))
        best = self._in_order(jobs)
        for search in (self._matched, self._searched):
            if len(best) == len(jobs):
                break
            chosen = search()
            if len(chosen) > len(best) and (self._trial.partial or len(chosen) == len(jobs)):
                placed = self._in_domains(chosen)
                best = placed if len(placed) > len(best) else best
        return best

    def _in_order(self, jobs: Iterable[int]) -> Found:
        """Return the placements of the jobs one after the other, each in domains of which no other has a GPU."""
        found: Found = {}
        with self._trial.state.what_if(), self._trial.only(self._machines(self._domains)):
            for job in jobs:
                placement = self._trial.place(job)
                if placement is not None:
                    found[job] = placement
                    self._trial.start(job, placement)
                    self._trial.close(self._machines(self._touched(placement)))
        return found

    def _in_domains(self, chosen: dict[int, frozenset[int]]) -> Found:
        """Return the placement of each job in its domains."""
        found: Found = {}
        with self._trial.state.what_if():
            for job, domains in sorted(chosen.items()):
                with self._trial.only(self._machines(domains)):
                    placement = self._trial.place(job)
                    if placement is not None:
                        found[job] = placement
                        self._trial.start(job, placement)
        return found

    def _machines(self, domains: Iterable[int]) -> Ints:
        return np.concatenate([self._machines_of[domain] for domain in domains])

    def _touched(self, placement: Placement) -> set[int]:
        topology = self._trial.state.topology
        machines = {int(topology.machine_of[gpu]) for gpu in placement.gpus}
        machines.update(host.machine for host in placement.hosts)
        return {int(self._domain_of[machine]) for machine in machines}

    def _fit(self, job: int, domains: frozenset[int]) -> bool:
        """Return whether the policy places the job in these domains, if there were no other."""
        graph = self._trial.jobs[job]
        key = self._trial.kinds[job], domains
        if key not in self._fits:
            if not graph.takes_parts and sum(self._free[one] for one in domains) < graph.num_tasks:
                return False
            self._asked += len(domains) > 1
            if self._asked > _MAX_ASKED:
                return False
            with self._trial.only(self._machines(domains)):
                self._fits[key] = self._trial.place(job) is not None
        return self._fits[key]

    def _matched(self) -> dict[int, frozenset[int]]:
        """Return a domain for each of as many jobs as can have one of their own, by augmenting paths."""
        job_in: dict[int, int] = {}
        kinds, hopeless = self._trial.kinds, set[int]()
        for job in range(len(self._trial.jobs)):
            if kinds[job] in hopeless:
                continue
            reached: dict[int, int] = {}  # the job that could have each domain instead of the one that has it
            waiting, free, seen = deque([job]), None, set[int]()
            while waiting and free is None:
                other = waiting.popleft()
                if kinds[other] in seen:
                    continue
                seen.add(kinds[other])
                fitting = (
                    one for one in self._domains if one not in reached and self._fit(other, frozenset((one,)))
                )
                for domain in fitting:
                    reached[domain] = other
                    if domain not in job_in:
                        free = domain
                        break
                    waiting.append(job_in[domain])
            if free is None:
                hopeless.add(kinds[job])
            else:
                _exchange(free, job, reached, job_in)
        return {job: frozenset((domain,)) for domain, job in job_in.items()}

    def _searched(self) -> dict[int, frozenset[int]]:
        """Return sets of domains for as many jobs as can have their own, the largest jobs first."""
        if min(len(self._trial.jobs), len(self._domains)) > _MAX_DEPTH:
            return {}
        order = sorted(range(len(self._trial.jobs)), key=lambda job: -self._trial.jobs[job].num_tasks)
        best: dict[int, frozenset[int]] = {}

        def extend(place: int, chosen: dict[int, frozenset[int]], left: frozenset[int]) -> None:
            nonlocal best
            if len(chosen) > len(best):
                best = dict(chosen)
            for at in range(place, len(order)):
                if len(chosen) + min(len(order) - at, len(left)) <= len(best):
                    return
                for domains in self._smallest_sets(order[at], left):
                    extend(at + 1, {**chosen, order[at]: domains}, left - domains)
                    if len(best) == len(order) or self._steps > _MAX_STEPS:
                        return
                if not self._trial.partial:
                    return

        extend(0, {}, frozenset(self._domains))
        return best

    def _smallest_sets(self, job: int, left: frozenset[int]) -> Iterator[frozenset[int]]:
        """Yield the sets of these domains in which the job fits, without those that have another inside."""
        known: list[frozenset[int]] = []
        ordered = [domain for domain in self._domains if domain in left]
        for count in range(1, len(ordered) + 1):
            for listed in combinations(ordered, count):
                self._steps += 1
                if self._steps > _MAX_STEPS:
                    return
                domains = frozenset(listed)
                if not any(one <= domains for one in known) and self._fit(job, domains):
                    known.append(domains)
                    yield domains


def _exchange(domain: int, job: int, reached: dict[int, int], job_in: dict[int, int]) -> None:
    """Give a free domain to the job that reached it, the domain of that one to the next, and so on up to `job`."""
    domain_of = {one: domain for domain, one in job_in.items()}
    while True:
        one = reached[domain]
        job_in[domain] = one
        if one == job:
            return
        domain = domain_of[one]
