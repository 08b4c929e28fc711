"""Jobs of whole GPUs, decided in one call of C++, or two for a gang (`least_time.hpp`)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from topoplace import _core
from topoplace.deciding import ranked_sets
from topoplace.deciding.gang_topology import GangLevels, chain_of, topology_of_gangs, usual_tflop_per_s
from topoplace.engine.machine_policy import placed_on
from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.engine.memo import Memo
from topoplace.engine.request import resource_key
from topoplace.objectives.communication import running_gangs
from topoplace.objectives.links import job_link_scores
from topoplace.topology.makers import gpus_by_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_options import MachineOptions
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology


class Rule(NamedTuple):
    """What the policy least-time says of jobs."""

    timing: ranked_sets.Timing
    split: float
    """As the others that follow, one of the arguments of `LeastTime`; 0 never splits a job that fits one machine."""
    compact: float
    others: bool
    is_plain: Callable[[JobRequest], bool]
    """Returns True if machines in one condition have the same options for a request of whole GPUs."""
    options: Callable[[JobRequest, ClusterView], MachineOptions]
    """Returns the options of a request on all machines."""
    ranked_as: Callable[[JobRequest, ClusterView], JobRequest]
    """Returns a request that has the same options in the same order."""


_BINDING: Final = frozenset(("single_machine", "spread", "same_gpus"))
"""The requirements with which not any machines may share a job."""
_BETWEEN_TASKS: Final = frozenset(("groups", "within", "prefer", "balanced"))
"""The requirements that bind tasks to each other."""
_MAX_KNOWN, _MAX_DECISIONS = 1 << 12, 1 << 11
_UNKNOWN: Final = np.empty(0)


class PlainJobs:
    """Decides jobs of whole GPUs on a cluster, on several machines only if any of these may share the job.

    Jobs of equal needs share a decision in C++; where GPUs of a machine are not alike, jobs of equal requests do.
    """

    def __init__(self, view: ClusterView, rule: Rule) -> None:
        """Store the arguments."""
        self._view, self._rule = view, rule
        topology = self._topology = view.cluster.topology
        self._running = view.cluster.view(running_gangs)
        self._state = view.cluster.native
        # Where there are several, a decision may have to be made for each.
        self._has_one_maker = not topology.derived(gpus_by_maker)
        self._is_any_alike = len(view.classes.classes) == 1 and ranked_sets.are_alike(topology)
        self._decisions: Memo[Hashable, _core.LeastTime] = Memo(_MAX_DECISIONS)
        self._unbound: Memo[tuple[int, bool], _core.GangGroups] = Memo(_MAX_KNOWN)
        self._nowhere = 0, -1
        """The job that last got no placement, by its identity, and the number of changes before; callers ask again."""
        self.known: Memo[int, tuple[JobGraph, _core.LeastTime | None]] = Memo(_MAX_KNOWN)
        """The jobs that were asked about, by their identity, with what decides them; None for those that are not plain.
        """

    def place(self, job: JobGraph) -> Placement | None:
        """Return the placement of a job; None if it is not plain, has none, or needs more to be compared."""
        known = self.known.get(id(job))  # holds the job, so that no other gets its id
        decision = self._decision(job) if known is None else known[1]
        if decision is None or job.num_tasks > self._state.num_free:
            return None
        changes = self._state.num_changes  # others may change the cluster meanwhile
        if self._nowhere == (id(job), changes):
            return None
        placement = self._placed_by(decision, job)
        if placement is None:
            self._nowhere = id(job), changes
        return placement

    def has_none(self, job: JobGraph) -> bool:
        """Return True if `place` has just shown that a job whose groups divide it has no place now."""
        if self._nowhere != (id(job), self._state.num_changes) or not (job.groups or job.balanced):
            return False
        return self._may_be_free(job) and self._view.classes.have_all_paths(self._topology)

    def _placed_by(self, decision: _core.LeastTime, job: JobGraph) -> Placement | None:
        alone = decision.on_one_machine(job.traffic_arrays.native)
        if alone is not None and not alone[-1]:
            return self._placed(job, *alone)
        if not self._may_be_free(job):
            return None
        tflop = job.tflop or 0.0
        others = self._running.now() if self._rule.others else None
        unbound = None
        if not job.roles and _BETWEEN_TASKS.isdisjoint(job.requirements):  # most jobs: without a call
            unbound = self._unbound.get((job.num_tasks, bool(job.stated_collectives)))
        split = decision.on_several(
            job.traffic_arrays.native,
            job.edge_array,
            unbound or self._groups(job),
            tflop,
            self._topology.derived(usual_tflop_per_s) if tflop else _UNKNOWN,
            None if others is None else others.native,
        )
        is_split = split is not None and (alone is None or split[2] * self._rule.split <= alone[2])
        found = split if is_split else alone
        return found and self._placed(job, *found)

    def _may_be_free(self, job: JobGraph) -> bool:
        """Return True if any machines may share a job that communicates, but for the levels of its groups."""
        is_free = (
            job.edges and _BINDING.isdisjoint(job.requirements) and not self._view.classes.have_partitions
        )
        return bool(is_free) and not (job.groups and self._view.request(job).needs_sockets)

    def _groups(self, job: JobGraph) -> _core.GangGroups:
        """Return what binds the tasks of a job to each other; jobs that nothing binds share it."""
        from topoplace.deciding.gangs import groups_of  # jobs on one machine need none of it

        view, rates = self._view, self._rule.timing.rates
        found = groups_of(view.request(job), view, rates)
        if not job.roles and _BETWEEN_TASKS.isdisjoint(job.requirements):
            self._unbound[job.num_tasks, bool(job.stated_collectives)] = found
        return found

    def _decision(self, job: JobGraph) -> _core.LeastTime | None:
        like, found = self._like(job), None
        if like is not None:
            found = self._decisions.get(like)
            if found is None and (found := self._new_decision(self._view.request(job))) is not None:
                self._decisions[like] = found
        self.known[id(job)] = job, found
        return found

    def _like(self, job: JobGraph) -> Hashable:
        """Return a key that is equal for jobs of one decision; None if the job is not plain."""
        if not (self._has_one_maker and job.num_tasks):
            return None
        if self._is_any_alike and job.edges and not job.min_utility:
            return resource_key(job)
        request = self._view.request(job)
        return self._rule.ranked_as(request, self._view) if self._rule.is_plain(request) else None

    def _new_decision(self, request: JobRequest) -> _core.LeastTime | None:
        if not self._rule.is_plain(request):
            return None
        view, rule, rates = self._view, self._rule, self._rule.timing.rates
        topology, options = self._topology, rule.options(request, view)
        table, (fill, before) = options.table, options.domains or (None, 0)
        assert isinstance(table, ranked_sets.SetTable)  # a job of whole GPUs without a limit on their memory
        return _core.LeastTime(
            table.native,
            options.by_order,
            fill,
            before,
            topology_of_gangs(topology, rates),
            topology.derived(GangLevels).of(chain_of(request, view), rates),
            request.host_demand,
            1 if request.anti_affine else request.size,
            request.job.max_machines or 0,
            rule.split if request.fits_any_machine and not request.job.single_machine else 0.0,
            rule.compact,
        )

    def _placed(
        self, job: JobGraph, machine: int, gpus: tuple[int, ...], seconds: float, optimal: bool, *proof: Any
    ) -> Placement:
        cluster, rates = self._view.cluster, self._rule.timing.rates
        scores = partial(_scores, job, machine, gpus, seconds, self._topology, rates)
        return placed_on(job, gpus, cluster, scores, optimal=optimal, bound=proof[0], rates=rates)


def _scores(
    job: JobGraph, machine: int, gpus: Sequence[int], seconds: float, topology: Topology, rates: Rates | str
) -> Mapping[str, float]:
    """Return the scores of a job on these GPUs, where its communication time is `seconds`.

    machine: that of all GPUs; below 0 if these are on several machines.
    """
    from topoplace.objectives.job_bandwidth import bandwidth_scores

    if machine >= 0:
        classes = topology.derived(MachineClasses)
        topology, gpus = classes.of(machine).alone, [classes.local_of[gpu] for gpu in gpus]
    carried = bandwidth_scores(job, seconds, gpus, topology, rates)
    return {**job_link_scores(job, gpus, topology), "communication_time": seconds, **carried}
