"""The tasks of a job that must be, or should be, in one domain of a level: those of its groups, or all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from topoplace.jobs.groups import MACHINE

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph


class Together(NamedTuple):
    """Tasks that must be, or should be, in one domain of a level."""

    tasks: tuple[int, ...]
    level: str


def required_of(job: JobGraph) -> list[Together]:
    """Return the groups of two or more tasks that must be in one domain, the whole job first."""
    levels = job.within, MACHINE if job.single_machine else None
    return [
        *_whole(job, levels),
        *(
            Together(group.tasks, group.within)
            for group in job.groups
            if group.within and len(group.tasks) > 1
        ),
    ]


def preferred_of(job: JobGraph) -> list[Together]:
    """Return the groups of tasks that should be in one domain, the whole job last."""
    return [
        *(
            Together(group.tasks, group.prefer)
            for group in job.groups
            if group.prefer and len(group.tasks) > 1
        ),
        *_whole(job, [job.prefer]),
    ]


def _whole(job: JobGraph, levels: Iterable[str | None]) -> list[Together]:
    return [Together(tuple(range(job.num_tasks)), level) for level in levels if level]
