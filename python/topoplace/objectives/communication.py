"""Communication time: how long the ports of a topology take for what the tasks of a job exchange in a step.

In each dimension of a job, all groups communicate at once. Its time is the largest of two: for each port, the GB that
pass it in its busier direction over its GB/s; for each reduction, gather or broadcast inside one machine or NVLink
domain, its GB over the bandwidth of the rings that the collective library plans there. The job's time is the sum over
its dimensions.

Where running jobs use the same ports, each of their flows counts there up to the GB of the job's own largest flow: a
small flow does not wait for the rest of a big one. That is a fast estimate. `max_min=True` follows the flows of all
these jobs from moment to moment instead.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks, kernels
from topoplace.cluster.cluster import Cluster
from topoplace.collective.bandwidth import DEFAULT_RATES, ring_bandwidth
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.collective.rates import Rates, rates_of
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.arguments import gpu_of_each_task
from topoplace.topology.ports import Ports, switched_levels
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
        if batch.received is not None:
            self.there.append(batch.received[:, there].ravel())
            self.back.append(batch.received[:, here].ravel())
            return
        self.there.append(gigabytes if one_way else gigabytes / 2)
        self.back.append(np.zeros_like(gigabytes) if one_way else gigabytes / 2)

    def plan(
        self, topology: Topology, gpus: Ints, carried: NDArray[np.float64], rates: Rates | str
    ) -> NDArray[np.bool_]:
        """Note the slowest of the rings that are planned for each collective; return which have rings. gpus: (c, n)."""
        gb_per_s = _ring_bandwidths(topology, gpus, rates)
        for one, gigabytes, rate in zip(gpus.tolist(), carried.tolist(), gb_per_s.tolist(), strict=True):
            if rate and gigabytes / rate > self.rings.seconds:
                self.rings = _Slowest(gigabytes / rate, -1, tuple(sorted(one)))
        return gb_per_s > 0


def communication_time(
    job: JobGraph,
    gpus: Sequence[int],
    topology: Topology,
    *,
    cluster: Cluster | None = None,
    planned: bool = True,
    rates: Rates | str = DEFAULT_RATES,
    max_min: bool = False,
) -> CommunicationTime:
    """Return how long the job communicates in a step if task i runs on `gpus[i]`.

    Args:
        cluster: Its running jobs whose graphs are known count on the ports that they share with this job, with the
            flows of all their dimensions. A running job with this graph on these GPUs is the job itself. Without a
            cluster, the job has the topology to itself.
        planned: False leaves out the rings that the collective library plans inside a machine: then every collective
            uses the ports in the order of its tasks.
        rates: As in `topoplace.collective`: those of links by which the library plans its rings.
        max_min: True lets all these jobs begin a step at one moment, and follows their flows through it. Each job runs
            its dimensions one after the other, and flows share each port max-min fairly: none can have more without
            taking from one that has no more. This is what network simulators do; it takes longer to compute.

    Raises:
        ValueError: Names a wrong argument.
    """
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(topology, Topology, "topology", ValueError)
    numbers = gpu_of_each_task(job, gpus, topology)
    placed = np.array(numbers, np.int64)
    rates_of(rates)
    if cluster is not None:
        _checks.instance(cluster, Cluster, "cluster", ValueError)
        if topology != cluster.topology:
            raise ValueError(f"cluster = {cluster!r} is not on the topology {topology.name!r}")
    if _checks.flag(max_min, "max_min", ValueError):
        others = [] if cluster is None else list(_running_beside(cluster, job, tuple(numbers)))
        return _shared_fairly([(job, placed), *others], topology, planned, rates)
    if cluster is None:
        return measured(job, placed, topology, planned=planned, rates=rates)
    running = cluster.view(RunningTraffic) if planned else RunningTraffic(cluster, planned=False)
    with running.beside(job, numbers) as counts:
        return measured(job, placed, cluster.topology, planned=planned, others=counts, rates=rates)


def measured(
    job: JobGraph,
    placed: Ints,
    topology: Topology,
    *,
    planned: bool = True,
    others: kernels.FlowCounts | None = None,
    rates: Rates | str = DEFAULT_RATES,
) -> CommunicationTime:
    """Return what `communication_time` returns.

    Args:
        placed: (num_tasks,) checked.
        others: The flows of other jobs.
    """
    ports = topology.derived(Ports)
    flows = [_flows_of(batches, placed, topology, planned, rates) for batches in job.traffic.values()]
    return _summed(job, ports, flows, ports.network.phase_times(_joined(flows), others))


def _shared_fairly(
    jobs: Sequence[tuple[JobGraph, Ints]], topology: Topology, planned: bool, rates: Rates | str
) -> CommunicationTime:
    """Return the time of the first of these jobs, each on its GPUs, if all begin a step at one moment."""
    ports = topology.derived(Ports)
    flows = [
        [_flows_of(batches, placed, topology, planned, rates) for batches in job.traffic.values()]
        for job, placed in jobs
    ]
    rings = [[one.rings.seconds for one in of_job] for of_job in flows]
    found = ports.network.max_min_times([_joined(of_job) for of_job in flows], rings)
    return _summed(jobs[0][0], ports, flows[0], found.phases)


def _running_beside(
    cluster: Cluster, job: JobGraph, gpus: tuple[int, ...]
) -> Iterator[tuple[JobGraph, Ints]]:
    """Yield the running jobs whose graphs are known, with their GPUs, except one of this graph on these GPUs."""
    is_found = False
    for job_id, graph in cluster.jobs.items():
        placed = cluster.native.gpus_of(job_id)
        if not placed or not graph.traffic:
            continue
        if not is_found and (graph, placed) == (job, gpus):
            is_found = True
            continue
        yield graph, np.array(placed, np.int64)


def _summed(
    job: JobGraph, ports: Ports, flows: Sequence[_Flows], times: Sequence[PhaseTime]
) -> CommunicationTime:
    """Return the time of a job from those of its flows in each dimension."""
    seconds = [max(time.seconds, one.rings.seconds) for time, one in zip(times, flows, strict=True)]
    return CommunicationTime(
        math.fsum(seconds),
        MappingProxyType(dict(zip(job.traffic, seconds, strict=True))),
        _named(ports, seconds, times, flows),
        math.fsum(time.port_seconds for time in times),
    )


class Exchange:
    """What the tasks of a placed job exchange in a step, made once for any flows of others; arguments of `measured`."""

    def __init__(self, job: JobGraph, placed: Ints, topology: Topology) -> None:
        parts = [
            _flows_of(batches, placed, topology, True, DEFAULT_RATES) for batches in job.traffic.values()
        ]
        self._network = topology.derived(Ports).network
        self._rings = [part.rings.seconds for part in parts]
        self.flows = _joined(parts)

    def seconds(self, others: kernels.FlowCounts | None = None) -> float:
        """Return the seconds that `measured` returns beside the flows of others."""
        times = self._network.phase_times(self.flows, others)
        return math.fsum(max(time.seconds, rings) for time, rings in zip(times, self._rings, strict=True))


def _flows_of(
    batches: Sequence[Batch],
    placed: Ints,
    topology: Topology,
    planned: bool,
    rates: Rates | str = DEFAULT_RATES,
    *,
    timed: bool = True,
) -> _Flows:
    """Return the flows of a dimension. timed: False leaves out how long planned rings take."""
    flows = _Flows()
    for batch in batches:
        gpus = placed[batch.tasks]
        if planned and batch.kind in RING_KINDS:
            machines = topology.machine_of[gpus]
            inside = (machines == machines[:, :1]).all(axis=1) & topology.derived(_are_rated)[machines[:, 0]]
            _add_planned(flows, batch, gpus[inside], batch.carried[inside], topology, rates, timed)
            gpus, carried = gpus[~inside], batch.carried[~inside]
            if timed:
                switched = _are_switched(topology, machines[~inside])
                flows.plan(topology, gpus[switched], carried[switched], rates)
            flows.add(batch, gpus, carried)
        else:
            flows.add(batch, gpus, batch.carried)
    return flows


def _are_switched(topology: Topology, machines: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return (c,) whether the machines of each collective, (c, n), are in one NVLink domain and can be rated."""
    found = np.zeros(len(machines), bool)
    for level in switched_levels(topology):
        domains = level.codes[machines]
        found |= ((domains == domains[:, :1]) & (domains >= 0)).all(axis=1)
    found &= topology.derived(_are_rated)[machines].all(axis=1)
    return found


def _are_rated(topology: Topology) -> NDArray[np.bool_]:
    """Return (m,) whether the library's rings on each machine are known."""
    rated: NDArray[np.bool_] = np.bincount(topology.machine_of) <= MAX_GPUS
    return rated


def _ring_bandwidths(topology: Topology, gpus: Ints, rates: Rates | str) -> NDArray[np.float64]:
    """Return (c,) GB/s of the rings through each row of GPUs, (c, n): on one machine, or in one NVLink domain.

    Rows with the same GPUs of like machines have the same rings.
    """
    if len(gpus) < 2:
        return np.array([ring_bandwidth(topology, one, rates=rates) for one in gpus.tolist()])
    gpus = np.sort(gpus, axis=1)
    machines = topology.machine_of[gpus]
    number = np.cumsum(np.diff(machines, axis=1, prepend=machines[:, :1]) != 0, axis=1)
    switched = [level.codes[machines] >= 0 for level in switched_levels(topology)]
    patterns = np.concatenate([number, topology.derived(_places)[gpus], *switched], axis=1)
    _, first, pattern = np.unique(patterns, axis=0, return_index=True, return_inverse=True)
    distinct = np.array([ring_bandwidth(topology, one, rates=rates) for one in gpus[first].tolist()])
    found: NDArray[np.float64] = distinct[pattern.reshape(-1)]
    return found


def _places(topology: Topology) -> Ints:
    """Return (n,) equal numbers for the GPUs that have the same place on like machines."""
    if topology.tiling is None:
        return np.arange(topology.num_gpus)
    template: Ints = np.array(topology.template_of, np.int64)[topology.machine_of]
    local: Ints = np.array(topology.local_index, np.int64)
    return template * topology.num_gpus + local


def _add_planned(
    flows: _Flows,
    batch: Batch,
    gpus: Ints,
    carried: NDArray[np.float64],
    topology: Topology,
    rates: Rates | str,
    timed: bool,
) -> None:
    """Add collectives inside machines, in an order in which near GPUs follow each other.

    Among GPUs with direct links the library finds rings of its own, and only they count, if there are some.
    """
    ports = topology.derived(Ports)
    has_links: NDArray[np.bool_] = np.logical_or.reduce(ports.has_links[gpus], axis=1)
    asked = has_links | timed
    through_ports = ~has_links
    through_ports[asked] |= ~flows.plan(topology, gpus[asked], carried[asked], rates)
    flows.add(batch, _near_order(ports, gpus[through_ports]), carried[through_ports])


def _near_order(ports: Ports, gpus: Ints) -> Ints:
    """Return each row of GPUs, (c, n), in an order in which near ones follow each other."""
    return np.take_along_axis(gpus, np.argsort(ports.near_order[gpus], axis=1), axis=1)


def port_seconds_of_rings(job: JobGraph, sets: Ints, topology: Topology) -> NDArray[np.float64]:
    """Return (d, s) the seconds that ports take in each dimension, all of whose collectives are of all tasks.

    sets: (s, n) GPUs of one machine, without direct links.
    """
    ports = topology.derived(Ports)
    gpus, found = _near_order(ports, sets), list[list[float]]()

    def by_set(parts: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
        return np.concatenate([part.reshape(len(gpus), -1) for part in parts], axis=1).astype(dtype).ravel()

    for batches in job.traffic.values():
        flows = _Flows()
        for batch in batches:
            flows.add(batch, gpus, np.full(len(gpus), batch.carried.sum()))
        start, end = by_set(flows.start, np.int32), by_set(flows.end, np.int32)
        ends = (len(start) // len(gpus) * np.arange(1, len(gpus) + 1)).tolist()
        of_sets = kernels.Flows(ends, start, end, by_set(flows.there, float), by_set(flows.back, float))
        found.append([time.seconds for time in ports.network.phase_times(of_sets)])
    return np.array(found)


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


# ---- other jobs ------------------------------------------------------------------------------------------------


class RunningTraffic:
    """The flows of the running jobs of a cluster whose graphs are known; `cluster.view(RunningTraffic)` returns them.

    It follows the cluster: only the flows of jobs that came or went since are added or removed.
    """

    def __init__(self, cluster: Cluster, *, planned: bool = True, gangs: bool = False) -> None:
        """Start without a look at the jobs.

        planned: see `communication_time`. gangs: only jobs on several machines count, as the others use no uplink.
        """
        self._cluster, self._planned, self._gangs = cluster, planned, gangs
        self._start()

    def _start(self) -> None:
        self._flows = kernels.FlowCounts(self._cluster.topology.derived(Ports).network)
        self._position: int | None = None
        self._known: dict[str, tuple[JobGraph, tuple[int, ...]]] = {}
        """The graph and the GPUs of each job whose flows are in `_flows`."""
        self._starting_at: dict[int, list[str]] = {}
        """These jobs by the GPU of their first task."""

    def now(self) -> kernels.FlowCounts | None:
        """Return the flows of all jobs; None if there are none."""
        try:
            self._catch_up()
        except BaseException:  # an interrupt, with a part of the flows
            self._start()
            raise
        return self._flows if self._known else None

    @contextmanager
    def beside(self, job: JobGraph, gpus: Sequence[int]) -> Generator[kernels.FlowCounts | None]:
        """Return the flows of all jobs, except a job of this graph on these GPUs."""
        flows, asked = self.now(), (job, tuple(gpus))
        own = next((one for one in self._starting_at.get(gpus[0], ()) if self._known[one] == asked), None)
        if own is None:
            yield flows
            return
        self._drop(own)
        try:
            yield self._flows
        finally:
            self._add(own)

    def _catch_up(self) -> None:
        state = self._cluster.native
        changed = None if self._position is None else state.changed_since(self._position)
        self._position = state.num_changes
        gone: Iterable[str]
        came: Iterable[str]
        if changed is None:
            gone, came = list(self._known), self._cluster.jobs
        else:
            gpus = sorted(set(changed))
            gone = [one for gpu in gpus for one in self._starting_at.get(gpu, ())]
            came = state.occupants(gpus)[1]
        for job_id in gone:
            graph, placed = self._known[job_id]
            if self._cluster.jobs.get(job_id) is not graph or state.gpus_of(job_id) != placed:
                self._drop(job_id)
        for job_id in came:
            if job_id not in self._known:
                self._add(job_id)

    def _add(self, job_id: str) -> None:
        """Add the flows of a job, if its graph is known and has some."""
        graph, gpus = self._cluster.jobs.get(job_id), self._cluster.native.gpus_of(job_id)
        if graph is None or not gpus or not graph.traffic:
            return
        machines = self._cluster.topology.machine_of[list(gpus)]
        if self._gangs and (machines == machines[0]).all():
            return
        self._flows.add(self._flows_of(graph, gpus))
        self._known[job_id] = graph, gpus
        self._starting_at.setdefault(gpus[0], []).append(job_id)

    def _drop(self, job_id: str) -> None:
        graph, gpus = self._known.pop(job_id)
        self._flows.remove(self._flows_of(graph, gpus))
        self._starting_at[gpus[0]].remove(job_id)
        if not self._starting_at[gpus[0]]:
            del self._starting_at[gpus[0]]

    def _flows_of(self, graph: JobGraph, gpus: tuple[int, ...]) -> kernels.Flows:
        placed, topology = np.array(gpus, np.int64), self._cluster.topology
        return _joined(
            [
                _flows_of(batches, placed, topology, self._planned, timed=False)
                for batches in graph.traffic.values()
            ]
        )


def running_gangs(cluster: Cluster) -> RunningTraffic:
    """Return the flows of jobs on several machines; `cluster.view(running_gangs)` returns the same object each time."""
    return RunningTraffic(cluster, gangs=True)
