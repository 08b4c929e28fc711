"""Communication time: how long the ports of a topology take for what the tasks of a job exchange in a step.

In each dimension of a job, all groups communicate at once. Its time is the largest of two: for each port, the GB that
pass it in its busier direction over its GB/s; for each reduction, gather or broadcast inside one machine or NVLink
domain, its GB over the bandwidth of the rings that the collective library plans there. The job's time is the sum over
its dimensions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks, kernels
from topoplace.collective.bandwidth import ring_bandwidth
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.arguments import gpu_of_each_task
from topoplace.topology.links.link import LinkKind
from topoplace.topology.ports import Ports
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    from topoplace.jobs.collectives import Batch
    from topoplace.kernels.port_network import PhaseTime

Ints = NDArray[np.int64]
RING_KINDS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
"""The kinds in which each task sends to the next one only; in others, half of the GB of a pair goes each way. Inside a
machine or an NVLink domain the library plans their rings, whatever the order of the ranks."""


@dataclass(frozen=True, slots=True)
class CommunicationTime:
    """How long a job communicates in a step, with its tasks on given GPUs."""

    seconds: float
    """Of all dimensions; for a job without bytes, per unit of its weights. Infinity if two tasks have no path."""
    by_dimension: Mapping[str, float]
    """Seconds of each dimension."""
    slowest: str
    """The port, or the rings, that take the longest, such as "uplink of leaf l3"; "" if nothing communicates."""
    port_seconds: float
    """GB / (GB/s), summed over all uplinks and directions: what the job takes of ports that others share."""


class _Slowest(NamedTuple):
    seconds: float
    hop: int
    """The hop that takes so long; -1 for rings."""
    gpus: tuple[int, ...]
    """The GPUs of these rings."""


class _Flows:
    """The flows of one dimension, and the slowest planned rings."""

    def __init__(self) -> None:
        self.start: list[Ints] = []
        self.end: list[Ints] = []
        self.there: list[NDArray[np.float64]] = []
        self.back: list[NDArray[np.float64]] = []
        self.rings = _Slowest(0.0, -1, ())

    def add(self, batch: Batch, gpus: Ints, carried: NDArray[np.float64]) -> None:
        """Add what each collective carries from one of its GPUs to the next ones; gpus: (c, n)."""
        here, there = batch.pairs
        gigabytes = np.repeat(carried, len(here))
        one_way = batch.kind in RING_KINDS
        self.start.append(gpus[:, here].ravel())
        self.end.append(gpus[:, there].ravel())
        self.there.append(gigabytes if one_way else gigabytes / 2)
        self.back.append(np.zeros_like(gigabytes) if one_way else gigabytes / 2)

    def plan(self, topology: Topology, gpus: Ints, carried: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Note the slowest of the rings that are planned for each collective; return which have rings. gpus: (c, n)."""
        rates = _ring_rates(topology, gpus)
        for one, gigabytes, rate in zip(gpus.tolist(), carried.tolist(), rates.tolist(), strict=True):
            if rate and gigabytes / rate > self.rings.seconds:
                self.rings = _Slowest(gigabytes / rate, -1, tuple(sorted(one)))
        return rates > 0


def communication_time(
    job: JobGraph, gpus: Sequence[int], topology: Topology, *, planned: bool = True
) -> CommunicationTime:
    """Return how long the job communicates in a step if task i runs on `gpus[i]`.

    Args:
        planned: False leaves out the rings that the collective library plans inside a machine: then every collective
            uses the ports in the order of its tasks.

    Raises:
        ValueError: Names a wrong argument.
    """
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(topology, Topology, "topology", ValueError)
    placed = np.array(gpu_of_each_task(job, gpus, topology), np.int64)
    return measured(job, placed, topology, planned=planned)


def measured(job: JobGraph, placed: Ints, topology: Topology, *, planned: bool = True) -> CommunicationTime:
    """Return what `communication_time` returns; placed: (num_tasks,) checked."""
    ports = topology.derived(Ports)
    flows = [_flows_of(batches, placed, topology, planned) for batches in job.traffic.values()]
    times = ports.network.phase_times(_joined(flows))
    seconds = [max(time.seconds, one.rings.seconds) for time, one in zip(times, flows, strict=True)]
    return CommunicationTime(
        math.fsum(seconds),
        MappingProxyType(dict(zip(job.traffic, seconds, strict=True))),
        _named(ports, seconds, times, flows),
        math.fsum(time.port_seconds for time in times),
    )


def _flows_of(batches: Sequence[Batch], placed: Ints, topology: Topology, planned: bool) -> _Flows:
    flows = _Flows()
    for batch in batches:
        gpus = placed[batch.tasks]
        if planned and batch.kind in RING_KINDS:
            machines = topology.machine_of[gpus]
            inside = (machines == machines[:, :1]).all(axis=1)
            _add_planned(flows, batch, gpus[inside], batch.carried[inside], topology)
            gpus, carried = gpus[~inside], batch.carried[~inside]
            switched = _are_switched(topology, machines[~inside])
            flows.plan(topology, gpus[switched], carried[switched])
            flows.add(batch, gpus, carried)
        else:
            flows.add(batch, gpus, batch.carried)
    return flows


def _are_switched(topology: Topology, machines: Ints) -> NDArray[np.bool_]:
    """Return (c,) whether the machines of each collective, (c, n), are in one NVLink domain."""
    found = np.zeros(len(machines), bool)
    for level in topology.levels:
        if level.kind is LinkKind.NVSWITCH:
            domains = level.codes[machines]
            found |= ((domains == domains[:, :1]) & (domains >= 0)).all(axis=1)
    return found


def _ring_rates(topology: Topology, gpus: Ints) -> NDArray[np.float64]:
    """Return (c,) GB/s of the rings through each row of GPUs, (c, n): on one machine, or in one NVLink domain.

    Rows with the same GPUs of like machines have the same rings.
    """
    if len(gpus) < 2:
        return np.array([ring_bandwidth(topology, one) for one in gpus.tolist()])
    gpus = np.sort(gpus, axis=1)
    machines = topology.machine_of[gpus]
    number = np.cumsum(np.diff(machines, axis=1, prepend=machines[:, :1]) != 0, axis=1)
    switched = [level.codes[machines] >= 0 for level in topology.levels if level.kind is LinkKind.NVSWITCH]
    patterns = np.concatenate([number, topology.derived(_places)[gpus], *switched], axis=1)
    _, first, pattern = np.unique(patterns, axis=0, return_index=True, return_inverse=True)
    rates = np.array([ring_bandwidth(topology, one) for one in gpus[first].tolist()])
    found: NDArray[np.float64] = rates[pattern.reshape(-1)]
    return found


def _places(topology: Topology) -> Ints:
    """Return (n,) equal numbers for the GPUs that have the same place on like machines."""
    if topology.tiling is None:
        return np.arange(topology.num_gpus)
    template: Ints = np.array(topology.template_of, np.int64)[topology.machine_of]
    return template * topology.num_gpus + np.array(topology.local_index)


def _add_planned(
    flows: _Flows, batch: Batch, gpus: Ints, carried: NDArray[np.float64], topology: Topology
) -> None:
    """Add collectives inside machines, in an order in which near GPUs follow each other.

    Among GPUs with direct links the library finds rings of its own, and only they count, if there are some.
    """
    has_rings = flows.plan(topology, gpus, carried)
    ports = topology.derived(Ports)
    order = np.argsort(ports.near_order[gpus], axis=1)
    gpus = np.take_along_axis(gpus, order, axis=1)
    through_ports = ~(has_rings & ports.has_links[gpus].any(axis=1))
    flows.add(batch, gpus[through_ports], carried[through_ports])


def _joined(parts: Sequence[_Flows]) -> kernels.Flows:
    """Return the flows of all dimensions, one phase for each."""

    def joined(arrays: Iterator[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        listed: list[NDArray[Any]] = [np.empty(0, dtype), *arrays]
        return np.concatenate(listed).astype(dtype)

    return kernels.Flows(
        np.cumsum([sum(map(len, one.start)) for one in parts]).tolist(),
        joined((part for one in parts for part in one.start), np.int32),
        joined((part for one in parts for part in one.end), np.int32),
        joined((part for one in parts for part in one.there), np.float64),
        joined((part for one in parts for part in one.back), np.float64),
    )


def task_flows(job: JobGraph) -> kernels.Flows:
    """Return the flows between the tasks of a job, in the order of each collective's tasks."""
    parts: list[_Flows] = []
    for batches in job.traffic.values():
        parts.append(_Flows())
        for batch in batches:
            parts[-1].add(batch, batch.tasks, batch.carried)
    return _joined(parts)


def _named(
    ports: Ports, seconds: Sequence[float], times: Sequence[PhaseTime], flows: Sequence[_Flows]
) -> str:
    """Return what is the slowest in the longest phase."""
    if not seconds or not (longest := max(seconds)):
        return ""
    number = seconds.index(longest)
    if math.isinf(longest):
        return "no path"
    time, one = times[number], flows[number]
    if one.rings.seconds > time.seconds:
        numbers = ", ".join(map(str, one.rings.gpus[:8])) + (", ..." if len(one.rings.gpus) > 8 else "")
        return f"rings of GPUs {numbers}"
    return str(ports.port(time.slowest // 2))
