"""Checks of one decision of `least-time`: its times, bound and proof, recomputed without the code that decides.

The clauses, in this order:

- All of `check_placement`: the GPUs can be had, requirements and groups are met, shares fit the hosts, scores of links
  are true.
- `time`, `times` and the score communication_time are those of `RecomputedTime`.
- `bound` is not above the time, and `optimal` claims no more than the bound says.
- If there are few orders of free GPUs, no placement is below `bound`, and none is faster by more than the slack than
  one that is `optimal`. Only policies that state the score communication_time claim this: others minimise something
  else.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import host_shares
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Placement
from topoplace.testing.placements import check_placement
from topoplace.testing.recomputed_time import RecomputedTime, recomputed_time

if TYPE_CHECKING:
    from topoplace.objectives.effective_bandwidth import EffectiveBandwidth

TIME: Final = "communication_time"
"""The score of policies that minimise the time."""
SLACK: Final = 0.01
"""The share by which times count as equal, unless a policy says otherwise."""
_MOST_ORDERS: Final = 2_000
_ROUNDING: Final = 1e-8


@dataclass(frozen=True, slots=True)
class Verified:
    """What `verify_decision` has found true."""

    by_dimension: Mapping[str, float]
    """The recomputed seconds of each dimension of the job."""
    fastest: float | None
    """Seconds of the fastest of all placements; None if they were not all tried."""
    unchecked: tuple[str, ...] = ()
    """The clauses that could not be checked, with the reason."""

    @property
    def seconds(self) -> float:
        """Return the recomputed communication time."""
        return math.fsum(self.by_dimension.values())


def verify_decision(
    placement: Placement,
    job: JobGraph,
    cluster: Cluster,
    *,
    slack: float = SLACK,
    most_orders: int = _MOST_ORDERS,
    model: EffectiveBandwidth | None = None,
) -> Verified:
    """Check a placement that a policy decided for a job, and what it says of its time; change nothing.

    Args:
        slack: The share by which times count as equal to the policy.
        most_orders: The number of orders of free GPUs up to which all are tried.
        model: As for `check_placement`.

    Raises:
        AssertionError: Says which clause is broken; the module lists them.
        ValueError: Names a wrong argument.
    """
    _checks.instance(placement, Placement, "placement", ValueError)
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    _checks.real(slack, "slack", ValueError, high=1.0)
    _checks.integer(most_orders, "most_orders", ValueError, low=0, high=10**9)
    check_placement(placement, job, cluster, model)
    clock = recomputed_time(cluster.topology, placement.rates)
    by_dimension = clock.by_dimension(job, placement.gpus)
    seconds = math.fsum(by_dimension.values())
    _require_none(_time_faults(placement, job, by_dimension))
    _require_none(_claim_faults(placement, seconds, slack))
    if reason := _why_not_tried(placement, job, cluster, most_orders):
        return Verified(by_dimension, None, (f"no placement is faster: {reason}",))
    fastest, gpus = _fastest(placement, seconds, job, cluster, clock)
    beside = f", but {gpus} takes {fastest:g} s and {placement.gpus} {seconds:g} s"
    _require_none(fault + beside for fault in _faults_beside(placement, fastest, slack))
    return Verified(by_dimension, fastest)


def _require_none(faults: Iterator[str]) -> None:
    if fault := next(faults, None):
        raise AssertionError(fault)


def _time_faults(placement: Placement, job: JobGraph, true: Mapping[str, float]) -> Iterator[str]:
    seconds = math.fsum(true.values())
    stated = {TIME: placement.scores[TIME]} if TIME in placement.scores else {}
    if placement.job is not None:
        stated["time"] = placement.time
        yield from _job_faults(placement, job, true)
    for name, value in stated.items():
        if not _is_close(value, seconds):
            yield f"states {name} {value:g} on {placement.gpus}, where it is {seconds:g}"


def _job_faults(placement: Placement, job: JobGraph, true: Mapping[str, float]) -> Iterator[str]:
    if placement.job is not None and placement.job != job:
        yield f"the placement is of the job {placement.job.name!r} of {placement.job.num_tasks}"
    times = placement.times
    if times.keys() != true.keys():
        yield f"states times of {list(times)}, where the dimensions are {list(true)}"
    for name in true:
        if not _is_close(times[name], true[name]):
            yield f"states times[{name!r}] = {times[name]:g} on {placement.gpus}, where it is {true[name]:g}"


def _is_close(stated: float, true: float) -> bool:
    return math.isclose(stated, true, rel_tol=_ROUNDING)


def _claim_faults(placement: Placement, seconds: float, slack: float) -> Iterator[str]:
    bound = placement.bound
    if bound is None:
        return
    if bound > seconds * (1 + _ROUNDING):
        yield f"bound = {bound:g} is above the time, {seconds:g} on {placement.gpus}"
    if placement.optimal and seconds > bound * (1 + slack) * (1 + _ROUNDING):
        yield f"optimal = True with bound = {bound:g}, which the time exceeds, {seconds:g} on {placement.gpus}"


def _faults_beside(placement: Placement, fastest: float, slack: float) -> Iterator[str]:
    """Yield what a placement says that is not true beside the fastest one."""
    if placement.bound is not None and placement.bound > fastest * (1 + _ROUNDING):
        yield f"bound = {placement.bound:g}"
    minimises_time = TIME in placement.scores
    if (
        placement.optimal
        and minimises_time
        and placement.scores[TIME] > fastest * (1 + slack) * (1 + _ROUNDING)
    ):
        yield "optimal = True"


# ---- all placements ----------------------------------------------------------------------------------------------


def _why_not_tried(placement: Placement, job: JobGraph, cluster: Cluster, most_orders: int) -> str | None:
    """Return why not all placements of a job are tried; None if they are."""
    if job.mig is not None or placement.resliced:
        return "MIG slices are cut as placements need them"
    number = math.perm(len(_usable(job, cluster)), job.num_tasks)
    return f"there are {number} orders of GPUs to try" if number > most_orders else None


def _usable(job: JobGraph, cluster: Cluster) -> list[int]:
    with cluster.lending(job):
        lost = {*cluster.out_of_service(), *cluster.topology.unhealthy_gpus}
        return [gpu for gpu in cluster.gpus_with(job.gpu_fraction) if gpu not in lost]


def _fastest(
    placement: Placement, seconds: float, job: JobGraph, cluster: Cluster, clock: RecomputedTime
) -> tuple[float, tuple[int, ...]]:
    """Return the time and the GPUs of the fastest placement of a job, of all; `seconds` is that of `placement`."""
    best = seconds, placement.gpus
    for gpus in permutations(_usable(job, cluster), job.num_tasks):
        time = math.fsum(clock.by_dimension(job, gpus).values())
        if time < best[0] * (1 - _ROUNDING) and _is_allowed(gpus, placement, job, cluster):
            best = time, gpus
    return best


def _is_allowed(gpus: tuple[int, ...], placement: Placement, job: JobGraph, cluster: Cluster) -> bool:
    """Return True if the job could have these GPUs; a faster placement has no lower utility."""
    other = Placement(
        gpus,
        topology=cluster.topology,
        job=job,
        hosts=host_shares(job, gpus, cluster.topology),
        drives=placement.drives,
        scores={"utility": 1.0},
    )
    try:
        check_placement(other, job, cluster)
    except AssertionError:
        return False
    return True
