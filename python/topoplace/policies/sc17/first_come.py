"""First come, first served: the first policy with which SC'17 compares."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from topoplace.engine.gangs.splits import in_order
from topoplace.engine.machines.machine_class import members
from topoplace.policies.sc17.costs import UtilityPolicy

if TYPE_CHECKING:
    from topoplace.engine.gangs.offers import MachineOffer
    from topoplace.engine.gangs.splits import MachineSplit
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.request import JobRequest
    from topoplace.objectives.utility import Costs


class FirstComeFirstServed(UtilityPolicy):
    """The policy that takes the lowest free GPUs of the first machine with room; no job overtakes an older one.

    If no machine has room for the whole job, it is split over the first machines with free GPUs.
    """

    name = "fcfs"
    out_of_order = False

    def mappings(
        self, request: JobRequest, machine_class: MachineClass, free: Mask
    ) -> Iterable[tuple[int, ...]]:
        """Return one candidate, the lowest free GPUs of the machine; none if it has too few.

        If the machine's GPUs are only allocated in fixed partitions, return one candidate per free partition of the
        job's size.
        """
        return [lowest(request, machine_class, region) for region in request.regions(machine_class, free)]

    def order(
        self, machine_class: MachineClass, free: Mask, gpus: tuple[int, ...], costs: Costs
    ) -> tuple[float, ...]:
        """Return the same key for all choices, so that the lowest machine and GPU numbers decide."""
        return ()

    def splits(
        self, request: JobRequest, offers: Sequence[MachineOffer], view: ClusterView
    ) -> Iterable[MachineSplit]:
        """Return at most one split of the job, over the first machines with free GPUs.

        If their GPUs do not add up to the job's size, because of fixed partitions, machines with the most GPUs come
        first.
        """
        return in_order(offers, request.size, anti_affine=request.job.anti_affinity)


def lowest(request: JobRequest, machine_class: MachineClass, region: Mask) -> tuple[int, ...]:
    """Return the lowest-numbered GPUs of `region`, one per task.

    If two communicating tasks would have no path between these GPUs, return the mapping of lowest communication cost
    into `region` instead.
    """
    return connected(request, machine_class, region, tuple(islice(members(region), request.size)))


def connected(
    request: JobRequest, machine_class: MachineClass, region: Mask, gpus: tuple[int, ...]
) -> tuple[int, ...]:
    """Return `gpus` if all communicating tasks have a path between their GPUs when task i runs on `gpus[i]`.

    Otherwise return the GPU of each task in the mapping of lowest communication cost into `region`.
    """
    talks = request.communication(machine_class, gpus) < math.inf
    return gpus if talks else request.mapped(machine_class, region)
