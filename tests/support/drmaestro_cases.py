"""Clusters and jobs for DRMaestro: machines of several sizes and models, hosts with and without pools, drives."""

from __future__ import annotations

import json

from hypothesis import strategies as st

import topoplace as tp
from topoplace.cluster.hosts import HostResources


@st.composite
def host_clusters(draw: st.DrawFn) -> tp.Cluster:
    models = st.sampled_from(["K80", "P100"])
    count = draw(st.integers(1, 4))
    machines = [
        tp.Topology.from_links(draw(st.integers(1, 4)), [], 12.0, model=draw(models), memory_gb=12.0)
        for _ in range(count)
    ]
    sizes = st.builds(
        HostResources,
        st.integers(0, 30),
        st.sampled_from([0.0, 8.0, 20.0]),
        st.integers(0, 2),
        st.sampled_from([None, "rack"]),
    )
    return tp.Cluster(tp.Topology.cluster(machines), [draw(sizes) for _ in range(count)])


@st.composite
def host_jobs(draw: st.DrawFn) -> tp.JobGraph:
    cpus, memory = draw(st.integers(1, 12)), draw(st.sampled_from([None, 4.0, 7.3]))
    size = draw(st.integers(0, 4))
    if not size:
        return tp.JobGraph.without_gpus(cpus=cpus, memory_gb=memory)
    apart = draw(st.booleans())
    return tp.JobGraph.ring(size).with_(
        cpus=cpus,
        memory_gb=memory,
        processes=draw(st.integers(1, size)),
        drives=draw(st.integers(0, 2)),
        anti_affinity=apart,
        single_machine=not apart and draw(st.booleans()),
        gpu_model=draw(st.sampled_from([None, "K80"])),
        profile=draw(st.sampled_from([None, "nw"])),
    )


@st.composite
def mixed_clusters(draw: st.DrawFn) -> tp.Cluster:
    """Draw a cluster whose machines may have GPUs of several models and sizes of memory."""
    machines: list[tp.Topology] = []
    for _ in range(draw(st.integers(1, 3))):
        data = json.loads(tp.Topology.from_links(draw(st.integers(1, 4)), [], 12.0).to_json())
        for gpu in data["gpus"]:
            gpu["model"], gpu["memory_gb"] = draw(st.sampled_from([("K80", 12), ("P100", 12), ("P100", 16)]))
        machines.append(tp.Topology.from_json(json.dumps(data)))
    count = draw(st.integers(1, 3))
    topology = tp.Topology.cluster(machines * count)
    hosts = [HostResources(draw(st.integers(0, 12)), 20.0, 1) for _ in range(topology.num_machines)]
    cluster = tp.Cluster(topology, hosts)
    for gpu in draw(st.sets(st.integers(0, topology.num_gpus - 1))):
        cluster.allocate(f"held-{gpu}", (gpu,))
    if draw(st.booleans()):
        cluster.drain(draw(st.sampled_from(topology.machine_names)))
    return cluster
