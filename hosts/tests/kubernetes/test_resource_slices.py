"""ResourceSlices of resource.k8s.io/v1: what they say of a machine, and whether the published API knows it all."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest

import topoplace as tp
from topoplace_hosts.kubernetes.resource_slices import resource_slices

DRIVER = "gpu.example.com"
SINGLE = [name for name in tp.machines.names() if tp.machines.get(name).num_machines == 1]


def devices(topology: tp.Topology, **options: Any) -> list[dict[str, Any]]:
    (found,) = resource_slices("n0", topology, DRIVER, **options)
    return list(found["spec"]["devices"])


def values(topology: tp.Topology, attribute: str) -> list[Any]:
    """Return the value of an attribute of each device, None where it is missing."""
    found = [device["attributes"].get(attribute, {}) for device in devices(topology)]
    return [next(iter(one.values()), None) for one in found]


def test_attributes_are_those_of_the_machine() -> None:
    dgx = tp.machines.get("dgx1-v100")
    gpus = [replace(gpu, uuid=f"GPU-{gpu.index}", bus_id=f"0000:0{gpu.index}:00.0") for gpu in dgx.gpus]
    found = devices(replace(dgx, gpus=tuple(gpus)), clique="a.1")[5]
    assert found == {
        "name": "gpu-5",
        "attributes": {
            "index": {"int": 5},
            "socket": {"int": 1},
            "nvlinkDomain": {"int": 0},
            "model": {"string": "V100"},
            "uuid": {"string": "GPU-5"},
            "clique": {"string": "a.1"},
            "resource.kubernetes.io/pciBusID": {"string": "0000:05:00.0"},
        },
        "capacity": {"memory": {"value": "16000000000"}},
    }


def test_nvlink_domains_are_what_nvlinks_connect() -> None:
    links = [(0, 1, 25.0, "nvlink2"), (1, 2, 25.0, "nvlink2"), (4, 5, 25.0, "nvlink2"), (0, 3, 12.0, "pcie")]
    assert values(tp.Topology.from_links(6, links), "nvlinkDomain") == [0, 0, 0, None, 4, 4]
    assert values(tp.machines.get("l40s-8"), "nvlinkDomain") == [None] * 8
    assert values(tp.machines.get("dgx-h100"), "nvlinkDomain") == [0] * 8


def test_pcie_switches_are_named_where_they_are_known() -> None:
    text = (
        '<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64">'
        '<pci busid="0000:01:00.0" class="0x060400" link_speed="16.0 GT/s PCIe" link_width="16">'
        '<pci busid="0000:02:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">'
        '<gpu dev="0" sm="80"/></pci>'
        '<pci busid="0000:03:00.0" class="0x030200" link_speed="16.0 GT/s PCIe" link_width="16">'
        '<gpu dev="1" sm="80"/></pci></pci></cpu></system>'
    )
    first, second = values(tp.Topology.from_nccl_xml(text), "pcieSwitch")
    assert first == second is not None


def test_broken_gpus_are_left_out() -> None:
    found = devices(tp.machines.get("summit").with_unhealthy([2]))
    assert [device["name"] for device in found] == ["gpu-0", "gpu-1", "gpu-3", "gpu-4", "gpu-5"]


def test_a_pool_has_as_many_slices_as_it_needs() -> None:
    slices = resource_slices("n0", tp.Topology.from_links(300, []), DRIVER, generation=7)
    assert [len(one["spec"]["devices"]) for one in slices] == [128, 128, 44]
    assert len({one["metadata"]["name"] for one in slices}) == 3
    assert {json.dumps(one["spec"]["pool"]) for one in slices} == {
        '{"name": "n0", "generation": 7, "resourceSliceCount": 3}'
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node": "N"}, "node = 'N' is not the name of a node"),
        ({"driver": "a/b"}, "driver = 'a/b' is not a domain name"),
        ({"driver": "a" * 64}, "is not a domain name of up to 63 characters"),
        ({"generation": 0}, "generation = 0"),
        ({"clique": "x" * 64}, "clique = .* is not the value of a label"),
        ({"clique": "a b"}, "clique = 'a b' is not the value of a label"),
        ({"topology": tp.machines.get("gb200-nvl72")}, "topology = 'gb200-nvl72' has 18 machines"),
        ({"topology": tp.Topology.from_links(1, [], model="x" * 65)}, "GPU 0: model .* more than 64"),
    ],
    ids=["node", "driver", "long driver", "generation", "long clique", "clique", "cluster", "model"],
)
def test_what_has_no_slices(changes: dict[str, Any], message: str) -> None:
    wanted = {"node": "n0", "topology": tp.machines.get("summit"), "driver": DRIVER, **changes}
    with pytest.raises(ValueError, match=message):
        resource_slices(**wanted)


# ---- the published API ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGLE)
def test_the_published_api_knows_every_field_and_its_type(name: str) -> None:
    """The models of the official client are generated from the published OpenAPI schema."""
    client = pytest.importorskip("kubernetes.client", reason="the group test is not installed")
    api = client.ApiClient()
    (found,) = resource_slices("n0", tp.machines.get(name), DRIVER, clique="a.1")
    model = api._ApiClient__deserialize(found, "V1ResourceSlice")
    assert api.sanitize_for_serialization(model) == found  # unknown fields would be missing
    api.close()


@pytest.mark.parametrize("name", SINGLE)
def test_the_limits_of_the_api_are_kept(name: str) -> None:
    """These are in the descriptions of fields, not in the schema."""
    for device in devices(tp.machines.get(name), clique="a.1"):
        assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", device["name"])
        assert len(device["attributes"]) + len(device.get("capacity", {})) <= 32
        for key, value in device["attributes"].items():
            assert re.fullmatch(r"([a-z0-9.-]{1,63}/)?[A-Za-z_][A-Za-z0-9_]{0,31}", key)
            assert len(value) == 1
            assert len(value.get("string", "")) <= 64
