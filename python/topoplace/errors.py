"""The exceptions topoplace raises; every one names the argument, the index and the value it refuses."""

from __future__ import annotations


class TopoplaceError(Exception):
    """Base of every exception topoplace raises on its own account."""


class TopologyError(TopoplaceError, ValueError):
    """A topology, or the text it is read from, is malformed."""


class JobGraphError(TopoplaceError, ValueError):
    """A job graph or one of its requirements is malformed."""


class AllocationError(TopoplaceError, ValueError):
    """An allocation or release the cluster's state does not allow; the state is untouched."""
