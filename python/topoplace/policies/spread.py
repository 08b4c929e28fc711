"""The search for several machines, where no single one has room for all of a job."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from topoplace.objectives import class_of, scores_from
from topoplace.objectives.utility import communication_cost
from topoplace.policies.gang import Room
from topoplace.policies.occupancy import MachineState
from topoplace.policies.shapes import members

if TYPE_CHECKING:
    from topoplace.jobgraph import JobGraph
    from topoplace.policies.kinds import Kind
    from topoplace.policies.machine_policy import MachinePolicy
    from topoplace.policies.occupancy import Occupancy
    from topoplace.topology import Topology


def gang_of(policy: MachinePolicy, kind: Kind, occupancy: Occupancy) -> Sequence[int] | None:
    """The GPUs of each task; None where the free ones do not do."""
    machines = range(occupancy.shapes.num_machines)
    return _mapped(policy, kind, occupancy, ((machine, occupancy.state(machine)) for machine in machines))


def extremes(policy: MachinePolicy, kind: Kind, occupancy: Occupancy) -> tuple[float, float]:
    """The least and the most the communication can cost: on one machine, or else on the idle cluster."""
    if kind.fitting:
        return kind.extremes
    return occupancy.kept((policy, kind, "idle"), lambda: _idle_extremes(policy, kind, occupancy))


def link_scores(job: JobGraph, gpus: Sequence[int], topology: Topology) -> dict[str, float]:
    """MAPA's scores of GPUs of any machines."""
    bandwidth: dict[int, dict[int, float]] = {}
    classes: dict[int, dict[int, int]] = {}
    for a, b, _ in job.edges:
        u, v = gpus[a], gpus[b]
        link = topology.link_kind(u, v)
        bandwidth.setdefault(u, {})[v] = link.gbps
        classes.setdefault(u, {})[v] = class_of(link)
    return scores_from(job.edges, gpus, bandwidth, classes)


def _idle_extremes(policy: MachinePolicy, kind: Kind, occupancy: Occupancy) -> tuple[float, float]:
    shapes, topology = occupancy.shapes, occupancy.cluster.topology
    sick = shapes.by_machine(topology.unhealthy_gpus)
    idle = (
        (machine, MachineState(occupancy.shape(machine).everything & ~sick.get(machine, 0), (), 0.0))
        for machine in range(shapes.num_machines)
    )
    gpus = _mapped(policy, kind, occupancy, idle)
    least = 0.0 if gpus is None else communication_cost(kind.job, gpus, topology)
    firsts = [numbers[0] for numbers in shapes.gpus_of]
    farthest = max((topology.distance(firsts[0], other) for other in firsts[1:]), default=0.0)
    return least, max(least, kind.weight * farthest)


def _mapped(
    policy: MachinePolicy, kind: Kind, occupancy: Occupancy, states: Iterable[tuple[int, MachineState]]
) -> Sequence[int] | None:
    """The GPUs of each task if the machines were in these states."""
    parts = policy.gang(kind, list(_rooms(policy, kind, occupancy, states)), occupancy)
    if parts is None:
        return None
    numbers = occupancy.shapes.gpus_of
    gpus = [numbers[machine][local] for machine, mask in parts for local in members(mask)]
    return policy.gang_mapping(kind, gpus, occupancy)


def _rooms(
    policy: MachinePolicy, kind: Kind, occupancy: Occupancy, states: Iterable[tuple[int, MachineState]]
) -> Iterable[Room]:
    """What each machine could take of the job."""
    for machine, state in states:
        shape = occupancy.shape(machine)
        usable = state.free & kind.suitable(shape)
        share = min(usable.bit_count() / kind.size, 1.0)
        if usable and policy.costing.has_bandwidth(kind.job, state, share):
            yield Room(machine, shape, usable)
