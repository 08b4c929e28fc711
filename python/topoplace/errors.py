"""The exception classes of topoplace. The message about an invalid argument names the argument, index and value."""

from __future__ import annotations

import warnings


class TopoplaceError(Exception):
    """The base of all exception classes that topoplace defines; kernels also raise plain ValueError."""


class TopologyError(TopoplaceError, ValueError):
    """A malformed topology, or a malformed text that describes one."""


class JobGraphError(TopoplaceError, ValueError):
    """A malformed job graph or job requirement."""


class AllocationError(TopoplaceError, ValueError):
    """Malformed host resources or a malformed placement, or a change that the state of the cluster does not allow.

    It is also raised if a placement lacks data that launching its job needs. The cluster is unchanged.
    """


class SearchTimeoutError(TopoplaceError, TimeoutError):
    """A search that reached its limit of time or steps without a complete answer.

    `partial` holds the result found so far, None if there is none.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class InfeasibleError(TopoplaceError, ValueError):
    """Arguments of a kernel that no answer can satisfy, or for which its search found no answer."""


class SnapshotError(TopoplaceError, ValueError):
    """Bytes that are not a snapshot of a cluster, or a damaged snapshot."""


def warn_deprecated(old: str, new: str, *, frames_between: int = 0) -> None:
    """Issue a DeprecationWarning for the code that used `old`, with the advice to use `new` instead.

    frames_between: calls between that code and the function that calls this one, 0 if it calls it directly.
    """
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=3 + frames_between)
