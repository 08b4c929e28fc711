"""The loops of Figs. 5 and 6 of TSUBAME's paper, slowly, and streams of jobs to run them on."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

import topoplace as tp
from topoplace_lab.simulate import Transfers, Workload

QUEUES = ("g-queue", "r-queue")
HOST = tp.HostResources(cpus=8, memory_gb=22.0)


def job_of(nodes: int, gpus: int, cpus: int = 1, memory: int = 1) -> tp.JobGraph:
    """A job that asks for as much on each of its nodes."""
    if not gpus:
        return tp.JobGraph.without_gpus(cpus=cpus, memory_gb=memory)
    job = tp.JobGraph.independent(nodes * gpus)
    return job.with_(processes=nodes, cpus=cpus * nodes, memory_gb=float(memory * nodes))


def thin_nodes(count: int) -> tp.Topology:
    return tp.Topology.cluster(tp.Topology.from_links(3, [], 12.0, model="K20X"), count)


def cluster_of(count: int) -> tp.Cluster:
    return tp.Cluster(thin_nodes(count), hosts=HOST)


@st.composite
def jobs(draw: st.DrawFn) -> tp.JobGraph:
    gpus = draw(st.integers(0, 3))
    nodes = draw(st.integers(1, 4)) if gpus else 1
    return job_of(nodes, gpus, draw(st.integers(1, 8)), draw(st.sampled_from([1, 7, 11, 22])))


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Few different times, so that several things happen at once."""
    stream = draw(st.lists(jobs(), min_size=draw(st.sampled_from([1, 15])), max_size=25))
    times = st.lists(st.sampled_from([1.0, 2.0, 3.5, 7.0]), min_size=len(stream), max_size=len(stream))
    sent = st.lists(transfers(), min_size=len(stream), max_size=len(stream))
    return Workload(stream, draw(times), draw(times), transfers=draw(sent))


@st.composite
def transfers(draw: st.DrawFn) -> Transfers | None:
    connections = st.sampled_from([0, 100, 1000])
    amounts = st.sampled_from([0.0, 5.0, 22.0])
    told = Transfers(draw(amounts), draw(connections), draw(amounts), draw(connections))
    return draw(st.sampled_from([told, told, None]))


@dataclass
class Server:
    """What Figs. 5 and 6 call one."""

    number: int
    gpus: list[int]
    cpus: int
    memory: float
    has_job: bool


def servers_of(cluster: tp.Cluster) -> list[Server]:
    machine_of, free = cluster.topology.machine_of, cluster.free_gpus()
    used = {int(machine_of[gpu]) for gpus in cluster.allocations.values() for gpu in gpus}
    used |= {share.machine for held in cluster.hosts.held.values() for share in held.shares}
    return [
        Server(
            number,
            [gpu for gpu in free if machine_of[gpu] == number],
            *(int(cluster.hosts.free[number, 0]) // 1000, cluster.hosts.free[number, 1] / 1000),
            number in used,
        )
        for number in range(cluster.topology.num_machines)
    ]


def suitable(servers: list[Server], job: tp.JobGraph) -> list[Server]:
    """Fig. 5."""
    found: list[Server] = []
    for server in servers:
        if len(found) == job.processes:
            break
        if (
            not server.has_job
            and server.cpus >= job.cpus // job.processes
            and len(server.gpus) >= job.num_tasks // job.processes
            and server.memory >= job.memory_gb / job.processes
        ):
            found.append(server)
    return found


def borrowing(servers: list[Server], job: tp.JobGraph) -> list[tuple[Server, list[int]]]:
    """Fig. 6: each server, and the GPUs it has and borrows; [] where the job waits."""
    each = job.num_tasks // job.processes
    found = suitable(servers, job)
    able = [
        server
        for server in servers
        if server not in found
        and server.cpus >= job.cpus // job.processes
        and server.memory >= job.memory_gb / job.processes
    ]
    able.sort(key=lambda server: (-min(len(server.gpus), each), server.number))
    found += able[: job.processes - len(found)]
    if len(found) < job.processes or sum(len(server.gpus) for server in servers) < job.num_tasks:
        return []
    blocks = [(server, [server.gpus.pop(0) for _ in range(min(each, len(server.gpus)))]) for server in found]
    for server in found:
        server.has_job = True
    lenders = sorted(servers, key=lambda server: (not server.has_job, len(server.gpus), server.number))
    for _, block in blocks:
        while len(block) < each:
            block.append(next(lender for lender in lenders if lender.gpus).gpus.pop(0))
    return blocks
