"""`topoplace make-room` says which running jobs to move or to pre-empt so that a job fits."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from topoplace._progress import Progress
from topoplace.cli import flags, job_options, options, running_jobs, writing

if TYPE_CHECKING:
    from topoplace.cli.running_jobs import RunningJobs
    from topoplace.cluster.cluster import Cluster
    from topoplace.moving import Rearrangement

_NO_ROOM = 1
COSTS = {
    "move": ("--move-cost", "for each job that moves", 0.0),
    "move_per_gpu": ("--move-cost-per-gpu", "for each GPU of a job that moves", 1.0),
    "preempt": ("--preempt-cost", "for each job that is pre-empted", 0.0),
    "preempt_per_gpu": ("--preempt-cost-per-gpu", "for each GPU of a job that is pre-empted", 10.0),
}
"""For each field of `MoveCosts`: its option, what the option is for, and its default."""


def add(commands: Any) -> None:
    """Add `topoplace make-room` and its arguments to the command line."""
    parser = options.command(
        commands,
        "make-room",
        "say what must move so that a job fits",
        _run,
        examples=[
            "topoplace make-room cluster.json --running running.csv --gpus 8 --single-machine",
            "topoplace make-room --from scontrol.txt --gpus 8 --single-machine --never-preempt",
        ],
        negative="no moves make room for the job",
    )
    running_jobs.add_cluster(parser)
    job_options.add_job(parser)
    running_jobs.add_search(parser, "take the best plan so far")
    for flag, what, default in COSTS.values():
        parser.add_argument(
            flag, type=float, default=default, metavar="X", help=f"cost {what} (default: {default:g})"
        )
    parser.add_argument("--never-preempt", action="store_true", help="move jobs, but pre-empt none")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.moving import make_room
    from topoplace.moving.rearrangement import unused_id

    running = running_jobs.running_jobs(arguments)
    job = job_options.job(arguments)
    search = running_jobs.search(arguments, running)
    costs = _costs(arguments, running.factors)
    with (
        flags.named(min_bandwidth="--min-bandwidth", timeout="--timeout"),
        Progress("searching", limit_s=arguments.timeout),
        policies.installed.faults_named(search["policy"], f"--policy = {arguments.policy!r}: "),
    ):
        plan = make_room(
            job,
            running.cluster,
            cost=costs,
            job_id=unused_id("job", running.cluster),
            **search,
        )
    if arguments.json:
        notes = running_jobs.notes(running.snapshot, with_moves=bool(plan.move))
        writing.as_json(_as_dict(plan, running.cluster) | {"notes": notes})
    else:
        running_jobs.print_lines(_lines(plan, running), running.snapshot)
    return 0 if plan.start else _NO_ROOM


def _costs(arguments: argparse.Namespace, factors: dict[str, float]) -> Any:
    from topoplace.moving import MoveCosts

    amounts: dict[str, float] = {}
    for field, (flag, *_) in COSTS.items():
        amounts[field] = getattr(arguments, flag[2:].replace("-", "_"))
        if not 0 <= amounts[field] < math.inf:
            raise ValueError(f"{flag} = {amounts[field]:g} is not a finite number of at least 0")
    if arguments.never_preempt:
        amounts["preempt"] = math.inf
    return MoveCosts(**amounts, factors=factors)


def _as_dict(plan: Rearrangement, cluster: Cluster) -> dict[str, Any]:
    refused = (*plan.defer, *plan.reject)
    return {
        "topology": cluster.topology.name,
        "gpus": plan.start[0][1].gpus if plan.start else None,
        "move": running_jobs.as_dicts(plan.move, cluster),
        "preempt": plan.preempt,
        "cost": plan.cost,
        "bound": plan.bound,
        "optimal": plan.optimal,
        "reason": refused[0][1].reason if refused else None,
    }


def _lines(plan: Rearrangement, running: RunningJobs) -> Iterator[str]:
    from topoplace.topology.device_numbers import in_words

    cluster = running.cluster
    for _, refusal in (*plan.defer, *plan.reject):
        yield f"no room: {flags.in_words_of(job_options.FLAGS, refusal.reason)}"
    if not plan.start:
        return
    yield _conclusion(plan)
    for job_id in plan.preempt:
        yield f"pre-empt {job_id}: {in_words(cluster.gpus_of(job_id), cluster.topology)}"
    yield from running_jobs.moves(plan.move, cluster, running.scheduler)
    yield f"start the job: {in_words(plan.start[0][1].gpus, cluster.topology)}"


def _conclusion(plan: Rearrangement) -> str:
    proof = "proven least" if plan.optimal else f"no plan costs less than {plan.bound:g}"
    counts = ((len(plan.move), "move"), (len(plan.preempt), "pre-emption"))
    steps = " and ".join(f"{count} {what}{'s' * (count > 1)}" for count, what in counts if count)
    return (
        f"the job fits after {steps}, at a cost of {plan.cost:g} ({proof})" if steps else "the job fits now"
    )
