"""Exceptions that topoplace raises; every one names the argument, the index and the value it refuses."""

from __future__ import annotations

import warnings


class TopoplaceError(Exception):
    """The base of every exception that topoplace itself raises."""


class TopologyError(TopoplaceError, ValueError):
    """A malformed topology, or a malformed text that describes one."""


class JobGraphError(TopoplaceError, ValueError):
    """A malformed job graph or job requirement."""


class AllocationError(TopoplaceError, ValueError):
    """An allocation or release that the cluster's state does not allow; the state is unchanged."""


class SearchTimeoutError(TopoplaceError, TimeoutError):
    """A search that reached its deadline before its answer was complete; `partial` is what it had found."""

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class InfeasibleError(TopoplaceError, ValueError):
    """A request to a kernel whose conditions contradict each other: no answer can satisfy all, or none was found."""


class SnapshotError(TopoplaceError, ValueError):
    """Bytes that are not a snapshot of a cluster, or a damaged snapshot."""


def warn_deprecated(old: str, new: str) -> None:
    """Warn the caller's caller that `old` disappears in the next version and that `new` replaces it."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
