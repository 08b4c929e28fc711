"""Hypothesis strategies for topologies, jobs and clusters, to test programs that use topoplace.

    from topoplace.testing.strategies import clusters, job_graphs

    @given(job_graphs(max_tasks=4), clusters())
    def test_my_policy(job, cluster): ...

Examples are small, with few GPUs and few different speeds, so that ties, isolated GPUs and full clusters are frequent.
"""

from __future__ import annotations

from topoplace.cluster.cluster import Cluster
from topoplace.jobs.job_graph import PATTERNS, JobGraph
from topoplace.topology.fabric import Fabric, Level, numbered
from topoplace.topology.links.link import LinkKind
from topoplace.topology.links.link_catalogue import direct
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
    """Generate topologies of clusters (`Topology.cluster`) of at most two kinds of machines.

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
            rail=draw(st.booleans()),
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
def clusters(draw: st.DrawFn, topology: st.SearchStrategy[Topology] | None = None) -> Cluster:
    """Generate clusters in which jobs hold some GPUs and some are drained.

    topology: a strategy for the cluster's topology, by default `topologies()`.
    """
    cluster = Cluster(draw(topologies() if topology is None else topology))
    owners = draw(
        st.lists(
            st.sampled_from([None, None, "job-0", "job-1", "job-2"]),
            min_size=cluster.topology.num_gpus,
            max_size=cluster.topology.num_gpus,
        )
    )
    for job in sorted({owner for owner in owners if owner}):
        gpus = [gpu for gpu, owner in enumerate(owners) if owner == job]
        cluster.allocate(job, draw(st.permutations(gpus)))
    for gpu in draw(st.lists(st.integers(0, cluster.topology.num_gpus - 1), max_size=2)):
        cluster.drain(gpu)
    return cluster
