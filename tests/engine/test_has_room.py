"""Whether there is room for a job is what placing it would show, under every policy."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import topoplace as tp
from topoplace.topology.fabric import Fabric, Level

SIZE = 4
MACHINES = {
    "switched": tp.Topology.from_links(
        SIZE, [(u, v, 450.0, tp.LinkKind.NVSWITCH) for u in range(SIZE) for v in range(u)]
    ),
    "pairs": tp.Topology.from_links(SIZE, [(0, 1, 50.0), (2, 3, 50.0)], sockets=[0, 0, 1, 1]),
}
RACKS = ("a", "a", "b", "b")
POLICIES = tp.policies.names()


@st.composite
def clusters(draw: st.DrawFn) -> tp.Cluster:
    """Clusters of four machines, with or without a network, on which some GPUs are in use."""
    machine = MACHINES[draw(st.sampled_from(sorted(MACHINES)))]
    fabric = Fabric(("m0", "m1", "m2", "m3"), (Level("rack", RACKS, 25.0),))
    topology = tp.Topology.cluster(machine, fabric=fabric, network=draw(st.sampled_from([0.0, 12.5])))
    cluster = tp.Cluster(topology)
    for gpu in draw(st.sets(st.integers(0, topology.num_gpus - 1), max_size=14)):
        cluster.allocate(f"job {gpu}", [gpu])
    return cluster


@st.composite
def jobs(draw: st.DrawFn) -> tp.JobGraph:
    size = draw(st.integers(1, 9))
    made = draw(st.sampled_from([tp.JobGraph.ring, tp.JobGraph.chain, tp.JobGraph.independent]))(size)
    requirement = draw(
        st.sampled_from(["none", "machine", "rack", "groups", "utility", "apart", "balanced", "few machines"])
    )
    if requirement == "groups":
        level = draw(st.sampled_from(["machine", "rack", "socket"]))
        return made.grouped(draw(st.integers(1, min(size, 3))), within=level)
    return made.with_(
        **{
            "none": {},
            "machine": {"single_machine": True},
            "rack": {"within": "rack"},
            "utility": {"min_utility": 0.6},
            "apart": {"anti_affinity": True},
            "balanced": {"balanced": "machine"},
            "few machines": {"max_machines": 2},
        }[requirement]
    )


@pytest.mark.parametrize("name", POLICIES)
@given(cluster=clusters(), job=jobs())
def test_there_is_room_where_a_job_is_placed(name: str, cluster: tp.Cluster, job: tp.JobGraph) -> None:
    policy = tp.policies.get(name)
    if policy.refusal_of(job, cluster):  # type: ignore[attr-defined]
        return
    placement = policy.place(job, cluster)
    assert policy.has_room(job, cluster) == (placement is not None)  # type: ignore[attr-defined]
