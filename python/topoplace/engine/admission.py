"""Admission: select the free GPUs that may serve a job, or give the reason why it cannot run now or ever."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.host_shares import needs_hosts, tasks_hosted
from topoplace.jobs.job_graph import JobGraph
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from topoplace.cluster.hosts import HostResources, Hosts
    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

GpuSet = frozenset[int]
MAX_SEARCHED_GPUS = 4096
"""Limit of the match kernel, whose target has a vertex for each GPU."""
Limits = NDArray[np.int64] | None
"""(m,) the most tasks of a job that each machine can host; None for no limit."""
_ANY_MEMORY = (math.inf,)


def candidate_gpu_sets(job: JobGraph, cluster: Cluster, most_memory_gb: float = math.inf) -> list[GpuSet]:
    """Return the sets of free GPUs from which a policy may choose the GPUs of `job`.

    There is one set with all free GPUs that meet the job's requirements; for `single_machine`, one set per machine.
    These sets may have fewer GPUs than the job has tasks. For `anti_affinity`, the set has only the lowest free GPU of
    each machine. This finds the best choice if all GPUs of a machine have equal links to other machines; with rails, or
    links of single GPUs to other machines, better or even the only possible choices may be missed. GPUs that can
    only be allocated in fixed partitions form one set per free partition of the job's size, or else one set of
    partitions of several machines, never together with GPUs outside partitions. If the free CPUs and memory of a
    machine do not suffice for the whole job, only as many of its lowest GPUs are in a set as tasks they suffice for.
    A job without tasks has no set.

    most_memory_gb: limit on the memory of each GPU, GB. ValueError if `job` or `cluster` is of another class.
    """
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(cluster, Cluster, "cluster", ValueError)
    return candidate_gpu_sets_among(
        job, cluster.topology, cluster.free_gpus(), tasks_per_machine(job, cluster.hosts), most_memory_gb
    )


def candidate_gpu_sets_among(
    job: JobGraph,
    topology: Topology,
    gpus: Sequence[int],
    limits: Limits = None,
    most_memory_gb: float = math.inf,
) -> list[GpuSet]:
    """Return the sets of GPUs from which a policy may choose if exactly `gpus`, in ascending order, are free.

    limits: the most tasks that each machine can host; None for no limit. See `candidate_gpu_sets`.
    """
    if not job.num_tasks:
        return []
    gpus = _suitable(job, topology, gpus, most_memory_gb)
    if job.anti_affinity and job.num_tasks > 1:
        alone = (gpu for gpu in _hosted(job, gpus, topology, limits) if topology.is_legal((gpu,)))
        return [frozenset(min(group) for group in _by_machine(alone, topology).values())]
    partitioned = frozenset(topology.partitioned_gpus)
    if not partitioned:
        return _whole_gpu_sets(job, topology, _hosted(job, gpus, topology, limits))
    whole = [gpu for gpu in gpus if gpu not in partitioned]
    return [
        *_whole_gpu_sets(job, topology, _hosted(job, whole, topology, limits)),
        *_legal_sets(job, topology, partitioned.intersection(gpus), limits),
    ]


def every_gpu_set_counts(job: JobGraph, topology: Topology) -> bool:
    """Return True if the sets of `candidate_gpu_sets` contain every legal choice, so that the best can be proven.

    They do not for `anti_affinity`, nor for partitions on several machines, which are joined only where none fits. GPUs
    left out for lack of CPUs or memory do not count.
    """
    joined = topology.num_machines > 1 and not job.single_machine and bool(topology.partitioned_gpus)
    return not (job.anti_affinity or joined)


def memory_limits(job: JobGraph, topology: Topology) -> Sequence[float]:
    """Return the sizes of GPU memory in the topology that suit the job, ascending, GB.

    The result is (infinity,), no limit, if the job does not state its memory or fewer than two sizes suit it. A job
    is placed on GPUs of the first size if it fits there, else on those of the first two, and so on.
    """
    if not job.gpu_memory_gb:
        return _ANY_MEMORY
    sizes = {topology.gpus[gpu].memory_gb or 0.0 for gpu in topology.select(suits_of(job))}
    return sorted(sizes) if len(sizes) > 1 else _ANY_MEMORY


def tasks_per_machine(job: JobGraph, hosts: Hosts, *, idle: bool = False) -> Limits:
    """Return an array (m,): for how many of the job's tasks the free CPUs and memory of each machine suffice.

    A drained machine has 0. Returns None if the job asks for neither or has no tasks, or if the hosts are unknown.
    idle: count all CPUs and memory as free, and no machine as drained.
    """
    if not (hosts.resources and job.num_tasks and needs_hosts(job)):
        return None
    limits = tasks_hosted(job, hosts.capacity if idle else hosts.free)
    if not idle:
        limits[list(hosts.drained)] = 0
    return limits


def suits_of(job: JobGraph, most_memory_gb: float = math.inf) -> Callable[[Gpu], bool]:
    """Return a function that is True for a GPU of a model and memory that suit `job`, within the limit on memory.

    most_memory_gb: the largest GPU memory for which the function is True, GB; an unknown memory counts as 0. A GPU
    of unknown memory fails if the job states its memory.
    """

    def suits(gpu: Gpu) -> bool:
        return suits_model(job, gpu.model, gpu.memory_gb) and (gpu.memory_gb or 0.0) <= most_memory_gb

    return suits


def suits_model(job: JobGraph, model: str | None, memory_gb: float | None) -> bool:
    """Return True if GPUs of this model and memory meet the requirements of `job`; None means an unknown property."""
    if job.gpu_model and model not in job.gpu_models:
        return False
    return not job.gpu_memory_gb or (memory_gb or 0.0) >= job.gpu_memory_gb


# ---- reasons -------------------------------------------------------------------------------------------------


def never(reason: str) -> Refusal:
    """Return a permanent refusal with this reason, for a job that cannot run even on the idle cluster."""
    return Refusal(f"never fits: {reason}", permanent=True)


def why_never(job: JobGraph, topology: Topology, hosts: Hosts | None = None) -> Refusal | None:
    """Return why `job` cannot run even if all GPUs are free; None if `topology` has enough suitable GPUs.

    hosts: the resources of the machines, if the machines of these GPUs must also have the CPUs and memory; None to
    ignore them. A job without tasks is always refused.
    """
    if not job.num_tasks:
        return never("it needs no GPU, and this policy places jobs on GPUs only")
    every_gpu = range(topology.num_gpus)
    most = _largest(candidate_gpu_sets_among(job, topology, every_gpu))
    if most < job.num_tasks:
        return never(f"{_needs(job)}, the topology has {most}")
    if hosts is None or (limits := tasks_per_machine(job, hosts, idle=True)) is None:
        return None
    most = _largest(candidate_gpu_sets_among(job, topology, every_gpu, limits))
    return never(f"{_needs(job, hosts=True)}, the cluster has {most}") if most < job.num_tasks else None


def why_no_machine(needs: Iterable[tuple[int, int]], machines: Sequence[HostResources]) -> Refusal | None:
    """Return why a process of a job fits on no machine; None if every process fits on some machine.

    needs: CPUs and MB of each process. machines: total CPUs and memory of each machine; if empty, they are unknown and
    the result is None.
    """
    cpus = max((machine.cpus for machine in machines), default=0)
    memory = int(max((machine.memory_gb for machine in machines), default=0.0) * 1000)
    for process in needs:
        if machines and not any(_holds(machine, process) for machine in machines):
            return never(
                f"a process needs {process[0]} CPUs and {process[1]} MB, "
                f"the largest machine has {cpus} CPUs and {memory} MB"
            )
    return None


def why_no_memory_bandwidth(
    job: JobGraph, available: float | None, max_tasks: int, suitable: Iterable[int]
) -> Refusal | None:
    """Return why idle machines cannot provide the host memory bandwidth that `job` needs; None if they can.

    available: GB/s of each machine. max_tasks: number of the job's tasks that this bandwidth suffices for. suitable:
    number of suitable GPUs on each machine. If these are too few for the job, it is refused as well.
    """
    room = sum(min(max_tasks, count) for count in suitable)
    if room >= job.num_tasks and (max_tasks >= job.num_tasks or not job.single_machine):
        return None
    return never(f"needs {job.memory_bandwidth:g} GB/s of memory bandwidth, a machine has {available:g}")


def enough_suit(job: JobGraph, cluster: Cluster) -> bool:
    """Return True if one of the job's `candidate_gpu_sets` has a GPU for each task; links are not checked."""
    return any(len(gpus) >= job.num_tasks for gpus in candidate_gpu_sets(job, cluster))


def why_not_now(
    job: JobGraph, cluster: Cluster, lack: str | None = None, *, gpus_local: bool = True
) -> Refusal:
    """Return why `job`, which could run on an idle cluster, cannot start now.

    lack: the reason to give if enough suitable GPUs are free; by default, that these GPUs lack links.
    gpus_local: True if the CPUs and memory must be on the machines of the GPUs.
    """
    hosted = _largest(candidate_gpu_sets(job, cluster)) if gpus_local else job.num_tasks
    most = _largest(candidate_gpu_sets_among(job, cluster.topology, cluster.free_gpus()))
    if min(most, hosted) < job.num_tasks:
        needs, found = _needs(job, hosts=most >= job.num_tasks), min(most, hosted)
        return Refusal(f"cannot start now: {needs}, {found} {'is' if found == 1 else 'are'} free")
    links = f"no {job.num_tasks} of the {most} free GPUs have links for every edge of the job"
    return Refusal(f"cannot start now: {lack or links}")


# ---- inside --------------------------------------------------------------------------------------------------


def _largest(sets: Iterable[GpuSet]) -> int:
    return max(map(len, sets), default=0)


def _needs(job: JobGraph, *, hosts: bool = False) -> str:
    models = " or ".join(job.gpu_models)
    wishes = [f" {models}" if models else "", " GPU" if job.num_tasks == 1 else " GPUs"]
    if job.gpu_memory_gb:
        wishes.append(f" of {job.gpu_memory_gb:g} GB or more")
    if job.single_machine:
        wishes.append(" on one machine")
    if job.anti_affinity:
        wishes.append(" on different machines")
    if hosts:
        beside = [f"{job.cpus} CPUs"] if job.cpus else []
        beside += [f"{job.memory_gb:g} GB of host memory"] if job.memory_gb else []
        wishes.append(f" with {' and '.join(beside)} beside them")
    return f"needs {job.num_tasks}{''.join(wishes)}"


def _holds(machine: HostResources, process: tuple[int, int]) -> bool:
    return machine.cpus >= process[0] and int(machine.memory_gb * 1000 + 1e-6) >= process[1]


def _suitable(job: JobGraph, topology: Topology, gpus: Sequence[int], most_memory_gb: float) -> Sequence[int]:
    if not (job.gpu_model or job.gpu_memory_gb):
        return gpus
    wanted = set(topology.select(suits_of(job, most_memory_gb)))
    return [gpu for gpu in gpus if gpu in wanted]


def _hosted(job: JobGraph, gpus: Sequence[int], topology: Topology, limits: Limits) -> Sequence[int]:
    """Return all `gpus` of each machine that can host the whole job, and of others the lowest, as many as the limit."""
    if limits is None:
        return gpus
    most = np.where(limits < job.num_tasks, limits, len(gpus)).tolist()
    groups = _by_machine(gpus, topology)
    return sorted(gpu for machine, group in groups.items() for gpu in group[: most[machine]])


def _whole_gpu_sets(job: JobGraph, topology: Topology, gpus: Sequence[int]) -> list[GpuSet]:
    if job.single_machine and topology.num_machines > 1:
        return [frozenset(group) for group in _by_machine(gpus, topology).values()]
    return [frozenset(gpus)]


def _by_machine(gpus: Iterable[int], topology: Topology) -> Mapping[int, list[int]]:
    groups: dict[int, list[int]] = {}
    machine_of = topology.machine_of
    for gpu in gpus:
        groups.setdefault(int(machine_of[gpu]), []).append(gpu)
    return groups


def _legal_sets(job: JobGraph, topology: Topology, gpus: GpuSet, limits: Limits) -> list[GpuSet]:
    """Return the partitions (fixed GPU sets) inside `gpus` that have exactly as many GPUs as `job` has tasks.

    If there are none and the job may use several machines, join the largest fitting partition of each machine, in
    order, or else any partitions of different machines that together have exactly the job's size. Partitions that their
    machine cannot host are left out.
    """
    free = _usable_partitions(job, topology, gpus, limits)
    exact = [part for part in free if len(part) == job.num_tasks]
    if job.single_machine:
        return [part for part in exact if len(_by_machine(part, topology)) == 1]
    if exact or topology.num_machines == 1 or not free:
        return exact
    joined = _joined(free, job.num_tasks, topology)
    return [joined] if joined and topology.is_legal(joined) else []


def _usable_partitions(job: JobGraph, topology: Topology, gpus: GpuSet, limits: Limits) -> list[GpuSet]:
    """Return the partitions inside `gpus` that are not too large for the job, and that their machines can host."""
    parts = map(frozenset, topology.partitions)
    free = [part for part in parts if len(part) <= job.num_tasks and part <= gpus]
    if limits is None:
        return free
    return [part for part in free if len(_hosted(job, sorted(part), topology, limits)) == len(part)]


def _filled(parts: Iterable[GpuSet], limit: int) -> GpuSet:
    """Return the union of the GPU sets `parts`, taken in order; skip each set that would make it exceed `limit`."""
    joined: GpuSet = frozenset()
    for part in parts:
        if len(joined) + len(part) <= limit:
            joined |= part
    return joined


def _joined(parts: Iterable[GpuSet], size: int, topology: Topology) -> GpuSet:
    """Return the union of at most one of `parts` of each machine with exactly `size` GPUs; the empty set if none has.

    The largest part of each machine, in order, is preferred.
    """
    by_size: dict[int, dict[int, GpuSet]] = {}
    for part in parts:
        by_size.setdefault(min(_by_machine(part, topology)), {}).setdefault(len(part), part)
    joined = _filled((sizes[max(sizes)] for sizes in by_size.values()), size)
    if len(joined) == size:
        return joined
    reached: dict[int, GpuSet] = {0: frozenset()}
    for sizes in by_size.values():
        for total, union in list(reached.items()):
            for count, part in sizes.items():
                if total + count <= size:
                    reached.setdefault(total + count, union | part)
        if size in reached:
            break
    return reached.get(size, frozenset())
