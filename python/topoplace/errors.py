"""The exceptions topoplace raises; every one names the argument, the index and the value it refuses."""

from __future__ import annotations

import warnings


class TopoplaceError(Exception):
    """Base of every exception topoplace raises on its own account."""


class TopologyError(TopoplaceError, ValueError):
    """A topology, or the text it is read from, is malformed."""


class JobGraphError(TopoplaceError, ValueError):
    """A job graph or one of its requirements is malformed."""


class AllocationError(TopoplaceError, ValueError):
    """An allocation or release the cluster's state does not allow; the state is untouched."""


class SearchTimeoutError(TopoplaceError, TimeoutError):
    """A search whose answer is only good when whole ran into its deadline; `partial` is what it had."""

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class InfeasibleError(TopoplaceError, ValueError):
    """What is asked of a kernel contradicts itself: no answer can keep all its conditions, or none was found."""


class SnapshotError(TopoplaceError, ValueError):
    """Bytes that are not a snapshot of a cluster, or a damaged one."""


def warn_deprecated(old: str, new: str) -> None:
    """Warn the caller of the caller that `old` goes with the next version and that `new` replaces it."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3)
