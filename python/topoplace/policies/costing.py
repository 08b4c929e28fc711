"""What placements cost: the numbers of SC'17's utility, machine by machine."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.jobs.performance_profile import PerformanceProfile
from topoplace.objectives.utility import Costs, JobKind, communication_cost, interference, worst_ratio
from topoplace.placement import Deferred
from topoplace.policies.shapes import Mask, Shape, mask_of

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.policies.kinds import Kind
    from topoplace.policies.occupancy import MachineState, Occupancy


_ROUNDING = 1e-9


class Costing:
    """Costs of placements under one profile, and the memory bandwidth of machines."""

    def __init__(self, profile: PerformanceProfile | None, memory_bandwidth: float | None) -> None:
        """As the arguments of `MachinePolicy`, which are checked here."""
        if profile is not None:
            _checks.instance(profile, PerformanceProfile, "profile", ValueError)
        if memory_bandwidth is not None:
            _checks.positive(memory_bandwidth, "memory_bandwidth", ValueError)
        self.profile = profile
        self.memory_bandwidth = memory_bandwidth
        self._worst: dict[JobKind, float] = {}

    def on_machine(
        self, kind: Kind, shape: Shape, state: MachineState, gpus: tuple[int, ...], left: Mask
    ) -> Costs:
        """Of a job on `gpus` of a machine in that state, `left` of its GPUs staying free."""
        communication = kind.communication(shape, gpus)
        sockets = shape.touched(mask_of(gpus))
        where = "intra-socket" if sockets.bit_count() == 1 else "inter-socket"
        ratios = self._interference(kind, sockets, state, where)
        return Costs(
            kind.size, communication, *kind.extremes, *ratios, self._worst_of(kind), shape.fragmentation(left)
        )

    def on_machines(
        self, kind: Kind, gpus: Sequence[int], extremes: tuple[float, float], occupancy: Occupancy
    ) -> Costs:
        """Of a job on GPUs of several machines; it suffers the worst of its machines, the rest is their mean."""
        ratios: list[tuple[float, float]] = []
        fragments: list[float] = []
        for machine, mask in occupancy.shapes.by_machine(gpus).items():
            shape, state = occupancy.shape(machine), occupancy.state(machine)
            ratios.append(self._interference(kind, shape.touched(mask), state, "inter-machine"))
            fragments.append(shape.fragmentation(state.free & ~mask))
        return Costs(
            num_gpus=kind.size,
            communication=communication_cost(kind.job, gpus, occupancy.cluster.topology),
            least=extremes[0],
            most=extremes[1],
            suffered=min(suffered for suffered, _ in ratios),
            shared=sum(shared for _, shared in ratios) / len(ratios),
            worst=self._worst_of(kind),
            fragmentation=sum(fragments) / len(fragments),
        )

    def across_at_best(self, kind: Kind) -> Costs:
        """The least that a job which fits one machine can cost on several: it counts as the worst communication."""
        least, most = kind.extremes
        suffered, _ = interference(self.profile, (kind.profile, kind.size), "inter-machine", ())
        return Costs(kind.size, most, least, most, suffered, suffered, self._worst_of(kind), 0.0)

    def most_gpus(self, job: JobGraph, used: float = 0.0) -> int:
        """For how many tasks of the job a machine has the memory bandwidth (t_bw <= p_bw) when `used` GB/s are gone."""
        if self.memory_bandwidth is None or not job.memory_bandwidth:
            return job.num_tasks
        tasks = (self.memory_bandwidth - used) * job.num_tasks / job.memory_bandwidth
        return min(max(math.floor(tasks + _ROUNDING), 0), job.num_tasks)

    def too_much_bandwidth(self, kind: Kind) -> Deferred | None:
        """Why the machines could never have the memory bandwidth together; None where they could."""
        job, most = kind.job, self.most_gpus(kind.job)
        shapes = (kind.shapes.shapes[number] for number in kind.shapes.shape_of)
        room = sum(min(most, kind.suitable(shape).bit_count()) for shape in shapes)
        if room >= job.num_tasks and (most >= job.num_tasks or not job.single_machine):
            return None
        need, have = f"{job.memory_bandwidth:g} GB/s of memory bandwidth", f"{self.memory_bandwidth:g}"
        return Deferred(f"never fits: {need} needed, a machine has {have}")

    def _worst_of(self, kind: Kind) -> float:
        job = (kind.profile, kind.size)
        if job not in self._worst:
            self._worst[job] = worst_ratio(self.profile, job)
        return self._worst[job]

    def _interference(
        self, kind: Kind, sockets: Mask, state: MachineState, where: str
    ) -> tuple[float, float]:
        """What the job suffers in that placement class, and eq. 4, both among jobs that share a socket."""
        if self.profile is None:
            return 1.0, 1.0
        others = [(name, size) for name, size, theirs in state.neighbours if theirs & sockets]
        return interference(self.profile, (kind.profile, kind.size), where, others)
