"""The data of a cluster on its jobs besides their GPUs, as read-only mappings over the native state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from topoplace._core import ClusterState

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
