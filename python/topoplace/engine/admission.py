"""Admission: select the free GPUs that may serve a job, or give the reason why it cannot run now or ever."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import cpus_of, millicpus, needs_hosts, tasks_hosted
from topoplace.engine.gpu_sets import by_machine, largest_union, one_per_machine, unions
from topoplace.jobs.job_graph import JobGraph
from topoplace.mig import MigProfile, memory_gb_of, present, profiles_of_gpu, start_for
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from topoplace.cluster.hosts import HostResources, Hosts
    from topoplace.topology.devices import Gpu
    from topoplace.topology.topology import Topology

GpuSet = frozenset[int]
_MAX_UNIONS = 256
MAX_SEARCHED_GPUS = 4096
"""Limit of the match kernel, whose target has a vertex for each GPU."""
Limits = NDArray[np.int64] | None
"""(m,) the largest number of a job's tasks that each machine can host; None for no limit."""
_ANY_MEMORY = (math.inf,)


def candidate_gpu_sets(job: JobGraph, cluster: Cluster, most_memory_gb: float = math.inf) -> list[GpuSet]:
    """Return the sets of free GPUs from which a policy may choose the GPUs of `job`; all of them come from one set.

    There is one set with all free GPUs that meet the job's requirements; for `single_machine`, one set per machine.
    These sets may have fewer GPUs than the job has tasks. For `anti_affinity`, each set has one GPU per machine, see
    `one_per_machine`. GPUs that can only be allocated in fixed partitions are only in sets that are one free partition
    of the job's size; see `joined_gpu_sets`. If the free CPUs and memory of a machine suffice only for some tasks, the
    set has that number of the machine's lowest GPUs. A job without tasks has no set.

    most_memory_gb: limit on the memory of each GPU, GB.
    """
    return candidate_gpu_sets_among(
        job, cluster.topology, able_gpus(job, cluster), tasks_per_machine(job, cluster.hosts), most_memory_gb
    )


def candidate_gpu_sets_among(
    job: JobGraph,
    topology: Topology,
    gpus: Sequence[int],
    limits: Limits = None,
    most_memory_gb: float = math.inf,
) -> list[GpuSet]:
    """Return the sets of GPUs from which a policy may choose if exactly `gpus`, in ascending order, are free.

    limits: the largest number of tasks that each machine can host; None for no limit. See `candidate_gpu_sets`.
    """
    if not job.num_tasks:
        return []
    gpus = _suitable(job, topology, gpus, most_memory_gb)
    if _is_apart(job):
        return [frozenset(found) for found in one_per_machine(_alone(topology, gpus, limits), topology)]
    whole, parts = _divided(job, topology, gpus, limits)
    exact = [part for part in parts if len(part) == job.num_tasks]
    if job.single_machine:
        exact = [part for part in exact if len(by_machine(part, topology)) == 1]
    return [*_whole_gpu_sets(job, topology, whole), *exact]


def able_gpus(job: JobGraph, cluster: Cluster, *, may_reslice: bool = False) -> Sequence[int]:
    """Return the GPUs that can serve the job now, ascending: as a whole, with its share, or with a slice of its
    profile.

    may_reslice: True if idle MIG slices may be given up, and new ones cut. GPU models and memory are not checked.
    """
    if job.mig is None and not may_reslice:
        return cluster.gpus_with(job.gpu_fraction) if job.takes_parts else cluster.free_gpus()
    sliced = set(cluster.sliced_gpus).difference(cluster.out_of_service())
    if job.mig is None:
        idle = (gpu for gpu in sliced if not cluster.shares_of(gpu))
        return sorted({*cluster.gpus_with(job.gpu_fraction), *idle})
    native, gpus = cluster.native, cluster.topology.gpus
    places = sliced.union(cluster.free_gpus()) if may_reslice else sliced
    return [
        gpu
        for gpu in sorted(places)
        if _has_slice(job.mig, profiles_of_gpu(gpus[gpu]), native.slices(gpu), may_reslice)
    ]


def _has_slice(
    mig: str,
    profiles: Mapping[str, MigProfile],
    slices: Sequence[tuple[int, int, str | None]],
    may_reslice: bool,
) -> bool:
    profile = profiles.get(mig)
    if profile is None:
        return False
    return start_for(profile, profiles, present(slices), may_reslice=may_reslice) is not None


class JoinedGpus(NamedTuple):
    """Partitions of machines, and GPUs outside partitions, for a job that takes all of `required`."""

    gpus: GpuSet
    """All GPUs of the union; at least one per task."""
    required: GpuSet
    """The GPUs of the partitions, at most one of each machine."""


def joined_gpu_sets(
    job: JobGraph, cluster: Cluster, most_memory_gb: float = math.inf
) -> Iterator[JoinedGpus]:
    """Yield up to 256 unions of free partitions of several machines, with the free GPUs outside partitions.

    `candidate_gpu_sets` leaves these choices out; a policy tries them if it finds no placement without them.
    The job must use all GPUs of the partitions. Larger partitions and earlier machines come first. There is no union
    for `single_machine` and `anti_affinity`, nor on a topology that `Topology.cluster` did not make.
    """
    limits = tasks_per_machine(job, cluster.hosts)
    return joined_gpu_sets_among(job, cluster.topology, able_gpus(job, cluster), limits, most_memory_gb)


def joined_gpu_sets_among(
    job: JobGraph,
    topology: Topology,
    gpus: Sequence[int],
    limits: Limits = None,
    most_memory_gb: float = math.inf,
) -> Iterator[JoinedGpus]:
    """Yield the unions of `joined_gpu_sets` if exactly `gpus`, in ascending order, are free.

    limits: the largest number of tasks that each machine can host; None for no limit.
    """
    if not _may_join(job, topology):
        return
    size = job.num_tasks
    whole, parts = _divided(job, topology, _suitable(job, topology, gpus, most_memory_gb), limits)
    found = unions(_by_size(parts, topology), max(1, size - len(whole)), size)
    for union in islice(found, _MAX_UNIONS):
        required: GpuSet = frozenset[int]().union(*union)
        if len(required) < size:
            yield JoinedGpus(required.union(whole), required)
        elif len(union) > 1:
            yield JoinedGpus(required, required)


def every_gpu_set_counts(job: JobGraph, topology: Topology) -> bool:
    """Return True if the sets of `candidate_gpu_sets` contain every legal choice, so that the best can be proven.

    The sets lack choices for `anti_affinity`, and for partitions on several machines: these are joined only if no
    single one fits. GPUs left out for lack of CPUs or memory do not count.
    """
    joined = topology.num_machines > 1 and not job.single_machine and bool(topology.partitioned_gpus)
    return not (job.anti_affinity or joined)


def memory_limits(job: JobGraph, topology: Topology) -> Sequence[float]:
    """Return the sizes of GPU memory in the topology that suit the job, ascending, GB.

    The result is (infinity,), no limit, if the job does not state its memory or fewer than two sizes suit it. A job is
    placed on GPUs of the first size if it fits there, else on GPUs of the first two sizes, and so on.
    """
    if not job.gpu_memory_gb:
        return _ANY_MEMORY
    suits, some = suits_of(job), (gpu for template in topology.templates for gpu in template.gpus)
    sizes = {gpu.memory_gb or 0.0 for gpu in some if suits(gpu)}
    return sorted(sizes) if len(sizes) > 1 else _ANY_MEMORY


def tasks_per_machine(job: JobGraph, hosts: Hosts, *, idle: bool = False) -> Limits:
    """Return (m,) the number of the job's tasks for which the free CPUs and memory of each machine suffice.

    A machine out of service has 0. Return None if the job needs neither or has no tasks, or if the hosts are unknown.
    idle: count all CPUs and memory as free, all machines as in service, and the tasks that need least; the numbers are
    then never too small.
    """
    if not (hosts.resources and job.num_tasks and needs_hosts(job)):
        return None
    limits = tasks_hosted(job, hosts.capacity if idle else hosts.free, at_best=idle)
    if not idle:
        limits[list(hosts.out_of_service)] = 0
    return limits


def has_exact_room(job: JobGraph, cluster: Cluster) -> bool:
    """Return True if no tasks of the job would fit where `tasks_per_machine` says that they do not."""
    if not (cluster.hosts.resources and job.num_tasks and needs_hosts(job)):
        return True
    gpus = np.bincount(cluster.topology.machine_of)
    rooms = (tasks_hosted(job, cluster.hosts.free, at_best=at_best) for at_best in (True, False))
    most, sure = (np.minimum(room, gpus) for room in rooms)
    return bool((most == sure).all())


def suits_of(job: JobGraph, most_memory_gb: float = math.inf) -> Callable[[Gpu], bool]:
    """Return a function that is True for a GPU whose model, memory and MIG profiles suit `job`, within the limit.

    most_memory_gb: the largest GPU memory for which the function is True, GB; an unknown memory counts as 0. A GPU of
    unknown memory fails if the job states its memory.
    """

    def suits(gpu: Gpu) -> bool:
        memory_gb = gpu.memory_gb
        if job.mig is not None:
            if job.mig not in profiles_of_gpu(gpu):
                return False
            memory_gb = memory_gb_of(job.mig)
        return suits_model(job, gpu.model, memory_gb) and (gpu.memory_gb or 0.0) <= most_memory_gb

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
    most = _most(job, topology, every_gpu)
    if most < job.num_tasks:
        return never(f"{needs_of(job)}, the topology has {most}")
    if hosts is None or (limits := tasks_per_machine(job, hosts, idle=True)) is None:
        return None
    most = _most(job, topology, every_gpu, limits)
    if most < job.num_tasks:
        return never(f"{needs_of(job, hosts=True)}, the cluster has {most}")
    cpus = cpus_of(int(hosts.capacity[limits > 0, 0].sum()))
    if cpus < (job.cpus or 0):
        return never(f"{needs_of(job, hosts=True)}, the machines that serve it have {cpus} CPUs")
    return None


def why_no_machine(needs: Iterable[tuple[int, int]], machines: Sequence[HostResources]) -> Refusal | None:
    """Return why a process of a job fits on no machine; None if every process fits on some machine.

    needs: thousandths of CPUs and MB of each process. machines: total CPUs and memory of each machine; if empty, they
    are unknown and the result is None.
    """
    cpus = max((machine.cpus for machine in machines), default=0)
    memory = int(max((machine.memory_gb for machine in machines), default=0.0) * 1000)
    for process in needs:
        if machines and not any(_holds(machine, process) for machine in machines):
            return never(
                f"a process needs {cpus_of(process[0])} CPUs and {process[1]} MB, "
                f"the largest machine has {cpus} CPUs and {memory} MB"
            )
    return None


def why_no_memory_bandwidth(
    job: JobGraph, available: float | None, max_tasks: int, suitable: Iterable[int]
) -> Refusal | None:
    """Return why idle machines cannot provide the host memory bandwidth that `job` needs; None if they can.

    available: GB/s of each machine. max_tasks: number of the job's tasks for which this bandwidth suffices. suitable:
    number of suitable GPUs on each machine. Too few suitable GPUs are also a reason.
    """
    room = sum(min(max_tasks, count) for count in suitable)
    if room >= job.num_tasks and (max_tasks >= job.num_tasks or not job.single_machine):
        return None
    return never(f"needs {job.memory_bandwidth:g} GB/s of memory bandwidth, a machine has {available:g}")


def enough_suit(job: JobGraph, cluster: Cluster) -> bool:
    """Return True if one set of free GPUs is large enough for the job; links are not checked."""
    return _most_free(job, cluster) >= job.num_tasks


def why_not_now(
    job: JobGraph,
    cluster: Cluster,
    lack: str | None = None,
    *,
    gpus_local: bool = True,
    may_reslice: bool = False,
) -> Refusal:
    """Return why `job`, which could run on an idle cluster, cannot start now.

    lack: the reason to give if enough suitable GPUs are free. The default reason is missing links between them or, for
    a job without edges, that the policy chooses none. gpus_local: True if the CPUs and memory must be on the machines
    of the GPUs. may_reslice: True if GPUs may be resliced; if not, the reason states how many more GPUs would serve the
    job after reslicing.
    """
    topology, able = cluster.topology, able_gpus(job, cluster, may_reslice=may_reslice)
    most = _most(job, topology, able)
    hosted = (
        _most(job, topology, able, tasks_per_machine(job, cluster.hosts)) if gpus_local else job.num_tasks
    )
    if min(most, hosted) < job.num_tasks:
        needs, found = needs_of(job, hosts=most >= job.num_tasks), min(most, hosted)
        others = "" if may_reslice else _if_resliced(job, cluster, most)
        free = f"{found} {'is' if found == 1 else 'are'} free"
        return Refusal(f"cannot start now: {needs}, {free}{others}{out_of_service(cluster)}")
    if job.edges:
        unsuited = f"no {job.num_tasks} of the {most} free GPUs have links for every edge of the job"
    else:
        unsuited = f"the policy chooses none of the {most} free GPUs"
    return Refusal(f"cannot start now: {lack or unsuited}")


def out_of_service(cluster: Cluster) -> str:
    """Return the numbers of machines, and of GPUs of other machines, that are out of service, by reason; "" for none.

    A machine or GPU with several reasons counts once: as drained, else as held, else as unhealthy.
    """
    out = cluster.out_of_service()
    if not out:
        return ""
    drained, held = set(cluster.drained_gpus()), cluster.held_gpus()
    topology, names = cluster.topology, cluster.topology.machine_names

    def reason(gpu: int) -> str:
        if gpu in drained:
            return "drained"
        return f"held ({held[gpu]})" if gpu in held else "unhealthy"

    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for machine, gpus in by_machine(out, topology).items():
        reasons = Counter(map(reason, gpus))
        whole = len(reasons) == 1 and len(gpus) == len(topology.gpus_of[names[machine]])
        for what, number in reasons.items():
            counts[what]["machine" if whole else "GPU"] += 1 if whole else number
    found = [
        f"{number} {unit}{'s are' if number > 1 else ' is'} {what}"
        for what, units in sorted(counts.items())
        for unit, number in sorted(units.items(), reverse=True)
    ]
    return "; " + ", ".join(found)


def _if_resliced(job: JobGraph, cluster: Cluster, most: int) -> str:
    """Return how many GPUs more than `most` the job may get if GPUs are resliced, for messages; "" if no more."""
    if not (job.mig or cluster.sliced_gpus):
        return ""
    more = _most(job, cluster.topology, able_gpus(job, cluster, may_reslice=True)) - most
    if more <= 0:
        return ""
    are = "is" if more == 1 else "are"
    return f"; {more} more {are} free if resliced, as a policy with_reslicing() may, or --reslice"


# ---- inside --------------------------------------------------------------------------------------------------


def _most_free(job: JobGraph, cluster: Cluster) -> int:
    return _most(job, cluster.topology, able_gpus(job, cluster), tasks_per_machine(job, cluster.hosts))


def _most(job: JobGraph, topology: Topology, gpus: Sequence[int], limits: Limits = None) -> int:
    """Return how many of `gpus` the job may get together; if it needs fewer, any number that is not too small."""
    most = max(map(len, candidate_gpu_sets_among(job, topology, gpus, limits)), default=0)
    if most >= job.num_tasks or not _may_join(job, topology):
        return most
    whole, parts = _divided(job, topology, _suitable(job, topology, gpus, math.inf), limits)
    return min(job.num_tasks, len(whole) + largest_union(_by_size(parts, topology), job.num_tasks))


def needs_of(job: JobGraph, *, hosts: bool = False) -> str:
    """Return the needs of a job, for messages; with `hosts`, also its CPUs and host memory if it needs any."""
    models = " or ".join(job.gpu_models)
    wishes = [f" {models}" if models else "", " GPU" if job.num_tasks == 1 else " GPUs"]
    share = f"{job.gpu_fraction:g} of " if job.gpu_fraction < 1 else ""
    share = f"a MIG slice {job.mig} of " if job.mig else share
    if job.gpu_memory_gb:
        wishes.append(f" of {job.gpu_memory_gb:g} GB or more")
    if job.single_machine:
        wishes.append(" on one machine")
    if job.anti_affinity:
        wishes.append(" on different machines")
    amounts = [f"{job.cpus} CPUs"] if job.cpus else []
    amounts += [f"{job.memory_gb:g} GB of host memory"] if job.memory_gb else []
    if not job.num_tasks:
        return f"needs {' and '.join(amounts)}"
    if hosts:
        wishes.append(f" with {' and '.join(amounts)} beside them" if amounts else "")
    return f"needs {share}{job.num_tasks}{''.join(wishes)}"


def _holds(machine: HostResources, process: tuple[int, int]) -> bool:
    return millicpus(machine.cpus) >= process[0] and int(machine.memory_gb * 1000 + 1e-6) >= process[1]


def _suitable(job: JobGraph, topology: Topology, gpus: Sequence[int], most_memory_gb: float) -> Sequence[int]:
    if not (job.gpu_model or job.gpu_memory_gb or job.mig):
        return gpus
    wanted = set(topology.select(suits_of(job, most_memory_gb)))
    return [gpu for gpu in gpus if gpu in wanted]


def _hosted(job: JobGraph, gpus: Sequence[int], topology: Topology, limits: Limits) -> Sequence[int]:
    """Return all `gpus` of each machine that can host the whole job, and of others the lowest, as many as the limit."""
    if limits is None:
        return gpus
    most = np.where(limits < job.num_tasks, limits, len(gpus)).tolist()
    groups = by_machine(gpus, topology)
    return sorted(gpu for machine, group in groups.items() for gpu in group[: most[machine]])


def _whole_gpu_sets(job: JobGraph, topology: Topology, gpus: Sequence[int]) -> list[GpuSet]:
    if job.single_machine and topology.num_machines > 1:
        return [frozenset(group) for group in by_machine(gpus, topology).values()]
    return [frozenset(gpus)]


def _is_apart(job: JobGraph) -> bool:
    return job.anti_affinity and job.num_tasks > 1


def _alone(topology: Topology, gpus: Sequence[int], limits: Limits) -> list[int]:
    """Return those of `gpus` that a job may get without another GPU of the machine, where it can host a task."""
    hosting = None if limits is None else frozenset(np.flatnonzero(limits).tolist())
    machine_of = topology.machine_of
    return [
        gpu
        for gpu in gpus
        if (hosting is None or int(machine_of[gpu]) in hosting) and topology.is_legal((gpu,))
    ]


def _may_join(job: JobGraph, topology: Topology) -> bool:
    """Return True if the job may get partitions of several machines together, or with GPUs outside partitions."""
    one = job.single_machine or _is_apart(job) or topology.fabric is None
    return not one and bool(topology.partitioned_gpus)


def _divided(
    job: JobGraph, topology: Topology, gpus: Sequence[int], limits: Limits
) -> tuple[Sequence[int], list[GpuSet]]:
    """Return the GPUs outside partitions, and the partitions, that are not too large and that machines can host."""
    partitioned = frozenset(topology.partitioned_gpus)
    if not partitioned:
        return _hosted(job, gpus, topology, limits), []
    whole = _hosted(job, [gpu for gpu in gpus if gpu not in partitioned], topology, limits)
    usable = partitioned.intersection(gpus)
    parts = map(frozenset, topology.partitions)
    free = [part for part in parts if len(part) <= job.num_tasks and part <= usable]
    if limits is not None:
        free = [part for part in free if len(_hosted(job, sorted(part), topology, limits)) == len(part)]
    return whole, free


def _by_size(parts: Iterable[GpuSet], topology: Topology) -> list[list[tuple[int, GpuSet]]]:
    """Return the partitions of each machine with their sizes, the largest first."""
    groups: dict[int, list[tuple[int, GpuSet]]] = {}
    for part in parts:
        groups.setdefault(int(topology.machine_of[min(part)]), []).append((len(part), part))
    return [sorted(group, key=lambda sized: -sized[0]) for _, group in sorted(groups.items())]
