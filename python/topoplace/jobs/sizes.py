"""The same job with another number of tasks: what grows with it, and what stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

from topoplace.errors import JobGraphError
from topoplace.jobs.groups import Group, blocks
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.jobs.patterns import edges_of
from topoplace.jobs.requirements import FIELDS

_Tasks = tuple[int, ...]
_THOUSANDTHS: Final = 1000


def step_of(job: JobGraph) -> int:
    """Return the number of tasks by which a job grows or shrinks; JobGraphError says why it has no other size."""
    if job.degrees is not None:
        return job.degrees.replica * job.degrees.expert
    if not job.num_tasks:
        raise JobGraphError("a job without tasks has no other size")
    edges = () if _is_pattern(job) else job.edges
    own = {"roles": job.roles, "collectives": job.stated_collectives, "edges": edges}
    if what := next((name for name, stated in own.items() if stated), ""):
        raise JobGraphError(
            f"{job.name!r} has {what} of its own, which say nothing about another number of tasks"
        )
    return 1


def _is_pattern(job: JobGraph) -> bool:
    """Return True if the job has the edges of the pattern with its name."""
    if job.name not in PATTERNS:
        return False
    return vars(job).get("made_as") == job.name or job.edges == edges_of(job.name, (job.num_tasks,))


def sizes_of(job: JobGraph) -> tuple[int, ...]:
    """Return the numbers of tasks with which a job can run, see `JobGraph.sizes`; JobGraphError for a wrong range."""
    if job.elastic is None:
        return (job.num_tasks,)
    least, most = job.elastic
    step = step_of(job)
    for size in job.elastic:
        if size % step:
            raise JobGraphError(f"elastic = {job.elastic}: {size} is no multiple of {_in_words(job, step)}")
    if not least <= job.num_tasks <= most:
        raise JobGraphError(f"elastic = {job.elastic}: the job has {job.num_tasks} tasks")
    return tuple(range(most, least - 1, -step))


def _in_words(job: JobGraph, step: int) -> str:
    assert job.degrees is not None
    times = f", the tasks of a data rank times expert = {job.degrees.expert}" * (job.degrees.expert > 1)
    return f"{step}{times or ', the tasks of a data rank'}"


@lru_cache(maxsize=256)
def resized(job: JobGraph, num_tasks: int) -> JobGraph:
    """Return the job with another number of tasks, see `JobGraph.with_tasks`."""
    if num_tasks % (step := step_of(job)):
        raise JobGraphError(f"num_tasks = {num_tasks} is no multiple of {_in_words(job, step)}")
    if job.elastic is not None and not job.elastic[0] <= num_tasks <= job.elastic[1]:
        raise JobGraphError(f"num_tasks = {num_tasks} is outside of elastic = {job.elastic}")
    if job.degrees is not None:
        found = JobGraph(num_tasks, (), job.name, degrees=job.degrees.with_tasks(num_tasks))
    else:
        found = PATTERNS[job.name](num_tasks) if _is_pattern(job) else JobGraph(num_tasks, (), job.name)
    kept = {name: getattr(job, name) for name in FIELDS}
    return found.with_(**kept | amounts(job, num_tasks) | {"groups": tuple(_groups(job, found))})


def amounts(job: JobGraph, num_tasks: int) -> dict[str, Any]:
    """Return the fields that count for the whole job, in proportion to its number of tasks."""
    thousandths = round((job.cpus or 0.0) * _THOUSANDTHS) * num_tasks // job.num_tasks
    share = num_tasks / job.num_tasks
    return {
        "cpus": job.cpus and thousandths / _THOUSANDTHS,
        "memory_gb": job.memory_gb and job.memory_gb * share,
        "memory_bandwidth": job.memory_bandwidth and job.memory_bandwidth * share,
        "processes": max(1, job.processes * num_tasks // job.num_tasks) if job.processes > 1 else 1,
    }


def _groups(job: JobGraph, found: JobGraph) -> Iterator[Group]:
    """Yield the groups of a job, made again for that of another size."""
    by_level: dict[tuple[str | None, str | None], list[_Tasks]] = defaultdict(list)
    for group in job.groups:
        by_level[group.within, group.prefer].append(group.tasks)
    for (within, prefer), groups in by_level.items():
        for tasks in _counterparts(groups, job, found):
            yield Group(tasks, within, prefer)


def _counterparts(groups: list[_Tasks], job: JobGraph, found: JobGraph) -> Sequence[_Tasks]:
    """Return the groups of another size that are of the same dimension, of all tasks, or blocks of the same size."""
    for name, own in job.dimensions.items():
        if sorted(tuple(sorted(tasks)) for tasks in own) == groups:
            return found.dimensions.get(name, ())
    if groups == [tuple(range(job.num_tasks))]:
        return [tuple(range(found.num_tasks))]
    size = len(groups[0])
    if groups == blocks(job.num_tasks, size):
        return blocks(found.num_tasks, min(size, found.num_tasks))
    first = ", ".join(map(str, groups[0][:3]))
    raise JobGraphError(
        f"groups: those like tasks {first}... are neither of a dimension nor blocks of one size, so that they say "
        f"nothing about {found.num_tasks} tasks"
    )
