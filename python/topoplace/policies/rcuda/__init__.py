"""The GPU queues of TSUBAME 2.5: the one it had, and one whose jobs may borrow GPUs from other nodes by rCUDA.

A job asks for nodes, and on each of them for the same number of GPUs and CPUs and the same memory; it gets all of them
or waits. The queue is walked from its head at every event, and jobs that have room start whether or not older ones
wait, as the loops of Figs. 5 and 6 do: there is no reservation, so that a wide job may be overtaken for long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Deferred, Placement
from topoplace.policies.across import link_scores
from topoplace.policies.base import Explanation, Plan, QueuedJob, enough_suit, never_fits, no_room
from topoplace.policies.rcuda.nodes import Nodes

if TYPE_CHECKING:
    from topoplace.policies.rcuda.nodes import Ints, Room
    from topoplace.policies.rcuda.request import Refused, Request

__all__ = ["GQueue", "NodeQueue", "RQueue"]


class NodeQueue(ABC):
    """What both queues have in common. Placements name a process per node in `hosts`, and borrowed GPUs in `remote`.

    A node takes one process of a job, with its share of CPUs and memory where the cluster knows them. Jobs without
    GPUs (`JobGraph.without_gpus`) get a node like any other; drives are not given, and a job that asks for some, or
    whose GPUs do not divide evenly by its nodes, is rejected. Scores: those of the links between its tasks, and
    `remote_gpus`, how many are borrowed.
    """

    name: str

    @abstractmethod
    def choose(self, request: Request, room: Room) -> Ints | None:
        """The machines for the nodes of a request, in their order; None where there are not enough."""

    @abstractmethod
    def hopeless(self, request: Request, room: Room) -> bool:
        """Whether counting alone tells that a request has no place."""

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """Where the job would start now; None where it has to wait."""
        return next(self._choices(job, cluster), None)

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """The choice of `place`, then those without its machines; the reason where there is none."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        found: dict[frozenset[int], Placement] = {}
        for placement in islice(self._choices(job, cluster), 2 * top):
            found.setdefault(frozenset(placement.gpus), placement)
        if found:
            return Explanation(self.name, tuple(found.values())[:top])
        nodes = cluster.view(Nodes)
        request = nodes.request(job)
        return Explanation(self.name, (), self.never(request, nodes) or self._no_room(request, cluster))

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start all that have room, from the head on; reject those that never will."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = _checked_entries(_checks.sequence(queue, "queue", ValueError))
        nodes = cluster.view(Nodes)
        room = nodes.room()
        refused = nodes.refused(self.name, room)
        start: list[tuple[str, Placement]] = []
        reject: list[tuple[str, Deferred]] = []
        for entry in entries:
            if id(entry.job) in refused.jobs:
                continue
            request = nodes.request(entry.job)
            if never := self.never(request, nodes):
                reject.append((entry.job_id, never))
            elif placement := self._start(entry.job, request, room, refused):
                start.append((entry.job_id, placement))
            else:
                refused.jobs[id(entry.job)] = entry.job
        return Plan(tuple(start), (), tuple(reject))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def never(self, request: Request, nodes: Nodes) -> Deferred | None:
        """Why such a job could not run even on the idle cluster; None where it may."""
        possible = nodes.possible(self.name)
        if request in possible:
            return None
        never = self._never(request, nodes.idle())
        if never is None:
            possible[request] = True
        return never

    def _never(self, request: Request, idle: Room) -> Deferred | None:
        job = request.job
        if job.drives:
            return Deferred(f"never fits: {job.drives} drives needed, and this policy gives none")
        if not request.uneven and self.choose(request, idle) is not None:
            return None
        if job.num_tasks and (reason := never_fits(job, idle.layout.topology)):
            return reason
        if request.uneven:
            return Deferred(
                f"never fits: {job.num_tasks} GPUs are not as many for each of {request.nodes} nodes"
            )
        return Deferred(f"never fits: {_wishes(request)} needed, and the idle cluster has not so many")

    def _no_room(self, request: Request, cluster: Cluster) -> Deferred:
        if request.job.num_tasks and not enough_suit(request.job, cluster):
            return no_room(request.job, cluster)
        return Deferred(f"does not fit now: {_wishes(request)} needed")

    def _choices(self, job: JobGraph, cluster: Cluster) -> Iterator[Placement]:
        """The first placement, the one on none of its machines, and so on."""
        _checks.instance(job, JobGraph, "job", ValueError)
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        nodes = cluster.view(Nodes)
        request, used = nodes.request(job), list[int]()
        while True:
            room = nodes.room()
            room.cpus[used] = -1
            placement = self._find(job, request, room)
            if placement is None:
                return
            yield placement
            used += (share.machine for share in placement.hosts)

    def _start(self, job: JobGraph, request: Request, room: Room, refused: Refused) -> Placement | None:
        """As `_find`, where the request is not known to have no place; if it has none, it is from now on."""
        if request in refused.known:
            return None
        if self.hopeless(request, room) or refused.covers(request):
            refused.known.add(request)
            return None
        placement = self._find(job, request, room)
        if placement is None:
            refused.add(request)
        return placement

    def _find(self, job: JobGraph, request: Request, room: Room) -> Placement | None:
        """Where the job has room, taken out of it; None, and the room as it was, where it has none."""
        if request.uneven or job.drives:
            return None
        machines = self.choose(request, room)
        if machines is None:
            return None
        hosts: list[int] = machines.tolist()
        gpus, remote = room.take(request, hosts)
        return Placement(
            gpus,
            topology=room.layout.topology,
            scores={**link_scores(job, gpus, room.layout.topology), "remote_gpus": float(len(remote))},
            job=job,
            hosts=tuple(map(request.share, hosts)),
            remote=remote,
        )


class GQueue(NodeQueue):
    """The queue TSUBAME 2.5 had (Fig. 5): a node is given to one job at a time.

    A job starts on the first machines, in their order, that have no job at all and the GPUs, CPUs and memory each of
    its nodes asks for.
    """

    name = "g-queue"

    def choose(self, request: Request, room: Room) -> Ints | None:
        """The first machines without a job that have everything."""
        found = _exclusive(request, room)
        return found if len(found) == request.nodes else None

    def hopeless(self, request: Request, room: Room) -> bool:
        """Whether there are fewer machines without jobs than nodes."""
        return request.nodes > room.num_unused


class RQueue(NodeQueue):
    """The queue the paper proposes (Fig. 6): where exclusive nodes are too few, nodes are shared and GPUs borrowed.

    A job first takes the nodes it would have in `g-queue`, then machines, with jobs or not, that have the CPUs and
    memory and find the GPUs on themselves or on any others. A lender's CPUs are not counted.

    Readings of what the paper leaves open: two processes of a job never share a machine. Machines with more of the
    GPUs a node needs come first, so that few are borrowed, and then the lower number. All nodes take their own GPUs
    before any borrows. Lenders are machines with jobs before idle ones, so that idle ones stay whole, then those with
    the fewest free GPUs, which nobody can use where they are, then the lower number. A lender has a job: it is not
    exclusive any more. A job of `single_machine` or `anti_affinity` does not borrow, and GPUs that are given as
    partitions only are not lent.
    """

    name = "r-queue"

    def choose(self, request: Request, room: Room) -> Ints | None:
        """The exclusive nodes, then those with most of the GPUs themselves."""
        first = _exclusive(request, room)
        if len(first) == request.nodes:
            return first
        return self._shared(request, room, first)

    def hopeless(self, request: Request, room: Room) -> bool:
        """Whether there are fewer free GPUs than it needs on all its nodes."""
        return request.total_gpus > room.num_free

    def _shared(self, request: Request, room: Room, first: Ints) -> Ints | None:
        """The nodes `first`, and others; None where these, or the GPUs they would have to borrow, are too few."""
        own = np.minimum(room.suitable(request), request.gpus)
        fits = room.hosting(request)
        if request.local:
            fits &= own == request.gpus
        fits[first] = False
        others = np.flatnonzero(fits)
        if len(first) + len(others) < request.nodes:
            return None
        others = others[np.argsort(-own[others], kind="stable")]
        chosen = np.concatenate((first, others[: request.nodes - len(first)]))
        return chosen if room.can_lend(request, chosen, request.total_gpus - int(own[chosen].sum())) else None


def _exclusive(request: Request, room: Room) -> Ints:
    """The first machines, as many as nodes at most, that have no job and everything a node needs (Fig. 5)."""
    fits = room.hosting(request) & ~room.has_job & (room.suitable(request) >= request.gpus)
    return np.flatnonzero(fits)[: request.nodes]


def _wishes(request: Request) -> str:
    """What a job asks for, for a person to read."""
    where = f"{request.nodes} nodes" if request.nodes > 1 else "a node"
    amounts = [f"{request.gpus} GPUs", f"{request.cpus} CPUs", f"{request.memory_gb:g} GB"]
    return f"{where} with {', '.join(amounts[:2])} and {amounts[2]}"


def _checked_entries(entries: tuple[Any, ...]) -> tuple[QueuedJob, ...]:
    if not set(map(type, entries)) <= {QueuedJob}:
        for i, entry in enumerate(entries):
            _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
    return entries
