"""Jobs of one process whose GPUs are on its machine: decided by conditions of machines instead of by flows.

The flow of such a job ships one process, which goes to the cheapest machine. If a machine has all GPUs of the process
free, these cost less than remote ones. If network load is ignored, the optimum is therefore known without solving the
three phases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from topoplace.engine.machines.machine_class import members
from topoplace.engine.machines.machine_conditions import ConditionTable, RankedMachines, Sight

if TYPE_CHECKING:
    from topoplace.cluster.cluster import Cluster
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.policies.drmaestro.bundles import JobBundles


class LocalGpus(NamedTuple):
    """The GPUs that a machine in one condition has for the only process of a job."""

    gpus: tuple[int, ...]
    """The GPU of each task, by its local number."""
    memory_gb: float
    """The largest memory of these GPUs, GB; 0 if the job does not require GPU memory."""
    suffice: bool
    """True if there is a GPU for each task."""
    are_sure: bool
    """False if GPUs of other models would cost the same, so that the flow decides."""
    machine_class: MachineClass


class BesideProcess:
    """The machines of a cluster, ranked for the only process of a job and the GPUs next to it."""

    def __init__(self, view: ClusterView, request: JobRequest, needs: JobBundles) -> None:
        """Store the arguments. needs: the bundles of the request, for which `decides` is True."""
        self._request = request
        self._needs = needs
        table = ConditionTable(view.conditions(Sight()), self._local_gpus)
        self._of = table.of
        self._ranked = RankedMachines(table, _key)

    @staticmethod
    def decides(needs: JobBundles, cluster: Cluster) -> bool:
        """Return True for jobs of one process that needs no drive, where GPUs on other machines never cost the same."""
        is_single = len(needs.bundles) == 1 and not needs.job.drives and not cluster.topology.partitions
        return is_single and (needs.own_machine_only or not any(r.pool for r in cluster.hosts.resources))

    def best(self) -> tuple[int, LocalGpus] | None:
        """Return the machine to which the flow sends the process, and its GPUs there; None if all have too few."""
        (process,) = self._needs.bundles
        machine, condition = self._ranked.now().best(*process.needs)
        return (machine, self._of(condition)) if machine >= 0 else None

    def _local_gpus(self, machine_class: MachineClass, state: MachineState) -> LocalGpus:
        needs, described = self._needs, machine_class.gpus
        asks_memory = bool(needs.job.gpu_memory_gb)

        def memory_gb(gpu: int) -> float:
            return (described[gpu].memory_gb or 0.0) if asks_memory else 0.0

        usable = sorted(members(state.free & self._request.suitable(machine_class)), key=memory_gb)
        chosen = usable[: needs.job.num_tasks]
        suffice = len(chosen) == needs.job.num_tasks
        makes = {(described[gpu].model, described[gpu].memory_gb) for gpu in usable}
        are_sure = needs.gpus_local or len(makes) == len({memory_gb(gpu) for gpu in usable})
        largest = max(map(memory_gb, chosen), default=0.0)
        gpus = tuple(chosen if needs.gpus_local else sorted(chosen))
        return LocalGpus(gpus, largest, suffice, are_sure, machine_class)


def _key(found: LocalGpus) -> tuple[float, ...] | None:
    return (found.memory_gb,) if found.suffice else None
