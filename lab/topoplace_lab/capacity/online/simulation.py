"""The online simulation: arriving jobs are sent to controllers, each of which plans its own nodes (VMs) and jobs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from topoplace import _checks
from topoplace_lab.capacity.online.controller import Controller, OnlineSettings
from topoplace_lab.capacity.online.dispatch import ControllerView, DispatchRule, RoundRobin
from topoplace_lab.capacity.online.executors import map_on
from topoplace_lab.capacity.online.result import DECISION_FIELDS, EVENT_FIELDS, CapacityResult, table
from topoplace_lab.capacity.problem.catalogue import Catalogue
from topoplace_lab.capacity.problem.job import MAX_HOURS, CapacityJob, checked_hours, same_shape
from topoplace_lab.capacity.problem.plan import Planner
from topoplace_lab.capacity.problem.problem import MAX_NODES

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

_ROUND_ROBIN: Final = RoundRobin()


def simulate_online(
    jobs: Iterable[CapacityJob],
    catalogue: Catalogue,
    num_nodes: int,
    planner: Planner,
    *,
    num_controllers: int = 1,
    dispatch: DispatchRule = _ROUND_ROBIN,
    executor: Any = None,
    periodic: bool = True,
    preemptive: bool | None = None,
    interval: float = 1.0,
    postponement: float = 100.0,
    idle: float = 1.0,
    max_decisions: int = 1_000_000,
    estimates: Sequence[ArrayLike] | None = None,
) -> CapacityResult:
    """Simulate all `jobs` to their end on up to `num_nodes` rented nodes (VMs), and return events, decisions, costs.

    Args:
        num_controllers: Controllers, among which the nodes are divided evenly.
        dispatch: The rule that chooses a controller for each arriving job.
        executor: Where controllers run, see `executors.map_on`; it does not change events and costs.
        periodic: Plan every `interval` hours as well as at arrivals and ends.
        preemptive: Running jobs may be stopped, moved and resized; None reads the planner's attribute of this name,
            True if it has none.
        interval: See `Problem`.
        postponement: See `Problem`.
        idle: See `Problem`.
        max_decisions: Limit for each controller.
        estimates: The run times by which planners and the dispatch rule decide, one array like `CapacityJob.hours` per
            job; None if they know the true ones.

    Raises:
        ValueError: For an argument out of range, two jobs with one id, jobs that do not fit the catalogue, or an
            impossible plan.
        RuntimeError: If the planner leaves jobs waiting for ever, or after too many decisions.
    """
    submitted: tuple[CapacityJob, ...] = _checks.sequence(jobs, "jobs", ValueError)
    _checks.instance(catalogue, Catalogue, "catalogue", ValueError)
    same_shape(submitted, catalogue)
    _refuse_twins(submitted)
    _checks.instance(planner, Planner, "planner", ValueError)
    _checks.instance(dispatch, DispatchRule, "dispatch", ValueError)
    if preemptive is None:
        preemptive = bool(getattr(planner, "preemptive", True))
    settings = OnlineSettings(
        _checks.flag(periodic, "periodic", ValueError),
        _checks.flag(preemptive, "preemptive", ValueError),
        _checks.integer(max_decisions, "max_decisions", ValueError, low=1, high=1 << 40),
        _checks.positive(interval, "interval", ValueError, high=MAX_HOURS),
        _checks.real(postponement, "postponement", ValueError, high=MAX_HOURS),
        _checks.real(idle, "idle", ValueError, high=MAX_HOURS),
    )
    controllers = [
        Controller(k, catalogue, nodes, planner, settings)
        for k, nodes in enumerate(_shares(num_nodes, num_controllers))
    ]
    done = _run(controllers, submitted, _estimated(submitted, estimates), dispatch, executor)
    return _joined(done, planner.name, catalogue, submitted)


def _shares(num_nodes: int, num_controllers: int) -> list[int]:
    nodes = _checks.integer(num_nodes, "num_nodes", ValueError, low=1, high=MAX_NODES)
    count = _checks.integer(num_controllers, "num_controllers", ValueError, low=1, high=nodes)
    return [nodes // count + (k < nodes % count) for k in range(count)]


def _refuse_twins(jobs: Sequence[CapacityJob]) -> None:
    first: dict[str, int] = {}
    for i, job in enumerate(jobs):
        if first.setdefault(job.job_id, i) != i:
            raise ValueError(f"jobs[{i}]: {job.job_id!r} is also the id of jobs[{first[job.job_id]}]")


def _estimated(jobs: Sequence[CapacityJob], estimates: Sequence[ArrayLike] | None) -> Sequence[CapacityJob]:
    """Return the jobs with estimated run times; ValueError unless each has one for every way to run, and no other."""
    if estimates is None:
        return jobs
    given = _checks.sequence(estimates, "estimates", ValueError)
    if len(given) != len(jobs):
        raise ValueError(f"estimates has {len(given)} entries for {len(jobs)} jobs")
    seen: list[CapacityJob] = []
    for i, (job, hours) in enumerate(zip(jobs, given, strict=True)):
        known = checked_hours(hours, f"estimates[{i}]", dimensions=2)
        if known.shape != job.hours.shape or (np.isfinite(known) != np.isfinite(job.hours)).any():
            raise ValueError(f"estimates[{i}] is not for the VM types and numbers of GPUs of jobs[{i}]")
        seen.append(replace(job, hours=known))
    return seen


def _run(
    controllers: list[Controller],
    jobs: Sequence[CapacityJob],
    seen: Sequence[CapacityJob],
    dispatch: DispatchRule,
    executor: Any,
) -> list[Controller]:
    """Send the jobs to controllers in order of arrival, and return the controllers after all jobs have ended.

    seen: the jobs as planners and the rule see them. If the rule needs state, the controllers are advanced to each
    job's arrival first.
    """
    order = sorted(range(len(jobs)), key=lambda i: (jobs[i].submit, i))
    arrived: list[CapacityJob] = []
    for index in order:
        job = seen[index]
        if dispatch.needs_state:
            controllers = _advanced(controllers, job.submit, executor)
        arrived.append(job)
        views = [_view(controller, job.submit, dispatch) for controller in controllers]
        which = dispatch.choose(arrived, views)
        _checks.integer(which, f"dispatch {dispatch.name!r}", ValueError, low=0, high=len(views) - 1)
        controllers[which].submit(index, job, jobs[index].hours)
    return _advanced(controllers, float("inf"), executor)


def _view(controller: Controller, now: float, dispatch: DispatchRule) -> ControllerView:
    jobs = controller.remaining(now) if dispatch.needs_state else ()
    return ControllerView(len(controller.nodes), tuple(jobs))


def _advanced(controllers: list[Controller], until: float, executor: Any) -> list[Controller]:
    """Return all controllers after handling their events before `until`; those without an event skip the executor."""
    busy = [controller for controller in controllers if controller.next_event() < until]
    done: list[Any] = map_on(executor, partial(Controller.advance, until=until), busy)
    numbers = [getattr(one, "number", None) for one in done]
    if numbers != [one.number for one in busy] or any(one.next_event() < until for one in done):
        raise ValueError(f"executor = {_checks.shown(executor)}: its map must return all results in order")
    by_number = {controller.number: controller for controller in (*controllers, *done)}
    return [by_number[controller.number] for controller in controllers]


def _joined(
    controllers: Sequence[Controller], planner: str, catalogue: Catalogue, jobs: tuple[CapacityJob, ...]
) -> CapacityResult:
    """Merge the controllers' logs, sorted by time, then by controller, and their costs into one result."""
    events = sorted((row for c in controllers for row in c.events), key=lambda row: (row[0], row[2]))
    decisions = sorted((row for c in controllers for row in c.decisions), key=lambda row: (row[0], row[1]))
    return CapacityResult(
        planner,
        catalogue,
        jobs,
        table(events, EVENT_FIELDS),
        table(decisions, DECISION_FIELDS),
        vm_cost=sum(controller.vm_cost for controller in controllers),
        tardiness_cost=sum(controller.tardiness_cost for controller in controllers),
    )
