"""Slices, classes and claims as they are read: what counts, and what is refused by the name of its field."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import DRIVER, claim_json, exactly, pod_json
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.claim import claim
from topoplace_hosts.kubernetes.claims.device import DeviceId, devices
from topoplace_hosts.kubernetes.claims.matching import gpu_numbers
from topoplace_hosts.kubernetes.claims.pools import Pools, resource_slice
from topoplace_hosts.kubernetes.objects.pod import pod
from topoplace_hosts.kubernetes.resource_slices import resource_slices

MACHINE = tp.machines.get("dgx1-v100")


def slice_json(
    name: str = "s", node: str = "n0", *, generation: int = 1, count: int = 1, first: int = 0
) -> Any:
    (found,) = resource_slices(node, MACHINE, DRIVER)
    found["metadata"]["name"] = name
    found["spec"]["pool"].update(generation=generation, resourceSliceCount=count)
    found["spec"]["devices"] = found["spec"]["devices"][first : first + 2]
    return found


def names(pools: Pools, node: str = "n0") -> list[str]:
    return [one.id.name for one in pools.devices_of(node)]


def test_only_the_newest_generation_of_a_pool_counts_and_only_if_it_is_complete() -> None:
    pools = Pools()
    assert pools.set_slice(resource_slice(slice_json("a"))) == {"n0"}
    assert names(pools) == ["gpu-0", "gpu-1"]
    pools.set_slice(resource_slice(slice_json("b", generation=2, count=2, first=2)))
    assert names(pools) == []  # the old one is outdated, the new one not complete
    pools.set_slice(resource_slice(slice_json("a", generation=2, count=2, first=4)))
    assert names(pools) == ["gpu-2", "gpu-3", "gpu-4", "gpu-5"]
    assert pools.node_of(DeviceId(DRIVER, "n0", "gpu-2")) == "n0"
    assert pools.node_of(DeviceId(DRIVER, "n0", "gpu-0")) == ""
    assert pools.remove_slice("b") == {"n0"}
    assert names(pools) == []
    assert pools.remove_slice("b") == frozenset()


def test_a_slice_that_moves_to_another_node_leaves_the_first() -> None:
    pools = Pools()
    pools.set_slice(resource_slice(slice_json("a")))
    moved = slice_json("a")
    moved["spec"]["nodeName"] = "n1"
    assert pools.set_slice(resource_slice(moved)) == {"n0", "n1"}
    assert (names(pools), names(pools, "n1")) == ([], ["gpu-0", "gpu-1"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda spec: spec.update(driver=""), "no name, driver or pool"),
        (lambda spec: spec["pool"].update(generation="new"), "spec.pool.generation"),
        (lambda spec: spec["devices"][1].update(name=""), r"spec.devices\[1\].name"),
        (lambda spec: spec["devices"][0]["attributes"].update(x={}), r"attributes\['x'\] has 0 values"),
        (lambda spec: spec["devices"][0]["attributes"].update(x={"int": "1"}), "is not of its type"),
        (
            lambda spec: spec["devices"][0]["attributes"].update(x={"ints": []}),
            r"\.ints = \[\] is not of its type",
        ),
        (lambda spec: spec["devices"][0]["attributes"].update(x={"float": 1}), "'float' is not one of"),
        (
            lambda spec: spec["devices"][0].update(capacity={"x": {"value": "much"}}),
            "'much' is not an amount",
        ),
        (lambda spec: spec.update(devices=[{}] * 129), "129 items, more than 128"),
    ],
)
def test_slices_that_cannot_be_read(change: Any, message: str) -> None:
    value = slice_json()
    change(value["spec"])
    with pytest.raises(KubernetesError, match=message):
        resource_slice(value)


@pytest.mark.parametrize(
    "field",
    [
        {"consumesCounters": [{"counterSet": "a", "counters": {}}]},
        {"allowMultipleAllocations": True},
        {"bindingConditions": ["Attached"]},
        {"bindingFailureConditions": ["Lost"]},
        {"bindsToNode": True},
        {"nodeName": "n0"},
        {"nodeSelector": {"nodeSelectorTerms": []}},
        {"allNodes": True},
        {"nodeAllocatableResources": {"cpu": {}}},
        {"somethingNew": 1},
    ],
    ids=lambda field: next(iter(field)),
)
def test_devices_that_need_what_is_not_supported_are_known_by_the_field(field: dict[str, Any]) -> None:
    (found,) = devices({"devices": [{"name": "a", **field}]}, DRIVER, "n0")
    assert found.unsupported == next(iter(field))


def test_taints_that_only_inform_are_left_out() -> None:
    taints = [{"key": "k", "effect": effect} for effect in ("None", "NoSchedule", "Future", "NoExecute")]
    (found,) = devices({"devices": [{"name": "a", "taints": taints}]}, DRIVER, "n0")
    assert [one.effect for one in found.taints] == ["NoSchedule", "NoExecute"]


# ---- which GPU a device is -----------------------------------------------------------------------------------------


def numbers(attributes: list[dict[str, Any]], **known: Any) -> dict[str, int]:
    """Return the number of each device that is a GPU of a machine whose GPUs have these UUIDs and addresses."""
    gpus = [
        replace(gpu, **{key: values[gpu.index] for key, values in known.items()}) for gpu in MACHINE.gpus[:2]
    ]
    listed = [{"name": f"d{i}", "attributes": one} for i, one in enumerate(attributes)]
    found = gpu_numbers(devices({"devices": listed}, DRIVER, "n0"), gpus)
    return {device.name: number for device, number in found.items()}


ADDRESS = "resource.kubernetes.io/pciBusID"


@pytest.mark.parametrize(
    ("attributes", "known", "expected"),
    [
        ([{"index": {"int": 1}}, {"index": {"int": 0}}], {}, {"d0": 1, "d1": 0}),
        ([{"index": {"int": 2}}, {"index": {"int": -1}}, {}], {}, {}),
        ([{"uuid": {"string": "b"}, "index": {"int": 0}}], {"uuid": ("a", "b")}, {"d0": 1}),
        ([{"uuid": {"string": "c"}, "index": {"int": 0}}], {"uuid": ("a", "b")}, {}),
        ([{"uuid": {"string": "c"}, "index": {"int": 0}}], {}, {"d0": 0}),
        (
            [{ADDRESS: {"string": "0000:0A:00.0"}, "index": {"int": 0}}],
            {"bus_id": ("00000000:05:00.0", "00000000:0A:00.0")},
            {"d0": 1},
        ),
        ([{"index": {"int": 1}}, {"index": {"int": 1}}], {}, {}),
        ([{"index": {"string": "1"}}, {"other.example.com/index": {"int": 1}}], {}, {}),
    ],
    ids=["index", "no index", "uuid", "other uuid", "no uuid", "address", "twice", "other"],
)
def test_devices_are_matched_with_gpus(
    attributes: list[dict[str, Any]], known: dict[str, Any], expected: dict[str, int]
) -> None:
    assert numbers(attributes, **known) == expected


# ---- claims --------------------------------------------------------------------------------------------------------


def alternative(**fields: Any) -> dict[str, Any]:
    return {"name": "r", "firstAvailable": [{"name": "sub", "deviceClassName": "gpu", **fields}]}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (claim_json("c", exactly("r", capacity={"requests": {"memory": "1Gi"}})), "request 'r': capacity"),
        (claim_json("c", exactly("r", derivedAttributes=[{"name": "a"}])), "request 'r': derivedAttributes"),
        (claim_json("c", exactly("r", somethingNew=1)), "request 'r': somethingNew is not supported"),
        (claim_json("c", exactly("r", allocationMode="Most")), "request 'r': allocationMode 'Most'"),
        (claim_json("c", exactly("r", 0)), "request 'r'.count = 0"),
        (claim_json("c", exactly("r", 33)), "request 'r'.count = 33"),
        (claim_json("c", {**exactly("r"), "futureMode": {"a": 1}}), "request 'r': futureMode"),
        (claim_json("c", {"name": "r"}), "request 'r' has not one of exactly and firstAvailable"),
        (claim_json("c", alternative(capacity={"requests": {}})), "request 'r', alternative 'sub': capacity"),
        (claim_json("c", alternative(adminAccess=True)), "request 'r', alternative 'sub': adminAccess"),
        (claim_json("c", exactly("r", selectors=[{"regex": "x"}])), "regex is not supported"),
        (claim_json("c", exactly("r", selectors=[{"cel": {}}])), "cel.expression is missing"),
        (claim_json("c", exactly("r"), constraints=[{"sameRack": "x"}]), r"constraints\[0\]: sameRack"),
        (claim_json("c", exactly("r"), constraints=[{}]), "has not one of matchAttribute"),
        (
            claim_json("c", exactly("r"), constraints=[{"matchAttribute": "a/b", "requests": ["q"]}]),
            r"constraints\[0\].requests: 'q' is no request",
        ),
        (claim_json("c", exactly("r"), partitions=[]), "partitions is not supported"),
        (claim_json("c", exactly("r", tolerations=[{"operator": "Near"}])), "request 'r'.tolerations"),
    ],
)
def test_what_a_claim_asks_for_and_is_not_supported_is_named(value: dict[str, Any], message: str) -> None:
    assert message.replace("\\", "") in claim(value).refused


def test_an_allocated_claim_is_known_whatever_it_asked_for() -> None:
    results = [
        {"request": "r", "driver": DRIVER, "pool": "n0", "device": "gpu-0"},
        {"request": "r", "driver": DRIVER, "pool": "n0", "device": "gpu-1", "adminAccess": True},
    ]
    value = claim_json(
        "c",
        exactly("r", capacity={"requests": {"a": "1"}}),
        status={"allocation": {"devices": {"results": results}}},
    )
    found = claim(value)
    assert found.refused
    assert found.allocation is not None
    assert [one.name for one in found.allocation.devices] == ["gpu-0", "gpu-1"]
    assert [one.name for one in found.allocation.held] == ["gpu-0"]
    assert found.allocation.terms is None


# ---- pods ----------------------------------------------------------------------------------------------------------


def test_the_claims_of_a_pod_and_those_made_for_it() -> None:
    entries = [
        {"name": "own", "resourceClaimName": "c"},
        {"name": "made", "resourceClaimTemplateName": "t"},
        {"name": "waits", "resourceClaimTemplateName": "t"},
        {"name": "unnecessary", "resourceClaimTemplateName": "t"},
    ]
    value = pod_json("a", resourceClaims=entries)
    value["status"]["resourceClaimStatuses"] = [
        {"name": "made", "resourceClaimName": "a-made-x"},
        {"name": "unnecessary"},
    ]
    assert pod(value).claims == (("own", "c"), ("made", "a-made-x"), ("waits", ""))
    assert (
        "spec.resourceClaims[0], which names no claim"
        in pod(pod_json("a", resourceClaims=[{"name": "r"}])).refused
    )


@pytest.mark.parametrize(
    "name", [one for one in tp.machines.names() if tp.machines.get(one).num_machines == 1]
)
def test_the_devices_of_our_own_slices_are_the_gpus_of_the_machine(name: str) -> None:
    machine = tp.machines.get(name)
    listed = [one for part in resource_slices("n0", machine, DRIVER) for one in resource_slice(part).devices]
    found = gpu_numbers(listed, machine.gpus)
    assert {device.name: number for device, number in found.items()} == {
        f"gpu-{gpu.index}": gpu.index for gpu in machine.gpus
    }
