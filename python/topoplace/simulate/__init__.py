"""Simulation of a queue of jobs under a policy: `tp.simulate(topology, workload, policy)`.

The package is callable: it is its function `simulate`, and still holds the workloads, models and results.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from topoplace.simulate.engine import simulate
from topoplace.simulate.metrics import JobRecord, Result
from topoplace.simulate.performance import (
    ColocationModel,
    FixedTime,
    LinkModel,
    MapaSlowdown,
    NetworkContention,
    PerformanceModel,
    ProfiledTime,
)
from topoplace.simulate.remote_copies import RemoteCopies, Share, TransferSpeeds
from topoplace.simulate.transfers import Transfers
from topoplace.simulate.workload import SC17_WEIGHTS, SubmittedJob, Workload

__all__ = [
    "SC17_WEIGHTS",
    "ColocationModel",
    "FixedTime",
    "JobRecord",
    "LinkModel",
    "MapaSlowdown",
    "NetworkContention",
    "PerformanceModel",
    "ProfiledTime",
    "RemoteCopies",
    "Result",
    "Share",
    "SubmittedJob",
    "TransferSpeeds",
    "Transfers",
    "Workload",
    "simulate",
]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Result:
        return simulate(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
