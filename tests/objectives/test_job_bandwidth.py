"""The GB/s that stand beside a time are those from which it follows: time x rate / bytes = 1, on every machine."""

from __future__ import annotations

import pytest

import topoplace as tp
from topoplace.collective.machine_graph import MAX_GPUS
from topoplace.objectives.job_bandwidth import job_bandwidth
from topoplace.policies import LeastTime

FACTORS = {
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
}
GIGABYTES = 3.0
H100 = tp.machines.get("dgx-h100")


def job_of(kind: str, size: int) -> tp.JobGraph:
    return tp.JobGraph.from_collectives(size, [tp.Collective(kind, tuple(range(size)), GIGABYTES)])


def topologies(name: str) -> list[tp.Topology]:
    machine = tp.machines.get(name)
    if machine.num_machines > 1:
        return [machine]
    return [machine, tp.Topology.cluster(machine, 1), tp.Topology.cluster(machine, 3)]


def sizes(topology: tp.Topology) -> list[int]:
    whole = topology.num_gpus // topology.num_machines
    listed = {2, 3, whole // 2, whole, whole + 1, topology.num_gpus}
    return sorted(size for size in listed if 2 <= size <= topology.num_gpus)


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", tp.machines.names())
def test_rate_times_time_is_what_each_gpu_sends(name: str, kind: str) -> None:
    rated = 0
    for topology in topologies(name):
        if max(template.num_gpus for template in topology.templates) > MAX_GPUS:
            continue
        for size in sizes(topology):
            job = job_of(kind, size)
            placement = tp.Placement(tuple(range(size)), topology=topology, job=job)
            gb_per_s, by_switches = job_bandwidth(job, placement.gpus, topology)
            assert gb_per_s > 0
            assert placement.time * gb_per_s == pytest.approx(FACTORS[kind](size) * GIGABYTES, rel=1e-9)
            assert by_switches <= (kind == "all_reduce")
            rated += 1
    assert rated or tp.machines.get(name).num_gpus > MAX_GPUS


@pytest.mark.parametrize("kind", FACTORS)
@pytest.mark.parametrize("name", ["dgx-h100", "dgx-a100", "dgx1-v100", "l40s-8", "gb200-nvl72", "hgx-b200"])
def test_scores_are_what_the_time_follows_from(name: str, kind: str) -> None:
    for topology in topologies(name):
        for size in sizes(topology):
            placement = tp.place(job_of(kind, size), tp.Cluster(topology))
            assert placement is not None
            carried = FACTORS[kind](size) * GIGABYTES
            rate = "all_reduce_bandwidth" if kind == "all_reduce" else "ring_bandwidth"
            assert placement.scores[rate] * placement.time == pytest.approx(carried, rel=1e-9)
            assert placement.scores["communication_time"] == placement.time
            assert ("all_reduce_bandwidth" in placement.scores) is (kind == "all_reduce")
            if kind == "all_reduce":
                rings = tp.collective.ring_bandwidth(topology, placement.gpus)
                assert placement.scores["ring_bandwidth"] == pytest.approx(rings, rel=1e-9)


def test_scores_are_by_the_rates_of_the_policy() -> None:
    """Without NVLS an H100 machine has 360 GB/s, with it 476."""
    job, cluster = tp.JobGraph.allreduce(8), tp.Cluster(H100)
    placed = [policy.place(job, cluster) for policy in (LeastTime(), LeastTime(rates="nccl-2.30-rings"))]
    found = [
        (one.scores["ring_bandwidth"], one.scores["all_reduce_bandwidth"], one.time) for one in placed if one
    ]
    assert found == [
        pytest.approx((360.0, 476.0, 1.75 / 476)),
        pytest.approx((360.0, 360.0, 1.75 / 360)),
    ]


@pytest.mark.parametrize(
    "job",
    [
        tp.JobGraph.clique(8),
        tp.JobGraph.chain(8),
        tp.JobGraph.independent(8),
        tp.JobGraph.parallel(tensor=4, data=2),
        tp.JobGraph.from_collectives(8, [tp.Collective("all_reduce", (0, 1, 2, 3), 1.0)]),
    ],
)
def test_other_jobs_have_no_such_score(job: tp.JobGraph) -> None:
    placement = tp.place(job, tp.Cluster(H100))
    assert placement is not None
    assert not {"ring_bandwidth", "all_reduce_bandwidth"} & placement.scores.keys()
    gb_per_s, by_switches = job_bandwidth(job, placement.gpus, H100)
    assert (gb_per_s, by_switches) == (360.0, False)


def test_ranks_count_in_the_order_of_the_collective() -> None:
    """Two machines of a leaf next to each other in the ring, or apart."""
    fabric = tp.Fabric.regular(4, {"leaf": 2}).with_level("leaf", gb_per_s=50.0)
    topology = tp.Topology.cluster(H100, fabric=fabric, network=5.0)
    for order in ((0, 1, 2, 3), (0, 2, 1, 3)):
        job = tp.JobGraph.from_collectives(4, [tp.Collective("all_reduce", order, GIGABYTES)])
        placement = tp.Placement((0, 8, 16, 24), topology=topology, job=job)
        carried = job_bandwidth(job, placement.gpus, topology).gb_per_s
        assert placement.time * carried == pytest.approx(1.5 * GIGABYTES)
