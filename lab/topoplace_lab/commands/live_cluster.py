"""The present state of a cluster on the command line, with its waiting jobs to simulate."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topoplace.cli import flags, reading, snapshots

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.snapshot import Snapshot
    from topoplace_lab.simulate import Workload


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """The present state of a cluster, with the data for simulations of its waiting jobs."""

    cluster: Cluster
    workload: Workload
    seconds_left: dict[str, float]
    """The seconds until each running job ends, by id, as far as they are known."""
    notes: tuple[str, ...]


def live_cluster(files: Sequence[str], arguments: argparse.Namespace) -> LiveCluster:
    """Return the cluster of the files, on TOPO if it is given; jobs without a limit run for --duration."""
    from topoplace_lab.simulate import Workload

    found = snapshots.read(files, arguments)
    with reading.errors_of(", ".join(files)), flags.named(duration="--duration"):
        workload, seconds_left = (
            Workload.from_snapshot(found, arguments.duration),
            found.seconds_left(arguments.duration),
        )
    if not len(workload):
        raise ValueError(f"{', '.join(files)}: no job waits that may start")
    return LiveCluster(found.cluster, workload, seconds_left, tuple(_notes(found, arguments.duration)))


def _notes(found: Snapshot, duration: float | None) -> Iterator[str]:
    """Yield what the text leaves open, and what that means for a simulation."""
    from topoplace import _checks

    yield from found.notes
    if held := [f"{one.job_id} ({one.held})" for one in found.waiting if one.held]:
        yield f"Jobs that are held, and left out: {_checks.some(held)}."
    endless = [one.job_id for one in found.running.values() if one.seconds_left == math.inf]
    if endless and duration is None:
        yield f"Running jobs that keep their GPUs for ever, as they have no limit: {_checks.some(endless)}."
    elif endless:
        yield f"Running jobs without a limit, which end in {duration:g} s: {_checks.some(endless)}."
