"""The data of a cluster on its jobs besides their GPUs: graphs and hosts, and the numbers of their classes.

Jobs of a class have equal interference; the native state stores the number with each job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

if TYPE_CHECKING:
    from topoplace._core import ClusterState
    from topoplace.jobs.job_graph import JobGraph

Value = TypeVar("Value")
GRAPH = 0
"""Position of the job graph in a job's note, which is the pair (job graph or None, `HostAllocation` or None)."""
HOSTS = 1
"""Position of the job's `HostAllocation` in its note."""


class JobNotes(Mapping[str, Value], Generic[Value]):
    """The job graphs, or the `HostAllocation` objects, of a cluster's jobs by job id, in order of allocation.

    Jobs without a graph, or without a `HostAllocation`, are left out. The mapping always shows the present state.
    """

    def __init__(self, state: ClusterState, part: int) -> None:
        """Store the arguments. part: `GRAPH` for job graphs, `HOSTS` for `HostAllocation` objects."""
        self._state = state
        self._part = part

    def __getitem__(self, job_id: object) -> Value:
        found = self._found(job_id) if isinstance(job_id, str) else None
        if found is None:
            raise KeyError(job_id)
        return found

    def __iter__(self) -> Iterator[str]:
        return (job_id for job_id in self._state.job_ids() if self._found(job_id) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _found(self, job_id: str) -> Value | None:
        note: tuple[Any, ...] | None = self._state.note(job_id)
        return None if note is None else note[self._part]


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
