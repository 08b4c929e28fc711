"""The resources that a job needs on each of its nodes, and a record of requests that are known not to fit."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from topoplace.cluster.hosts import cpus_of, megabytes, shared_cpus
from topoplace.engine.driver import Failure, Failures
from topoplace.placement import HostShare

if TYPE_CHECKING:
    from topoplace.cluster.hosts import Hosts
    from topoplace.engine.request import JobRequest
    from topoplace.topology.topology import Topology

Amounts = tuple[int, int, tuple[int, int], int]
"""(nodes, GPUs per node, (thousandths of CPUs per node, nodes with one unit more), MB of memory per node)."""


_NO_ROOM = Failure(-math.inf, None)


class NodeNeeds:
    """The number of nodes that a job needs, and the resources on each; no two nodes may be on the same machine.

    A job has one node per process, one node in all if it is `single_machine`, or one node per task under
    `anti_affinity`. The node of a `single_machine` job runs all its processes; every other node runs one. CPUs and
    memory are divided evenly among the nodes. If CPUs leave a remainder, that number of nodes has one unit more: a CPU,
    or a thousandth if the CPUs of the job are not whole.
    """

    def __init__(self, request: JobRequest, topology: Topology) -> None:
        """Compute the needs of the jobs with this request."""
        job = request.job
        self.request = request
        self.nodes = 1 if job.single_machine else job.num_tasks if request.anti_affine else job.processes
        self.gpus, self.uneven = divmod(job.num_tasks, self.nodes)
        """GPUs per node, and the remainder of the division; a job with a remainder is rejected."""
        units, self.unit = shared_cpus(job)
        """Thousandths of a CPU that a node may have more than another."""
        each, self.more = divmod(units, self.nodes)
        """Number of nodes that have a unit of CPUs more."""
        self.cpus = each * self.unit
        """Thousandths of CPUs per node."""
        self.processes = job.processes if job.single_machine else 1
        """Processes per node."""
        self.memory_gb = (job.memory_gb or 0.0) / self.nodes / self.processes
        """Memory of each process, GB."""
        self.megabytes = megabytes(self.memory_gb) * self.processes
        """Memory of each node, MB."""
        self.total_gpus = self.nodes * self.gpus
        self.gpus_local = job.single_machine or request.anti_affine
        """True if the job may not borrow GPUs from other machines."""
        self.gpu_kind: Hashable = (self.gpus, job.gpu_model, job.gpu_memory_gb)
        """Equal for jobs whose nodes need equal GPUs."""
        # With partitions, a larger request may fit though a smaller one does not, so only equal sizes are compared.
        size = (self.nodes, self.gpus) if topology.partitions else None
        self.flavour: Hashable = (job.gpu_model, job.gpu_memory_gb, self.gpus_local, size)
        self.amounts: Amounts = (self.nodes, self.gpus, (self.cpus, self.more), self.megabytes)
        self._host_shares: dict[tuple[int, int], tuple[HostShare, ...]] = {}

    def host_shares(self, machine: int, cpus: int) -> tuple[HostShare, ...]:
        """Return the CPUs and memory of each process of a node on `machine` that has `cpus` thousandths of CPUs."""
        known = self._host_shares.get((machine, cpus))
        if known is None:
            each, more = divmod(cpus // self.unit, self.processes)
            shares = (
                HostShare(machine, cpus_of((each + (i < more)) * self.unit), self.memory_gb)
                for i in range(self.processes)
            )
            known = self._host_shares[machine, cpus] = tuple(shares)
        return known

    def cpus_on(self, machines: Sequence[int], hosts: Hosts) -> list[int]:
        """Return the thousandths of CPUs of the node on each of these machines; the first ones with room get one unit
        more.
        """
        cpus, more = [self.cpus] * len(machines), self.more
        for i, machine in enumerate(machines if more else ()):
            if more and hosts.free[machine, 0] >= self.cpus + self.unit:
                cpus[i] += self.unit
                more -= 1
        return cpus

    def wishes(self) -> str:
        """Return the needs as English text for messages."""
        where = f"{self.nodes} nodes" if self.nodes > 1 else "a node"
        cpus = f"{cpus_of(self.cpus)}"
        if self.more:
            cpus += f" or {cpus_of(self.cpus + self.unit)}"
        return f"{where} with {self.gpus} GPUs, {cpus} CPUs and {self.memory_gb * self.processes:g} GB"


class Refused(Failures):
    """The needs that do not fit, kept until the cluster changes in another way than by the queue's own starts.

    A request that needs at least as much as a recorded one does not fit either; it is *covered*.
    """

    def __init__(self) -> None:
        super().__init__()
        self._known: set[Hashable] = set()
        """The needs that were found not to fit."""
        self._least: dict[Hashable, list[Amounts]] = {}

    def begin(self, version: int) -> None:
        """Begin a walk along the queue. version: the number of the cluster's changes."""
        if self._version != version:
            self._known, self._least, self._version = set(), {}, version

    def find(self, need: Hashable, least_utility: float) -> Failure | None:
        """Return the failure that is recorded for a need; None if there is none."""
        return _NO_ROOM if need in self._known else None

    def cover(self, need: Hashable) -> bool:
        """Return True if a recorded request has the same GPU requirements and no larger amounts than `need`."""
        assert isinstance(need, NodeNeeds)
        nodes, gpus, cpus, memory = need.amounts
        for least in self._least.get(need.flavour, ()):
            if least[0] <= nodes and least[1] <= gpus and least[2] <= cpus and least[3] <= memory:
                return True
        return False

    def add(self, need: Hashable, failure: Failure, version: int) -> None:
        """Record needs that were found not to fit."""
        assert isinstance(need, NodeNeeds)
        self._known.add(need)
        if not self.cover(need):
            self._least.setdefault(need.flavour, []).append(need.amounts)

    def started(self, version: int) -> None:
        """Record that a job of the queue has started, which makes no room."""
        self._version = version
