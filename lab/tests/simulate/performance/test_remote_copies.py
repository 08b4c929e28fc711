"""Remote copies on shared links: eqs. 1 and 2 by hand, and a simulator of another make."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from rcuda_oracle import HOST, QUEUES, Server, borrowing, job_of, suitable, thin_nodes, workloads
from topoplace_lab.simulate import (
    FixedTime,
    LinkModel,
    RemoteCopies,
    SubmittedJob,
    Transfers,
    TransferSpeeds,
    Workload,
    simulate,
)
from topoplace_lab.simulate.performance.remote_copies import CopyTraffic

SENT = Transfers(network_gb=20.0, network_connections=1000, gpu_gb=10.0, gpu_connections=2000)
TOPOLOGY = thin_nodes(4)


def entry(job: tp.JobGraph, sent: Transfers | None = SENT, base: float = 100.0) -> SubmittedJob:
    return SubmittedJob(0, "a", job, 0.0, base, sent)


def placed(gpus: tuple[int, ...], hosts: list[int], remote: tuple[int, ...] = ()) -> tp.Placement:
    shares = tuple(tp.HostShare(machine, 1, 1.0) for machine in hosts)
    return tp.Placement(gpus, topology=TOPOLOGY, hosts=shares, remote=remote)


def time_of(job: SubmittedJob, placement: tp.Placement) -> float:
    return RemoteCopies().run_time(job, placement, np.random.default_rng(0))


# ---- by hand -----------------------------------------------------------------------------------------------------


def test_copies_take_what_equation_1_says() -> None:
    speeds = TransferSpeeds()
    assert speeds.remote_copies(22.0, 100_000, 10.0) == pytest.approx(347.0 + 22 / 10 * 1.09)
    assert speeds.local_copies(171.0) == 1.0
    assert speeds.messages(22.0, 1000, 5.0) == pytest.approx(1.2 + 4.4)


def test_messages_wait_for_the_machine_with_the_most_flows() -> None:
    traffic = CopyTraffic(entry(job_of(3, 1)), placed((0, 3, 6), [0, 1, 2]), TransferSpeeds())
    alone, crowded = traffic.seconds({0: 1, 1: 1, 2: 1}), traffic.seconds({0: 1, 1: 1, 2: 4})
    assert alone < crowded == traffic.seconds({0: 4, 1: 1, 2: 1}) == traffic.seconds({0: 4, 1: 4, 2: 4})


def test_local_gpus_on_links_of_their_own_take_the_base_time() -> None:
    assert time_of(entry(job_of(1, 3)), placed((0, 1, 2), [0])) == 100.0
    assert time_of(entry(job_of(3, 1)), placed((0, 3, 6), [0, 1, 2])) == 100.0
    assert time_of(entry(job_of(2, 1)), tp.Placement((0, 3), topology=TOPOLOGY)) == 100.0
    assert time_of(entry(job_of(1, 2), None), placed((0, 3), [0], remote=(3,))) == 100.0


@pytest.mark.parametrize(
    ("gpus", "remote"), [((0, 3), (3,)), ((3, 4), (3, 4)), ((3, 6), (3, 6)), ((0, 3, 6), (3, 6))]
)
def test_a_node_with_remote_gpus_copies_everything_over_its_link(
    gpus: tuple[int, ...], remote: tuple[int, ...]
) -> None:
    """However many are remote, and on however many machines: 10 GB at 10 GB/s."""
    expected = 100 + 2000 * 3.47e-3 + 10 * 1.09 / 10 - 10 / 171
    assert time_of(entry(job_of(1, len(gpus))), placed(gpus, [0], remote)) == pytest.approx(expected)


def test_the_slowest_node_counts() -> None:
    """Node 0 has its messages and its copies on one link, and node 1 the lender's end and its messages."""
    copies = 2000 * 3.47e-3 + 10 * 1.09 / 5 - 10 / 171
    job = entry(job_of(2, 2))
    assert time_of(job, placed((0, 5, 3, 4), [0, 1], remote=(5,))) == pytest.approx(
        100 + copies + 20 / 5 - 20 / 10
    )


def test_processes_on_one_machine_are_one_node() -> None:
    """They send no messages, and copy what one node copies."""
    pair = entry(job_of(2, 1))
    assert not RemoteCopies().traffic(pair, placed((0, 1), [0, 0])).flows
    once = 100 + 2000 * 3.47e-3 + 10 * 1.09 / 10 - 10 / 171
    assert time_of(pair, placed((3, 6), [0, 0], remote=(3, 6))) == pytest.approx(once)


def test_nothing_is_scaled_where_transfers_take_longer_than_the_job() -> None:
    assert time_of(entry(job_of(1, 1), base=1.0), placed((3,), [0], remote=(3,))) == pytest.approx(
        1 + 2000 * 3.47e-3 + 1.09 - 10 / 171
    )
    assert time_of(entry(job_of(1, 1), base=0.0), placed((3,), [0], remote=(3,))) > 7.0


def test_a_faster_network_makes_no_job_faster_than_its_base_time() -> None:
    model = RemoteCopies(TransferSpeeds(gpu_gb_per_s=0.01))
    placement = placed((3,), [0], remote=(3,))
    assert model.run_time(entry(job_of(1, 1)), placement, np.random.default_rng(0)) == 100.0


def test_two_borrowers_share_the_lender_and_part() -> None:
    """Both borrow from machine 2 until the first ends: 10.9 GB at 5 GB/s each, then at 10."""
    sent = Transfers(gpu_gb=10.0)

    class Given:
        name = "given"

        def place(self, job: tp.JobGraph, cluster: tp.Cluster) -> tp.Placement | None:
            return None

        def explain(self, job: tp.JobGraph, cluster: tp.Cluster, top: int = 5) -> tp.policies.Explanation:
            return tp.policies.Explanation(self.name, ())

        def plan(self, queue: object, cluster: object, now: float) -> tp.Plan:
            starts = {"0": placed((6,), [0], remote=(6,)), "1": placed((7,), [1], remote=(7,))}
            return tp.Plan(tuple((job.job_id, starts[job.job_id]) for job in queue))

    workload = Workload([job_of(1, 1)] * 2, [0.0, 0.0], [10.0, 20.0], transfers=[sent, sent])
    result = simulate(TOPOLOGY, workload, Given(), performance=RemoteCopies())
    gained, alone, shared = 10 / 171, 1.09, 2.18
    first = 10 + shared - gained
    done = first / (20 + shared - gained)
    second = first + (1 - done) * (20 + alone - gained)
    assert result.jobs["end"].tolist() == pytest.approx([first, second])


@pytest.mark.parametrize("field", ["network_gb_per_s", "gpu_gb_per_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_bad_speeds_are_refused(field: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"{field} = "):
        TransferSpeeds(**{field: value})


@pytest.mark.parametrize("field", ["network_latency", "remote_latency", "remote_overhead"])
def test_bad_latencies_are_refused(field: str) -> None:
    assert getattr(TransferSpeeds(**{field: 0}), field) == 0.0
    with pytest.raises(ValueError, match=f"{field} = -1"):
        TransferSpeeds(**{field: -1})
    with pytest.raises(ValueError, match="speeds = 3 is not a TransferSpeeds"):
        RemoteCopies(3)


def test_it_is_a_link_model() -> None:
    assert isinstance(RemoteCopies(), LinkModel)
    assert not isinstance(FixedTime(), LinkModel)


# ---- shares ------------------------------------------------------------------------------------------------------


@given(workload=workloads(), count=st.integers(1, 4))
def test_the_shares_of_a_link_add_up_to_its_bandwidth(workload: Workload, count: int) -> None:
    """At every moment of a run; each flow between two machines has a share of both links."""
    model = RemoteCopies(TransferSpeeds(network_gb_per_s=7.0))
    result = simulate(thin_nodes(count), workload, tp.policies.get("r-queue"), hosts=HOST, performance=model)
    for moment in {record.start for record in result.records if record.placement}:
        running = [
            (record.submitted, record.placement)
            for record in result.records
            if record.placement and record.start <= moment < record.end
        ]
        total: dict[int, float] = defaultdict(float)
        for share in model.shares(running):
            total[share.machine] += share.gb_per_s
        assert all(bandwidth == pytest.approx(7.0) for bandwidth in total.values())
        assert set(total) == senders(running)


def senders(running: list[tuple[SubmittedJob, tp.Placement]]) -> set[int]:
    """The machines through whose links something is sent."""
    found: set[int] = set()
    for job, placement in running:
        hosts = [share.machine for share in placement.hosts]
        if job.transfers and job.transfers.network_gb and len(hosts) > 1:
            found |= set(hosts)
        if job.transfers and job.transfers.gpu_gb:
            for gpu in placement.remote:
                task = placement.gpus.index(gpu)
                found |= {placement.host_of(task), int(placement.topology.machine_of[gpu])}
    return found


# ---- a simulator of another make ---------------------------------------------------------------------------------


@dataclass
class Run:
    """A job under way: the share of it that is still to do, and where its nodes and their lenders are."""

    entry: SubmittedJob
    nodes: list[tuple[Server, list[int]]]
    start: float
    left: float = 1.0

    def lenders(self) -> list[tuple[int, list[int]]]:
        return [
            (server.number, sorted({gpu // 3 for gpu in block} - {server.number}))
            for server, block in self.nodes
        ]


def flows_of(runs: list[Run]) -> dict[int, int]:
    flows: dict[int, int] = defaultdict(int)
    for run in runs:
        sent = run.entry.transfers
        for host, lenders in run.lenders() if sent else ():
            flows[host] += len(run.nodes) > 1 and sent.network_gb > 0
            for lender in lenders if sent.gpu_gb else ():
                flows[host] += 1
                flows[lender] += 1
    return flows


def seconds_of(run: Run, flows: dict[int, int]) -> float:
    """The run time in the current conditions."""
    sent, worst = run.entry.transfers, 0.0
    for host, lenders in run.lenders() if sent else ():
        more = 0.0
        if len(run.nodes) > 1 and sent.network_gb:
            more += sent.network_gb / (10 / flows[host]) - sent.network_gb / 10
        if lenders:
            more += 3.47e-3 * sent.gpu_connections - sent.gpu_gb / 171
            slowest = max(flows[machine] for machine in (host, *lenders)) if sent.gpu_gb else 1
            more += 1.09 * sent.gpu_gb / len(lenders) / (10 / slowest)
        worst = max(worst, more)
    return run.entry.base_time + worst


class Clock:
    """The time-step-wise method of section 4.1: between two changes everything stays as it is."""

    def __init__(self, count: int, workload: Workload, queue: str) -> None:
        self.servers = [
            Server(i, [3 * i, 3 * i + 1, 3 * i + 2], 8, 22.0, has_job=False) for i in range(count)
        ]
        self.coming = sorted(workload, key=lambda job: job.submit_time)
        self.find = borrowing if queue == "r-queue" else exclusive
        self.waiting: list[SubmittedJob] = []
        self.running: list[Run] = []
        self.ends: dict[str, tuple[float, float]] = {}
        self.now = 0.0

    def run(self) -> dict[str, tuple[float, float]]:
        """(start, end) of every job that can run."""
        while self.coming or self.running:
            flows = flows_of(self.running)
            left = [run.left * seconds_of(run, flows) for run in self.running]
            after = min([*left, *(job.submit_time - self.now for job in self.coming[:1])])
            for run, rest in zip(self.running, left, strict=True):
                run.left *= max(1 - after / rest, 0.0)
            self.now += after
            for run in [run for run, rest in zip(self.running, left, strict=True) if rest - after < 1e-9]:
                self.end(run)
            while self.coming and self.coming[0].submit_time <= self.now + 1e-9:
                self.waiting.append(self.coming.pop(0))
            self.start()
        return self.ends

    def end(self, run: Run) -> None:
        self.running.remove(run)
        self.ends[run.entry.job_id] = run.start, self.now
        job = run.entry.job
        for server, block in run.nodes:
            server.cpus += job.cpus // job.processes
            server.memory += job.memory_gb / job.processes
            for gpu in block:
                self.servers[gpu // 3].gpus = sorted([*self.servers[gpu // 3].gpus, gpu])
        for server in self.servers:
            server.has_job = any(
                server is host or any(gpu // 3 == server.number for gpu in block)
                for other in self.running
                for host, block in other.nodes
            )

    def start(self) -> None:
        for entry in list(self.waiting):
            if found := self.find(self.servers, entry.job):
                self.waiting.remove(entry)
                self.running.append(Run(entry, found, self.now))
                for server, block in found:
                    server.cpus -= entry.job.cpus // entry.job.processes
                    server.memory -= entry.job.memory_gb / entry.job.processes
                    for machine in {server.number, *(gpu // 3 for gpu in block)}:
                        self.servers[machine].has_job = True


def exclusive(servers: list[Server], job: tp.JobGraph) -> list[tuple[Server, list[int]]]:
    found, each = suitable(servers, job), job.num_tasks // job.processes
    if len(found) < job.processes:
        return []
    return [(server, [server.gpus.pop(0) for _ in range(each)]) for server in found]


@pytest.mark.parametrize("name", QUEUES)
@given(workload=workloads(), count=st.integers(1, 4))
def test_ends_are_those_of_another_simulator(name: str, workload: Workload, count: int) -> None:
    fitting = [job for job in workload if job.job.processes <= count]
    workload = Workload(
        [job.job for job in fitting],
        [job.submit_time for job in fitting],
        [job.base_time for job in fitting],
        transfers=[job.transfers for job in fitting],
    )
    result = simulate(
        thin_nodes(count), workload, tp.policies.get(name), hosts=HOST, performance=RemoteCopies()
    )
    ends = Clock(count, workload, name).run()
    ours = {record.submitted.job_id: (record.start, record.end) for record in result.records}
    assert set(ours) == set(ends)
    for job_id, times in ends.items():
        assert ours[job_id] == pytest.approx(times, abs=1e-6)
