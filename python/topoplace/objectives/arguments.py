"""Checks of the arguments of scores; ValueError names the argument, the index and the value."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.topology.topology import Topology


def edges_between(edges: Any, num_tasks: int) -> tuple[tuple[int, int, float], ...]:
    """Return `edges` as a tuple; ValueError unless each is (a, b, weight) with different tasks and a weight above 0.

    num_tasks: the tasks are 0..num_tasks - 1.
    """
    listed = _checks.sequence(edges, "edges", ValueError)
    for i, edge in enumerate(listed):
        parts = _checks.ordered(edge, f"edges[{i}]", ValueError)
        if len(parts) != 3:
            raise ValueError(f"edges[{i}] = {_checks.shown(edge)} is not (a, b, weight)")
        for j, task in enumerate(parts[:2]):
            _checks.integer(task, f"edges[{i}][{j}]", ValueError, low=0, high=num_tasks - 1)
        if parts[0] == parts[1]:
            raise ValueError(f"edges[{i}] = {_checks.shown(parts)} joins a task with itself")
        _checks.positive(parts[2], f"edges[{i}][2]", ValueError)
    return listed


def gpu_of_each_task(job: JobGraph, gpus: Iterable[int], topology: Topology) -> tuple[int, ...]:
    """Return `gpus` as a tuple if they are different GPUs of the topology, one for each task; otherwise ValueError."""
    _checks.instance(job, JobGraph, "job", ValueError)
    listed = gpus_in_task_order(gpus, topology)
    if len(listed) != job.num_tasks:
        raise ValueError(f"gpus = {_checks.shown(listed)}: {len(listed)} for a job of {job.num_tasks} tasks")
    return listed


def gpus_in_task_order(gpus: Iterable[int], topology: Topology) -> tuple[int, ...]:
    """Return `gpus` as a tuple if they are different GPUs of the topology and not a set; otherwise ValueError."""
    return different_gpus(_checks.ordered(gpus, "gpus", ValueError), topology, "gpus")


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
    return each_once(listed, what)


def each_once(gpus: tuple[int, ...], what: str) -> tuple[int, ...]:
    """Return `gpus` if no GPU is listed twice; otherwise ValueError."""
    if len(set(gpus)) != len(gpus):
        twice = next(a for a, b in pairwise(sorted(gpus)) if a == b)
        raise ValueError(f"{what} = {_checks.shown(gpus)} lists GPU {twice} twice")
    return gpus
