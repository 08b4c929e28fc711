"""`topoplace make-room` prints the running jobs to move or to pre-empt so that a job fits, or more jobs than now."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace._progress import Progress
from topoplace.cli import flags, job_options, options, running_jobs, writing

if TYPE_CHECKING:
    from topoplace.cli.running_jobs import RunningJobs
    from topoplace.cluster.cluster import Cluster
    from topoplace.moving import Rearrangement

_NO_ROOM = 1
_MOVES = 8
COSTS = {
    "move": ("--move-cost", "for each job that moves", 0.0),
    "move_per_gpu": ("--move-cost-per-gpu", "for each GPU of a job that moves", 1.0),
    "preempt": ("--preempt-cost", "for each job that is pre-empted", 0.0),
    "preempt_per_gpu": ("--preempt-cost-per-gpu", "for each GPU of a job that is pre-empted", 10.0),
}
"""For each field of `MoveCosts`: its option, the meaning of the option, and its default."""


def add(commands: Any) -> None:
    """Add `topoplace make-room` and its arguments to the command line."""
    parser = options.command(
        commands,
        "make-room",
        "say what must move so that a job fits, or as many jobs as possible",
        _run,
        examples=[
            "topoplace make-room cluster.json --running running.csv --gpus 8 --single-machine",
            "topoplace make-room --from scontrol.txt --gpus 8 --single-machine --never-preempt",
            "topoplace make-room --from scontrol.txt",
            "topoplace make-room cluster.json --running running.csv --gpus 8 --single-machine --moves 4",
        ],
        negative="no moves make room for the job, or let more jobs fit",
        instead={
            "--busy": "name the jobs on these GPUs in --running FILE, or GPUs without a job with --drained IDS"
        },
    )
    running_jobs.add_cluster(parser)
    job_options.add_job(parser, size="those of the largest machine, for as many jobs as possible")
    what = "let as many such jobs fit as possible, instead of one, by at most N moves; none is pre-empted"
    options.add_count(parser, "--moves", _MOVES, what)
    parser.set_defaults(moves=None)  # to tell whether it is given
    running_jobs.add_search(parser, "take the best plan so far")
    for flag, what, default in COSTS.values():
        parser.add_argument(flag, type=float, metavar="X", help=f"cost {what} (default: {default:g})")
    parser.add_argument("--never-preempt", action="store_true", help="move jobs, but pre-empt none")
    options.add_json(parser)


class _Answer(NamedTuple):
    found: bool
    facts: dict[str, Any]
    """For JSON."""
    lines: Iterable[str]
    """For people."""


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies

    running = running_jobs.running_jobs(arguments)
    search = running_jobs.search(arguments, running)
    answer_of = _more if _is_for_many(arguments) else _room
    with (
        flags.named(min_bandwidth="--min-bandwidth", timeout="--timeout"),
        Progress("searching", limit_s=arguments.timeout),
        policies.installed.faults_named(search["policy"], f"--policy = {arguments.policy!r}: "),
    ):
        answer = answer_of(arguments, running, search)
    if arguments.json:
        notes = running_jobs.notes(running.snapshot, with_moves=bool(answer.facts["move"]))
        writing.as_json(answer.facts | {"notes": notes})
    else:
        running_jobs.print_lines(answer.lines, running.snapshot)
    return 0 if answer.found else _NO_ROOM


def _has_size(arguments: argparse.Namespace) -> bool:
    return bool(arguments.gpus or arguments.parallel or arguments.role)


def _is_for_many(arguments: argparse.Namespace) -> bool:
    """Return True if as many jobs as possible are to fit; ValueError if an option is about one job."""
    if arguments.moves is None and _has_size(arguments):
        return False
    of_one = [flag for flag, *_ in COSTS.values() if _cost(arguments, flag) is not None]
    if arguments.never_preempt or of_one:
        flag = (*of_one, "--never-preempt")[0]
        raise ValueError(f"{flag}: is for one job, whose size --gpus says, without --moves")
    return True


def _room(arguments: argparse.Namespace, running: RunningJobs, search: Mapping[str, Any]) -> _Answer:
    """Answer what must move, or be pre-empted, so that the job fits."""
    from topoplace.moving import make_room
    from topoplace.moving.rearrangement import unused_id

    cluster = running.cluster
    plan = make_room(
        job_options.job(arguments),
        cluster,
        cost=_costs(arguments, running.factors),
        job_id=unused_id("job", cluster),
        **search,
    )
    return _Answer(bool(plan.start), _as_dict(plan, cluster), _lines(plan, running))


def _more(arguments: argparse.Namespace, running: RunningJobs, search: Mapping[str, Any]) -> _Answer:
    """Answer which moves let as many jobs fit as possible."""
    from topoplace.moving import defragment

    cluster = running.cluster
    if arguments.anti_affinity and not _has_size(arguments):
        raise ValueError("--anti-affinity: needs --gpus; without a size, the jobs are of one machine")
    largest = max(len(gpus) for gpus in cluster.topology.gpus_of.values())
    job = job_options.job(arguments, default_size=str(largest))
    if not _has_size(arguments):
        job = job.with_(single_machine=True)
    plan = defragment(cluster, job, moves=arguments.moves or _MOVES, **search)
    facts = {
        "topology": cluster.topology.name,
        "free_gpus": len(cluster.free_gpus()),
        "whole": running_jobs.wholeness(cluster),
        "move": running_jobs.as_dicts(plan.move, cluster),
        "before": plan.before,
        "after": plan.after,
    }
    count = f"{len(plan.move)} move{'s' * (len(plan.move) != 1)}"
    lines = (
        running_jobs.fragmentation(cluster),
        f"jobs that fit ({job.name} of {job.num_tasks}): {plan.before} now, {plan.after} with {count}",
        *running_jobs.moves(plan.move, cluster, running.scheduler),
    )
    return _Answer(plan.after > plan.before, facts, lines)


def _cost(arguments: argparse.Namespace, flag: str) -> float | None:
    value: float | None = getattr(arguments, flag[2:].replace("-", "_"))
    return value


def _costs(arguments: argparse.Namespace, factors: dict[str, float]) -> Any:
    from topoplace.moving import MoveCosts

    amounts: dict[str, float] = {}
    for field, (flag, _, default) in COSTS.items():
        given = _cost(arguments, flag)
        amounts[field] = default if given is None else given
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
