"""Snapshots of clusters on the command line: the files that a scheduler's programs print, and what they leave open."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from topoplace.cli import flags, reading

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.experiments.simulate import Workload
    from topoplace.snapshot import Snapshot

FILES_HELP: Final = (
    "what `scontrol show node -d` and `scontrol show job -d` print, or `kubectl get nodes,pods -A -o json`; "
    "- for standard input"
)


def add_from(parser: Any, *, required: bool = False) -> None:
    """Add the option --from, the files of a snapshot, to a parser or a group of options."""
    parser.add_argument(
        "--from",
        dest="files",
        metavar="FILE",
        nargs="+",
        required=required,
        help=f"the cluster with its jobs: {FILES_HELP}",
    )


def read(files: Sequence[str], arguments: argparse.Namespace) -> Snapshot:
    """Return the snapshot that the files contain; a TOPO is the cluster, or one machine that describes each node."""
    from topoplace import snapshot

    where = None if arguments.topology is None else reading.topology(arguments)
    texts = {reading.shown(file): reading.text(file) for file in files}
    if len(texts) < len(files):
        raise ValueError(f"{', '.join(files)}: a file is given twice")
    return snapshot.read(texts, where)


def print_notes(notes: Sequence[str]) -> None:
    """Print notes to standard error; names in them may be untrusted."""
    from topoplace.experiments.report import tables

    for note in notes:
        print(tables.plain(f"note: {note}"), file=sys.stderr)


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A cluster as it is now, with what simulations of its waiting jobs need."""

    cluster: Cluster
    workload: Workload
    seconds_left: dict[str, float]
    """When running jobs end, as far as it is known."""
    notes: tuple[str, ...]


def live_cluster(files: Sequence[str], arguments: argparse.Namespace) -> LiveCluster:
    """Return the cluster of the files, on TOPO if it is given; --duration is the run time where there is no limit."""
    found = read(files, arguments)
    with reading.errors_of(", ".join(files)), flags.named(duration="--duration"):
        workload, seconds_left = found.workload(arguments.duration), found.seconds_left(arguments.duration)
    if not len(workload):
        raise ValueError(f"{', '.join(files)}: no job waits that may start")
    return LiveCluster(found.cluster, workload, seconds_left, tuple(_notes(found, arguments.duration)))


def _notes(found: Snapshot, duration: float | None) -> Iterator[str]:
    """Yield what the text leaves open, and what that means for a simulation."""
    from topoplace.discovery.networks import switch_tree

    yield from found.notes
    if held := [f"{one.job_id} ({one.held})" for one in found.waiting if one.held]:
        yield f"Jobs that are held, and left out: {switch_tree.some(held)}."
    endless = [one.job_id for one in found.running.values() if one.seconds_left == math.inf]
    if endless and duration is None:
        yield f"Running jobs that keep their GPUs for ever, as they have no limit: {switch_tree.some(endless)}."
    elif endless:
        yield f"Running jobs without a limit, which end in {duration:g} s: {switch_tree.some(endless)}."
