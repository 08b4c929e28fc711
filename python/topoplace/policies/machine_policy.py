"""A policy that takes the best machine by some order, and several only where none has room: SC'17's four are such."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, ClassVar, Literal

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.authors_utility import AuthorsUtility
from topoplace.objectives.utility import Formula, Utility
from topoplace.placement import Deferred, Placement
from topoplace.policies import across
from topoplace.policies.base import Explanation, Plan, QueuedJob, enough_suit, never_fits, no_room
from topoplace.policies.board import Board, Option, Options
from topoplace.policies.costing import Costing
from topoplace.policies.occupancy import MachineState, Occupancy
from topoplace.policies.queue_walk import QueueWalk, too_low
from topoplace.policies.shapes import Mask, Shape, mask_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from topoplace.jobs.performance_profile import PerformanceProfile
    from topoplace.objectives.utility import Costs
    from topoplace.policies.kinds import Kind
    from topoplace.policies.shares import Room, Shares


class MachinePolicy(ABC):
    """Base of the policies of SC'17: a job goes to the machine of the best `order`; where none has room for all of
    it, to those that `shares` names.

    profile: what is known of run times and interference; without one nobody interferes.
    utility: how the scores "utility" and "system_utility" are made: weights of eq. 1's parts as a `Utility`, equal ones
    by default, or "authors" for the formula of the published code, which differs from the paper's.
    memory_bandwidth: GB/s of host memory bandwidth each machine has, for jobs that ask for some (the paper's
    t_bw <= p_bw); None for no limit.
    """

    name: str
    out_of_order: ClassVar[bool] = True
    """Whether jobs may start before older ones that have no room."""

    def __init__(
        self,
        *,
        profile: PerformanceProfile | None = None,
        utility: Formula | Literal["authors"] | None = None,
        memory_bandwidth: float | None = None,
    ) -> None:
        self.costing = Costing(profile, memory_bandwidth)
        self.utility = _formula(utility)

    # ---- what a policy chooses -----------------------------------------------------------------------------

    @abstractmethod
    def mappings(self, kind: Kind, shape: Shape, free: Mask) -> Iterable[tuple[int, ...]]:
        """The GPUs of one machine, in task order, that come into question among those that are free and suit."""

    @abstractmethod
    def order(self, shape: Shape, free: Mask, gpus: tuple[int, ...], costs: Costs) -> tuple[float, ...]:
        """What is best about a choice, smaller is better; `free` is what stays free on the machine."""

    @abstractmethod
    def shares(self, kind: Kind, rooms: Sequence[Room], occupancy: Occupancy) -> Iterable[Shares]:
        """The machines for a job that no single one takes, out of those with room: ways to do it, best first."""

    def task_order(self, kind: Kind, gpus: Sequence[int], occupancy: Occupancy) -> Sequence[int]:
        """The GPU of each task out of those of several machines, which are at least as many: the first ones."""
        return gpus[: kind.size]

    # ---- Policy --------------------------------------------------------------------------------------------

    def place(self, job: JobGraph, cluster: Cluster) -> Placement | None:
        """The best placement of `job` on the free GPUs; None when nothing fits or the policy would rather wait."""
        return self.search(job, _occupancy(job, cluster), self.least_utility(job))

    def explain(self, job: JobGraph, cluster: Cluster, top: int = 5) -> Explanation:
        """The `top` best GPU sets with their scores, and the reason where `place` gives None."""
        top = _checks.integer(top, "top", ValueError, low=1, high=1 << 30)
        occupancy = _occupancy(job, cluster)
        chosen = self.search(job, occupancy, self.least_utility(job))
        candidates = tuple(islice(self._ranked(job, occupancy, chosen), top))
        if chosen is not None:
            return Explanation(self.name, candidates)
        if candidates:
            best = max(candidate.scores["utility"] for candidate in candidates)
            return Explanation(self.name, candidates, too_low(job, best))
        why = self.never(job, occupancy) or self._no_room(job, occupancy)
        return Explanation(self.name, (), why)

    def plan(self, queue: Sequence[QueuedJob], cluster: Cluster, now: float) -> Plan:
        """Start what can start, oldest first; defer what the policy would rather wait with, reject what never fits."""
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        entries = _checks.sequence(queue, "queue", ValueError)
        with cluster.trial() as state:
            walk = QueueWalk(self, state)
            for i, entry in enumerate(entries):
                _checks.instance(entry, QueuedJob, f"queue[{i}]", ValueError)
                if not walk.visit(entry):
                    break
        return Plan(tuple(walk.start), tuple(walk.defer), tuple(walk.reject))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    # ---- inside --------------------------------------------------------------------------------------------

    def least_utility(self, job: JobGraph, postponed: int = 0) -> float:
        """The utility below which the job rather waits, having been postponed so often."""
        return -math.inf

    def refused_utility(self, job: JobGraph, occupancy: Occupancy, least_utility: float) -> float | None:
        """What a job that rather waits could have now; None where nothing fits at all."""
        other = self.search(job, occupancy, -math.inf) if least_utility > -math.inf else None
        return other.scores["utility"] if other else None

    def search(self, job: JobGraph, occupancy: Occupancy, least_utility: float) -> Placement | None:
        """The best placement that is worth at least that much to the job; None where there is none."""
        if not 0 < job.num_tasks <= occupancy.cluster.num_free:
            return None
        kind = occupancy.kind(job)
        if not job.anti_affinity or job.num_tasks == 1:
            board = self._board(kind, occupancy)
            if found := board.best(least_utility):
                return self._placement(job, occupancy, *found)
            if board.best():
                return None  # it has room, though not a good one; several machines would be worse
        if job.single_machine:
            return None
        return self._across(job, kind, occupancy, least_utility)

    def _across(
        self, job: JobGraph, kind: Kind, occupancy: Occupancy, least_utility: float
    ) -> Placement | None:
        """The first set of machines on which the job can talk, and is worth enough."""
        if kind.fitting and self.utility.job(self.costing.across_at_best(kind)) < least_utility:
            return None  # not worth the search
        topology = occupancy.cluster.topology
        for gpus in across.candidates(self, kind, occupancy):
            costs = self.costing.on_machines(kind, gpus, across.extremes(self, kind, occupancy), occupancy)
            enough = costs.communication < math.inf and self.utility.job(costs) >= least_utility
            if enough and topology.is_legal(gpus):
                scores = self._scores(costs, across.link_scores(job, gpus, topology))
                return Placement(tuple(gpus), scores=scores, topology=topology, job=job)
        return None

    def never(self, job: JobGraph, occupancy: Occupancy) -> Deferred | None:
        """Why a job could not even run on the idle cluster; None where it could."""
        topology, kind = occupancy.cluster.topology, occupancy.kind(job)
        key = (self, kind, "never")
        return occupancy.kept(key, lambda: never_fits(job, topology) or self.costing.too_much_bandwidth(kind))

    def _no_room(self, job: JobGraph, occupancy: Occupancy) -> Deferred:
        limited = self.costing.memory_bandwidth is not None and job.memory_bandwidth
        if limited and enough_suit(job, occupancy.cluster):
            return Deferred(
                "does not fit now: the free GPUs are on machines without the memory bandwidth it needs"
            )
        return no_room(job, occupancy.cluster)

    def _ranked(self, job: JobGraph, occupancy: Occupancy, chosen: Placement | None) -> Iterator[Placement]:
        """`chosen`, and then all other sets of GPUs of one machine, best first."""
        seen: set[frozenset[int]] = set()
        kind = occupancy.kind(job)
        apart = job.anti_affinity and job.num_tasks > 1
        machines = () if apart else range(occupancy.shapes.num_machines)
        board = self._board(kind, occupancy)
        options = [
            (option.order, machine, option) for machine in machines for option in board.options(machine)
        ]
        options.sort(key=lambda entry: entry[:2])
        ranked = (self._placement(job, occupancy, machine, option) for _, machine, option in options)
        first = chosen or (None if options else self.search(job, occupancy, -math.inf))
        for placement in chain([first] if first else [], ranked):
            gpus = frozenset(placement.gpus)
            if gpus not in seen:
                seen.add(gpus)
                yield placement

    def _board(self, kind: Kind, occupancy: Occupancy) -> Board:
        def evaluate(shape: Shape, state: MachineState) -> Options:
            return self._options(kind, shape, state)

        return occupancy.kept((self, kind), lambda: Board(occupancy, evaluate))

    def _options(self, kind: Kind, shape: Shape, state: MachineState) -> Options:
        """The options of a machine, best first."""
        usable = state.free & kind.suitable(shape)
        if not 0 < kind.size <= usable.bit_count():
            return ()
        if self.costing.most_gpus(kind.job, state.memory_bandwidth) < kind.size:
            return ()
        found: list[Option] = []
        for gpus in self.mappings(kind, shape, usable):
            left = state.free & ~mask_of(gpus)
            costs = self.costing.on_machine(kind, shape, state, gpus, left)
            if costs.communication < math.inf:
                order = self.order(shape, left, gpus, costs)
                found.append(Option(order, gpus, self.utility.job(costs), costs))
        return sorted(found, key=lambda option: (option.order, sorted(option.gpus), option.gpus))

    def _placement(self, job: JobGraph, occupancy: Occupancy, machine: int, option: Option) -> Placement:
        numbers, kind = occupancy.shapes.gpus_of[machine], occupancy.kind(job)
        links = kind.link_scores(occupancy.shape(machine), option.gpus)
        gpus = tuple(numbers[local] for local in option.gpus)
        scores = self._scores(option.costs, links)
        return Placement(gpus, scores=scores, topology=occupancy.cluster.topology, job=job)

    def _scores(self, costs: Costs, links: Mapping[str, float]) -> dict[str, float]:
        return {
            **links,
            "communication_cost": costs.communication,
            "interference": 1 - costs.shared,
            "fragmentation": costs.fragmentation,
            "utility": self.utility.job(costs),
            "system_utility": self.utility.system(costs),
        }


def _formula(utility: Formula | Literal["authors"] | None) -> Formula:
    if utility is None:
        return Utility()
    if utility == "authors":
        return AuthorsUtility()
    _checks.instance(utility, Formula, "utility", ValueError)
    return utility


def _occupancy(job: JobGraph, cluster: Cluster) -> Occupancy:
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    return cluster.view(Occupancy)
