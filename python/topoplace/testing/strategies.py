"""Hypothesis strategies for topologies, jobs, hosts and clusters, to test programs that use topoplace.

    from topoplace.testing.strategies import clusters, job_graphs

    @given(job_graphs(max_tasks=4), clusters())
    def test_my_policy(job, cluster): ...

Examples are small, with few GPUs and few different speeds, so that ties, isolated GPUs and full clusters are frequent.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from topoplace.cluster.cluster import Cluster
from topoplace.cluster.hosts import HostResources
from topoplace.jobs.groups import Group
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.testing.default_cases import run_job
from topoplace.topology.devices import Gpu
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.links.link_kinds import LinkKind, direct
from topoplace.topology.topology import Topology

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError(
        "topoplace.testing.strategies needs hypothesis, which is not installed: pip install hypothesis"
    ) from error

_NVLINKS = st.sampled_from(
    [(LinkKind.NVLINK1, 1), (LinkKind.NVLINK1, 2), (LinkKind.NVLINK2, 1), (LinkKind.NVLINK2, 2)]
)


@st.composite
def topologies(draw: st.DrawFn, *, min_gpus: int = 1, max_gpus: int = 8, max_machines: int = 2) -> Topology:
    """Generate topologies of min_gpus..max_gpus GPUs with random NVLinks.

    They have at most `max_machines` machines, each with at most two sockets.
    """
    n = draw(st.integers(min_gpus, max_gpus))
    machines = draw(st.lists(st.integers(0, max_machines - 1), min_size=n, max_size=n))
    sockets = draw(st.none() | st.lists(st.integers(0, 1), min_size=n, max_size=n))
    pairs = [(u, v) for v in range(n) for u in range(v) if machines[u] == machines[v]]
    linked = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    return Topology.from_links(
        n,
        [direct(u, v, *draw(_NVLINKS)) for u, v in linked],
        draw(st.sampled_from([12.0, 10.0, 0.0])),
        sockets=sockets,
        machines=[f"machine{i}" for i in machines],
    )


@st.composite
def cluster_topologies(draw: st.DrawFn, *, max_machines: int = 4) -> Topology:
    """Generate topologies of clusters (`Topology.cluster`) with at most two types of machines.

    They have at most two levels, some of which have rails.
    """
    kinds = draw(st.lists(topologies(max_gpus=3, max_machines=1), min_size=1, max_size=2))
    machines = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_machines))
    count = len(machines)
    levels = [
        Level(
            name,
            tuple(draw(st.lists(st.sampled_from([None, "a", "b"]), min_size=count, max_size=count))),
            draw(st.sampled_from([None, 25.0, 50.0])),
            draw(st.sampled_from([1.0, 2.0])),
            rail=(rail := draw(st.booleans())),
            pxn=rail and draw(st.booleans()),
        )
        for name in draw(st.sampled_from([(), ("rack",), ("rack", "spine")]))
    ]
    fabric = Fabric(numbered("machine", count), tuple(levels))
    return Topology.cluster(machines, fabric=fabric, network=draw(st.sampled_from([0.0, 12.5])))


@st.composite
def job_graphs(draw: st.DrawFn, *, min_tasks: int = 1, max_tasks: int = 5) -> JobGraph:
    """Generate job graphs of min_tasks..max_tasks tasks: named patterns and random graphs.

    Some are bandwidth-sensitive.
    """
    k = draw(st.integers(min_tasks, max_tasks))
    pairs = [(a, b) for b in range(k) for a in range(b)]
    if not pairs or draw(st.booleans()):
        job = draw(st.sampled_from(list(PATTERNS.values())))(k)
    else:
        edges = draw(st.lists(st.sampled_from(pairs), unique=True))
        job = JobGraph.from_edges(k, [(a, b, draw(st.sampled_from([1.0, 2.0, 4.0]))) for a, b in edges])
    return job.with_(bandwidth_sensitive=draw(st.booleans()))


@st.composite
def partitioned_topologies(draw: st.DrawFn, *, max_gpus: int = 6) -> Topology:
    """Generate machines of at most `max_gpus` GPUs, of which a job may get only certain sets (partitions)."""
    machine = draw(topologies(max_gpus=max_gpus, max_machines=1))
    gpus = range(machine.num_gpus)
    sets = st.frozensets(st.sampled_from(gpus), min_size=1).map(lambda part: tuple(sorted(part)))
    return replace(machine, partitions=draw(st.lists(sets, min_size=1, max_size=6, unique=True)))


@st.composite
def sliced_topologies(draw: st.DrawFn, *, max_gpus: int = 3) -> Topology:
    """Generate machines of at most `max_gpus` GPUs, some of them divided into MIG slices of different memory."""
    gpus: list[Gpu] = []
    for number in range(draw(st.integers(1, max_gpus))):
        for sevenths in draw(st.sampled_from([(7,), (3, 2, 1, 1), (4, 3), (1, 1)])):
            at, parent = len(gpus), f"GPU{number}"
            if sevenths == 7:
                gpus.append(Gpu(at, parent, "A100", memory_gb=40.0))
            else:
                memory_gb, name = 5.0 * sevenths, f"{parent}/MIG{at}"
                gpus.append(Gpu(at, name, "A100", memory_gb=memory_gb, parent=parent, fraction=sevenths / 7))
    return replace(Topology.from_links(len(gpus), [], 12.0), gpus=tuple(gpus))


@st.composite
def requirements(draw: st.DrawFn, num_tasks: int) -> dict[str, Any]:
    """Generate up to three requirements of a job with `num_tasks` tasks, as arguments of `JobGraph.with_`."""
    values: dict[str, st.SearchStrategy[Any]] = {
        "min_utility": st.sampled_from([0.3, 0.9]),
        "gpu_memory_gb": st.sampled_from([4.0, 10.0, 16.0, 40.0]),
        "gpu_model": st.sampled_from(["V100", "A100", ("H100", "A100")]),
        "gpu_fraction": st.just(0.5),
        "mig": st.sampled_from(["1g.5gb", "3g.20gb"]),
        "cpus": st.integers(1, 12) | st.sampled_from([0.5, 2.75, 3.152]),
        "memory_gb": st.sampled_from([1.0, 8.5, 40.0]),
        "single_machine": st.just(True),
        "anti_affinity": st.just(True),
        "memory_bandwidth": st.just(20.0),
        "processes": st.integers(1, max(num_tasks, 1)),
        "drives": st.integers(1, 2),
        "within": st.just("rack"),
        "prefer": st.sampled_from(["rack", "spine"]),
        "spread": st.just("rack"),
        "max_machines": st.integers(1, 3),
        "same_gpus": st.just(True),
        "groups": _groups(num_tasks),
        "balanced": st.sampled_from(["rack", "machine"]),
    }
    names = draw(st.lists(st.sampled_from(sorted(values)), unique=True, max_size=3))
    if num_tasks > 1 and {"single_machine", "anti_affinity"} <= set(names):
        names.remove("anti_affinity")  # both together are refused
    if not num_tasks or "gpu_fraction" in names:
        names = [name for name in names if name != "mig"]
    return {name: draw(values[name]) for name in names}


@st.composite
def _groups(draw: st.DrawFn, num_tasks: int) -> list[Group]:
    """Generate consecutive groups of one size, some with smaller ones inside them, required or preferred."""
    found: list[Group] = []
    for level in (
        draw(st.sampled_from([("machine",), ("rack",), ("rack", "machine"), ("socket",)]))
        if num_tasks
        else ()
    ):
        size = draw(st.integers(1, min([num_tasks, *(len(group.tasks) for group in found)])))
        blocks = [tuple(range(first, min(first + size, num_tasks))) for first in range(0, num_tasks, size)]
        outer = [set(group.tasks) for group in found]
        inside = [one for one in blocks if not outer or any(set(one) <= group for group in outer)]
        is_required = draw(st.booleans())
        found += [
            Group(one, level if is_required else None, None if is_required else level) for one in inside
        ]
    return found


@st.composite
def demanding_jobs(draw: st.DrawFn, *, min_tasks: int = 1, max_tasks: int = 4) -> JobGraph:
    """Generate job graphs of min_tasks..max_tasks tasks with up to three `requirements`."""
    job = draw(job_graphs(min_tasks=min_tasks, max_tasks=max_tasks))
    return job.with_(**draw(requirements(job.num_tasks)))


@st.composite
def hosts(draw: st.DrawFn, topology: Topology) -> list[HostResources] | None:
    """Generate the resources of each machine of `topology`, or None for unknown hosts."""
    if draw(st.booleans()):
        return None
    one = st.builds(
        HostResources,
        cpus=st.integers(0, 16) | st.sampled_from([0.75, 7.5]),
        memory_gb=st.sampled_from([0.0, 16.0, 64.0]),
        drives=st.integers(0, 2),
    )
    number = topology.num_machines
    return draw(st.lists(one, min_size=number, max_size=number))


@st.composite
def clusters(
    draw: st.DrawFn, topology: st.SearchStrategy[Topology] | None = None, *, know_hosts: bool = False
) -> Cluster:
    """Generate clusters in which up to three jobs hold GPUs, and up to two GPUs or machines are drained or held.

    The graphs of some jobs are known.

    topology: a strategy for the cluster's topology, by default `topologies()`. know_hosts: True if some clusters know
    their `hosts`, of which jobs hold some resources.
    """
    chosen = draw(topologies() if topology is None else topology)
    cluster = Cluster(chosen, draw(hosts(chosen)) if know_hosts else None)
    for number in range(draw(st.integers(0, 3))):
        if gpus := draw(_free_gpus(cluster)):
            job = draw(st.none() | job_graphs(min_tasks=len(gpus), max_tasks=len(gpus)))
            cpus = draw(st.integers(0, 4)) if know_hosts else 0
            fraction = draw(st.sampled_from([1.0, 1.0, 0.5]))
            run_job(cluster, f"job-{number}", gpus, job and job.with_(cpus=cpus, gpu_fraction=fraction))
    targets = st.sampled_from([*range(chosen.num_gpus), *chosen.machine_names])
    for target in draw(st.lists(targets, max_size=2)):
        if draw(st.booleans()):
            cluster.drain(target)
        else:
            cluster.hold([target])
    return cluster


@st.composite
def _free_gpus(draw: st.DrawFn, cluster: Cluster) -> list[int]:
    """Generate free GPUs that one job may hold, in any order; none if no partition is free."""
    free = cluster.free_gpus()
    if parts := cluster.topology.partitions:
        legal = [part for part in parts if set(part) <= set(free)]
        return draw(st.permutations(draw(st.sampled_from(legal)))) if legal else []
    return draw(st.lists(st.sampled_from(free), unique=True)) if free else []
