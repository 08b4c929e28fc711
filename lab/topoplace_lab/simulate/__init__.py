"""Simulation of a job queue under a policy: `tp.simulate(topology, workload, policy)`.

The package itself is callable: calling it calls its function `simulate`. It also contains workloads (lists of jobs with
submission times), performance models (which compute run times) and results.

To change:

- A cluster on which jobs run at time 0: `beginning.py`.
- The clock: `event_loop.py`, at fixed intervals `ticks.py`; how a policy decides: `scheduling.py`; which job ends next:
  `running_jobs.py`; moved and pre-empted jobs: `interruptions.py`; parts that fail: `failures.py`, and how their jobs
  go on: `recovery.py`.
- A column of the summary or of `Result.jobs`: `metrics.py`; what observers see: `monitoring.py`.
- Many simulations and processes: `processes.py`; means and intervals over seeds: `samples.py`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from topoplace_lab.simulate.disciplines.discipline import Discipline
from topoplace_lab.simulate.event_loop import simulate
from topoplace_lab.simulate.failures import FailingPart, Failures
from topoplace_lab.simulate.fragmentation_series import fragmentation_series
from topoplace_lab.simulate.interruptions import MoveTimes
from topoplace_lab.simulate.metrics import JobRecord, Result
from topoplace_lab.simulate.performance.environments import ENVIRONMENTS, Environment, ExecutionEnvironment
from topoplace_lab.simulate.performance.models import (
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
from topoplace_lab.simulate.performance.remote_copies import RemoteCopies, Share, TransferSpeeds
from topoplace_lab.simulate.performance.run_time_histograms import RunTimeHistogram, RunTimeHistograms
from topoplace_lab.simulate.performance.step_time import StepTime
from topoplace_lab.simulate.performance.training_step import TrainingStep
from topoplace_lab.simulate.performance.transfers import Transfers
from topoplace_lab.simulate.recovery import Recovery
from topoplace_lab.simulate.workloads.generators import SC17_WEIGHTS
from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob
from topoplace_lab.simulate.workloads.trace_readers import read_workload
from topoplace_lab.simulate.workloads.workload import Workload
from topoplace_lab.telemetry import FinishedRun, Observer, Reading, TelemetryLog

__all__ = [
    "ENVIRONMENTS",
    "SC17_WEIGHTS",
    "ColocationModel",
    "Discipline",
    "Environment",
    "ExecutionEnvironment",
    "FailingPart",
    "Failures",
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
    "Recovery",
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
