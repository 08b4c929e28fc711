"""The monitoring of a simulation: an observer gets running jobs' traffic at fixed times, and each finished run."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace_lab.simulate.performance.models import MeteredModel, PerformanceModel
from topoplace_lab.simulate.ticks import Ticks
from topoplace_lab.telemetry import FinishedRun, Observer, Reading

if TYPE_CHECKING:
    from topoplace_lab.simulate.metrics import JobRecord


class Monitoring:
    """The running jobs, and an observer that gets their network load at multiples of an interval."""

    def __init__(self, observer: Observer, every: float, model: MeteredModel) -> None:
        self._observer = observer
        self._model = model
        self._ticks = Ticks(every, "measure_every")
        self._running: dict[str, tuple[JobRecord, dict[int, float]]] = {}

    def next_time(self) -> float:
        """Return the time of the next reading in seconds; infinite if no job runs."""
        return self._ticks.next_time() if self._running else math.inf

    def started(self, record: JobRecord, now: float) -> None:
        """Watch a job that starts at `now`, in seconds."""
        assert record.placement is not None
        if not self._running:
            self._ticks.due(now)  # while no job ran, nothing was measured
        sent: defaultdict[int, float] = defaultdict(float)
        for machine, load in self._model.sent(record.submitted.on(record.placement), record.placement):
            sent[machine] += load
        self._running[record.job_id] = record, dict(sent)

    def stopped(self, record: JobRecord) -> None:
        """Stop watching a job that was moved or pre-empted."""
        del self._running[record.job_id]

    def ended(self, record: JobRecord, now: float) -> None:
        """Report a job that ends at `now` (seconds) to the observer, unless it ran in several places."""
        assert record.placement is not None
        del self._running[record.job_id]
        if record.history:
            return
        job, remote = record.submitted.on(record.placement).job, len(record.placement.remote)
        self._observer.finished(
            FinishedRun(record.job_id, job.profile, job.num_tasks, remote, record.start, now)
        )

    def measure(self, now: float) -> None:
        """Give the observer a reading if one is due at `now`, in seconds."""
        if self._running and self._ticks.next_time() <= now and self._ticks.due(now):
            self._observer.measured(
                Reading(now, {job_id: sent for job_id, (_, sent) in self._running.items()})
            )


def monitoring(
    observer: Observer | None, every: float | None, performance: PerformanceModel
) -> Monitoring | None:
    """Return the monitoring of a simulation; None if there is no observer.

    ValueError if one of `observer` and `measure_every` (`every`, seconds) is missing, or the model has no method
    `sent`.
    """
    if observer is None and every is None:
        return None
    if observer is None or every is None:
        missing, given = ("observer", "measure_every") if observer is None else ("measure_every", "observer")
        raise ValueError(f"{missing} = None: must be given together with {given}")
    _checks.instance(observer, Observer, "observer", ValueError)
    if not isinstance(performance, MeteredModel):
        raise ValueError(
            f"performance = {type(performance).__name__}: an observer needs a model with the method `sent`, such as "
            "NetworkContention"
        )
    return Monitoring(observer, every, performance)
