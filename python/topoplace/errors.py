"""The exception classes of topoplace, and the error for a missing optional package.

The message about an invalid argument names the argument, index and value.
"""

from __future__ import annotations

import importlib
from typing import Final

# Module to import -> (name of the package in messages, extra of topoplace that installs it).
_OPTIONAL_PACKAGES: Final = {
    "argcomplete": ("argcomplete", "topoplace[cli]"),
    "celpy": ("cel-python", "topoplace-hosts[kubernetes]"),
    "defusedxml.sax": ("defusedxml", "topoplace[discovery]"),
    "distributed": ("Dask", "topoplace-lab[dask]"),
    "grpc": ("grpcio", "topoplace-hosts[kubernetes]"),
    "highspy": ("HiGHS", "topoplace-lab[capacity]"),
    "matplotlib.figure": ("matplotlib", "topoplace[plot]"),
    "networkx": ("networkx", "topoplace[networkx]"),
    "pandas": ("pandas", "topoplace-lab[pandas]"),
    "prometheus_client": ("prometheus-client", "topoplace-hosts[slurm]"),
    "pyarrow.parquet": ("pyarrow", "topoplace-lab[parquet]"),
    "ray": ("Ray", "topoplace-hosts[ray]"),
    "ray.train": ("Ray Train", "topoplace-hosts[ray-train]"),
    "yaml": ("PyYAML", "topoplace[discovery]"),
}


class TopoplaceError(Exception):
    """The base of all exception classes that topoplace defines; kernels also raise plain ValueError."""


class TopologyError(TopoplaceError, ValueError):
    """A malformed topology, or a malformed text that describes one."""


class JobGraphError(TopoplaceError, ValueError):
    """A malformed job graph or job requirement."""


class AllocationError(TopoplaceError, ValueError):
    """Malformed host resources or a malformed placement, or a change that the state of the cluster does not allow.

    Also raised if a placement lacks data that launching its job needs. The cluster is unchanged.
    """


class PolicyError(TopoplaceError, TypeError):
    """A policy returned something else than its method must return, such as a list instead of a Placement."""


class SearchTimeoutError(TopoplaceError, TimeoutError):
    """A search reached its limit of time or steps without a complete answer.

    `partial` is the result found so far; None if there is none.
    """

    def __init__(self, message: str, partial: object) -> None:
        super().__init__(message)
        self.partial = partial


class DeadlineError(TopoplaceError):
    """The deadline of a block (`kernels.limits.deadline`) passed before a search in the block finished."""


class InfeasibleError(TopoplaceError, ValueError):
    """No answer satisfies the arguments of a kernel, or its search found none."""


class JournalError(TopoplaceError, ValueError):
    """A file that is not a journal or cannot be opened as one, or an entry that a journal cannot keep."""


class KubernetesError(TopoplaceError, ValueError):
    """An object of Kubernetes that cannot be read, or a server that does not answer as expected."""


class SlurmError(TopoplaceError, RuntimeError):
    """Slurm does not answer, or not as expected."""


class SnapshotError(TopoplaceError, ValueError):
    """Bytes or texts that are not a snapshot of a cluster, or a damaged or contradictory one."""


def require_package(module: str, what: str) -> None:
    """Import `module`, an optional package; ModuleNotFoundError says that `what` needs it and how to install it.

    Call it before the work that uses the package, so that a run of minutes does not end in a missing package. module: a
    key of `_OPTIONAL_PACKAGES`, such as "matplotlib.figure". what: the function or option that uses it.
    """
    package, extra = _OPTIONAL_PACKAGES[module]
    try:
        importlib.import_module(module)
    except ImportError:
        message = f"{what} needs {package}: pip install '{extra}'"
        raise ModuleNotFoundError(message) from None
