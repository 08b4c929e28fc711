"""The second tab of the page: jobs in a queue under some policies, their GPUs over time, and the conclusion."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final, cast

from topoplace import _checks, drawing, policies
from topoplace._similar_names import not_one_of
from topoplace.cli.explorer import subject
from topoplace.cli.explorer.answer import about, limited_policy
from topoplace.cli.explorer.state import State, StateError
from topoplace.cli.explorer.subject import FieldError
from topoplace_lab import usual_study
from topoplace_lab.report import comparison
from topoplace_lab.report.comparison import Scenario
from topoplace_lab.report.page import contents
from topoplace_lab.simulate import StepTime, simulate

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology
    from topoplace_lab.simulate import Result, SubmittedJob

MAX_SECONDS: Final = 10.0
"""Limit in seconds on all simulations of an answer."""
_MOST_JOBS, _MOST_POLICIES = 1000, 6
_COMPARED: Final = "baseline, least-time"
_LOADS: Final = (0.01, 10.0)
_FIGURES: Final = ("mean_turnaround", "mean_wait", "utilization", "makespan", "rejected")


@dataclass(frozen=True, slots=True)
class QueueState:
    """A question of the tab: the machine of a state, and the usual jobs on it under some policies."""

    state: State
    jobs: int | None = None
    """The number of jobs; None for the usual number."""
    load: float | None = None
    """The share of all GPU time that the jobs request; None for the usual times of submission."""
    seed: int = 0
    compared: str = _COMPARED
    """Names of policies; all others are compared with the first one."""

    @classmethod
    def of(cls, given: object) -> QueueState:
        """Return the state that a JSON value describes; StateError names a field that is unknown or wrong."""
        if not isinstance(given, Mapping):
            raise StateError(f"a queue is an object, not {_checks.shown(given)}")
        stated = dict(cast("Mapping[str, Any]", given))
        for name in stated:
            _checks.one_of(name, "a field of the queue", cls.__slots__, StateError)
        state = State.of(stated.pop("state", {}))
        compared = stated.get("compared", _COMPARED)
        if not isinstance(compared, str):
            raise StateError(f"compared = {_checks.shown(compared)} is not a text")
        jobs, load = stated.get("jobs"), stated.get("load")
        return cls(
            state,
            None if jobs is None else _checks.integer(jobs, "jobs", StateError, low=2, high=_MOST_JOBS),
            None if load is None else _checks.real(load, "load", StateError, low=_LOADS[0], high=_LOADS[1]),
            _checks.integer(stated.get("seed", 0), "seed", StateError, low=0, high=(1 << 32) - 1),
            compared,
        )


class _TimeOverError(Exception):
    """The simulations take longer than the page waits."""


class _Limited(StepTime):
    """The model of run times of `topoplace simulate`, which ends a simulation at a deadline."""

    def __init__(self, topology: Topology, deadline_s: float) -> None:
        super().__init__(measured_on=usual_study.measured_on(topology))
        self._deadline_s = deadline_s

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time; _TimeOverError after the deadline."""
        if time.monotonic() > self._deadline_s:
            raise _TimeOverError
        return super().run_time(job, placement, random)


def gantt_script() -> bytes:
    """Return the script that draws which job holds which GPU over time."""
    return (files("topoplace_lab.report.page") / "gantt.js").read_bytes()


def simulated(asked: QueueState, own: Topology | None = None) -> dict[str, Any]:
    """Return the content of the tab as values for JSON; "problem" names a wrong field, if there is one."""
    found: dict[str, Any] = {"problem": None, "conclusion": "", "notes": [], "runs": []}
    try:
        topology = subject.whole(asked.state, own)
        topology = subject.faulty(topology, asked.state.unhealthy, asked.state.links)
        names = _names(asked.compared)
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            results = _results(topology, asked, names)
    except FieldError as problem:
        return found | {"problem": {"field": problem.field, "message": problem.message, "line": None}}
    about_jobs = usual_study.about(topology)
    high = max((float(result.stays["end"].max()) for result in results if len(result.stays)), default=1.0)
    return found | {
        "conclusion": _conclusion(topology, results),
        "notes": [
            f"{about_jobs[0].upper()}{about_jobs[1:]}",
            *[str(note.message) for note in notes if issubclass(note.category, UserWarning)][:2],
        ],
        "about": about(topology),
        "machines": contents.machines_of(topology),
        "svg": drawing.svg(topology, width=asked.state.width, height=asked.state.height),
        "high": high,
        "runs": [_run(result) for result in results],
    }


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not 2 <= len(names) <= _MOST_POLICIES:
        raise FieldError(
            "compared", f"policies: {len(names)} names: give 2 to {_MOST_POLICIES}, separated by commas"
        )
    for name in names:
        if names.count(name) > 1:
            raise FieldError("compared", f"policies: {name[:60]} is given twice")
        if name not in policies.names():  # `policies.get` would also import what a name with a colon says
            why = not_one_of(name, policies.names())
            raise FieldError("compared", f"policies: {_checks.shown(name)} is {why}")
    return names


def _results(topology: Topology, asked: QueueState, names: list[str]) -> list[Result]:
    """Return the result of each policy; FieldError if one cannot run the jobs, or takes too long."""
    jobs = usual_study.jobs(topology, asked.seed, asked.jobs)
    if asked.load is not None:
        jobs = jobs.with_load(asked.load, topology.num_gpus, asked.seed)
    model = _Limited(topology, time.monotonic() + MAX_SECONDS)
    results: list[Result] = []
    for name in names:
        try:
            policy, queue = limited_policy(name), usual_study.QUEUE
            results.append(
                simulate(topology, jobs, policy, performance=model, seed=asked.seed, discipline=queue)
            )
        except _TimeOverError:
            why = f"{len(jobs)} on {topology.num_gpus:,} GPUs take {name} more than {MAX_SECONDS:g} s"
            raise FieldError("jobs", f"jobs: {why}: ask for fewer, or run `topoplace simulate`") from None
        except ValueError as error:
            raise FieldError("compared", f"{name}: {error}") from None
    return results


def _conclusion(topology: Topology, results: list[Result]) -> str:
    """Return the sentence of `topoplace simulate`."""
    rows = results[0].compare(results[1:])
    figures = [{name: value for name, value in row.items() if name != "policy"} for row in rows]
    scenario = Scenario(topology.name, "jobs", None)
    compared = [
        comparison.row_of(scenario, result.policy, [row])
        for result, row in zip(results, figures, strict=True)
    ]
    sentence = comparison.conclusion(compared, have_one_queue=True)
    if sentence:
        return f"{sentence}."
    reasons = results[0].rejections()
    return f"No job runs: {next(iter(reasons))}." if reasons else ""


def _run(result: Result) -> dict[str, Any]:
    summary = result.summary()
    figures = {name: value if (value := summary[name]) == value else None for name in _FIGURES}
    return {"policy": result.policy, "figures": figures, **contents.details(result)}
