"""The running jobs of a cluster, from a CSV file that the option --running names."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace._similar_names import not_one_of
from topoplace.cli import flags, gpu_list, options, reading

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.snapshot.records import Scheduler

_NEEDED = ("job_id", "gpus")
_OPTIONAL = ("pattern", "gpu_fraction", "min_utility", "cost", "movable")
TIMEOUT_S = 10.0
"""The default of `make_room` and `defragment`, which `--help` must not import; a test compares them."""
_YES_OR_NO = {"yes": True, "no": False, "": True}


class RunningJobs(NamedTuple):
    """A cluster with its running jobs, and what the file says about moving them."""

    cluster: Cluster
    movable: list[str]
    """Ids of the jobs that may be moved or pre-empted."""
    factors: dict[str, float]
    """Factors on the costs of jobs, by id."""


def add_running(parser: argparse.ArgumentParser) -> None:
    """Add the option --running, which is required, and --drained."""
    parser.add_argument(
        "--running",
        required=True,
        metavar="FILE",
        help="the running jobs as CSV: job_id, gpus (such as 0-3,6); optional columns: pattern (default: clique), "
        "gpu_fraction, min_utility, cost (a factor, default 1), movable (yes or no)",
    )
    parser.add_argument("--drained", default="", metavar="IDS", help="GPUs that no job may get, such as 6,7")


def add_search(parser: argparse.ArgumentParser, consequence: str) -> None:
    """Add --policy, --min-bandwidth and --timeout; `consequence` says what happens when the time is up."""
    options.add_policy(parser, "policy that places the job and the jobs that move")
    parser.add_argument(
        "--min-bandwidth",
        type=float,
        metavar="X",
        help="the slowest link between two tasks must have at least X GB/s",
    )
    options.add_timeout(parser, consequence, default_s=TIMEOUT_S)


def search(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return what the options of `add_search` say, by argument of `make_room` and `defragment`."""
    from topoplace import policies

    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    return {"policy": policy, "min_bandwidth": arguments.min_bandwidth, "timeout": arguments.timeout}


def running_jobs(arguments: argparse.Namespace) -> RunningJobs:
    """Return the cluster of the argument TOPO with the jobs of --running; ValueError names a wrong line."""
    from topoplace.cluster.cluster import Cluster
    from topoplace.text_formats import csv_rows

    cluster = Cluster(reading.topology(arguments))
    found = RunningJobs(cluster, [], {})
    text = reading.text(arguments.running)
    try:
        for line, row in csv_rows.records(text, _NEEDED, _OPTIONAL):
            _add(row, line, found)
    except ValueError as error:
        raise ValueError(f"{arguments.running}: {error}") from None
    for gpu in gpu_list.of_topology(arguments.drained, cluster.topology, "--drained"):
        cluster.drain(gpu)
    return found


def as_dicts(moved: tuple[tuple[str, Placement], ...], cluster: Cluster) -> list[dict[str, object]]:
    """Return each moved job with its GPUs before and after."""
    return [
        {"job_id": job_id, "from": cluster.gpus_of(job_id), "to": placement.gpus}
        for job_id, placement in moved
    ]


def moves(
    moved: tuple[tuple[str, Placement], ...], cluster: Cluster, scheduler: Scheduler | None = None
) -> Iterator[str]:
    """Yield a line for each moved job, then one that says how the scheduler moves jobs."""
    for job_id, placement in moved:
        before, after = (
            gpu_list.places(gpus, cluster.topology) for gpus in (cluster.gpus_of(job_id), placement.gpus)
        )
        yield f"move {job_id}: {before} → {after}"
    if moved and scheduler is not None:
        yield scheduler.value


def _add(row: dict[str, str], line: int, found: RunningJobs) -> None:
    from topoplace.text_formats import csv_rows

    job_id, movable = row["job_id"].strip(), row.get("movable", "").strip().lower()
    if movable not in _YES_OR_NO:
        raise ValueError(f"line {line}: movable = {movable!r}, not yes or no")
    try:
        gpus = gpu_list.parse(row["gpus"], found.cluster.topology.num_gpus, "gpus")
        found.cluster.allocate(job_id, gpus, _graph(row, len(gpus)))
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None
    found.factors[job_id] = csv_rows.number(row.get("cost", "").strip() or "1", float, line, "cost")
    if _YES_OR_NO[movable]:
        found.movable.append(job_id)


def _graph(row: dict[str, str], size: int) -> JobGraph | None:
    """Return the graph of a job, None if the row says nothing about it."""
    from topoplace.jobs.job_graph import PATTERNS

    pattern, fraction, utility = (
        row.get(name, "").strip() for name in ("pattern", "gpu_fraction", "min_utility")
    )
    if not (pattern or fraction or utility) or not size:
        return None
    if pattern and pattern not in PATTERNS:
        raise ValueError(f"pattern = {pattern!r}, {not_one_of(pattern, PATTERNS)}")
    return PATTERNS[pattern or "clique"](size).with_(
        gpu_fraction=_number(fraction or "1", "gpu_fraction"),
        min_utility=_number(utility or "0", "min_utility"),
    )


def _number(text: str, column: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{column} = {text!r} is not a number") from None
