"""Checks of one placement: GPUs, requirements, host shares and scores, each recomputed from the topology."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from topoplace.cluster.hosts import HostAllocation, cpus_of, millicpus, needs_hosts
from topoplace.engine.admission import able_gpus, suits_of
from topoplace.errors import AllocationError
from topoplace.jobs.groups import GPU, MACHINE, SOCKET
from topoplace.objectives.effective_bandwidth import EffectiveBandwidth, is_extrapolated
from topoplace.objectives.links import (
    aggregated_bandwidth,
    bottleneck_bandwidth,
    link_counts,
    preserved_bandwidth,
)
from topoplace.objectives.pair_links import communication_cost

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.placement import Placement
    from topoplace.topology.topology import Topology

MOST_MEMORY_BANDWIDTH: Final = 1e6
"""GB/s of host memory that no machine has; a policy that counts memory bandwidth places no job that needs it."""
_TOLERANCE: Final = 1e-6


def check_placement(
    placement: Placement, job: JobGraph, cluster: Cluster, model: EffectiveBandwidth | None = None
) -> None:
    """Check that `cluster` can allocate the placement, and that it meets the job's requirements and states true scores.

    These scores are recomputed if the placement states them: the four bandwidths, effective_bandwidth_extrapolated,
    communication_cost and remote_gpus.

    Args:
        model: The model of the score effective_bandwidth, by default MAPA's.

    Raises:
        AssertionError: Says what is wrong with the placement.
    """
    if fault := gpu_fault(placement, job, cluster):
        raise AssertionError(fault)
    for faults in (_requirement_faults, _host_faults):
        with cluster.lending(job):
            fault = next(faults(placement, job, cluster), None)
        if fault:
            raise AssertionError(fault)
    if fault := next(_score_faults(placement, job, cluster, model or EffectiveBandwidth()), None):
        raise AssertionError(fault)


def gpu_fault(placement: Placement, job: JobGraph, cluster: Cluster) -> str | None:
    """Return why no job can get the placement's GPUs (busy, out of service, no partition); None if one can."""
    with cluster.lending(job):
        return next(_gpu_faults(placement, job, cluster), None)


def _gpu_faults(placement: Placement, job: JobGraph, cluster: Cluster) -> Iterator[str]:
    gpus, topology = placement.gpus, cluster.topology
    if placement.topology != topology:
        yield f"the placement is on {placement.topology.name}"
    if len(gpus) != job.num_tasks:
        yield f"{len(gpus)} GPUs {gpus} for {job.num_tasks} tasks"
    out = set(gpus).intersection(cluster.out_of_service())
    if job.mig is not None or placement.resliced:
        with cluster.what_if():
            try:
                cluster.allocate("checked by topoplace.testing", placement, job)
            except AllocationError as error:
                yield str(error)
    elif busy := sorted(set(gpus) - out - set(cluster.gpus_with(job.gpu_fraction))):
        share = f" to a share of {job.gpu_fraction:g}" if job.gpu_fraction < 1 else ""
        yield f"GPUs {busy} are not free{share}"
    for what, its in (("drained", cluster.drained_gpus()), ("held", cluster.held_gpus())):
        if found := sorted(out.intersection(its)):
            yield f"GPUs {found} are {what}"
    if found := sorted(out.intersection(cluster.topology.unhealthy_gpus)):
        yield f"GPUs {found} are unhealthy"
    if gpus and not topology.is_legal(gpus):
        yield f"{gpus} is not a partition"


def _requirement_faults(placement: Placement, job: JobGraph, cluster: Cluster) -> Iterator[str]:
    topology, suits = cluster.topology, suits_of(job)
    for gpu in placement.gpus:
        described = topology.gpus[gpu]
        if not suits(described):
            wanted = f"gpu_model = {job.gpu_model!r} and gpu_memory_gb = {job.gpu_memory_gb}"
            yield f"GPU {gpu} is a {described.model} of {described.memory_gb} GB; the job has {wanted}"
    machines = [topology.gpus[gpu].machine for gpu in placement.gpus]
    if job.single_machine and len(set(machines)) > 1:
        yield f"single_machine, but on machines {sorted(set(machines))}"
    if job.anti_affinity and len(set(machines)) < len(machines):
        yield f"anti_affinity, but on {machines}"
    yield from gang_faults(placement.gpus, job, topology)
    yield from group_faults(placement.gpus, job, topology)
    yield from _balance_faults(placement.gpus, job, cluster)
    if job.min_utility and "utility" not in placement.scores:
        yield f"min_utility = {job.min_utility:g}, but the placement does not state the score 'utility'"
    if (job.memory_bandwidth or 0.0) >= MOST_MEMORY_BANDWIDTH:
        yield f"memory_bandwidth = {job.memory_bandwidth:g}, which no machine has"


def gang_faults(gpus: Sequence[int], job: JobGraph, topology: Topology) -> Iterator[str]:
    """Yield the job's unmet requirements on the machines of these GPUs; preferences do not count."""
    locals_of: dict[int, list[int]] = {}
    for gpu in gpus:
        locals_of.setdefault(int(topology.machine_of[gpu]), []).append(topology.local_index[gpu])
    machines = sorted(locals_of)
    unknown = list(_unknown_levels(job, topology))
    yield from unknown
    if unknown or len(machines) == 1:
        return
    inside = _domains_of(machines, job.within, topology)
    if None in inside or len(set(inside)) > 1:
        yield f"within = {job.within!r}, but on machines {machines} of {inside}"
    apart = _domains_of(machines, job.spread, topology)
    if None in apart or len(set(apart)) < len(apart):
        yield f"spread = {job.spread!r}, but on machines {machines} of {apart}"
    if len(machines) > (job.max_machines or len(machines)):
        yield f"max_machines = {job.max_machines}, but on machines {machines}"
    if job.same_gpus and len({tuple(sorted(its)) for its in locals_of.values()}) > 1:
        yield f"same_gpus, but GPUs {locals_of} by machine"


def group_faults(gpus: Sequence[int], job: JobGraph, topology: Topology) -> Iterator[str]:
    """Yield the required groups that are not in one domain of their level if task i runs on `gpus[i]`."""
    levels = {level.name: level for level in topology.levels if not level.rail}
    for group in job.groups:
        if group.within is None:
            continue
        used = [topology.gpus[gpus[task]] for task in group.tasks]
        machines = sorted({int(topology.machine_of[gpus[task]]) for task in group.tasks})
        where: set[object]
        if group.within == SOCKET:
            where = {(gpu.machine, gpu.socket) for gpu in used}
        elif group.within == MACHINE or len(machines) == 1:
            where = set(machines)
        elif group.within in levels:
            where = {levels[group.within].domains[machine] for machine in machines}
        else:
            yield f"a group within {group.within!r}, which is no level: the policy must refuse it"
            continue
        if len(where) > 1 or None in where:
            yield f"tasks {group.tasks} within one {group.within}, but on machines {machines}"


def _balance_faults(gpus: Sequence[int], job: JobGraph, cluster: Cluster) -> Iterator[str]:
    """Yield where a job that only asks to be balanced is uneven, or in more domains than it needs.

    Jobs with stated collectives may be so, as policies keep the groups of a dimension whole.
    """
    machine_of: list[int] = cluster.topology.machine_of.tolist()
    is_alone = len({machine_of[gpu] for gpu in gpus}) == 1
    if tuple(job.requirements) != ("balanced",) or job.stated_collectives or is_alone:
        return
    numbers = range(cluster.topology.num_machines)
    domains: Sequence[int | str | None] = numbers
    if job.balanced != MACHINE:
        domains = _domains_of(numbers, job.balanced, cluster.topology)
    if None in domains:
        return
    room = Counter([domains[machine_of[gpu]] for gpu in able_gpus(job, cluster)])
    used = Counter([domains[machine_of[gpu]] for gpu in gpus])
    where = ", ".join(f"{used[domain]} of {room[domain]} in {domain}" for domain in used)
    if sum(sorted(room.values())[::-1][: len(used) - 1]) >= len(gpus):
        yield f"balanced = {job.balanced!r}, but on more domains than needed: {where}"
    least = min((used[domain] for domain in used if room[domain] > used[domain]), default=len(gpus))
    if max(used.values()) - least > 1:
        yield f"balanced = {job.balanced!r}, but uneven: {where}"


def _unknown_levels(job: JobGraph, topology: Topology) -> Iterator[str]:
    levels = topology.levels
    known = {level.name for level in levels if not level.rail}
    for name in ("within", "prefer", "spread"):
        if (level := getattr(job, name)) and level not in known and (name, level) != ("spread", GPU):
            yield f"{name} = {level!r}, which is no level of the topology: the policy must refuse it"


def _domains_of(machines: Sequence[int], level: str | None, topology: Topology) -> list[str | None]:
    """Return the domain of each machine at the level of this name; [] if `level` is None."""
    levels = topology.levels
    return [one.domains[machine] for one in levels if one.name == level for machine in machines]


def _host_faults(placement: Placement, job: JobGraph, cluster: Cluster) -> Iterator[str]:
    shares, hosts = placement.hosts, cluster.hosts
    if (needs_hosts(job) or job.drives) and not hosts.resources:
        yield "the job needs host resources, and the cluster does not know its hosts: the policy must refuse it"
    if len(placement.drives) != job.drives:
        yield f"{len(placement.drives)} drives, the job needs {job.drives}"
    if shares or needs_hosts(job):
        yield from _share_faults(placement, job, hosts.pool_of().tolist())
    try:
        hosts.check(HostAllocation(shares, placement.drives, placement.remote))
    except AllocationError as error:
        yield f"does not fit: {error}"


def _share_faults(placement: Placement, job: JobGraph, pool_of: list[int]) -> Iterator[str]:
    """Yield what is wrong with the host shares. pool_of: the pool of each machine."""
    shares, machine_of = placement.hosts, placement.topology.machine_of
    if len(shares) not in (job.processes, job.num_tasks):
        yield f"{len(shares)} host shares for {job.processes} processes of {job.num_tasks} tasks"
        return
    cpus = cpus_of(sum(millicpus(share.cpus) for share in shares))
    memory_gb = sum(share.memory_gb for share in shares)
    if cpus != (job.cpus or 0):
        yield f"the host shares add up to {cpus} CPUs, the job needs {job.cpus}"
    if not math.isclose(memory_gb, job.memory_gb or 0.0, rel_tol=_TOLERANCE):
        yield f"the host shares add up to {memory_gb:g} GB of memory, the job needs {job.memory_gb}"
    for task, gpu in enumerate(placement.gpus):
        host, machine = placement.host_of(task), int(machine_of[gpu])
        far = host is not None and pool_of[host] != pool_of[machine]
        if far != (gpu in placement.remote):
            yield (
                f"GPU {gpu} of task {task} is on machine {machine}, its process on {host}, "
                f"but remote = {placement.remote}"
            )


def _score_faults(
    placement: Placement, job: JobGraph, cluster: Cluster, model: EffectiveBandwidth
) -> Iterator[str]:
    for name, stated in placement.scores.items():
        if math.isnan(stated):
            yield f"score {name} is not a number"
        if name not in RECOMPUTED:
            continue
        true = RECOMPUTED[name](placement, job, cluster, model)
        if not math.isclose(stated, true, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE):
            yield f"states {name} {stated:g} on {placement.gpus}, where it is {true:g}"


Score = Callable[["Placement", "JobGraph", "Cluster", EffectiveBandwidth], float]
"""Compute a score of a placement from the topology and the free GPUs."""
RECOMPUTED: Final[dict[str, Score]] = {
    "aggregated_bandwidth": lambda placement, job, cluster, model: aggregated_bandwidth(
        job, placement.gpus, cluster.topology
    ),
    "bottleneck_bandwidth": lambda placement, job, cluster, model: bottleneck_bandwidth(
        job, placement.gpus, cluster.topology
    ),
    "effective_bandwidth": lambda placement, job, cluster, model: model.of_counts(
        *link_counts(job, placement.gpus, cluster.topology)
    ),
    "preserved_bandwidth": lambda placement, job, cluster, model: preserved_bandwidth(
        placement.gpus,
        cluster.topology,
        able_gpus(job, cluster),
    ),
    "effective_bandwidth_extrapolated": lambda placement, job, cluster, model: float(
        is_extrapolated(placement.gpus, cluster.topology, model)
    ),
    "communication_cost": lambda placement, job, cluster, model: communication_cost(
        job, placement.gpus, cluster.topology
    ),
    "remote_gpus": lambda placement, job, cluster, model: float(len(placement.remote)),
}
"""The function that recomputes each known score."""
