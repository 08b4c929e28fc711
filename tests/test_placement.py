from __future__ import annotations

import dataclasses

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


@pytest.mark.parametrize("gpus", [(0, 0), (8,), (-1,), ()])
def test_gpus_must_be_different_and_there(gpus: tuple[int, ...]) -> None:
    with pytest.raises(tp.AllocationError, match="gpus = "):
        tp.Placement(gpus, topology=DGX)


def test_is_a_value() -> None:
    placement = tp.Placement((1, 0), topology=DGX, scores={"utility": 0.5})
    assert placement == tp.Placement((1, 0), topology=DGX, scores={"utility": 0.5})
    assert hash(placement) == hash(tp.Placement((1, 0), topology=DGX))
    with pytest.raises(dataclasses.FrozenInstanceError):
        placement.gpus = (2,)  # type: ignore[misc]
    assert tp.Deferred("no two GPUs are free").reason == "no two GPUs are free"
