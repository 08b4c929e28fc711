"""`resize`: a running job with more or fewer tasks, beside those that stay where they are."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.jobs.job_graph import JobGraph
from topoplace.moving.leaving import leave, naming, running
from topoplace.moving.reassignment import plan_of
from topoplace.moving.repair_search import RepairSearch
from topoplace.moving.replicas import Roles, roles_of

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.moving.reassignment import Reassignment
    from topoplace.topology.topology import Topology


def resize(
    job_id: str, cluster: Cluster, job: JobGraph, *, further: bool = True, timeout: float = 10.0
) -> Reassignment | None:
    """Return the plan that moves the fewest tasks so that a running job goes on as `job`, with more or fewer tasks.

    A task of `job` stays on the GPU of the former task with its coordinates (tensor, context, pipeline and data), or
    with its number if the jobs have no such dimensions or other ones. A job that shrinks gives back GPUs out of service
    first, then whole domains where it can: those that are idle then, outermost levels first. The tasks that go on keep
    their order. The cluster is not changed.

    Args:
        job: The job afterwards, with all its requirements; see `JobGraph.with_tasks`.
        further: False compares no GPUs for new tasks one by one: the job may communicate longer, the plan is found
            sooner, in hundredths of a second.
        timeout: Seconds after which the best plan found so far is returned.

    Returns:
        The plan; None if there is no room.

    Raises:
        ValueError: Names a wrong argument, or a requirement that repairs do not honour.
        AllocationError: No job of this id runs.
        SearchTimeoutError: `timeout` has passed before any plan was found.
    """
    end = time.monotonic() + _checks.positive(timeout, "timeout", ValueError)
    _checks.flag(further, "further", ValueError)
    before, gpus, shares = running(job_id, cluster)
    _checks.instance(job, JobGraph, "job", ValueError)
    if not job.num_tasks:
        raise ValueError("job has no tasks: release the job instead")
    if shares.are_given:
        raise ValueError(
            f"job {job_id!r}: a host divided its CPUs and memory, so only the host can resize it"
        )
    with cluster.what_if():
        leave(job_id, cluster, gpus)
        old = _former(before, gpus, job, cluster)
        with naming("job"):
            search = RepairSearch(job, old, cluster, end, one_by_one=further)
        found = search.whole()
        if found is None:
            return None
    return plan_of(job_id, gpus, job, old, found.gpus, found.seconds, shares, cluster.topology)


def _former(before: JobGraph, gpus: Sequence[int], job: JobGraph, cluster: Cluster) -> list[int]:
    """Return the former GPU of each task of `job`; -1 for a new task."""
    was, now = roles_of(before), roles_of(job)
    if was.tasks.keys() != now.tasks.keys():
        was, now = Roles({(): [*range(len(gpus))]}), Roles({(): [*range(job.num_tasks)]})
    staying = _staying([[gpus[task] for task in replica] for replica in was.replicas], now, cluster)
    old = [-1] * job.num_tasks
    for tasks, replica in zip(now.replicas, staying, strict=False):
        for task, gpu in zip(tasks, replica, strict=True):
            old[task] = gpu
    return old


def _staying(replicas: list[list[int]], now: Roles, cluster: Cluster) -> list[list[int]]:
    """Return the replicas, given by their GPUs, that go on."""
    surplus = len(replicas) - sum(1 for _ in now.replicas)
    leaving = _given_back(replicas, surplus, cluster) if surplus > 0 else ()
    return [replica for i, replica in enumerate(replicas) if i not in leaving]


def _given_back(replicas: Sequence[Sequence[int]], count: int, cluster: Cluster) -> set[int]:
    """Return which replicas, given by their GPUs, a job gives back: whole domains as far as possible.

    Those with the most GPUs out of service go first. On each level, outermost first, the largest domain that becomes
    idle follows. What is left over comes from the machines on which the job has the fewest tasks.
    """
    closed = set(cluster.out_of_service())
    lost = [len(closed.intersection(replica)) for replica in replicas]
    broken = sorted((i for i in range(len(lost)) if lost[i]), key=lambda i: -lost[i])
    leaving = set(broken[:count])
    for domain_of in _domains(cluster.topology):
        for inside in _idle_then(replicas, domain_of, cluster):
            if len(inside - leaving) <= count - len(leaving):
                leaving |= inside
    machine_of = cluster.topology.machine_of.tolist()
    while len(leaving) < count:
        staying = [i for i in range(len(replicas)) if i not in leaving]
        tasks = Counter(machine_of[gpu] for i in staying for gpu in replicas[i])
        leaving.add(min(reversed(staying), key=lambda i: min(tasks[machine_of[gpu]] for gpu in replicas[i])))
    return leaving


def _idle_then(
    replicas: Sequence[Sequence[int]], domain_of: Sequence[int], cluster: Cluster
) -> list[set[int]]:
    """Return the replicas in each domain that no other job uses, the domains with the most tasks first."""
    used = {domain_of[gpu] for held in cluster.allocations.values() for gpu in held}
    inside: dict[int, set[int]] = defaultdict(set)
    tasks: Counter[int] = Counter()
    for i, replica in enumerate(replicas):
        for domain in map(domain_of.__getitem__, replica):
            inside[domain].add(i)
            tasks[domain] += 1
    order = sorted(inside.keys() - used, key=lambda domain: (-tasks[domain], domain))
    return [inside[domain] for domain in order]


def _domains(topology: Topology) -> Iterable[Sequence[int]]:
    """Yield the domain of each GPU, level by level from the outermost one, and last its machine."""
    machine_of: list[int] = topology.machine_of.tolist()
    for level in reversed(topology.levels):
        number: dict[str | int, int] = {}
        of_machine = [
            number.setdefault(i if name is None else name, len(number))
            for i, name in enumerate(level.domains)
        ]
        yield [of_machine[machine] for machine in machine_of]
    yield machine_of
