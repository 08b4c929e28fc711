"""`topoplace when` prints when a waiting job of a Slurm or Kubernetes cluster starts, and what would help most."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from topoplace.cli import flags, options, reading, running_jobs, snapshots, writing

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.policy import Policy
    from topoplace.moving.rearrangement import Rearrangement
    from topoplace.snapshot import Snapshot, StartTime
    from topoplace.snapshot.log_only import Logged

_NEVER = 1
_DAY_S = 86_400
_TIMEOUT_S = 10.0


def add(commands: Any) -> None:
    """Add `topoplace when` and its arguments to the command line."""
    parser = options.command(
        commands,
        "when",
        "say when a waiting job starts: now, after which jobs, or never",
        _run,
        examples=[
            "topoplace when --from scontrol.txt",
            "topoplace when 21 --from scontrol.txt",
            "topoplace when 21 --from scontrol.txt --topology cluster.json --json",
            "topoplace when --from scontrol.txt --topology cluster.json --log decisions.jsonl",
        ],
        negative="the job never starts",
    )
    parser.add_argument(
        "job",
        metavar="JOB",
        nargs="?",
        help="id of the job, such as 12, 12_3, or namespace/name (default: all that wait, without moves)",
    )
    snapshots.add_from(parser, required=True)
    parser.add_argument(
        "--topology",
        metavar="TOPO",
        help="the cluster, or one machine that describes each node (default: the nodes that FILE describes)",
    )
    parser.add_argument(
        "--log",
        metavar="FILE",
        type=options.path,
        help="append to FILE the GPUs that the policy would give to jobs that could start now, and the GPUs of jobs in "
        "FILE that run now; nothing else is done",
    )
    options.add_policy(parser, "policy that places the jobs")
    options.add_timeout(parser, "end the search for moves of running jobs", default_s=_TIMEOUT_S)
    options.add_json(parser)


def _run(arguments: argparse.Namespace) -> int:
    from topoplace import policies
    from topoplace.snapshot import start_times, when

    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    found = snapshots.read(arguments.files, arguments)
    with (
        flags.named(timeout="--timeout"),
        policies.installed.faults_named(policy, f"--policy = {arguments.policy!r}: "),
    ):
        if arguments.log is not None:
            return _log(arguments, found, policy)
        if arguments.job is None:
            return _list(start_times(found, policy=policy), found, as_json=arguments.json)
        start = when(found, arguments.job, policy=policy, timeout=arguments.timeout)
    if arguments.json:
        moved = start.room.move if start.room else ()
        writing.as_json(
            {
                "topology": found.cluster.topology.name,
                **_as_dict(start, found.cluster),
                "move": running_jobs.as_dicts(moved, found.cluster),
                "cost": start.room.cost if start.room else None,
                "notes": running_jobs.notes(found, with_moves=bool(moved)),
            }
        )
    else:
        running_jobs.print_lines(_lines(start, found), found)
    return _NEVER if start.reason else 0


def _list(starts: Sequence[StartTime], found: Snapshot, *, as_json: bool) -> int:
    """Print how fragmented the cluster is, and a line for each job that waits."""
    cluster = found.cluster
    if as_json:
        writing.as_json(
            {
                "topology": cluster.topology.name,
                "free_gpus": len(cluster.free_gpus()),
                "whole": running_jobs.wholeness(cluster),
                "jobs": [_as_dict(start, cluster) for start in starts],
                "notes": running_jobs.notes(found, with_moves=False),
            }
        )
    else:
        lines = [next(_lines(start, found)).removesuffix("; once it is not:") for start in starts]
        running_jobs.print_lines([running_jobs.fragmentation(cluster), *(lines or ["no job waits"])], found)
    return 0


def _log(arguments: argparse.Namespace, found: Snapshot, policy: Policy) -> int:
    """Append to the file of --log what is new, and print it."""
    from topoplace.snapshot.log_only import Logged, log_only

    if arguments.json or arguments.job is not None:
        raise ValueError("--log is about all jobs, and writes JSON itself: give neither JOB nor --json")
    path = writing.file(arguments.log, "--log", [("--from", file) for file in arguments.files])
    lines = reading.text(str(path)).splitlines() if path.exists() and path.stat().st_size else []
    with reading.errors_of(str(path)):
        new = log_only(found, [Logged.from_json(line) for line in lines], policy=policy)
    with flags.of_file(str(path)), path.open("a", encoding="utf-8") as file:
        file.writelines(f"{one.to_json()}\n" for one in new)
    running_jobs.print_lines(map(_in_words, new), found)
    return 0


def _in_words(one: Logged) -> str:
    would = f"{_places(one.would_get)}{_seconds(one.would_take)}"
    if one.got is None:
        return f"job {one.job_id} would get {would}"
    return f"job {one.job_id} got {_places(one.got)}{_seconds(one.takes)}, and would have got {would}"


def _places(gpus: Mapping[str, Sequence[int]]) -> str:
    return ", ".join(f"{machine} {','.join(map(str, sorted(own)))}" for machine, own in gpus.items())


def _seconds(seconds: float | None) -> str:
    return "" if seconds is None else f" ({seconds:.3g} s)"


def _as_dict(start: StartTime, cluster: Cluster) -> dict[str, Any]:
    from topoplace.snapshot.records import local_numbers

    return {
        "job_id": start.job_id,
        "now": start.is_now,
        "seconds": start.seconds,
        "gpus": start.gpus,
        "machines": local_numbers(start.gpus, cluster.topology),
        "after": start.after,
        "behind": start.behind,
        "seconds_if_first": start.seconds_if_first,
        "held": start.held or None,
        "reason": start.reason or None,
    }


def _lines(start: StartTime, found: Snapshot) -> Iterator[str]:
    from topoplace.topology.device_numbers import in_words

    if start.held:
        yield f"job {start.job_id} is held ({start.held}); once it is not:"
    if start.reason:
        yield f"job {start.job_id} never starts: {start.reason.removeprefix('never fits: ')}"
        return
    yield f"job {start.job_id} {_time(start)}, on {in_words(start.gpus, found.cluster.topology)}"
    if start.behind:
        first = _first(start)
        yield f"behind {_jobs(start.behind)} in the queue; as the first it {first}"
    if start.room is not None:
        yield from _moves(start.room, found)


def _time(start: StartTime) -> str:
    if start.seconds == 0:
        return "starts now"
    after = f", after {_jobs(start.after)}" if start.after else ""
    if start.seconds == math.inf:
        return f"starts at a time that is not known{after}"
    return f"starts in {_duration(start.seconds)}{after}"


def _first(start: StartTime) -> str:
    if start.seconds_if_first == 0:
        return "starts now"
    if start.seconds_if_first == math.inf:
        return "also waits for jobs whose ends are not known"
    return f"starts in {_duration(start.seconds_if_first)}"


def _jobs(job_ids: Sequence[str]) -> str:
    return f"job {job_ids[0]}" if len(job_ids) == 1 else f"jobs {writing.first_of(job_ids)}"


def _duration(seconds: float) -> str:
    """Return a time in words, such as 1 h 12 min, rounded up."""
    from topoplace.drawing import tables

    unit = 60 if seconds < _DAY_S else 3600
    return tables.duration(unit * math.ceil(seconds / unit))


def _moves(room: Rearrangement, found: Snapshot) -> Iterator[str]:
    if not room.start:
        for _, refusal in (*room.defer, *room.reject):
            yield f"no move of running jobs lets it start now: {refusal.reason}"
        return
    proof = "proven least" if room.optimal else f"no plan costs less than {room.bound:g}"
    yield f"it starts now if running jobs move, at a cost of {room.cost:g} ({proof}):"
    yield from running_jobs.moves(room.move, found.cluster, found.scheduler)
