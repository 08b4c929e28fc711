"""Numbers for jobs that disturb others alike: the native state keeps one with each job, and machines compare them."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph


class JobKind(NamedTuple):
    """What a policy may know of a running job, besides the GPUs that it holds."""

    profile: str
    """The name of the job's performance profile; "" if it is unknown."""
    num_tasks: int
    """Number of tasks; 0 for a job whose graph is unknown."""
    memory_bandwidth: float
    """GB/s of host memory bandwidth that all tasks together use."""
    gpu_fraction: float
    """The share of each of its GPUs."""


_numbers: Final[dict[tuple[str, int, float, float], int]] = {}
_kinds: Final[dict[int, JobKind]] = {0: JobKind("", 0, 0.0, 1.0)}
_next: Final = count(1)


def number_of(job: JobGraph | None) -> int:
    """Return the number of a job's kind, which is the same in all clusters of this process; 0 for None."""
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
    """Return the kind that has this number."""
    return _kinds[number]
