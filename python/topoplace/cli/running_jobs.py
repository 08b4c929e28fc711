"""A cluster with its running jobs, from the output of its scheduler, or from a topology and a CSV file."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from topoplace._similar_names import not_one_of
from topoplace.cli import flags, gpu_list, options, reading, snapshots

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.snapshot import Snapshot
    from topoplace.snapshot.records import Scheduler

_NEEDED = ("job_id", "gpus")
_OPTIONAL = ("pattern", "gpu_fraction", "min_utility", "cost", "movable")
TIMEOUT_S = 10.0
"""The default of `make_room` and `defragment`, which `--help` must not import; a test compares them."""
_YES_OR_NO = {"yes": True, "no": False, "": True}


class RunningJobs(NamedTuple):
    """A cluster with its running jobs, and the limits on moving them."""

    cluster: Cluster
    movable: list[str]
    """Ids of the jobs that may be moved or pre-empted."""
    factors: dict[str, float]
    """Factors on the costs of jobs, by id."""
    snapshot: Snapshot | None = None
    """The snapshot of the scheduler; None for a CSV file."""

    @property
    def scheduler(self) -> Scheduler | None:
        """Return the scheduler of the cluster; None for a CSV file."""
        return self.snapshot.scheduler if self.snapshot else None


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add TOPO, --from or --running, one of which must be given, and --drained."""
    options.add_topology(parser, without="with --from, by default the nodes that FILE describes")
    source = parser.add_mutually_exclusive_group()
    snapshots.add_from(source)
    source.add_argument(
        "--running",
        metavar="FILE",
        help="the running jobs on TOPO as CSV: job_id, gpus (such as 0-3,6); optional columns: pattern (default: "
        "clique), gpu_fraction, min_utility, cost (a factor, default 1), movable (yes or no)",
    )
    parser.add_argument("--drained", metavar="IDS", help="GPUs that no job may get, such as 6,7")


def add_search(parser: argparse.ArgumentParser, consequence: str) -> None:
    """Add --policy, --min-bandwidth and --timeout; `consequence`: help text for what happens after the timeout."""
    options.add_policy(parser, "policy that places the job and the jobs that move")
    parser.add_argument(
        "--min-bandwidth",
        type=float,
        metavar="X",
        help="the slowest link between two tasks must have at least X GB/s",
    )
    options.add_timeout(parser, consequence, default_s=TIMEOUT_S)


def search(arguments: argparse.Namespace, running: RunningJobs) -> dict[str, Any]:
    """Return the options of `add_search`, and excluded machines, as arguments of `make_room` and `defragment`."""
    from topoplace import policies

    with flags.named(name="--policy"):
        policy = policies.get(arguments.policy)
    found = running.snapshot
    return {
        "movable": running.movable,
        "policy": found.policy(policy) if found else policy,
        "excluded": found.excluded() if found else None,
        "min_bandwidth": arguments.min_bandwidth,
        "timeout": arguments.timeout,
    }


def running_jobs(arguments: argparse.Namespace) -> RunningJobs:
    """Return the cluster of --from, or of TOPO with the jobs of --running; ValueError names a wrong line."""
    if arguments.files:
        snapshot = snapshots.read(arguments.files, arguments)
        found = RunningJobs(snapshot.cluster, snapshot.movable(), {}, snapshot)
    elif arguments.topology is None or arguments.running is None:
        raise ValueError("the running jobs are missing: give --from FILE, or TOPO and --running FILE")
    else:
        found = _of_csv(arguments)
    for gpu in gpu_list.of_topology(arguments.drained, found.cluster.topology, "--drained"):
        found.cluster.drain(gpu)
    return found


def _of_csv(arguments: argparse.Namespace) -> RunningJobs:
    from topoplace.cluster.cluster import Cluster
    from topoplace.text_formats import csv_rows

    found = RunningJobs(Cluster(reading.topology(arguments)), [], {})
    text = reading.text(arguments.running)
    try:
        for line, row in csv_rows.records(text, _NEEDED, _OPTIONAL):
            _add(row, line, found)
    except ValueError as error:
        raise ValueError(f"{arguments.running}: {error}") from None
    return found


def wholeness(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Return the numbers of whole machines and domains of each level, now and if the free GPUs were packed."""
    from topoplace.jobs.groups import MACHINE
    from topoplace.objectives import possible_whole_domains, whole_domains

    levels = (MACHINE, *(level.name for level in cluster.topology.levels))
    return {
        level: {"now": whole_domains(cluster, level), "possible": possible_whole_domains(cluster, level)}
        for level in levels
    }


def fragmentation(cluster: Cluster) -> str:
    """Return a line that states whether a cluster is fragmented, and how much."""
    whole = wholeness(cluster)
    verdict = (
        "fragmented" if any(one["now"] < one["possible"] for one in whole.values()) else "not fragmented"
    )
    counts = "; ".join(
        f"whole {level}s: {one['now']} of {one['possible']} possible" for level, one in whole.items()
    )
    return f"{verdict}: {len(cluster.free_gpus())} of {cluster.topology.num_gpus} GPUs are free; {counts}"


def as_dicts(moved: tuple[tuple[str, Placement], ...], cluster: Cluster) -> list[dict[str, object]]:
    """Return each moved job with its GPUs before and after."""
    return [
        {"job_id": job_id, "from": cluster.gpus_of(job_id), "to": placement.gpus}
        for job_id, placement in moved
    ]


def moves(
    moved: tuple[tuple[str, Placement], ...], cluster: Cluster, scheduler: Scheduler | None = None
) -> Iterator[str]:
    """Yield a line for each moved job, then one on how the scheduler moves jobs."""
    from topoplace.topology.device_numbers import in_words

    for job_id, placement in moved:
        before, after = (
            in_words(gpus, cluster.topology) for gpus in (cluster.gpus_of(job_id), placement.gpus)
        )
        yield f"move {job_id}: {before} → {after}"
    if moved and scheduler is not None:
        yield scheduler.moving


def notes(found: Snapshot | None, *, with_moves: bool) -> tuple[str, ...]:
    """Return notes for JSON: facts that the texts do not state and, for an answer with moves, how the scheduler moves
    jobs.
    """
    if found is None:
        return ()
    return (*found.notes, *((found.scheduler.moving,) if with_moves and found.scheduler else ()))


def print_lines(lines: Iterable[str], found: Snapshot | None) -> None:
    """Print an answer, and to standard error notes on facts that the texts do not state; names in both may be
    untrusted.
    """
    from topoplace.drawing import tables

    for line in lines:
        print(tables.plain(line))
    snapshots.print_notes(found.notes if found else ())


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
