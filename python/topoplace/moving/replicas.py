"""The replicas of a job: tasks that together do what all the others do with other data."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final, NamedTuple

from topoplace.errors import JobGraphError
from topoplace.jobs.job_graph import JobGraph
from topoplace.jobs.requirements import FIELDS
from topoplace.jobs.sizes import amounts

_OF_ROLES: Final = ("tensor", "context", "pipeline")
"""The dimensions in which tasks differ in what they do; those of equal coordinates do the same with other data."""


class Roles(NamedTuple):
    """The tasks of a job by what they do."""

    tasks: dict[tuple[int, ...], list[int]]
    """The tasks of each role, those of the first replica first."""

    @property
    def replicas(self) -> Iterator[tuple[int, ...]]:
        """Yield the tasks of each replica, one of each role."""
        return zip(*self.tasks.values(), strict=False)


def roles_of(job: JobGraph) -> Roles:
    """Return the tasks by their coordinates along the dimensions of roles; without these, each is a replica."""
    place = {name: dict[int, int]() for name in (*_OF_ROLES, "data")}
    for name, found in place.items():
        for group in job.dimensions.get(name, ()):
            found.update({task: i for i, task in enumerate(group)})
    roles: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for task in sorted(range(job.num_tasks), key=lambda task: place["data"].get(task, 0)):
        roles[tuple(place[name].get(task, 0) for name in _OF_ROLES)].append(task)
    return Roles(dict(sorted(roles.items())))


def without(job: JobGraph, removed: Collection[int]) -> JobGraph:
    """Return the job without some tasks, with as much of everything for each of the others, which keep their order.

    A job of `JobGraph.parallel` that loses as many tasks as replicas have loses replicas, which are all alike.
    """
    kept = [task for task in range(job.num_tasks) if task not in removed]
    if job.degrees is not None and len(kept) % job.degrees.replica == 0:
        with suppress(JobGraphError):  # its groups may be uneven
            return job.with_tasks(len(kept))
    number = {task: i for i, task in enumerate(kept)}

    def left(tasks: Sequence[int]) -> tuple[int, ...]:
        return tuple(number[task] for task in tasks if task in number)

    collectives = [replace(one, tasks=left(one.tasks)) for one in job.collectives if len(left(one.tasks)) > 1]
    groups = (replace(one, tasks=left(one.tasks)) for one in job.groups if left(one.tasks))
    changed = {"groups": tuple(groups), "elastic": None, **amounts(job, len(kept))}
    found = JobGraph.from_collectives(len(kept), collectives)
    return found.with_(**{name: getattr(job, name) for name in FIELDS} | changed)
