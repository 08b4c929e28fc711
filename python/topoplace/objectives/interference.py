"""Interference between jobs on one machine: SC'17's eq. 4, from measured times."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace.jobs.performance_profile import PerformanceProfile

JobKind = tuple[str, int]
"""The name of a job's performance profile, and its number of GPUs."""


def interference(
    profile: PerformanceProfile | None, job: JobKind, placement: str, others: Sequence[JobKind]
) -> tuple[float, float]:
    """Return what `job` suffers in a placement class beside `others`, and eq. 4: ratios of 0..1, 1 for none.

    The job's ratio is its best solo time over that in the class beside the worst of the others; that of each other is
    its solo time over that beside the job; eq. 4 is the mean of all. Jobs are named by profile and number of GPUs.
    One without profile (""), and all where there is no `profile`, neither suffer nor do harm.
    """
    if profile is None or not job[0]:
        return 1.0, 1.0
    known = [other for other in others if other[0]]
    best, here = profile.ideal_time(*job), profile.solo_time(*job, placement)
    spread = here / best if best and here else 1.0
    suffered = 1 / (spread * max((profile.slowdown(*job, *other) for other in known), default=1.0))
    caused = sum(1 / profile.slowdown(*other, *job) for other in known) + len(others) - len(known)
    return suffered, (suffered + caused) / (len(others) + 1)


def worst_ratio(profile: PerformanceProfile | None, job: JobKind) -> float:
    """Return the least ratio of a best solo time to another that `profile` knows of a job, or of others beside it.

    For an unknown job, the least of all; 1 where nothing is known.
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
