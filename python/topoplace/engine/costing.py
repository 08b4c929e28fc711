"""Costs of placements, machine by machine: the parts of a utility (`objectives.utility`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.engine.admission import why_no_memory_bandwidth
from topoplace.engine.machine_class import MachineClass, Mask, mask_of
from topoplace.objectives.interference import JobKind, interference, worst_ratio
from topoplace.objectives.utility import Costs, communication_cost
from topoplace.profiles import PerformanceProfile

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView, MachineState
    from topoplace.engine.request import JobRequest
    from topoplace.jobgraph import JobGraph
    from topoplace.placement import Refusal

_ROUNDING = 1e-9


class Costing:
    """The costs under one profile, and the limit of the machines' memory bandwidth."""

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
        self,
        request: JobRequest,
        machine_class: MachineClass,
        state: MachineState,
        gpus: tuple[int, ...],
        left: Mask,
    ) -> Costs:
        """Return the costs of a job on `gpus` of a machine in that state; its GPUs in `left` stay free."""
        communication = request.communication(machine_class, gpus)
        sockets = machine_class.touched(mask_of(gpus))
        where = "intra-socket" if sockets.bit_count() == 1 else "inter-socket"
        ratios = self._interference(request, sockets, state, where)
        least, most = request.communication_range
        return Costs(
            *(request.size, communication, least, most, *ratios, self._worst_of(request)),
            machine_class.fragmentation(left),
        )

    def on_machines(
        self,
        request: JobRequest,
        gpus: Sequence[int],
        communication_range: tuple[float, float],
        view: ClusterView,
    ) -> Costs:
        """Return the costs of a job on GPUs of several machines.

        It suffers the worst of its machines; the rest is their mean.
        """
        ratios: list[tuple[float, float]] = []
        fragments: list[float] = []
        for machine, mask in view.classes.by_machine(gpus).items():
            machine_class, state = view.classes.of(machine), view.state(machine)
            sockets = machine_class.touched(mask)
            ratios.append(self._interference(request, sockets, state, "inter-machine"))
            fragments.append(machine_class.fragmentation(state.free & ~mask))
        return Costs(
            num_gpus=request.size,
            communication=communication_cost(request.job, gpus, view.cluster.topology),
            least=communication_range[0],
            most=communication_range[1],
            suffered=min(suffered for suffered, _ in ratios),
            shared=sum(shared for _, shared in ratios) / len(ratios),
            worst=self._worst_of(request),
            fragmentation=sum(fragments) / len(fragments),
        )

    def across_at_best(self, request: JobRequest) -> Costs:
        """Return a lower bound on the costs of splitting a job that fits one machine: the worst communication there."""
        least, most = request.communication_range
        suffered, _ = interference(self.profile, (request.profile, request.size), "inter-machine", ())
        return Costs(request.size, most, least, most, suffered, suffered, self._worst_of(request), 0.0)

    def max_tasks(self, job: JobGraph, used: float = 0.0) -> int:
        """Return the most tasks of the job a machine has the memory bandwidth for when `used` GB/s are gone."""
        if self.memory_bandwidth is None or not job.memory_bandwidth:
            return job.num_tasks
        tasks = (self.memory_bandwidth - used) * job.num_tasks / job.memory_bandwidth
        return min(max(math.floor(tasks + _ROUNDING), 0), job.num_tasks)

    def why_never(self, request: JobRequest, view: ClusterView) -> Refusal | None:
        """Return why the machines could never have the memory bandwidth together; None where they could."""
        suitable = (
            request.suitable(view.classes.of(m)).bit_count() for m in range(view.classes.num_machines)
        )
        return why_no_memory_bandwidth(
            request.job, self.memory_bandwidth, self.max_tasks(request.job), suitable
        )

    def _worst_of(self, request: JobRequest) -> float:
        job = (request.profile, request.size)
        if job not in self._worst:
            self._worst[job] = worst_ratio(self.profile, job)
        return self._worst[job]

    def _interference(
        self, request: JobRequest, sockets: Mask, state: MachineState, where: str
    ) -> tuple[float, float]:
        """Return what the job suffers in that placement class, and eq. 4, both among jobs that share a socket."""
        if self.profile is None:
            return 1.0, 1.0
        others = [(name, size) for name, size, theirs in state.neighbours if theirs & sockets]
        return interference(self.profile, (request.profile, request.size), where, others)
