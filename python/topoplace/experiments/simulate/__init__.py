"""Simulation of a job queue under a policy: `tp.simulate(topology, workload, policy)`.

The package itself is callable: calling it calls its function `simulate`. It also contains workloads (lists of jobs with
submission times), performance models (which compute run times) and results.

To change:

- A cluster on which jobs run at time 0: `beginning.py`.
- The clock: `event_loop.py`, at fixed intervals `ticks.py`; how a policy is asked: `scheduling.py`; who ends next:
  `running_jobs.py`; moved and pre-empted jobs: `interruptions.py`.
- A column of the summary or of `Result.jobs`: `metrics.py`; what observers see: `monitoring.py`.
- Many simulations and processes: `processes.py`; means and intervals over seeds: `samples.py`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from topoplace.engine.telemetry import FinishedRun, Observer, Reading, TelemetryLog
from topoplace.experiments.simulate.disciplines.discipline import Discipline
from topoplace.experiments.simulate.event_loop import simulate
from topoplace.experiments.simulate.fragmentation_series import fragmentation_series
from topoplace.experiments.simulate.interruptions import MoveTimes
from topoplace.experiments.simulate.metrics import JobRecord, Result
from topoplace.experiments.simulate.performance.environments import (
    ENVIRONMENTS,
    Environment,
    ExecutionEnvironment,
)
from topoplace.experiments.simulate.performance.models import (
    ColocationModel,
    FixedTime,
    LinkModel,
    MapaSlowdown,
    MeteredModel,
    NetworkContention,
    PerformanceModel,
    PortModel,
    ProfiledTime,
)
from topoplace.experiments.simulate.performance.remote_copies import RemoteCopies, Share, TransferSpeeds
from topoplace.experiments.simulate.performance.run_time_histograms import RunTimeHistogram, RunTimeHistograms
from topoplace.experiments.simulate.performance.step_time import StepTime
from topoplace.experiments.simulate.performance.training_step import TrainingStep
from topoplace.experiments.simulate.performance.transfers import Transfers
from topoplace.experiments.simulate.workloads.generators import SC17_WEIGHTS
from topoplace.experiments.simulate.workloads.submitted_job import SubmittedJob
from topoplace.experiments.simulate.workloads.trace_files import read_workload
from topoplace.experiments.simulate.workloads.workload import Workload

__all__ = [
    "ENVIRONMENTS",
    "SC17_WEIGHTS",
    "ColocationModel",
    "Discipline",
    "Environment",
    "ExecutionEnvironment",
    "FinishedRun",
    "FixedTime",
    "JobRecord",
    "LinkModel",
    "MapaSlowdown",
    "MeteredModel",
    "MoveTimes",
    "NetworkContention",
    "Observer",
    "PerformanceModel",
    "PortModel",
    "ProfiledTime",
    "Reading",
    "RemoteCopies",
    "Result",
    "RunTimeHistogram",
    "RunTimeHistograms",
    "Share",
    "StepTime",
    "SubmittedJob",
    "TelemetryLog",
    "TrainingStep",
    "TransferSpeeds",
    "Transfers",
    "Workload",
    "fragmentation_series",
    "read_workload",
    "simulate",
]


class _CallableModule(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Result:
        return simulate(*args, **options)


sys.modules[__name__].__class__ = _CallableModule
