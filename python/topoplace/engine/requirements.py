"""Refusal of the requirements that a policy or a cluster cannot honour; all others are for `admission`.

Every policy honours `gpu_model`, `gpu_memory_gb`, `single_machine`, `anti_affinity` and `processes`, and `cpus` and
`memory_gb` on a cluster that knows its hosts. Each policy names in `honours` what else it honours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from topoplace.jobs.groups import GPU, MACHINE, SOCKET
from topoplace.jobs.requirements import REQUIREMENTS
from topoplace.placement import Refusal

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.jobs.job_graph import JobGraph

NOT_HONOURED: Final = "cannot be honoured"
"""The words in the reason of every refusal of a requirement."""
_LACK_OF_POLICY: Final = {
    "gpu_fraction": "gives whole GPUs only",
    "mig": "gives whole GPUs only",
    "drives": "gives no drives",
    "memory_bandwidth": "does not know the memory bandwidth of machines",
    "min_utility": "does not predict the utility of a placement",
    "within": "does not choose machines by the levels of the network",
    "prefer": "does not choose machines by the levels of the network",
    "spread": "does not choose machines by the levels of the network",
    "max_machines": "does not limit the number of machines",
    "same_gpus": "does not choose equal GPUs on machines",
    "groups": "does not keep groups of tasks together",
    "balanced": "does not divide jobs into equal shares",
}
"""The reason for refusing each requirement that only some policies honour; all policies honour the others."""
SPREADS_SHARES: Final = "spread over shared GPUs"
"""The entry in `honours` of a policy that honours `spread="gpu"`."""
_LEVELS: Final = frozenset(("within", "prefer", "spread"))
BY_LEVEL: Final = _LEVELS | {"max_machines"}
"""Requirements on the machines that share a job, which the engine honours for every policy that decides by machines."""
GROUPED: Final = frozenset(("groups", "balanced"))
"""Requirements on which tasks machines get, which the engine honours for every policy that decides by machines."""
_NOT_WITH_GROUPS: Final = ("spread", "max_machines", "same_gpus")
_NEED_HOSTS: Final = frozenset(("cpus", "memory_gb", "drives"))


def cannot_honour(
    job: JobGraph, cluster: Cluster, policy: str, honours: frozenset[str] = frozenset()
) -> Refusal | None:
    """Return the refusal of the first requirement that the policy or the cluster cannot honour; None if there is none.

    policy: name of the policy. honours: the requirements that it honours beyond those of every policy.
    """
    for name in job.requirements:
        if name in _LACK_OF_POLICY and name not in honours:
            return refused(job, name, f"{policy} {_LACK_OF_POLICY[name]}")
        if name in _NEED_HOSTS and not cluster.hosts.resources:
            return refused(job, name, "the cluster does not know the hosts of its machines: give it hosts=")
        if job.spread == GPU and name == "spread":
            if job.takes_parts and SPREADS_SHARES not in honours:
                return refused(job, name, f"{policy} does not choose GPUs by how much of them is left")
        elif name in _LEVELS and (lack := _no_level(getattr(job, name), cluster)):
            return refused(job, name, lack)
        if name in GROUPED and (refusal := _ungrouped(job, cluster)):
            return refusal
    return None


def always_honoured(cluster: Cluster, honours: frozenset[str]) -> frozenset[str]:
    """Return the names of the requirements that are honoured on this cluster whatever their value.

    honours: as for `cannot_honour`.
    """
    lacking = {name for name in _LACK_OF_POLICY if name not in honours}
    return (
        frozenset(REQUIREMENTS)
        - lacking
        - _LEVELS
        - GROUPED
        - (frozenset() if cluster.hosts.resources else _NEED_HOSTS)
    )


def require_honoured(
    job: JobGraph, cluster: Cluster, policy: str, honours: frozenset[str] = frozenset()
) -> None:
    """Raise ValueError naming the first requirement that the policy or the cluster cannot honour."""
    if job.requirements and (refusal := cannot_honour(job, cluster, policy, honours)):
        raise ValueError(refusal.reason)


def _ungrouped(job: JobGraph, cluster: Cluster) -> Refusal | None:
    """Return the refusal of groups or equal shares that this cluster, or the job's other requirements, rule out."""
    what = "groups" if job.groups else f"balanced = {job.balanced!r}"
    if job.balanced not in (None, MACHINE) and (lack := _no_level(str(job.balanced), cluster)):
        return refused(job, "balanced", lack)
    for level in dict.fromkeys(
        level for group in job.groups for level in (group.within, group.prefer) if level
    ):
        if lack := _no_group_level(level, cluster):
            return Refusal(f"groups: level = {level!r} {NOT_HONOURED}: {lack}", permanent=True)
    if cluster.topology.partitioned_gpus:
        return Refusal(
            f"{what} {NOT_HONOURED}: the GPUs are only allocated in fixed partitions", permanent=True
        )
    if others := [name for name in _NOT_WITH_GROUPS if name in job.requirements]:
        return Refusal(f"{what} and {others[0]} {NOT_HONOURED} together", permanent=True)
    from topoplace.engine.level_chain import LevelChains, named_levels

    if cluster.topology.derived(LevelChains).for_job(job) is None:
        named = ", ".join(map(repr, sorted(named_levels(job))))
        lack = f"of the levels {named} one is not inside the other, nor are the groups of the one in those of the other"
        return Refusal(f"{what} {NOT_HONOURED}: {lack}", permanent=True)
    return None


def _no_group_level(name: str, cluster: Cluster) -> str | None:
    """Return why the cluster has no level of this name that a group may have, else None."""
    if name == MACHINE:
        return None
    if name != SOCKET:
        return _no_level(name, cluster)
    known = all(gpu.socket is not None for one in cluster.topology.templates for gpu in one.gpus)
    return None if known else "the sockets of GPUs are unknown"


def refused(job: JobGraph, name: str, lack: str) -> Refusal:
    """Return the refusal of a requirement, with its name and value. lack: why it cannot be honoured."""
    value = getattr(job, name)
    shown = f"{value:g}" if isinstance(value, float) else repr(value)
    stated = name if name == "groups" else f"{name} = {shown}"
    return Refusal(f"{stated} {NOT_HONOURED}: {lack}", permanent=True)


def _no_level(name: str, cluster: Cluster) -> str | None:
    """Return why the cluster has no level of this name, else None."""
    fabric = cluster.topology.fabric
    names = [level.name for level in fabric.levels if not level.rail] if fabric else []
    if name in names:
        return None
    if fabric and any(level.name == name for level in fabric.levels):
        return "it is a level of rails, whose domains are not machines"
    return (
        f"the levels of the fabric are {', '.join(map(repr, names))}" if names else "the fabric has no levels"
    )
