"""`make_room`: the cheapest set of running jobs to move or to pre-empt so that a job fits."""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from topoplace import _checks, policies
from topoplace.cluster.cluster import Cluster
from topoplace.engine.machine_policy import MachinePolicy
from topoplace.engine.policy import Policy
from topoplace.errors import AllocationError, DeadlineError
from topoplace.jobs.job_graph import JobGraph
from topoplace.kernels.limits import deadline
from topoplace.moving.attempts import Arrangement, Attempts
from topoplace.moving.exact_search import ExactSearch
from topoplace.moving.least_bandwidth import LeastBandwidth
from topoplace.moving.many_machines import search_across, search_machines
from topoplace.moving.move_costs import MoveCosts
from topoplace.moving.movers import Mover, movers_of
from topoplace.moving.rearrangement import Rearrangement
from topoplace.moving.shortages import in_all
from topoplace.placement import Placement, Refusal

_FEW_JOBS = 24
"""Largest number of movable jobs that are searched together from the start."""
_SOME_JOBS = 128
"""Largest number of movable jobs that are searched together until time ends, after the machines one by one."""
_SHARE_FOR_MACHINES = 0.5
"""The share of the time after which the search of machines ends, so that a plan is found at all."""
_SHARE_FOR_MANY = 0.1
"""The share of the time after which a search of more jobs ends: most end far earlier, others have a plan near the best.
"""
_NO_PLACES = "the jobs that would have to move fit nowhere else, and none may be pre-empted"


def make_room(
    job: JobGraph,
    cluster: Cluster,
    *,
    movable: Iterable[str] | None = None,
    cost: MoveCosts | None = None,
    policy: Policy | str = policies.DEFAULT,
    min_bandwidth: float | None = None,
    excluded: Mapping[str, Collection[str]] | None = None,
    job_id: str = "job",
    timeout: float = 10.0,
) -> Rearrangement:
    """Return the cheapest plan that moves or pre-empts running jobs so that `job` fits; the cluster is not changed.

    The plan starts the job, and lists the jobs that move (`move`) and those that stop (`preempt`); all of them leave
    their GPUs before a job gets new ones. If the job does not fit even without all movable jobs, it is in `defer`, or
    in `reject` if it can never run, with the reason.

    The plan has a `cost`, and `bound` is a lower bound on the cost of any plan. With up to 128 movable jobs, every
    choice of jobs is considered. The plan is then proven best (`optimal`) unless time runs out or not all placements of
    moved jobs can be tried. With more than 24 jobs, machines are searched first, one by one, cheapest first. This alone
    proves a plan for a `single_machine` job whose moved jobs fit elsewhere without displacing others. With more than
    128 jobs, choices over all machines are searched for a tenth of `timeout`. Proofs assume that a job that the policy
    places is also placed with more room.

    Jobs in MIG slices stay.

    Args:
        movable: Ids of the jobs that may be moved or pre-empted; None for all.
        cost: The costs of moving and pre-empting jobs; None means `MoveCosts()`.
        policy: The policy that places the job and the jobs that move, and so decides what fits. The default refuses a
            placement below the `min_utility` of the job, or of a job that moves.
        min_bandwidth: Minimum GB/s of the slowest link between two tasks of the job; the job is then placed for the
            fastest such link, not by `policy`. None for no minimum.
        excluded: The names of the machines that a job must not get, by id: `job_id`, or the id of a job that moves.
        job_id: The name of the job in the plan; no running job may have it.
        timeout: Seconds after which the best plan so far is returned.

    Raises:
        ValueError: Names a wrong argument, such as a job that needs a MIG slice.
        AllocationError: Names an id in `movable` that is no running job or is in MIG slices, or a `job_id` that is a
            running job.
    """
    timeout = _checks.positive(timeout, "timeout", ValueError)
    start = time.monotonic()
    search: ExactSearch | None = None
    bound = 0.0
    with suppress(DeadlineError), deadline(timeout):
        attempts = _attempts(job, cluster, movable, cost, policy, min_bandwidth, job_id)
        attempts = replace(attempts, excluded=_excluded(excluded, cluster))
        if (found := _without_search(attempts)) is not None:
            return found
        search = ExactSearch(attempts, timeout, start)
        bound = _searched(search)
    if search is None or search.best is None:
        refused = Refusal(_NO_PLACES if bound == math.inf else f"found no rearrangement in {timeout:g} s")
        return Rearrangement(defer=((job_id, refused),), cost=math.inf, bound=bound)
    return _plan(job_id, cluster, search.best, bound)


def _without_search(attempts: Attempts) -> Rearrangement | None:
    """Return the plan if no search is needed: the job fits, or even without all movable jobs it does not."""
    job_id = attempts.job_id
    if (placement := attempts.place()) is not None:
        return Rearrangement(start=((job_id, placement),))
    refusal = attempts.policy_of(job_id, attempts.own).explain(attempts.job, attempts.cluster, top=1).refusal
    if refusal is not None and refusal.permanent:
        return Rearrangement(reject=((job_id, refusal),), cost=math.inf, bound=math.inf)
    if not attempts.fits_without(range(len(attempts.movers))):
        return Rearrangement(defer=((job_id, _reason(attempts)),), cost=math.inf, bound=math.inf)
    return None


def _searched(search: ExactSearch) -> float:
    """Search for the cheapest plan, and return a lower bound on the cost of every one."""
    attempts = search.attempts
    everyone = range(len(attempts.movers))
    bound, at_once = 0.0, len(everyone) <= _FEW_JOBS
    shortages = [in_all(attempts.job, attempts.cluster, attempts.movers)]
    with search.leaving_time(_SHARE_FOR_MACHINES):
        bound = search.among(everyone, shortages) if at_once else search_machines(search)
    if bound < search.cost and (search.best is None or not at_once):
        search_across(search)
    if bound < search.cost and not search.is_over():
        if len(everyone) <= _SOME_JOBS:
            bound = max(bound, search.among(everyone, shortages))
        else:
            with search.leaving_time(_SHARE_FOR_MANY):
                bound = max(bound, search.among(everyone, shortages))
    return min(bound, search.cost)


def _attempts(
    job: JobGraph,
    cluster: Cluster,
    movable: Iterable[str] | None,
    cost: MoveCosts | None,
    policy: Policy | str,
    min_bandwidth: float | None,
    job_id: str,
) -> Attempts:
    """Check the arguments of `make_room`, and return the attempts that they describe."""
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    costs = MoveCosts() if cost is None else cost
    _checks.instance(costs, MoveCosts, "cost", ValueError)
    others = policies.get(policy) if isinstance(policy, str) else policy
    _checks.instance(others, Policy, "policy", ValueError)
    if job.mig is not None:
        raise ValueError(
            f"mig = {job.mig!r} cannot be honoured: room is made on whole GPUs and shares of them"
        )
    refuse_reslicing(others)
    own: Policy = others if min_bandwidth is None else LeastBandwidth(min_bandwidth)
    _checks.text(job_id, "job_id", AllocationError)
    if cluster.runs(job_id):
        raise AllocationError(f"job_id = {_checks.shown(job_id)} is a running job")
    return Attempts(job_id, job, cluster, own, others, movers_of(cluster, movable, costs))


def _excluded(
    excluded: Mapping[str, Collection[str]] | None, cluster: Cluster
) -> Mapping[str, Collection[str]]:
    """Return `excluded`; ValueError names a machine that the cluster does not have."""
    _checks.instance(excluded or {}, Mapping, "excluded", ValueError)
    known = cluster.topology.gpus_of
    different = {id(names): (job_id, names) for job_id, names in (excluded or {}).items()}
    for job_id, names in different.values():
        for name in names:
            if name not in known:
                raise ValueError(
                    f"excluded[{_checks.shown(job_id)}]: the topology has no machine {_checks.shown(name)}"
                )
    return excluded or {}


def refuse_reslicing(policy: Policy) -> None:
    """Raise ValueError for a policy that may reslice GPUs, as the bounds ignore sliced GPUs."""
    if isinstance(policy, MachinePolicy) and policy.may_reslice:
        raise ValueError(f"policy = {policy.name}: room is made without reslicing GPUs")


def _reason(attempts: Attempts) -> Refusal:
    """Return why the job does not fit even without the movable jobs."""
    with attempts.cluster.what_if() as without:
        for mover in attempts.movers:
            without.release(mover.job_id)
        own = attempts.policy_of(attempts.job_id, attempts.own)
        why = own.explain(attempts.job, without, top=1).refusal
    reason = why.reason if why else "the policy does not place it"
    number = len(attempts.movers)
    return Refusal(
        f"even without the {number} jobs that may leave: {reason}"
        if number
        else f"no job may leave: {reason}"
    )


def _plan(job_id: str, cluster: Cluster, found: Arrangement, bound: float) -> Rearrangement:
    """Return the plan; jobs that are moved to what they hold already are left out."""
    moved = [(mover, where) for mover, where in found.moved if not _holds(mover, where, cluster)]
    cost = found._replace(moved=tuple(moved)).cost
    return Rearrangement(
        start=((job_id, found.placement),),
        move=tuple((mover.job_id, where) for mover, where in moved),
        preempt=tuple(mover.job_id for mover in found.preempted),
        cost=cost,
        bound=min(bound, cost),
    )


def _holds(mover: Mover, where: Placement, cluster: Cluster) -> bool:
    """Return True if a job holds these GPUs and host resources now."""
    held = cluster.hosts.held.get(mover.job_id)
    now = (held.shares, held.drives, held.remote) if held else ((), (), ())
    return set(where.gpus) == set(mover.gpus) and now == (where.hosts, where.drives, where.remote)
