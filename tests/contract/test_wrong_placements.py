"""`check_placement` on placements with one fault each: the fault is told in one sentence."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

import topoplace as tp
from topoplace.testing import check_placement

ONE = tp.machines.get("minsky")
TWO = tp.Topology.cluster(ONE, 2)
PARTITIONED = replace(ONE, partitions=((0, 1), (2, 3)))
RING = tp.JobGraph.ring(2)
ALONE = tp.JobGraph.independent(1)
HOSTS = tp.HostResources(cpus=8, memory_gb=64)


def placed(topology: tp.Topology, gpus: tuple[int, ...], job: tp.JobGraph, **more: Any) -> tp.Placement:
    return tp.Placement(gpus, topology=topology, job=job, **more)


@pytest.mark.parametrize(
    ("topology", "gpus", "job", "more", "fault"),
    [
        (ONE, (0,), RING, {}, r"^1 GPUs \(0,\) for 2 tasks$"),
        (ONE, (0, 3), RING, {}, r"^GPUs \[3\] are not free$"),
        (ONE, (3,), ALONE.with_(gpu_fraction=0.5), {}, r"^GPUs \[3\] are not free to a share of 0\.5$"),
        (TWO, (0, 6), RING, {}, r"^GPUs \[6\] are drained$"),
        (ONE, (0,), ALONE.with_(mig="1g.10gb"), {}, r"^gpus\[0\] = 0 has no MIG profile '1g\.10gb'$"),
        (PARTITIONED, (0,), ALONE, {}, r"^\(0,\) is not a partition$"),
        (
            ONE,
            (0, 1),
            RING.with_(gpu_model="V100"),
            {},
            r"^GPU 0 is a P100 of 16\.0 GB; the job has gpu_model = 'V100'",
        ),
        (TWO, (0, 4), RING.with_(single_machine=True), {}, r"^single_machine, but on machines"),
        (TWO, (0, 1), RING.with_(anti_affinity=True), {}, r"^anti_affinity, but on"),
        (
            ONE,
            (0, 1),
            RING.with_(min_utility=0.5),
            {},
            r"^min_utility = 0\.5, but the placement does not state",
        ),
        (ONE, (0,), ALONE.with_(cpus=2), {}, r"^the job needs host resources, and the cluster does not know"),
        (ONE, (0, 1), RING, {"scores": {"other": math.nan}}, r"^score other is not a number$"),
        (
            ONE,
            (0, 1),
            RING,
            {"scores": {"bottleneck_bandwidth": 7.0}},
            r"^states bottleneck_bandwidth 7 on \(0, 1\), where it is 40$",
        ),
    ],
)
def test_a_fault_is_told(
    topology: tp.Topology, gpus: tuple[int, ...], job: tp.JobGraph, more: dict[str, Any], fault: str
) -> None:
    cluster = tp.Cluster(topology)
    cluster.allocate("running", [2, 3])
    if topology is TWO:
        cluster.drain(6)
    with pytest.raises(AssertionError, match=fault):
        check_placement(placed(topology, gpus, job, **more), job, cluster)


def test_a_placement_on_another_topology() -> None:
    with pytest.raises(AssertionError, match=r"^the placement is on summit$"):
        check_placement(placed(tp.machines.get("summit"), (0, 1), RING), RING, tp.Cluster(ONE))


@pytest.mark.parametrize(
    ("shares", "fault"),
    [
        ((), r"^0 host shares for 1 processes of 2 tasks$"),
        ((tp.HostShare(0, 3, 8.0),), r"^the host shares add up to 3 CPUs, the job needs 4$"),
        ((tp.HostShare(0, 4, 9.0),), r"^the host shares add up to 9 GB of memory, the job needs 8"),
        ((tp.HostShare(1, 4, 8.0),), r"^GPU 0 of task 0 is on machine 0, its process on 1"),
    ],
)
def test_host_shares_that_are_not_what_the_job_needs(shares: tuple[tp.HostShare, ...], fault: str) -> None:
    job, cluster = RING.with_(cpus=4, memory_gb=8), tp.Cluster(TWO, HOSTS)
    check_placement(placed(TWO, (0, 1), job, hosts=(tp.HostShare(0, 4, 8.0),)), job, cluster)
    with pytest.raises(AssertionError, match=fault):
        check_placement(placed(TWO, (0, 1), job, hosts=shares), job, cluster)
