"""Rings over machines run in channels, one over each adapter: times worked out by hand and by other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

import topoplace as tp
from channel_cases import cases

H100 = tp.machines.get("dgx-h100")
WITHOUT_NVLS = "nccl-2.30-rings"


@pytest.mark.parametrize("name", ["hand", "small", "instances"])
def test_times_are_those_of_the_rule(shared: Path, name: str) -> None:
    for case in cases(shared, name):
        for placement in case.placements:
            found = tp.communication_time(
                case.job, placement["gpus"], case.cluster.topology, rates=WITHOUT_NVLS
            )
            assert found.seconds == pytest.approx(placement["time"], rel=1e-9), case.name
            assert found.port_seconds == pytest.approx(placement["port_seconds"], rel=1e-9), case.name


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
@pytest.mark.parametrize("count", [1, 2, 3, 8])
def test_a_job_of_one_group_takes_its_bytes_over_the_bandwidth_of_its_rings(kind: str, count: int) -> None:
    topology = tp.Topology.cluster(H100, 4)
    gpus = [gpu for machine in range(4) for gpu in range(8 * machine, 8 * machine + count)]
    job = tp.JobGraph.from_collectives(len(gpus), [tp.Collective(kind, tuple(range(len(gpus))), 4.0)])
    seconds = tp.communication_time(job, gpus, topology).seconds
    gigabytes = 4.0 * (len(gpus) - 1) / len(gpus)
    assert seconds * tp.collective.ring_bandwidth(topology, gpus) == pytest.approx(gigabytes)
