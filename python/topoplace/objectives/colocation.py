"""Interference between jobs on one machine, predicted from measured run times (SC'17, eq. 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.jobs.requirements import MAX_TASKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.jobs.performance_profile import PerformanceProfile

JobKind = tuple[str, int]
"""The name of a job's performance profile, and its number of GPUs."""


def interference(
    profile: PerformanceProfile | None, job: JobKind, placement: str, others: Sequence[JobKind]
) -> tuple[float, float]:
    """Return two ratios of 0..1, where 1 means no interference: that of `job` next to `others`, and the mean of eq. 4.

    The ratio of `job` is its best solo run time divided by its run time in the placement class `placement` next to the
    worst of `others`. The ratio of each other job is its solo run time divided by its run time next to `job`. Eq. 4 is
    the mean of all these ratios. A job without profile ("") neither suffers nor causes interference; if `profile` is
    None, no job does. Unmeasured pairs count as in `PerformanceProfile.slowdown`; a job that was not measured alone has
    the same solo run time everywhere.

    Raises:
        ValueError: Names an argument of another form.
    """
    if profile is not None:
        from topoplace.jobs.performance_profile import PerformanceProfile  # few callers have a profile

        _checks.instance(profile, PerformanceProfile, "profile", ValueError)
    _checks.text(placement, "placement", ValueError)
    kinds = tuple(
        _kind(other, f"others[{i}]") for i, other in enumerate(_checks.sequence(others, "others", ValueError))
    )
    return interference_ratios(profile, _kind(job, "job"), placement, kinds)[:2]


def _kind(value: object, what: str) -> JobKind:
    parts = _checks.ordered(value, what, ValueError)
    if len(parts) != 2 or not isinstance(parts[0], str):
        raise ValueError(f"{what} = {_checks.shown(value)} is not (name of a profile, number of GPUs)")
    return parts[0], _checks.integer(parts[1], f"{what}[1]", ValueError, low=1, high=MAX_TASKS)


def interference_ratios(
    profile: PerformanceProfile | None, job: JobKind, placement: str, others: Sequence[JobKind]
) -> tuple[float, float, float]:
    """Return the two ratios of `interference`, and the lowest ratio of another job, without checking the arguments."""
    if profile is None or not job[0]:
        return 1.0, 1.0, 1.0
    known = [other for other in others if other[0]]
    best, here = profile.ideal_time(*job), profile.solo_time(*job, placement)
    spread = here / best if best and here else 1.0
    suffered = 1 / (spread * max((profile.slowdown(*job, *other) for other in known), default=1.0))
    ratios = [1 / profile.slowdown(*other, *job) for other in known]
    caused = sum(ratios) + len(others) - len(known)
    return suffered, (suffered + caused) / (len(others) + 1), min(ratios, default=1.0)


def worst_ratio(profile: PerformanceProfile | None, job: JobKind) -> float:
    """Return the worst known interference ratio of `job` or of a job next to it, 0..1; 1 means none.

    A ratio is a job's best solo run time divided by a measured run time, solo or next to another job. For an unknown
    job, return the lowest ratio of all jobs; without measurements or `profile`, return 1.
    """
    if profile is None:
        return 1.0
    solo = [((name, size), (name, size), time) for (name, size, _), time in profile.solo.items()]
    pairs = [((a, m), (b, n), time) for (a, m, b, n), time in profile.colocation.items()]
    ratios = [
        (job in (first, second), best / time)
        for first, second, time in (*solo, *pairs)
        if (best := profile.ideal_time(*first))
    ]
    own = [ratio for concerned, ratio in ratios if concerned]
    return min(own or (ratio for _, ratio in ratios), default=1.0)
