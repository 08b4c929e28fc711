from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import topoplace as tp

DGX = tp.machines.get("dgx1-v100")
PAIR = tp.Topology.from_links(4, [], machines=["a", "b", "a", "b"])


def test_env_numbers_gpus_in_task_order() -> None:
    env = tp.Placement((0, 3, 2, 1), topology=DGX).env()
    assert env == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0,3,2,1"}


def test_env_of_one_of_several_machines_numbers_gpus_as_that_machine_does() -> None:
    assert tp.Placement((3, 1), topology=PAIR).env() == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1,0",
    }


def test_env_of_several_machines_is_by_name() -> None:
    env = tp.Placement((2, 1, 0), topology=PAIR).env()
    assert list(env) == ["a", "b"]
    assert env["a"] == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,0"}
    assert env["b"] == {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "0"}


@pytest.mark.parametrize(
    ("gpus", "message"),
    [
        ((0, 0), r"gpus = \(0, 0\) lists GPU 0 twice"),
        ((), r"gpus = \(\) is empty"),
        ((0, 8), r"gpus\[1\] = 8 is not in 0\.\.7"),
        ((-1,), r"gpus\[0\] = -1 is not in 0\.\.7"),
        ((0.5,), r"gpus\[0\] = 0.5 is not an integer"),
        ((True,), r"gpus\[0\] = True is not an integer"),
        (3, "gpus = 3 is not a sequence"),
    ],
)
def test_gpus_must_be_different_and_there(gpus: Any, message: str) -> None:
    with pytest.raises(tp.AllocationError, match=message):
        tp.Placement(gpus, topology=DGX)


def test_gpus_are_plain_integers_whatever_they_came_as() -> None:
    placement = tp.Placement(np.array([2, 1], np.int32), topology=DGX)  # type: ignore[arg-type]
    assert placement.gpus == (2, 1)
    assert {type(gpu) for gpu in placement.gpus} == {int}


def test_is_a_value() -> None:
    placement = tp.Placement((1, 0), topology=DGX, scores={"utility": 0.5})
    assert placement == tp.Placement((1, 0), topology=DGX, scores={"utility": 0.5})
    assert hash(placement) == hash(tp.Placement((1, 0), topology=DGX))
    with pytest.raises(dataclasses.FrozenInstanceError):
        placement.gpus = (2,)  # type: ignore[misc]
    refusal = tp.Refusal("no two GPUs are free")
    assert refusal.reason == "no two GPUs are free"
    assert not refusal.permanent


def test_numactl_binds_a_job_whose_gpus_share_a_socket() -> None:
    topology = tp.machines.get("minsky")
    bound = ("numactl", "--cpunodebind=1", "--membind=1")
    assert tp.Placement((3, 2), topology=topology).numactl() == bound
    assert tp.Placement((0, 2), topology=topology).numactl() == ()
    cluster = tp.Topology.cluster(topology, count=2, names=["a", "b"])
    assert tp.Placement((2, 4, 6), topology=cluster).numactl() == {"a": bound, "b": ()}
    nodes = tp.Topology((tp.Gpu(0, "GPU0", socket=0, numa_node=3), tp.Gpu(1, "GPU1")))
    assert tp.Placement((0,), topology=nodes).numactl() == ("numactl", "--cpunodebind=3", "--membind=3")
    assert tp.Placement((1,), topology=nodes).numactl() == ()
