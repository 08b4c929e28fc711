"""Algorithms 2 and 3 of SC'17 to the letter: a machine is halved repeatedly, and each task takes the better half."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from topoplace import kernels
from topoplace.engine.machines.machine_class import finite, members
from topoplace.engine.memo import Memo
from topoplace.objectives.utility import Costs

if TYPE_CHECKING:
    from topoplace.engine.machines.machine_class import MachineClass, Mask
    from topoplace.engine.machines.machine_conditions import MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.objectives.utility import Formula
    from topoplace.policies.sc17.costs import Costing


class UtilityBipartition:
    """The mapping of a job's tasks into a machine, one task after another, by the system utility of each half for the
    task.

    The free GPUs are halved with the smallest cut between near GPUs (Algorithm 2). Each task in turn goes to the half
    with the higher utility (to the first one if equal) that has a free GPU (Algorithm 3), and never moves again. Both
    halves are then halved in turn with their tasks. In the utility of a half,

    - communication is with the tasks that have a half already, each as near as their halves allow, relative to the
      largest distance in the machine;
    - interference is with the jobs on the sockets of this half;
    - fragmentation is that of the machine after the tasks so far took a GPU of their halves each.
    """

    def __init__(self, costing: Costing, utility: Formula) -> None:
        self.costing = costing
        self.utility = utility
        self._halves: Memo[tuple[MachineClass, Mask], tuple[Mask, Mask]] = Memo()

    def mapped(
        self, request: JobRequest, machine_class: MachineClass, state: MachineState, free: Mask
    ) -> tuple[int, ...]:
        """Return the GPU of each task among the `free` GPUs of a machine, which must be enough."""
        found = _Search(self, request, machine_class, state, free)
        found.descend(range(request.size), free)
        return tuple(region.bit_length() - 1 for region in found.region_of)

    def halves(self, machine_class: MachineClass, region: Mask) -> tuple[Mask, Mask]:
        """Return two halves of the GPUs in `region`, with few near pairs between them; the first may be larger."""
        return self._halves.get_or_build((machine_class, region), lambda: _halved(machine_class, region))


class _Search:
    """One job that is mapped into one machine, with the half of the machine that each of its tasks has so far."""

    def __init__(
        self,
        rules: UtilityBipartition,
        request: JobRequest,
        machine_class: MachineClass,
        state: MachineState,
        free: Mask,
    ) -> None:
        self.rules = rules
        self.request = request
        self.machine_class = machine_class
        self.state = state
        self.free = free
        self.region_of = [0] * request.size
        self.talks_to: list[list[tuple[int, float]]] = [[] for _ in self.region_of]
        for a, b, weight in request.job.edges:
            self.talks_to[a].append((b, weight))
            self.talks_to[b].append((a, weight))

    def descend(self, tasks: Sequence[int], region: Mask) -> None:
        """Map tasks into a region with at least as many GPUs."""
        if not tasks:
            return
        if region & (region - 1) == 0:
            self.region_of[tasks[0]] = region
            return
        halves = self.rules.halves(self.machine_class, region)
        shares: tuple[list[int], list[int]] = ([], [])
        for task in tasks:
            self.region_of[task] = 0
        for task in tasks:
            open_to = [side for side in (0, 1) if len(shares[side]) < halves[side].bit_count()]
            side = (
                max(open_to, key=lambda side: self._utility(task, halves[side]))
                if len(open_to) > 1
                else open_to[0]
            )
            shares[side].append(task)
            self.region_of[task] = halves[side]
        for share, half in zip(shares, halves, strict=True):
            self.descend(share, half)

    def _utility(self, task: int, half: Mask) -> float:
        """Return the system utility if `task` is in a half, given the halves of the tasks before it."""
        machine_class, costing = self.machine_class, self.rules.costing
        communication = weights = 0.0
        for other, weight in self.talks_to[task]:
            if self.region_of[other]:
                communication += weight * self._nearest(half, self.region_of[other])
                weights += weight
        regions = [*filter(None, self.region_of), half]
        sockets = machine_class.touched(half)
        everywhere = sockets
        left = self.free
        for region in regions:
            everywhere |= machine_class.touched(region)
            left &= ~_lowest(region & left)
        where = "intra-socket" if everywhere.bit_count() == 1 else "inter-socket"
        ratios = costing.ratios_among(self.request, costing.neighbours(self.state, sockets), where)
        left |= self.state.free & ~self.free
        return self.rules.utility.system(
            Costs(
                *(self.request.size, communication, 0.0, weights * machine_class.farthest),
                *(ratios[0], ratios[1], costing.worst_of(self.request)),
                *(machine_class.fragmentation(left), ratios[2]),
                *(self.request.mean_weight, machine_class.unused(left)),
            )
        )

    def _nearest(self, one: Mask, other: Mask) -> float:
        """Return the smallest distance between different GPUs of two regions, at most the largest in the machine."""
        rows = self.machine_class.rows
        distances = (rows[u][v] for u in members(one) for v in members(other) if u != v)
        return min(distances, default=self.machine_class.farthest)


def _lowest(region: Mask) -> Mask:
    return region & -region


def _halved(machine_class: MachineClass, region: Mask) -> tuple[Mask, Mask]:
    gpus = list(members(region))
    distance = finite(machine_class.distance[np.ix_(gpus, gpus)])
    nearness = np.maximum(machine_class.farthest - distance, 0.0)
    np.fill_diagonal(nearness, 0.0)
    side = kernels.bipartition(nearness).side
    halves = [0, 0]
    for gpu, chosen in zip(gpus, side.tolist(), strict=True):
        halves[chosen] |= 1 << gpu
    return halves[0], halves[1]
