"""The objects of the API server for tests: it refuses what a real one refuses, and notes GPUs that are given twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kubernetes_objects import DRIVER, claim_json, exactly, pod_json
from topoplace_hosts.kubernetes.testing import ObjectStore
from topoplace_hosts.kubernetes.testing.objects import StoreError

GPUS = "topoplace.io/gpus"


def binding(node: str, uid: str = "", gpus: str = "[0]") -> dict[str, Any]:
    metadata = {"uid": uid, "annotations": {GPUS: f'{{"main":{gpus}}}'}}
    return {"metadata": metadata, "target": {"name": node}}


def allocation(*devices: str) -> dict[str, Any]:
    found = [{"request": "gpus", "driver": DRIVER, "pool": "n0", "device": one} for one in devices]
    return {"devices": {"results": found}}


@pytest.fixture
def store() -> ObjectStore:
    store = ObjectStore()
    store.add("pods", pod_json("a"))
    store.add("pods", pod_json("b"))
    store.add("resourceclaims", claim_json("c", exactly("gpus")))
    return store


def leaving(store: ObjectStore) -> None:
    store.change("pods", "a", lambda pod: pod["metadata"].update(deletionTimestamp="2026-01-01T00:00:00Z"))
    store.bind("a", binding("n0"))


def bound_twice(store: ObjectStore) -> None:
    store.bind("a", binding("n0"))
    store.bind("a", binding("n1"))


def evicted_by_another(store: ObjectStore) -> None:
    store.evict("a", "old")


def older(store: ObjectStore) -> None:
    known = store.get("pods", "a")
    store.change("pods", "a", lambda pod: pod["spec"].update(priority=3))
    store.replace("pods", "a", known)


def lease_twice(store: ObjectStore) -> None:
    for _ in range(2):
        store.add("leases", {"metadata": {"name": "one"}})


def status(*statuses: dict[str, Any]) -> Callable[[ObjectStore], None]:
    def written(store: ObjectStore) -> None:
        for one in statuses:
            store.replace_claim("c", {**store.get("resourceclaims", "c"), "status": one}, "status")

    return written


ONE = {"resource": "pods", "name": "a", "uid": "uid-a"}


@pytest.mark.parametrize(
    ("ask", "code", "message"),
    [
        (lambda store: store.get("pods", "x"), 404, 'pods "x" not found'),
        (lambda store: store.bind("a", binding("n0", uid="old")), 409, "precondition failed: uid of pod a"),
        (leaving, 409, "pod a is being deleted"),
        (bound_twice, 409, "pod a is already assigned to node n0"),
        (evicted_by_another, 409, "precondition failed: uid of pod a"),
        (older, 409, "pods a has been modified"),
        (lease_twice, 409, "leases one already exists"),
        (status({"allocation": allocation("x")}, {"allocation": allocation("y")}), 422, "is immutable"),
        (status({"reservedFor": [ONE]}), 422, "only an allocated claim is reserved"),
        (status({"allocation": allocation("x"), "reservedFor": [ONE, ONE]}), 422, "too many, or one twice"),
    ],
)
def test_refusals(store: ObjectStore, ask: Callable[[ObjectStore], Any], code: int, message: str) -> None:
    with pytest.raises(StoreError, match=message) as refused:
        ask(store)
    assert refused.value.status == code


def test_gpus_and_devices_given_twice_are_noted(store: ObjectStore) -> None:
    store.bind("a", binding("n0", gpus="[0,1]"))
    store.bind("b", binding("n0", gpus="[1]"))
    assert store.twice == ["GPU 1 of n0: a and b"]
    store.add("resourceclaims", claim_json("d", exactly("gpus"), status={"allocation": allocation("x")}))
    status({"allocation": allocation("x")})(store)
    assert store.twice[1:] == [f"device {DRIVER}/n0/x: c and d"]


def test_gpus_of_a_pod_that_has_ended_are_free(store: ObjectStore) -> None:
    store.bind("a", binding("n0"))
    store.finish("a")
    store.bind("b", binding("n0"))
    assert store.twice == []
