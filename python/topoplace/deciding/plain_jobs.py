"""Jobs of whole GPUs, or shares on one machine, decided in one call of C++, or two for a gang (`least_time.hpp`).

A job that suits GPUs of several memory sizes is asked for size by size, the smallest first.
"""

from __future__ import annotations

import math
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
from topoplace.errors import DeadlineError
from topoplace.kernels.limits import check_deadline
from topoplace.objectives.communication import running_gangs
from topoplace.objectives.links import job_link_scores
from topoplace.topology.makers import gpus_by_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_options import DomainOrder, MachineOptions
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
    timeout: float | None
    is_plain: Callable[[JobRequest], bool]
    """Returns True if machines in one condition have the same sets of GPUs for a request of whole ones or shares."""
    options: Callable[[JobRequest, ClusterView], MachineOptions]
    """Returns the options of a request on all machines."""
    ranked_as: Callable[[JobRequest, ClusterView], JobRequest]
    """Returns a request that has the same options in the same order."""


_BINDING: Final = frozenset(("single_machine", "spread", "same_gpus", "gpu_fraction"))
"""The requirements with which not any machines may share a job."""
_BETWEEN_TASKS: Final = frozenset(("groups", "within", "prefer", "balanced"))
"""The requirements that bind tasks to each other."""
_MAX_KNOWN, _MAX_DECISIONS = 1 << 12, 1 << 11
_Decisions = tuple[_core.LeastTime, ...]
"""What decides a job: by the limits on the memory of GPUs, the smallest first."""
_Found = tuple[int, tuple[int, ...], float, bool, float | None, bool]
_UNKNOWN: Final = np.empty(0)


class PlainJobs:
    """Decides jobs on a cluster, on several machines only whole GPUs, and only if any of these may share the job.

    Jobs of equal needs share a decision in C++; where GPUs of a machine are not alike, jobs of equal requests do.
    """

    def __init__(self, view: ClusterView, rule: Rule) -> None:
        """Store the arguments."""
        self._view, self._rule = view, rule
        topology = self._topology = view.cluster.topology
        self._running = view.cluster.view(running_gangs)
        self._state = view.cluster.native
        self.has_one_maker = not topology.derived(gpus_by_maker)
        """False if the cluster has GPUs of several makers, which a placement may mix."""
        self._is_any_alike = len(view.classes.classes) == 1 and ranked_sets.are_alike(topology)
        self._decisions: Memo[Hashable, _Decisions] = Memo(_MAX_DECISIONS)
        self._unbound: Memo[tuple[int, bool], _core.GangGroups] = Memo(_MAX_KNOWN)
        self._unplaced: tuple[JobGraph | None, int, bool] = None, 0, False
        """The job that last got no placement, the number of changes before, and whether that is final; callers ask
        again.
        """
        self._late: tuple[JobGraph | None, int] = None, 0
        """The job whose sets were last not compared in time, and the number of changes before."""
        self.known: Memo[int, tuple[JobGraph, _Decisions]] = Memo(_MAX_KNOWN)
        """The jobs that were asked about, by their identity, with what decides them; none for those that are not plain.
        """

    def place(self, job: JobGraph, most_seconds: float = math.inf) -> tuple[Placement | None, bool]:
        """Return the placement of a job, or None; and True if that is final.

        It is not final for a job that is not plain, if time ends before all sets are compared, or if a job finds no
        room although another search may find paths. most_seconds: limit on the communication time.
        """
        known = self.known.get(id(job))  # holds the job, so that no other gets its id
        decisions = self._decisions_on(job) if known is None else known[1]
        if not decisions or (job.num_tasks > self._state.num_free and not job.takes_parts):
            return None, False
        changes = self._state.num_changes  # others may change the cluster meanwhile
        last, before, is_final = self._unplaced
        if last is job and before == changes:
            return None, is_final
        try:
            placement, is_final = self._placed_by(decisions, job, most_seconds)
        except DeadlineError:
            check_deadline()  # that of the caller
            placement, is_final = None, False
            self._late = job, changes
        if placement is None:
            is_final = is_final and changes == self._state.num_changes
            if most_seconds == math.inf:
                self._unplaced = job, changes, is_final
        return placement, is_final

    def is_late(self, job: JobGraph) -> bool:
        """Return True if the sets of machines for a job were not compared in time, so that `place` gives up at once."""
        last, before = self._late
        return last is job and before == self._state.num_changes

    def _placed_by(
        self, decisions: _Decisions, job: JobGraph, most_seconds: float
    ) -> tuple[Placement | None, bool]:
        alone, found = self._on_one_machine(decisions, job, most_seconds)
        if alone is not None and not alone[-1]:
            return found and self._placed(job, *found), True
        if not self._may_be_free(job):
            return None, False
        split = self._on_several(decisions, job, math.inf if alone else most_seconds)
        if split and (alone is None or split[2] * self._rule.split <= alone[2]) and split[2] <= most_seconds:
            found = split
        if found is not None:
            return self._placed(job, *found), True
        return None, (alone or split) is not None or self._is_all_that_counts(job)

    def _is_all_that_counts(self, job: JobGraph) -> bool:
        """Return True if a job whose groups divide it has no place where it finds no room."""
        return bool(job.groups or job.balanced) and self._view.classes.have_all_paths(self._topology)

    def _on_one_machine(
        self, decisions: _Decisions, job: JobGraph, most_seconds: float
    ) -> tuple[_Found | None, _Found | None]:
        """Return the job on one machine, first with any time, then with one within the limit."""
        traffic, timeout, first = job.traffic_arrays.native, self._rule.timeout, None
        timeout = timeout and timeout / 2 / len(decisions)
        for decision in decisions:
            found = decision.on_one_machine(traffic, timeout)
            first = first or found
            if found is not None and found[2] <= most_seconds:
                return first, found
        return first, None

    def _on_several(self, decisions: _Decisions, job: JobGraph, most_seconds: float) -> _Found | None:
        """Return the job on several machines, the first place with a time within the limit, or else the last.

        Return None without room, or if some tasks have no path.
        """
        tflop = job.tflop or 0.0
        others = self._running.now() if self._rule.others else None
        unbound = None
        if not job.roles and _BETWEEN_TASKS.isdisjoint(job.requirements):  # most jobs: without a call
            unbound = self._unbound.get((job.num_tasks, bool(job.stated_collectives)))
        asked = (
            job.traffic_arrays.native,
            job.edge_array,
            unbound or self._groups(job),
            tflop,
            self._topology.derived(usual_tflop_per_s) if tflop else _UNKNOWN,
            None if others is None else others.native,
            self._rule.timeout and self._rule.timeout / len(decisions),
        )
        last = None
        for decision in decisions:
            last = decision.on_several(*asked) or last
            if last is not None and last[2] <= most_seconds:
                break
        return last

    def _may_be_free(self, job: JobGraph) -> bool:
        """Return True if any machines may share a job, but for the levels of its groups."""
        is_free = _BINDING.isdisjoint(job.requirements) and not self._view.classes.have_partitions
        return is_free and not (job.groups and self._view.request(job).needs_sockets)

    def _groups(self, job: JobGraph) -> _core.GangGroups:
        """Return what binds the tasks of a job to each other; jobs that nothing binds share it."""
        from topoplace.deciding.gangs import groups_of  # jobs on one machine need none of it

        view, rates = self._view, self._rule.timing.rates
        found = groups_of(view.request(job), view, rates)
        if not job.roles and _BETWEEN_TASKS.isdisjoint(job.requirements):
            self._unbound[job.num_tasks, bool(job.stated_collectives)] = found
        return found

    def _decisions_on(self, job: JobGraph) -> _Decisions:
        like = self._like(job)
        found = () if like is None else self._decisions.get(like)
        if found is None:
            found = self._decisions[like] = self._new_decisions(job)
        self.known[id(job)] = job, found
        return found

    def _like(self, job: JobGraph) -> Hashable:
        """Return a key that is equal for jobs of the same decisions; None if the job is not plain."""
        if not job.num_tasks:
            return None
        if self._is_any_alike and job.edges:
            return resource_key(job)
        request = self._request(job)
        return self._rule.ranked_as(request, self._view) if self._rule.is_plain(request) else None

    def _request(self, job: JobGraph) -> JobRequest:
        """Return the request of a job; what it asks of its time is left out."""
        return self._view.request(job.with_(min_utility=0.0) if job.min_utility else job)

    def _new_decisions(self, job: JobGraph) -> _Decisions:
        """Return what decides a job, by the limits on the memory of GPUs that are tried."""
        request = self._request(job)
        if not self._rule.is_plain(request):
            return ()
        options = self._rule.options(request, self._view)
        if isinstance(options.table, ranked_sets.SetTable):
            return (self._new_decision(request, options.table, options.by_order, options.domains),)
        conditions, timing = options.conditions, self._rule.timing
        tables = [
            ranked_sets.SetTable(request, self._view, conditions, timing, limit)
            for limit in request.memory_limits
        ]
        return tuple(
            self._new_decision(
                request,
                table,
                _core.MachineRanking(conditions.native),
                options.domains,
                is_limited=table is not tables[-1],
            )
            for table in tables
        )

    def _new_decision(
        self,
        request: JobRequest,
        table: ranked_sets.SetTable,
        ranking: _core.MachineRanking,
        domains: DomainOrder | None,
        *,
        is_limited: bool = False,
    ) -> _core.LeastTime:
        view, rule, rates = self._view, self._rule, self._rule.timing.rates
        topology = self._topology
        return _core.LeastTime(
            table.native,
            ranking,
            domains and domains.domains,
            ranked_sets.BEFORE_DOMAINS,
            topology_of_gangs(topology, rates),
            topology.derived(GangLevels).of(chain_of(request, view), rates),
            request.host_demand,
            1 if request.anti_affine else request.size,
            request.job.max_machines or 0,
            is_limited,
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
