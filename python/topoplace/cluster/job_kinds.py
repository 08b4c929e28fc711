"""Numbers of job classes with equal interference; the native state stores one with each job."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph


class JobKind(NamedTuple):
    """The data on a running job that policies see, besides its GPUs."""

    profile: str
    """The name of the job's performance profile; "" if it is unknown."""
    num_tasks: int
    """Number of tasks; 0 for a job whose graph is unknown."""
    memory_bandwidth: float
    """GB/s of host memory bandwidth that all tasks together use."""
    gpu_fraction: float
    """The job's share of each of its GPUs."""


_numbers: Final[dict[tuple[str, int, float, float], int]] = {}
_kinds: Final[dict[int, JobKind]] = {0: JobKind("", 0, 0.0, 1.0)}
_next: Final = count(1)


def number_of(job: JobGraph | None) -> int:
    """Return the number of a job's class, the same in all clusters of this process; 0 for None."""
    if job is None:
        return 0
    # A tuple equals the `JobKind`, and is made faster.
    kind = (job.profile or "", job.num_tasks, job.memory_bandwidth or 0.0, job.gpu_share)
    number = _numbers.get(kind)
    if number is None:
        number = next(_next)
        _kinds[number] = JobKind(*kind)  # before the number is known to others
        number = _numbers.setdefault(kind, number)
    return number


def kind_of(number: int) -> JobKind:
    """Return the job class with this number."""
    return _kinds[number]
