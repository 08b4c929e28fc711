"""Run times of jobs that reach GPUs over the network, on links that many share (TSUBAME, sections 2.1 and 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.simulate.performance.models import machine_numbers
from topoplace.simulate.performance.transfers import Transfers
from topoplace.text_formats.csv_rows import MAX_NUMBER

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace.simulate.performance.models import Neighbours
    from topoplace.simulate.workloads.submitted_job import SubmittedJob


@dataclass(frozen=True, slots=True)
class TransferSpeeds:
    """How long transfers take; the defaults are the paper's (Table 2, and the fit of eq. 1). ValueError below 0."""

    network_gb_per_s: float = 10.0
    """Of the link of a machine, GB/s."""
    network_latency: float = 1.2e-3
    """Seconds for each connection to another node."""
    gpu_gb_per_s: float = 171.0
    """From GPU to GPU of a machine, GB/s."""
    remote_latency: float = 3.47e-3
    """Seconds for each copy by rCUDA; the network's own is nothing beside it and left out, as in the paper."""
    remote_overhead: float = 1.09
    """How many times as much as the data crosses the network. Table 2 has 0.92 of the bandwidth, nearly the same."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _checks.positive if field.name.endswith("gb_per_s") else _checks.real
            value = check(getattr(self, field.name), field.name, ValueError, high=MAX_NUMBER)
            object.__setattr__(self, field.name, value)

    def remote_copies(self, gigabytes: float, connections: float, gb_per_s: float) -> float:
        """Seconds of copies by rCUDA at a share of the network (eq. 1)."""
        return connections * self.remote_latency + gigabytes * self.remote_overhead / gb_per_s

    def local_copies(self, gigabytes: float) -> float:
        """Seconds of copies between GPUs of a machine, whose latency the paper leaves out."""
        return gigabytes / self.gpu_gb_per_s

    def messages(self, gigabytes: float, connections: float, gb_per_s: float) -> float:
        """Seconds of transfers to other nodes at a share of the network."""
        return connections * self.network_latency + gigabytes / gb_per_s

    def share(self, flows: int) -> float:
        """The share of a link that each of so many flows across it gets, GB/s (eq. 2): together they fill it."""
        return self.network_gb_per_s / flows


@dataclass(frozen=True, slots=True)
class Share:
    """What one flow gets of one link."""

    job_id: str
    machine: int
    """Whose link it is."""
    gb_per_s: float


class Traffic:
    """What a job sends where it was placed.

    Each node of a job on several machines has a flow for its messages, across its own link, and one to each machine
    that lends it GPUs, across both links; among these its copies are divided evenly. Flows that carry nothing are none.
    """

    def __init__(self, job: SubmittedJob, placement: Placement, speeds: TransferSpeeds) -> None:
        self.job = job
        self.speeds = speeds
        self.sent = job.transfers or Transfers()
        self.nodes = _nodes(placement)
        """The machine of each node, and those that lend it GPUs."""
        self.sends = len(self.nodes) > 1 and self.sent.network_gb > 0
        self._borrow = [node for node in self.nodes if node[1]]
        self._only_send = [host for host, lenders in self.nodes if not lenders] if self.sends else []

    def crossings(self) -> Iterator[tuple[int, ...]]:
        """The machines whose links each flow crosses."""
        for host, lenders in self.nodes:
            if self.sends:
                yield (host,)
            if self.sent.gpu_gb > 0:
                yield from ((host, lender) for lender in lenders)

    @cached_property
    def flows(self) -> Counter[int]:
        """How many flows cross the link of each machine; none where the job sends nothing."""
        return Counter(chain.from_iterable(self.crossings()))

    def seconds(self, flows: Mapping[int, int]) -> float:
        """The run time of the whole job while so many flows, its own among them, cross the link of each machine."""
        loads = {
            (flows[host], max(map(flows.__getitem__, (host, *lenders))), len(lenders))
            for host, lenders in self._borrow
        }
        if self._only_send:
            loads.add((max(map(flows.__getitem__, self._only_send)), 0, 0))
        return self.job.base_time + max((self._lost(*load) for load in loads), default=0.0)

    def _lost(self, flows: int, most: int, lenders: int) -> float:
        """Seconds by which the transfers of a node take longer than natively and alone.

        flows: across its link. most: across the fullest of those its copies cross. lenders: how many it has.
        """
        sent, speeds, lost = self.sent, self.speeds, 0.0
        if self.sends:
            amounts, native = (sent.network_gb, sent.network_connections), speeds.network_gb_per_s
            lost += speeds.messages(*amounts, speeds.share(flows)) - speeds.messages(*amounts, native)
        if lenders:
            share = speeds.share(max(most, 1))
            lost += speeds.remote_copies(sent.gpu_gb / lenders, sent.gpu_connections, share)
            lost -= speeds.local_copies(sent.gpu_gb)
        return max(lost, 0.0)


class RemoteCopies:
    """Jobs take longer where GPUs are remote, and where others use the links of their machines.

    A job's base time is its run time with local GPUs and all links to itself. Elsewhere it takes, beyond that, what the
    transfers of its slowest node take longer than natively: T + max over nodes of (communication now - native
    communication), which is never less. Links are divided evenly among the flows across them (eq. 2), and a flow that
    crosses two gets the lesser of its shares; all is found anew whenever a flow comes or goes.

    Readings of what the paper leaves open: a node with any remote GPU makes all its copies by rCUDA, whose library
    takes the place of CUDA's in the whole process, and its connections take their latency once and not for every remote
    GPU; so a remote job of 100,000 connections, the most there are, loses 347 s, and the paper's worst loses 7 minutes.
    The nodes of a job communicate at the same time; its processes on one machine are one node, and a job on one machine
    sends no messages. Nothing is scaled where the transfers would natively take longer than the whole base time: what
    they take longer is lost all the same. Jobs that told no `transfers` neither send nor mind.
    """

    def __init__(self, speeds: TransferSpeeds | None = None) -> None:
        self.speeds = TransferSpeeds() if speeds is None else speeds
        _checks.instance(self.speeds, TransferSpeeds, "speeds", ValueError)

    def traffic(self, job: SubmittedJob, placement: Placement) -> Traffic:
        """What the job sends there."""
        return Traffic(job, placement, self.speeds)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Its run time there while nobody else sends."""
        if job.transfers is None or not placement.remote:
            return job.base_time
        traffic = self.traffic(job, placement)
        return traffic.seconds(traffic.flows)

    def shares(self, running: Neighbours) -> list[Share]:
        """What each flow of the running jobs gets of each link it crosses; those of a link add up to its bandwidth."""
        traffics = [self.traffic(job, placement) for job, placement in running]
        flows = sum((traffic.flows for traffic in traffics), Counter[int]())
        return [
            Share(traffic.job.job_id, machine, self.speeds.share(flows[machine]))
            for traffic in traffics
            for crossed in traffic.crossings()
            for machine in crossed
        ]


def _nodes(placement: Placement) -> list[tuple[int, tuple[int, ...]]]:
    """The machines with processes, and those that lend them GPUs; without processes, the machines of the GPUs."""
    machine_of = placement.topology.derived(machine_numbers)
    if not placement.hosts:
        return [(machine, ()) for machine in sorted({machine_of[gpu] for gpu in placement.gpus})]
    lenders: dict[int, set[int]] = {share.machine: set() for share in placement.hosts}
    remote = set(placement.remote)
    for task, gpu in enumerate(placement.gpus) if remote else ():
        if gpu in remote:
            host = placement.hosts[task * len(placement.hosts) // len(placement.gpus)]
            lenders[host.machine].add(machine_of[gpu])
    return [(machine, tuple(sorted(its))) for machine, its in lenders.items()]
