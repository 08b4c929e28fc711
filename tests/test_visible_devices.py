"""A placement's environment has the variables of its accelerators."""

from __future__ import annotations

import pytest

import topoplace as tp


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        ("dgx-h100", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,2"}),
        ("l40s-8", {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "1,2"}),
        ("mi300x", {"ROCR_VISIBLE_DEVICES": "1,2"}),
        ("mi250x", {"ROCR_VISIBLE_DEVICES": "1,2"}),
    ],
)
def test_variables_by_model(machine: str, expected: dict[str, str]) -> None:
    assert tp.Placement(gpus=(1, 2), topology=tp.machines.get(machine)).env() == expected


def test_each_host_of_a_tpu_slice_has_its_own() -> None:
    found = tp.Placement(gpus=(1, 2), topology=tp.machines.get("tpu-v4-64")).env()
    assert found == {host: {"TPU_VISIBLE_CHIPS": "0"} for host in ("host1", "host2")}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (tp.LinkKind.XGMI, "ROCR_VISIBLE_DEVICES"),
        (tp.LinkKind.ICI, "TPU_VISIBLE_CHIPS"),
        (tp.LinkKind.NVLINK2, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_links_tell_what_no_model_does(kind: tp.LinkKind, name: str) -> None:
    topology = tp.Topology.from_links(2, [(0, 1, tp.Link(kind, 1, 50.0))])
    assert tp.Placement(gpus=(0, 1), topology=topology).env()[name] == "0,1"
