"""Jobs that communicate get accelerators of one maker, whatever the policy; others may mix them."""

from __future__ import annotations

import math

import pytest

import topoplace as tp
from distributions import whole
from topoplace.engine import one_maker
from topoplace.engine.plan import QueuedJob
from topoplace.topology.devices import Gpu
from topoplace.topology.links.link_kinds import Link, LinkKind
from topoplace.topology.makers import Maker, gpus_by_maker

POLICIES = (
    "least-time",
    "fcfs",
    "best-fit",
    "topo-aware",
    "mapa-greedy",
    "mapa-preserve",
    "fgd",
    "kueue-best-fit",
)


def machine(*models: str | None) -> tp.Topology:
    """A machine of these GPUs, each pair with equal links."""
    gpus = [Gpu(i, f"GPU{i}", model) for i, model in enumerate(models)]
    links = [(u, v, Link(LinkKind.UNKNOWN, 1, 12.0)) for v in range(len(gpus)) for u in range(v)]
    return tp.Topology(gpus, links)


def two_makers() -> tp.Cluster:
    machines = {"n": machine(*["H100"] * 4), "a": machine(*["MI300X"] * 4)}
    return tp.Cluster(tp.Topology.cluster(machines, fabric=tp.Fabric(("n", "a"), ())))


@whole
@pytest.mark.parametrize("name", POLICIES)
def test_a_job_that_communicates_gets_one_maker(name: str) -> None:
    policy, cluster = tp.policies.get(name), two_makers()
    cluster.allocate("busy", (0, 1))
    placed = policy.place(tp.JobGraph.ring(4), cluster)
    assert placed is not None
    assert set(placed.gpus) == {4, 5, 6, 7}
    assert policy.place(tp.JobGraph.ring(6), cluster) is None
    explained = policy.explain(tp.JobGraph.ring(6), cluster)
    assert explained.refusal is not None
    assert explained.refusal.permanent
    assert explained.refusal.reason == (
        "never fits: needs 6 GPUs of one maker, as its tasks communicate; the topology has 4 of AMD and 4 of NVIDIA, "
        "whose libraries (RCCL and NCCL) do not meet"
    )


@whole
@pytest.mark.parametrize("name", POLICIES)
def test_what_is_free_of_each_maker_is_told(name: str) -> None:
    policy, cluster = tp.policies.get(name), two_makers()
    cluster.allocate("busy", (0, 1, 4, 5))
    job = tp.JobGraph.ring(4)
    assert not policy.has_room(job, cluster) if hasattr(policy, "has_room") else True
    refusal = policy.explain(job, cluster).refusal
    assert refusal is not None
    assert refusal.reason.startswith("cannot start now: needs 4 GPUs of one maker")
    assert "2 of AMD and 2 of NVIDIA" in refusal.reason
    plan = policy.plan([QueuedJob("j", job, 0.0)], cluster, 0.0)
    assert not plan.start
    alone = policy.place(tp.JobGraph.independent(4), cluster)
    assert alone is not None
    assert set(alone.gpus) == {2, 3, 6, 7}


def test_a_job_may_name_models_of_several_makers() -> None:
    job = tp.JobGraph.ring(8)
    assert one_maker.is_bound(job, two_makers().topology)
    assert not one_maker.is_bound(job.with_(gpu_model=("H100", "MI300X")), two_makers().topology)
    placed = tp.policies.get("least-time").place(job.with_(gpu_model=("H100", "MI300X")), two_makers())
    assert placed is not None


@pytest.mark.parametrize("topology", [two_makers().topology, machine("H100", "H100", "MI300X", "MI300X")])
def test_a_set_of_several_makers_communicates_never(topology: tp.Topology) -> None:
    half = topology.num_gpus // 2
    mixed, own = range(half - 2, half + 2), range(half)
    job = tp.JobGraph.ring(4)
    time = tp.communication_time(job, mixed, topology)
    assert (time.seconds, time.by_dimension, time.port_seconds) == (math.inf, {"all": math.inf}, math.inf)
    assert time.slowest == "libraries of several makers, which do not meet"
    assert tp.communication_time(job, mixed, topology, cluster=tp.Cluster(topology)).seconds == math.inf
    assert tp.communication_time(tp.JobGraph.independent(4), mixed, topology).seconds == 0
    assert tp.communication_time(job.with_(gpu_model=("H100", "MI300X")), mixed, topology).seconds < math.inf
    assert tp.collective.ring_bandwidth(topology, mixed) == 0
    assert tp.collective.all_reduce_bandwidth(topology, mixed) == 0
    assert "several makers" in tp.collective.why_no_rings(topology, mixed)
    assert tp.collective.ring_bandwidth(topology, own) > 0
    assert tp.collective.why_no_rings(topology, own) == ""


def test_a_machine_of_two_makers_plans_no_rings_over_both() -> None:
    both = machine("H100", "H100", "MI300X", "MI300X")
    assert tp.collective.rings(both, range(4)).rings == ()
    assert tp.collective.rings(both, (0, 1)).rings


def test_two_makers_in_one_machine() -> None:
    cluster = tp.Cluster(machine("GTX 1080", "Vega 20", "GTX 1080", "Vega 20"))
    placed = tp.policies.get("least-time").place(tp.JobGraph.ring(2), cluster)
    assert placed is not None
    assert set(placed.gpus) in ({0, 2}, {1, 3})


def test_a_process_sees_devices_by_their_numbers_among_those_of_its_maker() -> None:
    topology = machine("GTX 1080", "Vega 20", "Vega 20")
    cluster = tp.Cluster(topology)
    cluster.allocate("busy", (0,))
    placed = tp.policies.get("least-time").place(tp.JobGraph.ring(2), cluster)
    assert placed is not None
    assert placed.env() == {"ROCR_VISIBLE_DEVICES": "0,1"}


def test_gpus_of_unknown_makers_bind_no_job() -> None:
    assert gpus_by_maker(machine("H100", "frobnicator 9")) == {}
    found = gpus_by_maker(machine("H100", "MI300X", "frobnicator 9", "MI300X"))
    assert found == {Maker.AMD: {1, 3}, Maker.NVIDIA: {0}}
