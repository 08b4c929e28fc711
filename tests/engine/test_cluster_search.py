"""Policies of one search see the machines of a cluster as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

import topoplace as tp


@pytest.mark.parametrize("num_tasks", [4, 8])
@pytest.mark.parametrize("name", [name for name in tp.policies.names() if "queue" not in name])
def test_an_unhealthy_gpu_that_was_undrained_is_used(name: str, num_tasks: int) -> None:
    machine = tp.machines.get("minsky")
    broken = replace(
        machine, gpus=tuple(replace(gpu, healthy=False) if gpu.index == 1 else gpu for gpu in machine.gpus)
    )
    cluster = tp.Cluster(tp.Topology.cluster(broken, count=2))
    for gpu in cluster.drained_gpus():
        cluster.undrain(gpu)
    placement = tp.policies.get(name).place(tp.JobGraph.ring(num_tasks), cluster)
    assert placement is not None
    assert sorted(placement.gpus) == list(range(num_tasks))
