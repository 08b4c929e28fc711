"""Checks of the GPUs that a score is asked for; ValueError names the argument, the index and the value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology


def gpu_of_each_task(job: JobGraph, gpus: Iterable[int], topology: Topology) -> tuple[int, ...]:
    """Return `gpus` as a tuple if they are different GPUs of the topology, one for each task; otherwise ValueError."""
    _checks.instance(job, JobGraph, "job", ValueError)
    listed = different_gpus(gpus, topology, "gpus")
    if len(listed) != job.num_tasks:
        raise ValueError(f"gpus = {_checks.shown(listed)}: {len(listed)} for a job of {job.num_tasks} tasks")
    return listed


def different_gpus(gpus: Iterable[int], topology: Topology, what: str) -> tuple[int, ...]:
    """Return `gpus` as a tuple if they are different GPUs of the topology; otherwise ValueError.

    what: the argument's name in messages.
    """
    _checks.instance(topology, Topology, "topology", ValueError)
    last = topology.num_gpus - 1
    listed = _checks.sequence(gpus, what, ValueError)
    if set(map(type, listed)) != {int} or min(listed) < 0 or max(listed) > last:
        listed = tuple(
            _checks.integer(gpu, f"{what}[{i}]", ValueError, low=0, high=last) for i, gpu in enumerate(listed)
        )
    if len(set(listed)) != len(listed):
        twice = next(a for a, b in pairwise(sorted(listed)) if a == b)
        raise ValueError(f"{what} = {_checks.shown(listed)} lists GPU {twice} twice")
    return listed
