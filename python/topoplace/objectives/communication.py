"""Communication time: the seconds that the ports of a topology take for the data that the tasks of a job exchange in a
step.

In each dimension of a job, all groups communicate at the same time. The time of a dimension is the largest of these.
For each port, it is the GB that pass in the busier direction, divided by the port's GB/s. For each reduction, gather or
broadcast inside one machine or NVLink domain, it is the GB divided by the bandwidth of the library's rings there, or of
NVSwitches that reduce. Between machines, rings run in channels, one over each adapter (`kernels.CollectiveNetwork`).
The job's time is the sum over its dimensions.

On ports that running jobs also use, each of their flows counts up to the GB of the job's own largest flow: a small flow
does not wait for the rest of a big one. This is a fast estimate. `max_min=True` instead follows the flows of all these
jobs through time.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from topoplace import _checks, kernels
from topoplace.cluster.cluster import Cluster
from topoplace.collective.bandwidth import DEFAULT_RATES
from topoplace.collective.networks import collective_network, domains_of
from topoplace.jobs.job_graph import JobGraph
from topoplace.objectives.arguments import gpu_of_each_task
from topoplace.topology.device_numbers import MOST_NAMED, in_words
from topoplace.topology.links.nccl_rates import Rates, rates_of
from topoplace.topology.makers import are_mixed, names_several
from topoplace.topology.ports import Ports
from topoplace.topology.topology import Topology

if TYPE_CHECKING:
    pass

Ints = NDArray[np.int64]
RING_KINDS: Final = frozenset({"all_reduce", "all_gather", "reduce_scatter", "broadcast"})
"""The kinds in which each task sends to the next one only; in other kinds, half of the GB of a pair goes each way.
Inside a machine or an NVLink domain, the collective library plans their rings, whatever the order of the ranks.
"""


@dataclass(frozen=True, slots=True)
class CommunicationTime:
    """The time that a job communicates in a step, with its tasks on given GPUs."""

    seconds: float
    """Seconds of all dimensions; for a job without bytes, per unit of its weights. Infinity if two tasks have no path,
    or are on GPUs of two makers, whose collective libraries cannot join them.
    """
    by_dimension: Mapping[str, float]
    """Seconds of each dimension."""
    slowest: str
    """The port, or the rings, that take the longest, such as "uplink of leaf l3"; "" if nothing communicates."""
    port_seconds: float
    """Seconds summed over all uplinks and directions: the job's use of ports that other jobs share."""


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

    The time is infinite on GPUs of several makers, unless the job requires such models: NCCL and RCCL cannot
    communicate.

    Args:
        cluster: The cluster whose running jobs count, if their graphs are known, with all their flows on ports that
            they share with this job. A running job with this graph on these GPUs is the job itself. None: no other job
            runs.
        planned: False ignores the rings that the collective library plans inside a machine: every collective then uses
            the ports in the order of its tasks.
        rates: The rates of links with which the library plans its rings, as in `topoplace.collective`.
        max_min: True starts a step of all these jobs at the same time and follows their flows. Each job runs its
            dimensions one after the other, and flows share each port max-min fairly. Network simulators do this; it
            takes longer to compute.

    Raises:
        ValueError: Names a wrong argument.
    """
    _checks.instance(job, JobGraph, "job", ValueError)
    _checks.instance(topology, Topology, "topology", ValueError)
    numbers = gpu_of_each_task(job, gpus, topology)
    placed = np.array(numbers, np.int64)
    rates_of(rates)
    if job.traffic and are_mixed(topology, numbers) and not names_several(job.gpu_models):
        return _of_several_makers(job)
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


def _of_several_makers(job: JobGraph) -> CommunicationTime:
    never = MappingProxyType(dict.fromkeys(job.traffic, math.inf))
    return CommunicationTime(math.inf, never, "libraries of several makers, which do not meet", math.inf)


def measured(
    job: JobGraph,
    placed: Ints,
    topology: Topology,
    *,
    planned: bool = True,
    others: kernels.FlowCounts | None = None,
    rates: Rates | str = DEFAULT_RATES,
) -> CommunicationTime:
    """Return the result of `communication_time`, with checked arguments.

    Args:
        placed: (num_tasks,) the GPU of each task, checked.
        others: The flows of other jobs; None for none.
    """
    network = collective_network(topology, rates)
    times = network.times(job.traffic_arrays, placed, planned=planned, others=others)
    return _summed(job, placed, topology, times)


def seconds_of(
    job: JobGraph, placed: Ints, topology: Topology, others: kernels.FlowCounts | None, rates: Rates | str
) -> tuple[float, float]:
    """Return the seconds of `measured` without other jobs and next to `others`."""
    return collective_network(topology, rates).seconds(job.traffic_arrays, placed, others)


def _shared_fairly(
    jobs: Sequence[tuple[JobGraph, Ints]], topology: Topology, planned: bool, rates: Rates | str
) -> CommunicationTime:
    """Return the time of the first of these jobs, each on its GPUs, if all begin a step at one moment."""
    network = collective_network(topology, rates)
    made = [network.flows(one.traffic_arrays, gpus, planned=planned) for one, gpus in jobs]
    found = network.network.max_min_times(
        [flows for flows, _ in made], [[one.seconds for one in rings] for _, rings in made]
    )
    job, placed = jobs[0]
    times = [kernels.TrafficTime(*both) for both in zip(found.phases, made[0][1], strict=True)]
    return _summed(job, placed, topology, times)


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
    job: JobGraph, placed: Ints, topology: Topology, times: Sequence[kernels.TrafficTime]
) -> CommunicationTime:
    """Return the time of a job from those of its dimensions."""
    seconds = [time.seconds for time in times]
    return CommunicationTime(
        math.fsum(seconds),
        MappingProxyType(dict(zip(job.traffic, seconds, strict=True))),
        _named(job, placed, topology, times),
        math.fsum(time.ports.port_seconds for time in times),
    )


class Exchange:
    """The data that the tasks of a placed job exchange in a step, computed once; arguments are those of `measured`."""

    def __init__(self, job: JobGraph, placed: Ints, topology: Topology) -> None:
        network = collective_network(topology, DEFAULT_RATES)
        self._network = network.network
        self.flows, self._rings = network.flows(job.traffic_arrays, placed)

    def seconds(self, others: kernels.FlowCounts | None = None) -> float:
        """Return the seconds of `measured` next to the flows of other jobs; None for no other jobs."""
        times = self._network.phase_times(self.flows, others)
        return math.fsum(
            max(time.seconds, rings.seconds) for time, rings in zip(times, self._rings, strict=True)
        )


def _named(job: JobGraph, placed: Ints, topology: Topology, times: Sequence[kernels.TrafficTime]) -> str:
    """Return what is the slowest in the longest phase."""
    longest = max(times, key=lambda time: time.seconds, default=None)
    if longest is None or not longest.seconds:
        return ""
    if math.isinf(longest.seconds):
        return "no path"
    if longest.rings.seconds <= longest.ports.seconds:
        return topology.derived(Ports).port(longest.ports.slowest // 2).in_words(topology)
    gpus = _of_slowest_rings(job, placed, topology, longest.rings)
    what = "NVSwitches" if longest.rings.by_switches else "rings"
    return f"{what} of {in_words(gpus, topology, MOST_NAMED)}"


def _of_slowest_rings(job: JobGraph, placed: Ints, topology: Topology, rings: kernels.Rings) -> list[int]:
    """Return the GPUs of the slowest rings inside a domain, ascending."""
    listed = [batch for batches in job.traffic.values() for batch in batches]
    number, rest = 0, rings.collective
    while rest >= len(listed[number].tasks):
        rest -= len(listed[number].tasks)
        number += 1
    gpus = placed[listed[number].tasks[rest]]
    domains = domains_of(topology)
    found: list[int] = np.sort(gpus[domains[gpus] == domains[rings.vertex]]).tolist()
    return found


# ---- other jobs ------------------------------------------------------------------------------------------------


class RunningTraffic:
    """The flows of the running jobs of a cluster whose graphs are known; `cluster.view(RunningTraffic)` returns them.

    It is incremental: only the flows of jobs that started or ended since the last call are added or removed.
    """

    def __init__(self, cluster: Cluster, *, planned: bool = True, gangs: bool = False) -> None:
        """Store the arguments; the jobs are read on the first use.

        planned: see `communication_time`. gangs: True counts only jobs on several machines, as other jobs use no
        uplink.
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
        if self._position != self._cluster.native.num_changes:
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
        network = collective_network(self._cluster.topology, DEFAULT_RATES)
        return network.flows(graph.traffic_arrays, np.array(gpus, np.int32), planned=self._planned)[0]


def running_gangs(cluster: Cluster) -> RunningTraffic:
    """Return the flows of jobs on several machines; `cluster.view(running_gangs)` returns the same object each time."""
    return RunningTraffic(cluster, gangs=True)
