"""Exceptions that topoplace raises; every message names the argument, the index and the value that is refused."""

from __future__ import annotations

import warnings


class TopoplaceError(Exception):
    """The base of every exception that topoplace itself raises."""


class TopologyError(TopoplaceError, ValueError):
    """A malformed topology, or a malformed text that describes one."""


class JobGraphError(TopoplaceError, ValueError):
    """A malformed job graph or job requirement."""


class AllocationError(TopoplaceError, ValueError):
    """A malformed placement, or an allocation or release that the cluster's state does not allow.

    The state of the cluster is unchanged.
    """


class SearchTimeoutError(TopoplaceError, TimeoutError):
    """A search that reached its deadline before its answer was complete; `partial` holds the result found so far."""

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class InfeasibleError(TopoplaceError, ValueError):
    """Arguments of a kernel that no answer can satisfy, or for which its search found no answer."""


class SnapshotError(TopoplaceError, ValueError):
    """Bytes that are not a snapshot of a cluster, or a damaged snapshot."""


def warn_deprecated(old: str, new: str) -> None:
    """Warn the caller's caller that `old` disappears in the next version and that `new` replaces it."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
