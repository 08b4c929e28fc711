"""The inference engine of DRMaestro's service gives what its definitions give on all runs so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import topoplace as tp
from thoroughness import thorough
from topoplace_lab.policies.drmaestro import InferenceEngine
from topoplace_lab.telemetry import FinishedRun, Reading

LOADS = st.integers(0, 24).map(lambda sixteenths: sixteenths / 16)  # so that sums are exact
MODEL = tp.NetworkProfile(0.3, 0.6, 0.1)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


@dataclass
class Run:
    """A job, and what the readings say about it."""

    num_gpus: int
    num_remote: int
    loads: list[float] = field(default_factory=list[float])
    """Of each reading: the highest load by others on a machine over which the job sends, at most 1."""
    sent: list[float] = field(default_factory=list[float])
    seconds: float = 0.0

    @property
    def remote(self) -> bool:
        return self.num_remote > 0

    @property
    def state(self) -> tuple[bool, int]:
        """Whether GPUs are remote, and the tenth of the network that others load."""
        return self.remote, min(int(10 * mean(self.loads)), 9)

    @property
    def sent_per_gpu(self) -> float:
        """A remote GPU sends at both ends."""
        return mean(self.sent) / (self.num_gpus * (2 if self.remote else 1))


def inferred(runs: Sequence[Run]) -> tuple[float, float, float] | None:
    """What `NetworkProfile` contains, from the averages of states; None if these are of about one load."""
    sent = {far: [run.sent_per_gpu for run in runs if run.remote == far and run.num_gpus] for far in (0, 1)}
    alone = mean(sent[1] or sent[0])
    local = min(mean(sent[0]), alone)
    states: dict[tuple[bool, int], list[Run]] = {}
    for run in runs:
        states.setdefault(run.state, []).append(run)
    weaker = local / alone if alone else 0.0
    loads = [
        mean([mean(run.loads) for run in own]) * (1 if far else weaker) for (far, _), own in states.items()
    ]
    if max(loads) - min(loads) < 0.1:
        return None
    times = [mean([run.seconds for run in own]) for own in states.values()]
    slope, idle = np.polyfit(loads, times, 1, w=[len(own) ** 0.5 for own in states.values()])
    full = max(slope / idle, 0.0) if idle > 0 else 0.0
    alone = min(alone, 0.99)
    contended = 1 - (1 - alone) / (1 + full)
    return alone, min(max(contended, alone), 0.99), min(local, alone)


@given(st.data())
@settings(max_examples=thorough(1000, 20))
def test_profiles_and_averages_are_those_of_all_runs(data: st.DataObject) -> None:
    min_runs = data.draw(st.integers(1, 4))
    engine = InferenceEngine({"known": MODEL}, min_runs=min_runs)
    ended: dict[str, list[Run]] = {"known": [], "new": []}
    running: dict[str, Run] = {}
    expected: dict[str, tuple[float, float, float] | None] = {"known": (0.3, 0.6, 0.1), "new": None}
    renewed = {"known": 0, "new": 0}
    for step in range(data.draw(st.integers(2, 14))):
        gpus = data.draw(st.sampled_from([0, 1, 2, 4]))
        far = data.draw(st.sampled_from([0, gpus, gpus, min(gpus, 1)]))
        running[str(step)] = Run(gpus, far)
        for _ in range(data.draw(st.sampled_from([1, 1, 2]))):
            machines = st.dictionaries(st.integers(0, 2), LOADS, max_size=3)
            reading = {job: data.draw(machines) for job in running}
            engine.measured(Reading(0.0, reading))
            for job, run in running.items():
                beside = [
                    sum(sent.get(machine, 0.0) for other, sent in reading.items() if other != job)
                    for machine, load in reading[job].items()
                    if load
                ]
                run.loads.append(min(max(beside, default=0.0), 1.0))
                run.sent.append(sum(reading[job].values()))
        if data.draw(st.sampled_from([True, True, False])):
            job = data.draw(st.sampled_from(sorted(running)))
            run, name = running.pop(job), data.draw(st.sampled_from(["known", "new", "new"]))
            run.seconds = data.draw(st.sampled_from([10.0, 64.0, 100.0, 120.0]))
            engine.finished(FinishedRun(job, name, run.num_gpus, run.num_remote, 5.0, 5.0 + run.seconds))
            if run.num_remote in (0, run.num_gpus):
                ended[name].append(run)
                due = len(ended[name]) >= max(min_runs, 2 * renewed[name])
                if due and (found := inferred(ended[name])):
                    expected[name], renewed[name] = found, len(ended[name])
        for name, runs in ended.items():
            profile = engine.profile(name)
            shown = (profile.alone, profile.contended, profile.local) if profile else None
            assert shown == (expected[name] and pytest.approx(expected[name]))
            for far in (False, True):
                for level in range(10):
                    times = [run.seconds for run in runs if run.state == (far, level)]
                    average = engine.average(name, (level + 0.5) / 10, remote=far)
                    assert average == (pytest.approx(mean(times)) if times else None)


def test_loads_beyond_the_capacity_are_of_the_highest_level() -> None:
    engine = InferenceEngine()
    engine.measured(Reading(0.0, {"job": {0: 0.2}, "others": {0: 3.0}}))
    engine.finished(FinishedRun("job", "a", 1, 1, 0.0, 50.0))
    assert engine.average("a", 7.0, remote=True) == engine.average("a", 0.9, remote=True) == 50.0


def test_a_job_id_that_comes_back_is_watched_anew() -> None:
    engine = InferenceEngine()
    for load, seconds in ((0.95, 50.0), (0.05, 20.0)):
        engine.measured(Reading(0.0, {"job": {0: 0.2}, "others": {0: load}}))
        engine.finished(FinishedRun("job", "a", 1, 1, 0.0, seconds))
    assert engine.average("a", 0.95, remote=True) == 50.0
    assert engine.average("a", 0.05, remote=True) == 20.0
    engine.finished(FinishedRun("job", "a", 1, 1, 0.0, 80.0))
    assert engine.average("a", 0.05, remote=True) == 20.0


@pytest.mark.parametrize(("load", "is_known"), [(0.1, True), (0.09, False)])
def test_loads_a_level_apart_make_a_profile(load: float, is_known: bool) -> None:
    engine = InferenceEngine(min_runs=2)
    for job, others, seconds in (("1", 0.0, 100.0), ("2", load, 110.0)):
        engine.measured(Reading(0.0, {job: {0: 0.2}, "others": {0: others}}))
        engine.finished(FinishedRun(job, "a", 1, 1, 0.0, seconds))
    assert (engine.profile("a") is not None) == is_known


def test_times_that_would_be_0_without_load_leave_the_profile_insensitive() -> None:
    engine = InferenceEngine(min_runs=2)
    for job, others in (("1", 0.25), ("2", 0.5)):
        engine.measured(Reading(0.0, {job: {0: 0.25}, "others": {0: others}}))
        engine.finished(FinishedRun(job, "a", 1, 1, 0.0, 100.0 * others))
    found = engine.profile("a")
    assert found is not None
    assert found.contended == found.alone
