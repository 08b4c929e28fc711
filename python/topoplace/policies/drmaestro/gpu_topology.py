"""The distance between the GPUs that a job could get on each machine, among the free ones.

The thesis has both halves, mappings of jobs onto the GPUs of one machine (chapter 4) and flows over machines (chapter
5), but does not join them. Here the mapping prices a machine in phase 1, and chooses the GPUs after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from topoplace.engine.machines.machine_class import MachineClass, MachineClasses, Mask, mask_of, members
from topoplace.engine.memo import Memo

if TYPE_CHECKING:
    from topoplace.engine.request import JobRequest
    from topoplace.policies.drmaestro.free_resources import FreeResources
    from topoplace.policies.drmaestro.network import Reals
    from topoplace.topology.topology import Topology

_MAX_GPUS: Final = 63
"""Largest machine whose free GPUs fit into one integer of 64 bits."""


class GpuTopology:
    """The mappings of one job's tasks onto the free GPUs of single machines, by least communication cost (eq. 3)."""

    def __init__(self, request: JobRequest, topology: Topology) -> None:
        """Store the arguments. request: the request of a job whose tasks communicate and may share a machine."""
        self._request = request
        self._classes = topology.derived(MachineClasses)
        self._shares: Memo[tuple[MachineClass, Mask], float] = Memo()

    @staticmethod
    def matters(request: JobRequest, topology: Topology) -> bool:
        """Return True if the choice of GPUs on a machine makes a difference to the job."""
        classes = topology.derived(MachineClasses).classes
        return (
            request.size > 1
            and bool(request.job.edges)
            and not request.anti_affine
            and not topology.partitions
            and all(one.num_gpus <= _MAX_GPUS for one in classes)
        )

    def shares(self, free: FreeResources) -> Reals:
        """Return (m,) the communication cost on each machine, from 0 for the lowest on any idle machine to 1 for the
        highest.

        The cost is 0 on machines with too few free GPUs for the whole job.
        """
        found = np.zeros(self._classes.num_machines)
        class_of = np.array(self._classes.class_of)
        for number, machine_class in enumerate(self._classes.classes):
            machines = np.flatnonzero(class_of == number)
            gpus = np.array([self._classes.gpus_of[machine] for machine in machines.tolist()])
            masks = free.free_mask[gpus] @ (1 << np.arange(gpus.shape[1], dtype=np.int64))
            kinds, which = np.unique(masks, return_inverse=True)
            found[machines] = np.array([self._share(machine_class, int(mask)) for mask in kinds])[which]
        return found

    def gpus(self, place: int, free: FreeResources) -> list[int]:
        """Return the GPU of each task if all are at this place (machine and GPU make), which must have enough free
        GPUs.
        """
        machine, make = divmod(place, free.gpus.shape[1])
        numbers = self._classes.gpus_of[machine]
        make_of = free.columns.make_of
        region = mask_of(i for i, gpu in enumerate(numbers) if free.is_free[gpu] and make_of[gpu] == make)
        return [numbers[local] for local in self._request.mapped(self._classes.of(machine), region)]

    def _share(self, machine_class: MachineClass, mask: Mask) -> float:
        region = self._usable(machine_class, mask)
        if not region:
            return 0.0
        return self._shares.get_or_build(
            (machine_class, region), lambda: self._share_in(machine_class, region)
        )

    def _share_in(self, machine_class: MachineClass, region: Mask) -> float:
        least, most = self._request.communication_range
        cost = self._request.communication(machine_class, self._request.mapped(machine_class, region))
        return min(max((cost - least) / (most - least), 0.0), 1.0) if most > least else 0.0

    def _usable(self, machine_class: MachineClass, mask: Mask) -> Mask:
        """Return the free GPUs from which the job's GPUs are chosen; 0 if they are too few.

        They are all suitable ones of the smallest memory that is enough, as long as there are enough of these.
        """
        suitable = mask & self._request.suitable(machine_class)
        if suitable.bit_count() < self._request.size:
            return 0
        if not self._request.job.gpu_memory_gb:
            return suitable
        by_memory = sorted(members(suitable), key=lambda gpu: machine_class.gpus[gpu].memory_gb or 0.0)
        most = machine_class.gpus[by_memory[self._request.size - 1]].memory_gb or 0.0
        return mask_of(gpu for gpu in by_memory if (machine_class.gpus[gpu].memory_gb or 0.0) <= most)
