"""`topoplace capacity` plans which VMs to rent, which jobs run there, and on how many GPUs each."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, options, reading, writing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from topoplace_lab.capacity import CapacityJob, Catalogue, Plan, Planner

PLANNERS = ("milp", "search", "shares", "tight", "printed", "fifo", "edf", "ps")
_MODELS = ("milp", "tight", "printed")
"""The planners that prove how close a plan is to the optimum."""
_GAP = 0.05
_COSTS = ("total", "vm", "tardiness", "postponement", "idle")
"""The parts of a plan's cost, by their names in JSON."""


def add(commands: Any) -> None:
    """Add `topoplace capacity` and its arguments to the command line."""
    parser = options.command(
        commands,
        "capacity",
        "plan which virtual machines to rent, and which jobs run there, by due dates",
        _run,
        examples=["topoplace capacity jobs.csv times.csv --nodes 10"],
    )
    parser.add_argument(
        "jobs", metavar="JOBS", help="CSV: job_id, due (hours from now), weight ($/h of tardiness)"
    )
    parser.add_argument(
        "times", metavar="TIMES", help="CSV: job_id, vm_type, gpus, hours; a row for each way to run"
    )
    parser.add_argument(
        "--catalogue",
        metavar="FILE",
        help="CSV: name, gpu_model, gpus, cost_per_hour (default: the paper's table II)",
    )
    options.add_count(parser, "--nodes", 5, "rent at most N virtual machines")
    parser.add_argument("--planner", choices=PLANNERS, default="milp", help="method (default: %(default)s)")
    parser.add_argument(
        "--gap",
        type=float,
        help=f"stop a model ({', '.join(_MODELS)}) once this relative gap is proven (default: {_GAP:g})",
    )
    options.add_timeout(parser, "take the best plan so far")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> None:
    from topoplace_lab.capacity import Problem

    catalogue = _catalogue(arguments.catalogue)
    jobs = _jobs(arguments, catalogue)
    with flags.named(gap="--gap"):
        planner = _planner(arguments)
    with flags.named(num_nodes="--nodes"):
        problem = Problem.of(jobs, catalogue, arguments.nodes)
    before = time.perf_counter()
    with Progress("planning", limit_s=arguments.timeout):
        plan = planner.plan(problem)
    facts = _facts(plan, jobs, catalogue, planner.name, time.perf_counter() - before)
    if arguments.json:
        writing.as_json(facts)
    else:
        _show(facts)


def _catalogue(path: str | None) -> Catalogue:
    from topoplace_lab.capacity import TABLE_II, Catalogue

    if path is None:
        return TABLE_II
    with reading.errors_of(path):
        return Catalogue.from_csv(reading.text(path))


def _jobs(arguments: argparse.Namespace, catalogue: Catalogue) -> tuple[CapacityJob, ...]:
    from topoplace_lab.capacity import jobs_from_csv

    jobs, times = reading.text(arguments.jobs), reading.text(arguments.times)
    with reading.errors_of(f"{Path(arguments.jobs).name}, {Path(arguments.times).name}"):
        return jobs_from_csv(jobs, times, catalogue)


def _planner(arguments: argparse.Namespace) -> Planner:
    from topoplace_lab.capacity import CapacityPlanner, FirstPrinciplePlanner, SearchPlanner, SharePlanner

    name = arguments.planner
    if arguments.gap is not None and name not in _MODELS:
        raise ValueError(f"--gap is for the planners {', '.join(_MODELS)}, not for {name}")
    if name == "search":
        return SearchPlanner(timeout=arguments.timeout)
    if name == "shares":
        return SharePlanner(timeout=arguments.timeout)
    if name in _MODELS:
        formulation = "columns" if name == "milp" else name
        gap = _GAP if arguments.gap is None else arguments.gap
        return CapacityPlanner(formulation, gap=gap, timeout=arguments.timeout)
    if arguments.timeout is not None:
        raise ValueError(f"--timeout is not for the planner {name}, which decides at once")
    return FirstPrinciplePlanner(name)


def _facts(
    plan: Plan, jobs: Sequence[CapacityJob], catalogue: Catalogue, planner: str, seconds: float
) -> dict[str, Any]:
    return {
        "planner": planner,
        "status": plan.status,
        "nodes": [
            {
                "vm_type": catalogue[node.vm_type].name,
                "jobs": {jobs[job].job_id: gpus for job, gpus in node.jobs},
                "gpus": catalogue[node.vm_type].num_gpus,
            }
            for node in plan.nodes
        ],
        "postponed": [jobs[job].job_id for job in plan.postponed],
        "cost": {name: getattr(plan.cost, name) for name in _COSTS},
        "bound": plan.bound,
        "gap": plan.gap,
        "seconds": seconds,
    }


def _show(facts: dict[str, Any]) -> None:
    from topoplace.drawing import tables

    nodes = [
        (
            node["vm_type"],
            f"{sum(node['jobs'].values())} of {node['gpus']}",
            ", ".join(f"{job}: {gpus}" for job, gpus in node["jobs"].items()),
        )
        for node in facts["nodes"]
    ]
    tables.show(("VM type", "GPUs used", "job: GPUs"), nodes, f"{len(nodes)} virtual machines to rent")
    cost = {f"{part} $": value for part, value in facts["cost"].items()}
    rows = [("jobs that wait", writing.first_of(facts["postponed"])), *cost.items()]
    if facts["bound"] or facts["status"] == "optimal":  # some planners have no bound
        rows += [("no plan costs less than $", facts["bound"]), ("gap %", 100 * facts["gap"])]
    rows.append(("time ms", 1e3 * facts["seconds"]))
    tables.show(("", "value"), rows, f"{facts['planner']}: {facts['status']}")
