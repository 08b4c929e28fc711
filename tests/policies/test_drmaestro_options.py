"""DRMaestro's options, fixed partitions, and the load at which a network is as slow as it gets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import topoplace as tp
from topoplace.jobs.network_profile import NetworkProfile
from topoplace.policies.drmaestro.network import NetworkLoad


@pytest.mark.parametrize(
    "options",
    [
        {"disaggregate": 1},
        {"network_aware": None},
        {"profiles": []},
        {"profiles": {"net": 0.5}},
        {"costs": 1.0},
        {"max_postponements": -1},
        {"window": 0},
    ],
    ids=str,
)
def test_options_that_cannot_be_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        tp.policies.get("drmaestro", **options)


def test_the_least_options_can_be_used() -> None:
    policy = tp.policies.get("drmaestro", max_postponements=0, window=1)
    assert policy.place(tp.JobGraph.ring(2), tp.Cluster(tp.machines.get("minsky")))


@pytest.mark.parametrize("disaggregate", [True, False])
@pytest.mark.parametrize("processes", [1, 2])
def test_a_job_gets_a_partition_of_its_size(disaggregate: bool, processes: int) -> None:
    topology = replace(tp.machines.get("minsky"), partitions=((0,), (0, 1), (2, 3), (1, 2, 3)))
    policy = tp.policies.get("drmaestro", disaggregate=disaggregate)
    cluster = tp.Cluster(topology)
    for gpus in ((0, 1), (2, 3)):
        placement = policy.place(tp.JobGraph.ring(2).with_(processes=processes), cluster)
        assert isinstance(placement, tp.Placement)
        assert sorted(placement.gpus) == list(gpus)
        cluster.allocate(str(gpus), placement)
    cluster.release("(2, 3)")
    assert policy.place(tp.JobGraph.ring(1), cluster) is None  # GPU 0, a partition alone, is taken


def test_a_network_beyond_its_capacity_slows_no_further() -> None:
    load = NetworkLoad(np.array([0.5, 1.0, 3.0]), np.array([0.0, 0.0, 0.2]))
    profile = NetworkProfile(0.1, 0.4)
    half, full, over = load.slowdown(profile, remote=True).tolist()
    sensitivity = profile.sensitivity(remote=True)
    assert half == pytest.approx(1 + sensitivity / 2)
    assert full == pytest.approx(1 + sensitivity)
    assert over == pytest.approx(full + 0.2 * profile.traffic(remote=True))
