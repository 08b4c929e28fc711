"""A cluster as it is now on the command line, with its waiting jobs to simulate."""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.cli import flags, reading, snapshots

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.experiments.simulate import Workload
    from topoplace.snapshot import Snapshot


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
    from topoplace.experiments.simulate.workloads.waiting_jobs import waiting_jobs

    found = snapshots.read(files, arguments)
    with reading.errors_of(", ".join(files)), flags.named(duration="--duration"):
        workload, seconds_left = (
            waiting_jobs(found, arguments.duration),
            found.seconds_left(arguments.duration),
        )
    if not len(workload):
        raise ValueError(f"{', '.join(files)}: no job waits that may start")
    return LiveCluster(found.cluster, workload, seconds_left, tuple(_notes(found, arguments.duration)))


def _notes(found: Snapshot, duration: float | None) -> Iterator[str]:
    """Yield what the text leaves open, and what that means for a simulation."""

    yield from found.notes
    if held := [f"{one.job_id} ({one.held})" for one in found.waiting if one.held]:
        yield f"Jobs that are held, and left out: {_checks.some(held)}."
    endless = [one.job_id for one in found.running.values() if one.seconds_left == math.inf]
    if endless and duration is None:
        yield f"Running jobs that keep their GPUs for ever, as they have no limit: {_checks.some(endless)}."
    elif endless:
        yield f"Running jobs without a limit, which end in {duration:g} s: {_checks.some(endless)}."
