"""The inference engine of DRMaestro's service: average completion times of applications in states of the cluster.

The engine of the thesis (section 5.4) is simple: it keeps the average completion time of a job in each state of the
cluster. An application is known by the name of its image, here `JobGraph.profile`. Models from earlier measurements are
given beforehand; an application without one is unknown, and its cost neutral.

The thesis defines neither a state nor how an average becomes a cost. We read it as follows. A state is whether GPUs are
remote, and the network load that other jobs put on the job's machines, in ten levels. A least-squares line through the
averages gives the completion time on an idle network and its growth with the load, the contents of a `NetworkProfile`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from topoplace import _checks
from topoplace.jobs.network_profile import NetworkProfile
from topoplace_lab.telemetry import FinishedRun, Reading

LEVELS: Final = 10
"""Levels of network load from 0 to 1; higher loads count as 1."""
MOST_SHARE: Final = 0.99
"""The largest share of a run time that `NetworkProfile` accepts."""


@dataclass(slots=True)
class _Mean:
    count: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value

    @property
    def value(self) -> float:
        return self.total / self.count if self.count else 0.0


@dataclass(slots=True)
class _State:
    """The runs that ended in one state: their completion times in seconds, and the loads during them."""

    seconds: _Mean = field(default_factory=_Mean)
    load: _Mean = field(default_factory=_Mean)


@dataclass(slots=True)
class _Application:
    states: dict[tuple[bool, int], _State] = field(default_factory=dict[tuple[bool, int], _State])
    """By whether GPUs are remote, and the level of the load."""
    sent: dict[bool, _Mean] = field(default_factory=lambda: {False: _Mean(), True: _Mean()})
    """Network load per GPU, by whether GPUs are remote."""
    num_runs: int = 0
    renewed: int = 0
    """Number of runs at the last renewal of the profile."""
    profile: NetworkProfile | None = None


@dataclass(slots=True)
class _Watched:
    """What readings say of a running job: the load by others on its machines, and all load that it causes."""

    load: _Mean = field(default_factory=_Mean)
    sent: _Mean = field(default_factory=_Mean)


class InferenceEngine:
    """An observer that learns from telemetry how the network slows each application down (thesis, section 5.4).

    Args:
        models: Network profiles known beforehand, by the name in `JobGraph.profile`.
        min_runs: Runs of an application after which observations replace its model, 1 or more. The model is renewed
            whenever the number of runs has doubled, so that costs do not change with every run.

    Raises:
        ValueError: Names a wrong argument.
    """

    def __init__(
        self, models: Mapping[str, NetworkProfile] = MappingProxyType({}), *, min_runs: int = 4
    ) -> None:
        _checks.instance(models, Mapping, "models", ValueError)
        for name, profile in models.items():
            _checks.instance(profile, NetworkProfile, f"models[{_checks.shown(name)}]", ValueError)
        self.models = dict(models)
        self.min_runs = _checks.integer(min_runs, "min_runs", ValueError, low=1, high=1 << 30)
        self._applications: dict[str, _Application] = {}
        self._watched: dict[str, _Watched] = {}

    def measured(self, reading: Reading) -> None:
        """Record, for each running job, the load of other jobs on the machines over which it sends."""
        total: dict[int, float] = {}
        for sent in reading.sent.values():
            for machine, load in sent.items():
                total[machine] = total.get(machine, 0.0) + load
        for job_id, sent in reading.sent.items():
            watched = self._watched.setdefault(job_id, _Watched())
            others = (total[machine] - load for machine, load in sent.items() if load)
            watched.load.add(min(max(others, default=0.0), 1.0))
            watched.sent.add(sum(sent.values()))

    def finished(self, run: FinishedRun) -> None:
        """Add the completion time of a run to the averages of its application.

        A run is ignored if it has no name, is in no reading, or has both local and remote GPUs.
        """
        watched = self._watched.pop(run.job_id, None)
        remote = run.num_remote > 0
        if watched is None or not run.application or run.num_remote not in (0, run.num_gpus):
            return
        known = self._applications.setdefault(run.application, _Application())
        load = watched.load.value
        state = known.states.setdefault((remote, _level(load)), _State())
        state.seconds.add(run.seconds)
        state.load.add(load)
        if run.num_gpus:
            ends = 2 if remote else 1  # a remote GPU sends at both ends
            known.sent[remote].add(watched.sent.value / (ends * run.num_gpus))
        known.num_runs += 1
        due = known.num_runs >= max(self.min_runs, 2 * known.renewed)
        if due and (inferred := _inferred(known)):
            known.profile, known.renewed = inferred, known.num_runs

    def average(self, application: str, load: float, *, remote: bool) -> float | None:
        """Return the average completion time in seconds in a state; None if no run ended in it.

        Args:
            load: Network load by other jobs, 0 or more.
            remote: True if the job's GPUs are remote.
        """
        known = self._applications.get(application)
        state = known.states.get((remote, _level(min(load, 1.0)))) if known else None
        return state.seconds.value if state else None

    def profile(self, application: str | None) -> NetworkProfile | None:
        """Return the network profile of an application: the observed one, else its model; None if unknown."""
        if not application:
            return None
        known = self._applications.get(application)
        return (known.profile if known else None) or self.models.get(application)


def _level(load: float) -> int:
    return min(int(load * LEVELS), LEVELS - 1)


def _inferred(known: _Application) -> NetworkProfile | None:
    """Return the profile that follows from averages; None unless they are of two loads at least a level apart."""
    alone = known.sent[True].value if known.sent[True].count else known.sent[False].value
    local = min(known.sent[False].value, alone) if known.sent[False].count else 0.0
    weaker = {True: 1.0, False: local / alone if alone else 0.0}  # sensitivity with local GPUs
    rows = [
        (state.seconds.count, weaker[remote] * state.load.value, state.seconds.value)
        for (remote, _), state in known.states.items()
    ]
    loads = [load for _, load, _ in rows]
    if max(loads) - min(loads) < 1 / LEVELS:
        return None
    slope, idle = _line(rows)
    full = max(slope / idle, 0.0) if idle > 0 else 0.0
    alone = min(alone, MOST_SHARE)
    contended = min(max(1 - (1 - alone) / (1 + full), alone), MOST_SHARE)
    return NetworkProfile(alone, contended, min(local, alone))


def _line(points: Sequence[tuple[float, float, float]]) -> tuple[float, float]:
    """Return slope and value at 0 of the line of least squares through (weight, x, y), not all of the same x."""
    weights = math.fsum(w for w, _, _ in points)
    x, y = (math.fsum(point[0] * point[axis] for point in points) / weights for axis in (1, 2))
    slope = math.fsum(w * (a - x) * (b - y) for w, a, b in points) / math.fsum(
        w * (a - x) ** 2 for w, a, _ in points
    )
    return slope, y - slope * x
