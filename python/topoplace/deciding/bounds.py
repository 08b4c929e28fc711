"""Lower bounds on the communication time of a gang (`gang_bounds.hpp`)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _core
from topoplace.collective.networks import collective_network, domains_of
from topoplace.deciding import ranked_sets
from topoplace.engine.machines.machine_class import MachineClasses
from topoplace.jobs.groups import MACHINE
from topoplace.topology.ports import Ports

if TYPE_CHECKING:
    from topoplace.engine.machine_state import ClusterView
    from topoplace.engine.request import JobRequest
    from topoplace.jobs.job_graph import JobGraph
    from topoplace.topology.links.nccl_rates import Rates
    from topoplace.topology.topology import Topology

Ints = NDArray[np.int32]


def gang_machines(topology: Topology) -> _core.GangMachines:
    """Return the machines of a topology as a gang sees them; `topology.derived(gang_machines)` makes them once."""
    ports, machine_of = topology.derived(Ports), topology.machine_of
    return _core.GangMachines(
        np.cumsum(np.bincount(machine_of, minlength=topology.num_machines)),
        np.argsort(machine_of, kind="stable").astype(np.int32),
        domains_of(topology).astype(np.int32),
        ports.adapters,
        ports.ways_out,
        ports.gb_per_s,
    )


class Rooms(NamedTuple):
    """The number of tasks of a job that can be in one domain, and the ports between tasks in different domains."""

    native: _core.GangRoom
    """By depth: the whole, each level from the outermost to the machines."""
    own_class: list[int]
    """For each depth but the last, 1 if tasks that meet there use NVLinks, else 0."""


def gang_limits(topology: Topology, rates: Rates | str) -> _core.GangLimits:
    """Return what limits gangs on a topology, made once for each table of rates."""
    kept = topology.derived(_nothing_yet)
    if rates not in kept:
        kept.setdefault(rates, _limits(topology, rates))
    return kept[rates]


def _nothing_yet(_: Topology) -> dict[Rates | str, _core.GangLimits]:
    return {}


def _limits(topology: Topology, rates: Rates | str) -> _core.GangLimits:
    ports, switched = topology.derived(Ports), collective_network(topology, rates).switched
    return _core.GangLimits(
        ports.fastest_entries,
        ports.most_of_a_gpu,
        ports.has_relays,
        ports.join_machines,
        (float(switched.rings.max(initial=0.0)), bool(switched.rings.all())),
        (float(switched.reducing.max(initial=0.0)), float(switched.most_reduced.max(initial=0.0))),
        topology.derived(gang_machines),
        ranked_sets.natives(topology, rates),
        np.array(topology.derived(MachineClasses).class_of, np.int32),
    )


class MachineLimits(NamedTuple):
    """Lower bounds on the seconds of placements that divide no unit, by what one machine of the job has of it."""

    native: _core.MachineLimits
    units: Ints
    view: ClusterView

    @property
    def is_whole(self) -> bool:
        """Return True if no placement divides a unit."""
        return self.units.shape[1] == 1 or self.native.are_groups


def machine_limits(
    job: JobGraph, units: Ints, rooms: Rooms, view: ClusterView, rates: Rates | str
) -> MachineLimits:
    """Return the limits of units of tasks.

    Args:
        units: (u, t) the tasks of each unit that is mapped as a whole.
        rates: The rates of links with which the library plans rings.
    """
    native = _core.MachineLimits(
        gang_limits(view.cluster.topology, rates),
        rooms.native,
        rooms.own_class,
        job.traffic_arrays.native,
        units,
        any(group.within == MACHINE for group in job.groups),
    )
    return MachineLimits(native, units, view)


def largest_flows(job: JobGraph, units: Ints) -> list[float]:
    """Return the GB of the largest flow in one direction in each dimension; those inside a unit do not count."""
    return _core.largest_flows(job.traffic_arrays.native, units)


def least_seconds_of_one(request: JobRequest, view: ClusterView, rates: Rates | str) -> float:
    """Return a lower bound on the seconds of a job that fits a machine on which all GPUs are alike.

    Either the job is on one machine, or two tasks that communicate are on different machines.
    """
    job, limits = request.job, gang_limits(view.cluster.topology, rates)
    return _core.least_seconds_of_one(limits, job.traffic_arrays.native, request.size, bool(job.edges))


def least_if_split(job: JobGraph, view: ClusterView, rates: Rates | str) -> float:
    """Return a lower bound on the seconds of a job on several machines; infinity if that is not worth a search.

    It is not on a single machine, for jobs of many tasks, and if NVSwitches join the GPUs of each machine, as adapters
    are slower.
    """
    topology = view.cluster.topology
    if topology.num_machines == 1 or ranked_sets.are_alike(topology):
        return math.inf  # nothing else needs the limits of a topology for a job on one machine
    limits = gang_limits(topology, rates)
    return _core.least_if_split(limits, job.traffic_arrays.native, job.num_tasks, bool(job.edges))
