"""The search for several machines, where no single one has room for all of a job."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from topoplace import kernels
from topoplace.objectives import class_of, scores_from
from topoplace.objectives.utility import communication_cost
from topoplace.policies.base import MAX_SEARCHED_GPUS
from topoplace.policies.occupancy import MachineState
from topoplace.policies.shapes import finite, members
from topoplace.policies.shares import Room

if TYPE_CHECKING:
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.policies.kinds import Kind
    from topoplace.policies.machine_policy import MachinePolicy
    from topoplace.policies.occupancy import Occupancy
    from topoplace.policies.shares import Shares
    from topoplace.topology.topology import Topology

_MOST_TRIED = 16
"""So many sets of machines are looked at."""

States = Iterable[tuple[int, MachineState]]


def candidates(policy: MachinePolicy, kind: Kind, occupancy: Occupancy) -> Iterator[Sequence[int]]:
    """The GPUs of each task, best first; last those that communicate least wherever they are."""
    machines = range(occupancy.shapes.num_machines)
    states = ((machine, occupancy.state(machine)) for machine in machines)
    rooms = _rooms(policy, kind, occupancy, states)
    yield from islice(_mapped(policy, kind, occupancy, rooms), _MOST_TRIED)
    anywhere = _numbered([(room.machine, room.portion(room.most)) for room in rooms], occupancy)
    free_choice = not kind.job.anti_affinity and not any(room.partitions for room in rooms)
    if free_choice and kind.size <= len(anywhere) <= MAX_SEARCHED_GPUS:
        yield least_communication(kind, anywhere, occupancy)


def least_communication(kind: Kind, gpus: Sequence[int], occupancy: Occupancy) -> Sequence[int]:
    """The GPU of each task, out of at least as many."""
    if not kind.job.edges:
        return gpus[: kind.size]
    distance = finite(occupancy.shapes.distances(gpus, occupancy.cluster.topology))
    found = kernels.map_graph(kind.job.graph, distance)
    assert found is not None  # there are enough
    order: list[int] = found.target_of.tolist()
    return [gpus[i] for i in order]


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
        link = topology.link(u, v)
        bandwidth.setdefault(u, {})[v] = link.gb_per_s
        classes.setdefault(u, {})[v] = class_of(link)
    return scores_from(job.edges, gpus, bandwidth, classes)


def _idle_extremes(policy: MachinePolicy, kind: Kind, occupancy: Occupancy) -> tuple[float, float]:
    """The least as the policy would have it; the most: every edge as long as the way to the farthest machine."""
    shapes, topology = occupancy.shapes, occupancy.cluster.topology
    machines = range(shapes.num_machines)
    idle = ((machine, MachineState(occupancy.shape(machine).healthy, (), 0.0)) for machine in machines)
    gpus = next(_mapped(policy, kind, occupancy, _rooms(policy, kind, occupancy, idle)), None)
    least = 0.0 if gpus is None else communication_cost(kind.job, gpus, topology)
    firsts = [numbers[0] for numbers in shapes.gpus_of]
    ways = (topology.distance(firsts[0], other) for other in firsts[1:])
    farthest = max((way for way in ways if way < float("inf")), default=0.0)
    return least, max(least, kind.weight * farthest)


def _mapped(
    policy: MachinePolicy, kind: Kind, occupancy: Occupancy, rooms: Sequence[Room]
) -> Iterator[Sequence[int]]:
    """The GPUs of each task if the machines had that room, best first."""
    for shares in policy.shares(kind, rooms, occupancy):
        yield policy.task_order(kind, _numbered(shares, occupancy), occupancy)


def _numbered(shares: Shares, occupancy: Occupancy) -> list[int]:
    numbers = occupancy.shapes.gpus_of
    return [numbers[machine][local] for machine, mask in shares for local in members(mask)]


def _rooms(policy: MachinePolicy, kind: Kind, occupancy: Occupancy, states: States) -> list[Room]:
    """What each machine could take of the job."""
    rooms: list[Room] = []
    for machine, state in states:
        shape = occupancy.shape(machine)
        usable = state.free & kind.suitable(shape)
        most = min(policy.costing.most_gpus(kind.job, state.memory_bandwidth), usable.bit_count())
        partitions = tuple(part for part in shape.partitions if part & usable == part)
        if most and (partitions or not shape.partitions):
            rooms.append(Room(machine, usable, partitions, most))
    return rooms
