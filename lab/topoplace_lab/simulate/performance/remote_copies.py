"""A model of run times of jobs with remote GPUs on shared network links (TSUBAME paper, sections 2.1 and 4.1).

A *node* is, as in the paper, the part of a job on one machine: all processes of the job there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from topoplace import _checks
from topoplace.text_formats.csv_rows import MAX_NUMBER
from topoplace_lab.simulate.performance.models import machine_numbers
from topoplace_lab.simulate.performance.transfers import Transfers

if TYPE_CHECKING:
    import numpy as np

    from topoplace.placement import Placement
    from topoplace_lab.simulate.performance.models import Neighbours
    from topoplace_lab.simulate.workloads.submitted_job import SubmittedJob


@dataclass(frozen=True, slots=True)
class TransferSpeeds:
    """Bandwidths and latencies of data transfers within and between machines, with the paper's values as defaults.

    These values are from the TSUBAME paper's Table 2 and its fit of eq. 1.

    Raises:
        ValueError: For a negative value, or a bandwidth of 0.
    """

    network_gb_per_s: float = 10.0
    """Bandwidth of a machine's network link, GB/s."""
    network_latency: float = 1.2e-3
    """Seconds for each connection to another node."""
    gpu_gb_per_s: float = 171.0
    """Bandwidth between GPUs of a machine, GB/s."""
    remote_latency: float = 3.47e-3
    """Seconds for each copy to a remote GPU by rCUDA, without the network's own latency, which is negligible."""
    remote_overhead: float = 1.09
    """Bytes that cross the network per byte of data. Table 2 states 0.92 of the bandwidth, nearly the same."""

    def __post_init__(self) -> None:
        for field in fields(self):
            check = _checks.positive if field.name.endswith("gb_per_s") else _checks.real
            value = check(getattr(self, field.name), field.name, ValueError, high=MAX_NUMBER)
            object.__setattr__(self, field.name, value)

    def remote_copies(self, gigabytes: float, connections: float, gb_per_s: float) -> float:
        """Return the seconds that copies to remote GPUs by rCUDA take at a network bandwidth of `gb_per_s` (eq. 1).

        Args:
            gigabytes: Total data.
            connections: Number of copies, each with its latency.
        """
        return connections * self.remote_latency + gigabytes * self.remote_overhead / gb_per_s

    def local_copies(self, gigabytes: float) -> float:
        """Return the seconds that copies between GPUs of one machine take, without latency, as in the paper."""
        return gigabytes / self.gpu_gb_per_s

    def messages(self, gigabytes: float, connections: float, gb_per_s: float) -> float:
        """Return the seconds that messages to other machines take at a network bandwidth of `gb_per_s`.

        Args:
            gigabytes: Total data.
            connections: Number of messages, each with the network's latency.
        """
        return connections * self.network_latency + gigabytes / gb_per_s

    def share(self, flows: int) -> float:
        """Return the bandwidth in GB/s that each of `flows` flows gets on one network link, shared evenly (eq. 2)."""
        return self.network_gb_per_s / flows


@dataclass(frozen=True, slots=True)
class Share:
    """The bandwidth that one data flow of a job gets on one machine's network link."""

    job_id: str
    machine: int
    """The machine that the link belongs to."""
    gb_per_s: float


class CopyTraffic:
    """The data flows of a job across the machines' network links on its placement.

    A node is the part of the job on one machine. Each node has one flow to each other machine whose GPUs it uses,
    across both machines' links. The node's GPU copies are divided evenly among these flows. If there are several nodes,
    each also has one flow for messages, across its machine's link. Flows without data are omitted.
    """

    def __init__(self, job: SubmittedJob, placement: Placement, speeds: TransferSpeeds) -> None:
        self.job = job
        self.speeds = speeds
        self.sent = job.transfers or Transfers()
        self.nodes = _nodes(placement)
        """For each node, its machine and the machines of its remote GPUs."""
        self.sends = len(self.nodes) > 1 and self.sent.network_gb > 0
        self._borrow = [node for node in self.nodes if node[1]]
        self._only_send = [host for host, lenders in self.nodes if not lenders] if self.sends else []

    def crossings(self) -> Iterator[tuple[int, ...]]:
        """Yield, for each of the job's flows, the machines whose network links the flow crosses."""
        for host, lenders in self.nodes:
            if self.sends:
                yield (host,)
            if self.sent.gpu_gb > 0:
                yield from ((host, lender) for lender in lenders)

    @cached_property
    def flows(self) -> Counter[int]:
        """Return the number of the job's flows across each machine's network link; empty if the job sends nothing."""
        return Counter(chain.from_iterable(self.crossings()))

    def seconds(self, flows: Mapping[int, int]) -> float:
        """Return the run time of the whole job (seconds) at these numbers of flows across each machine's link.

        flows: number of flows of all jobs, this one included, by machine number.
        """
        loads = {
            (flows[host], max(map(flows.__getitem__, (host, *lenders))), len(lenders))
            for host, lenders in self._borrow
        }
        if self._only_send:
            loads.add((max(map(flows.__getitem__, self._only_send)), 0, 0))
        return self.job.base_time + max((self._lost(*load) for load in loads), default=0.0)

    def _lost(self, flows: int, most: int, lenders: int) -> float:
        """Return the extra seconds that one node's transfers take compared with local GPUs and idle links.

        flows: number of flows across the link of the node's machine. most: number of flows across the most used link
        that its GPU copies cross. lenders: number of machines whose GPUs it uses remotely.
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
    """A model in which jobs take longer if their GPUs are remote or other jobs use their machines' network links.

    A job's base time T is its run time with local GPUs and idle links. Its run time is T plus the largest extra
    communication time of any of its nodes (the parts of the job on one machine). Flows across a link share it evenly
    (eq. 2); a flow across two links gets the smaller share. Shares are recomputed whenever a flow starts or ends.

    The paper leaves some points open. Our choices:
    - A node with any remote GPU makes all its copies by rCUDA, as this library replaces CUDA's in the whole process.
    - Each connection of such a node takes its latency once, not once per remote GPU. A job with 100,000 connections,
      the largest number, therefore loses 347 s; the paper's worst job loses 7 minutes.
    - The nodes of a job communicate at the same time. A job whose processes are all on one machine sends no messages.
    - The amount of data is not reduced if its transfer with local GPUs would take longer than the base time.
    - Jobs without `transfers` send nothing and are never slowed down.
    """

    def __init__(self, speeds: TransferSpeeds | None = None) -> None:
        self.speeds = TransferSpeeds() if speeds is None else speeds
        _checks.instance(self.speeds, TransferSpeeds, "speeds", ValueError)

    def traffic(self, job: SubmittedJob, placement: Placement) -> CopyTraffic:
        """Return the data flows that the job has across network links on this placement."""
        return CopyTraffic(job, placement, self.speeds)

    def run_time(self, job: SubmittedJob, placement: Placement, random: np.random.Generator) -> float:
        """Return the run time in seconds on this placement while no other job sends data."""
        if job.transfers is None or not placement.remote:
            return job.base_time
        traffic = self.traffic(job, placement)
        return traffic.seconds(traffic.flows)

    def shares(self, running: Neighbours) -> list[Share]:
        """Return the bandwidth that every flow of the `running` jobs gets on each network link that it crosses.

        A flow across two links has one entry for each. The bandwidths of the flows across one link add up to the link's
        bandwidth.
        """
        traffics = [self.traffic(job, placement) for job, placement in running]
        flows = sum((traffic.flows for traffic in traffics), Counter[int]())
        return [
            Share(traffic.job.job_id, machine, self.speeds.share(flows[machine]))
            for traffic in traffics
            for crossed in traffic.crossings()
            for machine in crossed
        ]


def _nodes(placement: Placement) -> list[tuple[int, tuple[int, ...]]]:
    """Return (machine, machines of its remote GPUs) for each machine with processes of the job.

    If the placement has no host shares, the machines of its GPUs are returned, without remote GPUs.
    """
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
