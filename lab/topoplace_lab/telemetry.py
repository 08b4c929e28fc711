"""Telemetry of running jobs: readings of the network, and finished runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Reading:
    """The network loads of running jobs at one time, in seconds.

    Args:
        sent: By job id and machine number, the load that the job puts on the machine's network, as a fraction of the
            capacity of its interface.

    Raises:
        ValueError: A time or a load is not finite, or a load is negative.
    """

    time: float
    sent: Mapping[str, Mapping[int, float]]

    def __post_init__(self) -> None:
        if not math.isfinite(self.time):
            raise ValueError(f"time = {self.time} is not finite")
        for job_id, loads in self.sent.items():
            for machine, load in loads.items():
                if not 0 <= load < math.inf:
                    raise ValueError(
                        f"sent[{job_id!r}][{machine}] = {load} is not a finite number of at least 0"
                    )


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """A finished run. start, end: seconds. num_remote: the number of its GPUs that were remote.

    Args:
        application: The name in `JobGraph.profile`; None for a job without one.

    Raises:
        ValueError: `start` or `end` is not finite, or `end` is before `start`.
    """

    job_id: str
    application: str | None
    num_gpus: int
    num_remote: int
    start: float
    end: float

    def __post_init__(self) -> None:
        if not -math.inf < self.start <= self.end < math.inf:
            raise ValueError(
                f"start = {self.start}, end = {self.end}: must be finite, and the end not before the start"
            )

    @property
    def seconds(self) -> float:
        """Return the run time in seconds."""
        return self.end - self.start


@runtime_checkable
class Observer(Protocol):
    """Protocol of an object that consumes telemetry, in the order of time."""

    def measured(self, reading: Reading) -> None:
        """Handle a reading."""
        ...

    def finished(self, run: FinishedRun) -> None:
        """Handle a finished run."""
        ...


class TelemetryLog:
    """An observer that stores everything, to analyse or replay it later."""

    def __init__(self) -> None:
        self.readings: list[Reading] = []
        self.runs: list[FinishedRun] = []

    def measured(self, reading: Reading) -> None:
        """Store a reading."""
        self.readings.append(reading)

    def finished(self, run: FinishedRun) -> None:
        """Store a finished run."""
        self.runs.append(run)

    def replay(self, observer: Observer) -> None:
        """Pass all readings and runs to `observer` in the order of time; at equal times, runs come first."""
        events = [(run.end, 0, run) for run in self.runs] + [(each.time, 1, each) for each in self.readings]
        for _, _, event in sorted(events, key=lambda event: event[:2]):
            if isinstance(event, Reading):
                observer.measured(event)
            else:
                observer.finished(event)
