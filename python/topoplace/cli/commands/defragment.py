"""`topoplace defragment` says which running jobs to move so that more jobs of a kind fit."""

from __future__ import annotations

import argparse
from typing import Any

from topoplace._progress import Progress
from topoplace.cli import flags, job_options, options, running_jobs, writing

_NO_GAIN = 1


def add(commands: Any) -> None:
    """Add `topoplace defragment` and its arguments to the command line."""
    parser = options.command(
        commands,
        "defragment",
        "say which moves let more jobs fit",
        _run,
        examples=[
            "topoplace defragment cluster.json --running running.csv --gpus 8 --single-machine --moves 4",
            "topoplace defragment --from scontrol.txt",
        ],
        negative="no moves let more jobs fit",
    )
    running_jobs.add_cluster(parser)
    job_options.add_job(parser, size="all GPUs of the largest machine")
    options.add_count(parser, "--moves", 8, "number of jobs that may move")
    running_jobs.add_search(parser, "take the moves found so far")
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.moving import defragment

    running = running_jobs.running_jobs(arguments)
    cluster = running.cluster
    largest = max(len(gpus) for gpus in cluster.topology.gpus_of.values())
    job = job_options.job(arguments, default_size=str(largest))
    search = running_jobs.search(arguments, running)
    with (
        flags.named(min_bandwidth="--min-bandwidth", timeout="--timeout"),
        Progress("searching", limit_s=arguments.timeout),
        policies.installed.faults_named(search["policy"], f"--policy = {arguments.policy!r}: "),
    ):
        plan = defragment(
            cluster,
            job if arguments.gpus is not None else job.with_(single_machine=True),
            moves=arguments.moves,
            **search,
        )
    if arguments.json:
        writing.as_json(
            {
                "topology": cluster.topology.name,
                "free_gpus": len(cluster.free_gpus()),
                "whole": running_jobs.wholeness(cluster),
                "move": running_jobs.as_dicts(plan.move, cluster),
                "before": plan.before,
                "after": plan.after,
                "notes": running_jobs.notes(running.snapshot, with_moves=bool(plan.move)),
            }
        )
    else:
        kind = f"{job.name} of {job.num_tasks}"
        lines = [
            running_jobs.fragmentation(cluster),
            f"jobs that fit ({kind}): {plan.before} now, {plan.after} with {len(plan.move)} moves",
            *running_jobs.moves(plan.move, cluster, running.scheduler),
        ]
        running_jobs.print_lines(lines, running.snapshot)
    return 0 if plan.after > plan.before else _NO_GAIN
