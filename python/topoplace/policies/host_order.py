"""`reorder`: the rank order of hosts that somebody else chose, such as torchrun's rendezvous, a host file, or Slurm.

A launcher gives the ranks to one host after the other, so the order of the hosts decides which block of ranks each one
gets. The default policy maps the blocks to the hosts; if there are few orders, all of them are compared.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from topoplace import _checks
from topoplace._similar_names import did_you_mean
from topoplace.cluster.cluster import Cluster
from topoplace.deciding.least_time import LeastTime
from topoplace.errors import DeadlineError, JobGraphError
from topoplace.jobs.groups import INNER_LEVELS, MACHINE, Group, blocks
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels.limits import check_deadline, deadline
from topoplace.launch.bindings import domains_touched
from topoplace.placement import Placement
from topoplace.topology.device_numbers import runs
from topoplace.topology.topology import Topology

_MOST_ORDERS: Final = 5_040
"""Largest number of different orders that are all compared: those of seven hosts that are all different."""
_ROUNDING: Final = 1e-6


@dataclass(frozen=True, slots=True)
class HostOrder:
    """Hosts in the order in which they get the ranks of a job."""

    hosts: tuple[str, ...]
    placement: Placement
    """Rank i runs on `placement.gpus[i]`."""
    before: float
    """Seconds a step that the job communicates in the given order."""
    time: float
    """Seconds a step that it communicates in this order."""
    bound: float
    """Lower bound on the seconds of all orders of these hosts that keep the job's required groups."""

    @property
    def optimal(self) -> bool:
        """Return True if it is proven that no such order is faster."""
        return self.time <= self.bound * (1 + _ROUNDING)


def reorder(hosts: Iterable[str], topology: Topology, job: JobGraph, *, timeout: float = 10.0) -> HostOrder:
    """Return the order of given hosts in which the ranks of a job communicate the least in a step.

    All hosts have equally many ranks, in blocks: the first host has ranks 0, 1 and so on, on its first healthy GPUs in
    the order of their numbers, as launchers count. The given order stays unless another one is faster, or it breaks a
    required group of the job. Preferred groups count only as far as they shorten communication.

    Args:
        hosts: Names of machines of the topology, each once.
        timeout: Seconds after which the best order found so far is returned.

    Raises:
        ValueError: Names a wrong argument, or a requirement of the job that these hosts break in every order found.
    """
    end = time.monotonic() + _checks.positive(timeout, "timeout", ValueError)
    _checks.instance(topology, Topology, "topology", ValueError)
    _checks.instance(job, JobGraph, "job", ValueError)
    search = _Search(_checked_hosts(hosts, topology), topology, job, timeout)
    search.refuse_unfit()
    given = search.placed(range(len(search.hosts)))
    best, bound = search.best(given, end)
    return HostOrder(search.hosts_of(best), best, given.time, best.time, bound)


def _checked_hosts(hosts: object, topology: Topology) -> tuple[str, ...]:
    """Return the hosts; ValueError for a name that is no machine's, or there twice."""
    first: dict[str, int] = {}
    for i, host in enumerate(_checks.ordered(hosts, "hosts", ValueError)):
        what = f"hosts[{i}]"
        if _checks.text(host, what, ValueError) not in topology.gpus_of:
            hint = did_you_mean(host, topology.machine_names)
            is_none = f"{what} = {_checks.shown(host)} is no machine of {topology.name}"
            raise ValueError(is_none + (f"; {hint}" if hint else ""))
        if first.setdefault(host, i) != i:
            raise ValueError(f"{what} = {_checks.shown(host)} is hosts[{first[host]}] too")
    if not first:
        raise ValueError("hosts is empty")
    return tuple(first)


class _Search:
    """Given hosts with a block of GPUs each, and the job whose ranks get these blocks."""

    def __init__(self, hosts: tuple[str, ...], topology: Topology, job: JobGraph, timeout: float) -> None:
        """Store the arguments; ValueError for a number of tasks that the hosts cannot have in equal blocks."""
        size, rest = divmod(job.num_tasks, len(hosts))
        if rest or not size:
            raise ValueError(
                f"job: {job.num_tasks} tasks on {len(hosts)} hosts, which must have equally many each"
            )
        if job.takes_parts:
            raise ValueError("job: it takes parts of GPUs, and hosts give their ranks whole ones")
        self.hosts, self._topology, self._job = hosts, topology, job
        self._policy = LeastTime(slack=0.0, compact=0.0, timeout=timeout)
        self._gpus = [self._first_gpus(i, size) for i in range(len(hosts))]
        self._blocks = blocks(job.num_tasks, size)
        self._required = [group for group in job.groups if group.within is not None]

    def _first_gpus(self, i: int, size: int) -> tuple[int, ...]:
        unhealthy = set(self._topology.unhealthy_gpus)
        gpus = [gpu for gpu in self._topology.gpus_of[self.hosts[i]] if gpu not in unhealthy]
        if len(gpus) < size:
            raise ValueError(
                f"hosts[{i}] = {self.hosts[i]!r}: it has {len(gpus)} healthy GPUs for {size} tasks"
            )
        return tuple(gpus[:size])

    @cached_property
    def _cluster(self) -> Cluster:
        """A cluster in which only the GPUs of these blocks are in service."""
        cluster = Cluster(self._topology)
        own = {gpu for gpus in self._gpus for gpu in gpus}
        cluster.hold(
            [gpu for gpu in range(self._topology.num_gpus) if gpu not in own], reason="not a given host"
        )
        return cluster

    def refuse_unfit(self) -> None:
        """Raise ValueError for a requirement that cannot be honoured, or that the hosts break in every order."""
        if not self._job.requirements:
            return
        if refusal := self._policy.refusal_of(self._job, self._cluster):
            raise ValueError(f"job: {refusal.reason}")
        alone = self._job.with_(groups=())
        refusal = self._policy.explain(alone, self._cluster, top=1).refusal if alone.requirements else None
        if refusal is not None:
            reason = refusal.reason.removeprefix("never fits: ").removeprefix("cannot start now: ")
            raise ValueError(f"job: on these hosts alone: {reason}")

    # ---- orders --------------------------------------------------------------------------------------------

    def placed(self, order: Sequence[int]) -> Placement:
        """Return the placement of the ranks on the hosts in an order of their numbers."""
        gpus = tuple([gpu for host in order for gpu in self._gpus[host]])
        return Placement(gpus, topology=self._topology, job=self._job)

    def hosts_of(self, placement: Placement) -> tuple[str, ...]:
        """Return the hosts in the order of their ranks."""
        return tuple([self._topology.gpus[placement.gpus[block[0]]].machine for block in self._blocks])

    def torn(self, placement: Placement) -> Group | None:
        """Return the first required group that is not in one domain of its level; None if all are."""
        for group in self._required:
            if domains_touched(placement, [group.tasks], str(group.within)) != [1]:
                return group
        return None

    def best(self, given: Placement, end: float) -> tuple[Placement, float]:
        """Return the fastest order found until `end`, by `time.monotonic`, and a lower bound on all orders.

        Raise ValueError if none is found that keeps all required groups.
        """
        group = self.torn(given)
        best, bound = self._mapped(None if group else given)
        if self._are_few and not (best and best.time <= bound * (1 + _ROUNDING)):
            with suppress(DeadlineError), deadline(max(0.0, end - time.monotonic())):
                best = self._fastest(best)
                bound = best.time if best else math.inf
        if best is None:
            assert group is not None  # else the given order would do
            where = f"tasks {runs(group.tasks)} in one {group.within}"
            raise ValueError(f"job: groups: no order of the hosts was found that keeps all, such as {where}")
        return best, bound

    # ---- the mapping of the default policy -----------------------------------------------------------------

    def _mapped(self, best: Placement | None) -> tuple[Placement | None, float]:
        """Return the faster one of `best` and of what the policy finds, and a lower bound on all orders."""
        job = self._job_of_blocks()
        if len(self.hosts) == 1 or job is None or self._policy.refusal_of(job, self._cluster):
            return best, 0.0
        found = self._policy.place(job, self._cluster)
        if found is None:
            return best, 0.0
        number = {host: i for i, host in enumerate(self.hosts)}
        other = self.placed([number[host] for host in self.hosts_of(found)])
        return self._faster(best, other), found.bound or 0.0

    def _job_of_blocks(self) -> JobGraph | None:
        """Return the job with each block as a group of a machine, and otherwise only the groups of several blocks."""
        free = {name: getattr(JobGraph, name) for name in self._job.requirements}
        whole = [Group(block, within=MACHINE) for block in self._blocks if len(block) > 1]
        try:
            return self._job.with_(**free | {"groups": (*whole, *self._groups_of_blocks())})
        except JobGraphError:  # of groups that share a block and are not one in the other
            return None

    def _groups_of_blocks(self) -> Iterator[Group]:
        """Yield the required groups that several blocks have, with all tasks of these."""
        block_of = {task: block for block in self._blocks for task in block}
        for group in self._required:
            tasks = {other for task in group.tasks for other in block_of[task]}
            if group.within not in INNER_LEVELS and len(tasks) > len(self._blocks[0]):
                yield Group(tuple(tasks), within=group.within)

    def _faster(self, best: Placement | None, other: Placement) -> Placement | None:
        """Return another placement if it keeps all groups and is faster than the best one, or there is none."""
        if self.torn(other):
            return best
        return other if best is None or other.time * (1 + _ROUNDING) < best.time else best

    # ---- all orders ----------------------------------------------------------------------------------------

    @cached_property
    def _kinds(self) -> list[Hashable]:
        """The kind of each host: two of one kind may change their places."""
        topology, numbers = self._topology, range(len(self.hosts))
        if topology.tiling is None:
            return list(numbers)
        machines = [int(topology.machine_of[gpus[0]]) for gpus in self._gpus]
        return [
            (
                topology.template_of[machine],
                *(int(level.codes[machine]) for level in topology.levels),
                *(topology.local_index[gpu] for gpu in self._gpus[i]),
            )
            for i, machine in enumerate(machines)
        ]

    @property
    def _are_few(self) -> bool:
        """Return True if all orders can be compared."""
        alike = math.prod(math.factorial(count) for count in Counter(self._kinds).values())
        return math.factorial(len(self.hosts)) <= _MOST_ORDERS * alike

    def _fastest(self, best: Placement | None) -> Placement | None:
        """Return the fastest of all orders, or `best` if none is faster; raise DeadlineError after the deadline."""
        waiting: dict[Hashable, list[int]] = {}
        for host in reversed(range(len(self.hosts))):
            waiting.setdefault(self._kinds[host], []).append(host)
        for order in self._orders([], waiting):
            check_deadline()
            best = self._faster(best, self.placed(order))
        return best

    def _orders(self, begun: list[int], waiting: dict[Hashable, list[int]]) -> Iterator[list[int]]:
        """Yield the orders that differ in more than hosts of one kind; begun: their first hosts."""
        if len(begun) == len(self.hosts):
            yield begun
        for same in waiting.values():
            if same:
                begun.append(same.pop())
                yield from self._orders(begun, waiting)
                same.append(begun.pop())
