"""The resources that a job needs on each of its nodes, and a record of requests that are known not to fit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from topoplace.cluster.hosts import megabytes
from topoplace.engine.admission import memory_limits
from topoplace.engine.memo import Memo
from topoplace.placement import HostShare

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from topoplace.engine.free_resources import FreeResources, Ints, TopologyColumns
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Refusal

Amounts = tuple[int, int, tuple[int, int], int]
"""(nodes, GPUs per node, (CPUs per node, nodes with one CPU more), MB of memory per node)."""


class NodeNeeds:
    """The number of nodes a job needs, and the resources on each; no two nodes may be on the same machine.

    A job has one node per process, one node in all if it is `single_machine`, or one node per task under
    `anti_affinity`. The node of a `single_machine` job runs all its processes; every other node runs one. CPUs and
    memory are divided evenly among the nodes; if CPUs leave a remainder, as many nodes have one CPU more.
    """

    def __init__(self, job: JobGraph, columns: TopologyColumns, most_memory_gb: float | None = None) -> None:
        """Compute the needs of `job`.

        most_memory_gb: limit on the memory of each GPU, GB; None for no limit.
        """
        self.job = job
        anti_affine = job.anti_affinity and job.num_tasks > 1
        self.nodes = 1 if job.single_machine else job.num_tasks if anti_affine else job.processes
        self.gpus, self.uneven = divmod(job.num_tasks, self.nodes)
        """GPUs per node, and the remainder of the division; a job with a remainder is rejected."""
        self.cpus, self.more = divmod(job.cpus or 0, self.nodes)
        """CPUs per node, and the number of nodes that have one CPU more."""
        self.processes = job.processes if job.single_machine else 1
        """Processes per node."""
        self.memory_gb = (job.memory_gb or 0.0) / self.nodes / self.processes
        """Memory of each process, GB."""
        self.megabytes = megabytes(self.memory_gb) * self.processes
        """Memory of each node, MB."""
        self.total_gpus = self.nodes * self.gpus
        self.gpus_local = job.single_machine or anti_affine
        """True if the job may not borrow GPUs from other machines."""
        self.suits: NDArray[np.bool_] | None = None
        """(makes,) True for each GPU make (model and memory) that meets the job's requirements; None if all do."""
        self._suits_gpu: NDArray[np.bool_] | None = None
        if job.gpu_model or job.gpu_memory_gb:
            self.suits = columns.suits(job)
            if most_memory_gb is not None:
                self.suits &= columns.memory_gb <= most_memory_gb
            self._suits_gpu = self.suits[columns.make_of]
        # With partitions, a larger request may fit though a smaller one does not, so only equal sizes are compared.
        size = (self.nodes, self.gpus) if columns.partitions_of else None
        self.flavour: Hashable = (job.gpu_model, job.gpu_memory_gb, self.gpus_local, size)
        self.amounts: Amounts = (self.nodes, self.gpus, (self.cpus, self.more), self.megabytes)
        self._host_shares: dict[tuple[int, int], tuple[HostShare, ...]] = {}
        self.by_memory: tuple[NodeNeeds, ...] = (self,)
        """These needs on GPUs of the smallest memory that suits, then on those of the two smallest, and so on."""
        if most_memory_gb is None and len(limits := memory_limits(job, columns.topology)) > 1:
            self.by_memory = tuple(NodeNeeds(job, columns, limit) for limit in limits)

    def host_shares(self, machine: int, cpus: int) -> tuple[HostShare, ...]:
        """Return the CPUs and memory of each process of a node on `machine` that has `cpus` CPUs."""
        known = self._host_shares.get((machine, cpus))
        if known is None:
            each, more = divmod(cpus, self.processes)
            shares = (HostShare(machine, each + (i < more), self.memory_gb) for i in range(self.processes))
            known = self._host_shares[machine, cpus] = tuple(shares)
        return known

    def wishes(self) -> str:
        """Return the needs as English text for messages."""
        where = f"{self.nodes} nodes" if self.nodes > 1 else "a node"
        cpus = f"{self.cpus} or {self.cpus + 1}" if self.more else f"{self.cpus}"
        return f"{where} with {self.gpus} GPUs, {cpus} CPUs and {self.memory_gb * self.processes:g} GB"

    # ---- against what is free --------------------------------------------------------------------------------

    def hosting(self, free: FreeResources) -> NDArray[np.bool_]:
        """Return an array with one entry per machine: True if it has enough free CPUs and memory for some node."""
        fits: NDArray[np.bool_] = (free.hosts[:, 0] >= self.cpus) & (free.hosts[:, 1] >= self.megabytes)
        return fits

    def first_nodes(self, machines: Ints, free: FreeResources) -> Ints | None:
        """Return the first of `machines` that together have the CPUs of all nodes, one per node; None if too few.

        machines: different machines, each with enough for some node. If too few of the first have one CPU more, later
        ones take the place of the last of them.
        """
        if not self.more or len(machines) < self.nodes:
            return machines[: self.nodes] if len(machines) >= self.nodes else None
        has_more = free.hosts[machines, 0] > self.cpus
        lacking = self.more - int(np.count_nonzero(has_more[: self.nodes]))
        if lacking <= 0:
            return machines[: self.nodes]
        later = machines[self.nodes :][has_more[self.nodes :]][:lacking]
        if len(later) < lacking:
            return None
        leaving = np.flatnonzero(~has_more[: self.nodes])[-lacking:]
        return np.concatenate((np.delete(machines[: self.nodes], leaving), later))

    def cpus_on(self, machines: list[int], free: FreeResources) -> list[int]:
        """Return the CPUs of the node on each of these machines; the first that can have one CPU more."""
        cpus = [self.cpus] * len(machines)
        able = (i for i, machine in enumerate(machines) if free.hosts[machine, 0] > self.cpus)
        for i in islice(able, self.more):
            cpus[i] += 1
        return cpus

    def suitable(self, free: FreeResources) -> Ints:
        """Return an array with the number of free GPUs of each machine that meet the job's requirements.

        A machine whose GPUs are only allocated in fixed partitions counts as having exactly the GPUs of one node if a
        free partition fits, else 0.
        """
        found = self.whole_gpus(free)
        if free.columns.partitions_of:
            found = found.copy()
            for machine in free.columns.partitions_of:
                found[machine] = self.gpus if self._partition(machine, free) else 0
        return found

    def whole_gpus(self, free: FreeResources) -> Ints:
        """Return an array with the number of free GPUs of each machine that meet the job's requirements; read-only.

        GPUs that are only allocated in fixed partitions are not counted.
        """
        if self.suits is None and free.gpus.shape[1] == 1:
            return free.gpus[:, 0]
        found: Ints = (free.gpus if self.suits is None else free.gpus[:, self.suits]).sum(axis=1)
        return found

    def pick(self, free: FreeResources, machine: int, count: int) -> list[int]:
        """Return the lowest-numbered free GPUs of a machine that meet the job's requirements, at most `count`.

        If the machine's GPUs are only allocated in fixed partitions, they come from the first free partition that fits.
        """
        partitioned = machine in free.columns.partitions_of
        among = (self._partition(machine, free) or ()) if partitioned else free.columns.gpus_of[machine]
        suits = self._suits_gpu
        return [gpu for gpu in among if free.is_free[gpu] and (suits is None or suits[gpu])][:count]

    def partitions(self, machine: int, free: FreeResources) -> Iterator[tuple[int, ...]]:
        """Yield each partition (fixed GPU set) of a machine whose GPUs are all free and meet the requirements."""
        suits = self._suits_gpu
        for part in free.columns.partitions_of.get(machine, ()):
            if all(free.is_free[gpu] and (suits is None or suits[gpu]) for gpu in part):
                yield part

    def _partition(self, machine: int, free: FreeResources) -> tuple[int, ...] | None:
        """Return the first of the machine's `partitions` with exactly the number of GPUs of a node, else None."""
        return next((part for part in self.partitions(machine, free) if len(part) == self.gpus), None)


class Refused:
    """A record of the requests known not to fit until resources are freed.

    A request that needs at least as much as a recorded one does not fit either; it is *covered*.
    """

    def __init__(self) -> None:
        self.known: set[NodeNeeds] = set()
        """The needs that were found not to fit."""
        self.jobs: dict[int, JobGraph] = {}
        """The jobs that were found not to fit, by `id()` of the graph; storing the graph keeps this id unique."""
        self._least: dict[Hashable, list[Amounts]] = {}

    def covers(self, needs: NodeNeeds) -> bool:
        """Return True if a recorded request has the same GPU requirements and no larger amounts than `needs`."""
        return any(_covers(needs.amounts, least) for least in self._least.get(needs.flavour, ()))

    def add(self, needs: NodeNeeds) -> None:
        """Record needs that were found not to fit and are not covered by recorded ones."""
        self.known.add(needs)
        self._least[needs.flavour] = [needs.amounts, *self._others(needs)]

    def _others(self, needs: NodeNeeds) -> Iterator[Amounts]:
        return (least for least in self._least.get(needs.flavour, ()) if not _covers(least, needs.amounts))


class QueueMemory:
    """A policy's memory between walks along the queue: the needs of requests, and the requests that do not fit."""

    def __init__(self) -> None:
        self.needs: Memo[JobRequest, NodeNeeds | Refusal] = Memo()
        """The needs of each request, or a refusal if they can never be met."""
        self._refused = Refused()
        self._before: FreeResources | None = None

    def refused(self, free: FreeResources) -> Refused:
        """Return the requests known not to fit; forget them if anything was freed since the previous walk.

        free: the free resources from which the new walk takes what its jobs get.
        """
        if self._before is not None and free.has_more_than(self._before):
            self._refused = Refused()
        self._before = free
        return self._refused


def _covers(amounts: Amounts, least: Amounts) -> bool:
    return (
        amounts[0] >= least[0]
        and amounts[1] >= least[1]
        and amounts[2] >= least[2]
        and amounts[3] >= least[3]
    )
