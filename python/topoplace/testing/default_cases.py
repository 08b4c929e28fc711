"""The jobs and clusters on which `check_policy` tries a policy by default."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from topoplace import machines
from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import HostResources, host_shares
from topoplace.errors import AllocationError
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.placement import Placement
from topoplace.testing.placements import MOST_MEMORY_BANDWIDTH
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level
from topoplace.topology.topology import Topology

HOST = HostResources(cpus=16, memory_gb=64.0, drives=2)
"""The resources of each machine of a cluster that knows its hosts."""
_DRAINED = 0.15
"""Share of the GPUs that are drained or held in a busy state."""


def default_topologies() -> list[Topology]:
    """Return small topologies: single machines, a partitioned one, MIG slices, and clusters of different machines."""
    two = _pairs("two-machines", 4, "V100", 16.0, machines=["a", "a", "b", "b"])
    small, large = _pairs("small", 4, "V100", 16.0), _pairs("large", 4, "V100", 32.0)
    mixed = Topology.cluster(
        {"node-7": large, "gpu-a": small, "worker": _pairs("newer", 4, "A100", 40.0)},
        name="mixed-models",
        network=12.5,
    )
    parts = Topology.cluster(
        {"left": _partitioned(4), "right": _partitioned(4)}, name="two-partitioned", network=12.5
    )
    rack = Level("rack", ("a", "a", "b", "b", "b"))
    fabric = Fabric(("m0", "m1", "m2", "m3", "m4"), (rack,))
    racks = Topology.cluster(_pairs("racked", 2, "V100", 16.0), fabric=fabric)
    catalogue = (machines.get(name) for name in ("summit", "dgx1-v100", "cubemesh-16"))
    return [two, *catalogue, mixed, racks, _partitioned(6), parts, _slices()]


def default_jobs() -> list[JobGraph]:
    """Return jobs of 1 to 5 tasks with and without each requirement, some that fit nowhere, and a chain of 32 tasks."""
    patterns = [JobGraph.ring(size) for size in range(1, 6)]
    patterns += [JobGraph.chain(3), JobGraph.star(4), JobGraph.clique(3)]
    one, pair, three, four = patterns[:4]
    return [
        *patterns,
        *(job.with_(bandwidth_sensitive=True) for job in patterns),
        pair.with_(single_machine=True),
        three.with_(single_machine=True, bandwidth_sensitive=True),
        pair.with_(anti_affinity=True),
        pair.with_(gpu_model="V100"),
        pair.with_(gpu_model=["A100", "none such"]),
        pair.with_(gpu_model="none such"),
        one.with_(gpu_memory_gb=8.0),
        pair.with_(gpu_memory_gb=30.0, bandwidth_sensitive=True),
        pair.with_(gpu_memory_gb=1e5),
        one.with_(cpus=10),
        pair.with_(cpus=16, single_machine=True),
        pair.with_(cpus=20, memory_gb=10.0),
        four.with_(cpus=7, processes=2),
        three.with_(memory_gb=90.0),
        pair.with_(anti_affinity=True, cpus=3, memory_gb=1.0),
        pair.with_(drives=1),
        pair.with_(min_utility=0.9),
        pair.with_(gpu_fraction=0.5),
        pair.with_(memory_bandwidth=MOST_MEMORY_BANDWIDTH),
        four.with_(within="rack"),
        three.with_(prefer="rack", bandwidth_sensitive=True),
        pair.with_(spread="rack"),
        four.with_(prefer="row"),
        pair.with_(max_machines=1),
        four.with_(same_gpus=True),
        four.grouped(2, within="machine"),
        patterns[4].grouped(2, within="machine").grouped(4, within="rack"),
        four.grouped(3, within="rack"),
        four.grouped(2, within="socket"),
        four.grouped(4, prefer="rack").with_(bandwidth_sensitive=True),
        four.with_(balanced="machine"),
        JobGraph.chain(32),
    ]


def clusters_on(topology: Topology, states: int, rng: random.Random) -> Iterator[Cluster]:
    """Yield an idle cluster with known hosts, and `states` busy ones.

    The first busy one has no free GPU. In the others, jobs hold random GPUs, others are drained, and every second one
    knows its hosts, of which the jobs hold some resources. The graphs of most jobs are known.
    """
    yield Cluster(topology, HOST)
    for number in range(states):
        cluster = Cluster(topology, HOST if number % 2 else None)
        gpus_left = 0 if number == 0 else rng.randrange(1, max(topology.num_gpus - 1, 2))
        if number:
            _drain_some(cluster, gpus_left, rng)
        _fill(cluster, gpus_left, rng)
        yield cluster


def _drain_some(cluster: Cluster, gpus_left: int, rng: random.Random) -> None:
    """Drain a machine or drain or hold some random GPUs, but leave `gpus_left` of them free."""
    machine = rng.choice(cluster.topology.machine_names)
    if cluster.num_free - len(cluster.topology.gpus_of[machine]) >= gpus_left and rng.random() < 0.5:
        cluster.drain(machine)
        return
    number = min(round(cluster.num_free * _DRAINED) or 1, cluster.num_free - gpus_left)
    for i, gpu in enumerate(rng.sample(cluster.free_gpus(), number)):
        if i % 2:
            cluster.hold([gpu])
        else:
            cluster.drain(gpu)


def _fill(cluster: Cluster, gpus_left: int, rng: random.Random) -> None:
    """Allocate random GPUs to jobs of one to four tasks, until `gpus_left` are free or only partitions that clash."""
    number = 0
    while (spare := cluster.num_free - gpus_left) > 0 and (gpus := _random_gpus(cluster, spare, rng)):
        job = PATTERNS[rng.choice(sorted(PATTERNS))](len(gpus)).with_(name=f"running-{number}")
        if cluster.hosts.resources and rng.random() < 0.7:
            job = job.with_(cpus=rng.randint(1, 4), memory_gb=float(rng.randint(1, 8)))
        elif number % 3 == 2:
            job = job.with_(gpu_fraction=0.7)
        run_job(cluster, f"running-{number}", gpus, job if rng.random() < 0.8 else None)
        number += 1


def run_job(cluster: Cluster, job_id: str, gpus: Sequence[int], job: JobGraph | None) -> None:
    """Allocate free GPUs to a job, with its host shares if the hosts are known; nothing if they lack resources.

    job: the job graph; None if it is not known.
    """
    placement = Placement(tuple(gpus), topology=cluster.topology, job=job)
    if job is not None and cluster.hosts.resources:
        with contextlib.suppress(AllocationError):
            cluster.allocate(
                job_id, replace(placement, hosts=host_shares(job, placement.gpus, cluster.topology))
            )
            return
    cluster.allocate(job_id, placement)


def _random_gpus(cluster: Cluster, most: int, rng: random.Random) -> tuple[int, ...]:
    """Return up to 4 free GPUs, or a free partition, and at most `most`, in random order; () if no partition fits."""
    topology, free = cluster.topology, cluster.free_gpus()
    if topology.partitions:
        parts = [part for part in topology.partitions if len(part) <= most and set(part) <= set(free)]
        return tuple(rng.sample(part, len(part))) if parts and (part := rng.choice(parts)) else ()
    return tuple(rng.sample(free, min(rng.randint(1, 4), most)))


def _pairs(
    name: str, size: int, model: str, memory_gb: float, machines: Sequence[str] | None = None
) -> Topology:
    """Return a topology in which GPUs 0 and 1, 2 and 3, and so on are joined by two NVLinks."""
    links = [(gpu, gpu + 1, 50.0) for gpu in range(0, size, 2)]
    return Topology.from_links(size, links, name=name, machines=machines, model=model, memory_gb=memory_gb)


def _partitioned(size: int) -> Topology:
    """Return a machine of which a job may get one GPU, GPUs 0 and 1, 2 and 3, and so on, or all."""
    parts = [(gpu,) for gpu in range(size)] + [(gpu, gpu + 1) for gpu in range(0, size, 2)]
    machine = _pairs(f"partitioned-{size}", size, "H100", 80.0)
    return replace(machine, partitions=(*parts, tuple(range(size))))


def _slices() -> Topology:
    """Return a machine of two GPUs, one of them divided into four MIG slices of different size."""
    sevenths, memory_gb = (3, 2, 1, 1), (20.0, 10.0, 5.0, 5.0)
    slices = [
        Gpu(i, f"GPU0/MIG{i}", "A100", memory_gb=memory_gb[i], parent="GPU0", fraction=sevenths[i] / 7)
        for i in range(4)
    ]
    whole = Gpu(4, "GPU1", "A100", memory_gb=40.0)
    links = [(u, v, 25.0) for u, v in combinations(range(5), 2)]
    plain = Topology.from_links(5, links, name="slices", model="A100")
    return replace(plain, gpus=(*slices, whole))
