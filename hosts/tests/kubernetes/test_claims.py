"""Claims through the scheduler and a simulated API server: what is written, and what becomes of it when things fail."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import (
    DRIVER,
    claim_json,
    claim_spec,
    claims_of,
    class_json,
    exactly,
    node_json,
    pod_json,
)
from kubernetes_scheduler import Running, running_scheduler, where
from topoplace_hosts.kubernetes.resource_slices import resource_slices
from topoplace_hosts.kubernetes.testing import ApiServer, control_claims
from waiting import until

MACHINE = tp.machines.get("dgx1-v100")


def cluster(
    count: int = 2, gpus: int = 0, **options: Any
) -> AbstractContextManager[tuple[ApiServer, Running]]:
    """Run a scheduler on nodes whose GPUs are devices; gpus: how many of them a device plugin offers, too."""

    def populate(api: ApiServer, name: str) -> None:
        api.store.add("nodes", node_json(name, gpus))
        for one in resource_slices(name, MACHINE, DRIVER):
            api.store.add("resourceslices", one)
        if name == "n0":
            api.store.add("deviceclasses", class_json())

    return running_scheduler(count, populate, **options)


def status(api: ApiServer, name: str) -> dict[str, Any]:
    return dict(api.store.get("resourceclaims", name).get("status") or {})


def devices(api: ApiServer, name: str) -> list[str]:
    allocation = status(api, name).get("allocation") or {"devices": {}}
    return [one["device"] for one in allocation["devices"].get("results", [])]


def add(api: ApiServer, name: str, *claims: str, gpus: int = 0, **fields: Any) -> None:
    api.store.add("pods", pod_json(name, gpus, resourceClaims=claims_of(*claims), **fields))


def test_a_pod_with_one_claim_gets_devices_a_reservation_and_its_node() -> None:
    with cluster() as (api, running):
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 4)))
        add(api, "a", "c")
        until(lambda: where(api, "a") != "")
        found = status(api, "c")
        assert found["reservedFor"] == [{"resource": "pods", "name": "a", "uid": "uid-a"}]
        results = found["allocation"]["devices"]["results"]
        assert {(one["request"], one["driver"], one["pool"]) for one in results} == {
            ("gpus", DRIVER, where(api, "a"))
        }
        placed = tp.policies.get("topo-aware").place(
            tp.JobGraph.ring(4).with_(bandwidth_sensitive=True, single_machine=True), tp.Cluster(MACHINE)
        )
        assert placed is not None
        assert devices(api, "c") == [f"gpu-{gpu}" for gpu in placed.gpus]  # as a pod without claims would get
        (term,) = found["allocation"]["nodeSelector"]["nodeSelectorTerms"]
        assert term["matchFields"] == [
            {"key": "metadata.name", "operator": "In", "values": [where(api, "a")]}
        ]
        assert api.store.get("resourceclaims", "c")["metadata"]["finalizers"] == [
            "resource.kubernetes.io/delete-protection"
        ]
        until(lambda: any(event["reason"] == "Scheduled" for event in api.store.events))
        assert f"{DRIVER}/{where(api, 'a')}/gpu-" in api.store.events[-1]["message"]
        lines = [line for line in api.requests if line.startswith(("PUT", "POST")) and "events" not in line]
        path = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims/c"
        assert lines[:3] == [
            f"PUT {path}",
            f"PUT {path}/status",
            "POST /api/v1/namespaces/default/pods/a/binding",
        ]
        held = running.scheduler.state.cluster.gpus_of("claim/uid-c")
        assert [gpu % 8 for gpu in held] == list(placed.gpus)


def test_what_is_written_is_known_to_the_published_api() -> None:
    """The models of the official client are generated from the published OpenAPI schema."""
    client = pytest.importorskip("kubernetes.client", reason="the group test is not installed")
    config = {"opaque": {"driver": DRIVER, "parameters": {"mode": "fast"}}}
    tolerations = [{"key": "broken", "operator": "Exists", "effect": "NoSchedule"}]
    with cluster() as (api, _):
        api.store.add("deviceclasses", class_json("configured", config=[config]))
        requests = [
            exactly("gpus", 2, deviceClassName="configured", tolerations=tolerations),
            {"name": "one", "firstAvailable": [{"name": "any", "deviceClassName": "gpu"}]},
        ]
        own = [{"requests": ["one"], **config}, {"requests": ["gone"], **config}]
        api.store.add("resourceclaims", claim_json("c", *requests, config=own[:1]))
        add(api, "a", "c")
        until(lambda: where(api, "a") != "")
        written = status(api, "c")
        reader = client.ApiClient()
        model = reader._ApiClient__deserialize(written, "V1ResourceClaimStatus")
        assert reader.sanitize_for_serialization(model) == written  # unknown fields would be missing
        reader.close()
        found = written["allocation"]["devices"]
        assert [one["request"] for one in found["results"]] == ["gpus", "gpus", "one/any"]
        assert found["results"][0]["tolerations"] == tolerations
        assert [(one["source"], one["requests"]) for one in found["config"]] == [
            ("FromClass", ["gpus"]),
            ("FromClaim", ["one"]),
        ]


def test_claims_made_from_templates_are_waited_for_and_freed_by_the_controller() -> None:
    with cluster(1) as (api, running):
        api.store.templates["t"] = claim_spec(exactly("gpus", 8))
        entry = {"name": "gpus", "resourceClaimTemplateName": "t"}
        api.store.add("pods", pod_json("a", 0, resourceClaims=[entry]))
        until(lambda: "not made yet from its template" in "".join(running.reasons()))
        control_claims(api.store)
        until(lambda: where(api, "a") != "")
        api.store.add("pods", pod_json("b", 0, resourceClaims=[entry]))
        control_claims(api.store)
        until(lambda: "too few devices" in running.reasons()[-1])
        api.store.finish("a")
        assert len(devices(api, "a-gpus")) == 8  # that is not the scheduler's to free
        control_claims(api.store)
        until(lambda: where(api, "b") != "")


def test_a_shared_claim_is_used_where_it_is_and_reserved_for_each_pod() -> None:
    with cluster(2) as (api, _):
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 2)))
        for name in ("a", "b", "c"):
            add(api, name, "c")
            until(lambda name=name: where(api, name) != "")
        assert len({where(api, name) for name in ("a", "b", "c")}) == 1
        assert [one["name"] for one in status(api, "c")["reservedFor"]] == ["a", "b", "c"]


def test_a_claim_has_at_most_256_users() -> None:
    users = [{"resource": "pods", "name": f"x{i}", "uid": f"u{i}"} for i in range(256)]
    allocation = {"devices": {"results": [result("n0", 0)]}}
    with cluster(1) as (api, running):
        value = claim_json("c", exactly("gpus"), status={"allocation": allocation, "reservedFor": users})
        api.store.add("resourceclaims", value)
        add(api, "a", "c")
        until(lambda: "is used by 256 pods" in "".join(running.reasons()))
        api.store.change("resourceclaims", "c", lambda claim: claim["status"]["reservedFor"].pop())
        until(lambda: where(api, "a") == "n0")


def result(node: str, gpu: int, **fields: Any) -> dict[str, Any]:
    return {"request": "gpus", "driver": DRIVER, "pool": node, "device": f"gpu-{gpu}", **fields}


def pinned(node: str, *gpus: int) -> dict[str, Any]:
    """Return the allocation of GPUs on a node."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    return {
        "devices": {"results": [result(node, gpu) for gpu in gpus]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }


def test_gpus_of_claims_and_of_the_device_plugin_never_overlap() -> None:
    with cluster(1, gpus=8) as (api, running):
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 3)))
        add(api, "a", "c")
        until(lambda: where(api, "a") != "")
        api.store.add("pods", pod_json("plugin", 5))
        until(lambda: where(api, "plugin") != "")
        plugin = {gpu for _, gpu, _ in api.store.held()}
        assert plugin | {int(name.removeprefix("gpu-")) for name in devices(api, "c")} == set(range(8))
        api.store.add("resourceclaims", claim_json("d", exactly("gpus", 1)))
        add(api, "b", "d")
        until(lambda: "too few devices" in "".join(running.reasons()))
        add(api, "both", "c", gpus=1)
        until(lambda: "nvidia.com/gpu together with resourceClaims" in "".join(running.reasons()))


def test_a_claim_on_a_gpu_that_nobody_knows_closes_its_node() -> None:
    with cluster(2, gpus=8) as (api, running):
        unknown = pinned("n0", 77)
        api.store.add("resourceclaims", claim_json("c", exactly("gpus"), status={"allocation": unknown}))
        until(lambda: running.scheduler.state.closed_nodes() == 1)
        for i in range(2):
            api.store.add("pods", pod_json(f"a{i}", 4))
            until(lambda i=i: where(api, f"a{i}") == "n1")
        api.store.change("resourceclaims", "c", lambda claim: claim["status"].pop("allocation"))
        until(lambda: running.scheduler.state.closed_nodes() == 0)


def test_a_device_that_leaves_its_slice_keeps_its_gpu_from_others() -> None:
    with cluster(1, gpus=8) as (api, running):
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 1)))
        add(api, "a", "c")
        until(lambda: where(api, "a") != "")
        (slices,) = resource_slices("n0", MACHINE, DRIVER, generation=2)
        slices["spec"]["devices"] = [
            one for one in slices["spec"]["devices"] if one["name"] not in devices(api, "c")
        ]
        freed = running.scheduler.state.freed
        api.store.change("resourceslices", slices["metadata"]["name"], lambda value: value.update(slices))
        until(lambda: running.scheduler.state.freed > freed)
        api.store.add("pods", pod_json("plugin", 7))
        until(lambda: where(api, "plugin") != "")
        taken = {f"gpu-{gpu}" for _, gpu, _ in api.store.held()}
        assert not taken & {*devices(api, "c")}


def test_slices_that_come_and_change_are_followed() -> None:
    with cluster(1) as (api, running):
        (whole,) = resource_slices("n0", MACHINE, DRIVER)
        name = whole["metadata"]["name"]
        known = running.scheduler.state.claims.slices
        api.store.remove("resourceslices", name)
        until(lambda: known() == [])  # it has seen this before the pod
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 1)))
        add(api, "a", "c")
        until(lambda: "request gpus: too few devices" in "".join(running.reasons()))
        whole["spec"]["pool"]["resourceSliceCount"] = 2
        api.store.add("resourceslices", whole)  # half of a pool
        rest = {**whole, "metadata": {"name": "rest"}, "spec": {**whole["spec"], "devices": []}}
        until(lambda: known() == [name])
        assert where(api, "a") == ""
        api.store.add("resourceslices", rest)
        until(lambda: where(api, "a") != "")


# ---- faults --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["c", "c/status"])
@pytest.mark.parametrize("status_code", [0, 409, 429, 503])
def test_a_write_without_a_clear_answer_is_settled_by_reading_the_claim(path: str, status_code: int) -> None:
    with cluster(1) as (api, running):
        api.fail(f"resourceclaims/{path}", status_code, times=2)
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 4)))
        add(api, "a", "c")
        until(lambda: where(api, "a") != "")
        assert len(status(api, "c")["reservedFor"]) == 1
        assert "not_bound" not in [event for event, _ in running.logged]


def test_a_class_that_cannot_be_read_is_as_if_it_were_not_there() -> None:
    with cluster(1) as (api, running):
        api.store.change("deviceclasses", "gpu", lambda one: one["spec"].update(selectors=3))
        until(lambda: any(fields.get("kind") == "deviceclasses" for _, fields in running.logged))
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 1)))
        add(api, "a", "c")
        without = "claim default/c, request gpus: there is no DeviceClass gpu"
        until(lambda: without in "".join(running.reasons()))
        api.store.change("deviceclasses", "gpu", lambda one: one.update(spec=class_json()["spec"]))
        until(lambda: where(api, "a") == "n0")
        api.store.remove("deviceclasses", "gpu")
        until(lambda: "gpu" not in running.scheduler.state.claims.classes)
        api.store.add("resourceclaims", claim_json("d", exactly("gpus", 1)))
        add(api, "b", "d")
        until(lambda: without.replace("default/c", "default/d") in "".join(running.reasons()))
        assert where(api, "b") == ""


def test_slices_that_went_while_nobody_looked_are_gone() -> None:
    with cluster(2) as (api, running):
        known = running.scheduler.state.claims.slices
        until(lambda: len(known()) == 2)
        gone = next(name for name in known() if name.startswith("n1"))
        api.fail("resourceslices", 500, times=3)
        api.cut_watches()
        api.store.remove("resourceslices", gone)
        api.store.forget_history()
        until(lambda: gone not in known())
        assert len(known()) == 1


def test_what_was_allocated_is_taken_back_if_the_pod_cannot_be_bound() -> None:
    with cluster(1) as (api, running):
        api.fail("a/binding", 403)
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 8)))
        api.store.add("resourceclaims", claim_json("d", exactly("gpus", 8)))
        add(api, "a", "c", priority=5)
        until(lambda: any(event == "not_bound" for event, _ in running.logged))
        add(api, "b", "d")
        until(lambda: bool(where(api, "a") or where(api, "b")))
        assert sum(bool(devices(api, name)) for name in ("c", "d")) == 1
        for name in ("c", "d"):
            if not devices(api, name):
                assert not status(api, name).get("reservedFor")
                assert not api.store.get("resourceclaims", name)["metadata"].get("finalizers")


def test_a_claim_that_somebody_else_allocated_meanwhile_is_decided_anew() -> None:
    with cluster(2) as (api, running):
        api.fail("resourceclaims/c/status", 503)
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 2)))
        add(api, "a", "c")
        until(lambda: any(line.endswith("resourceclaims/c/status") for line in api.requests))
        api.store.change(
            "resourceclaims", "c", lambda claim: claim["status"].update(allocation=pinned("n1", 6, 7))
        )
        until(lambda: where(api, "a") == "n1")
        assert devices(api, "c") == ["gpu-6", "gpu-7"]
        assert any("other devices by now" in fields.get("error", "") for _, fields in running.logged)


def test_the_second_claim_fails_and_the_first_is_taken_back() -> None:
    with cluster(1) as (api, running):
        api.fail("resourceclaims/d/status", 422)
        for name in ("c", "d"):
            api.store.add("resourceclaims", claim_json(name, exactly("gpus", 2)))
        add(api, "a", "c", "d")
        until(lambda: any(event == "not_bound" for event, _ in running.logged))
        until(lambda: where(api, "a") != "")
        held = running.scheduler.state.cluster.allocations
        until(lambda: sorted(map(len, held.values())) == [2, 2])


def test_a_crash_before_the_binding_is_finished_or_taken_back() -> None:
    """The claims are as an earlier scheduler left them: allocated and reserved, and their pods not bound."""
    with cluster(2) as (api, running):
        api.store.change("nodes", "n1", lambda node: node["spec"].update(unschedulable=True))
        until(lambda: cordoned(running))
        for name, node in (("c", "n0"), ("d", "n1")):
            reserved = [{"resource": "pods", "name": f"p{name}", "uid": f"uid-p{name}"}]
            given = {"allocation": pinned(node, 0, 5), "reservedFor": reserved}
            api.store.add("resourceclaims", claim_json(name, exactly("gpus", 2), status=given))
            add(api, f"p{name}", name)
        until(lambda: where(api, "pc") == "n0")
        assert devices(api, "c") == ["gpu-0", "gpu-5"]  # finished where it was
        until(lambda: where(api, "pd") == "n0")  # taken back, as its node is closed, and decided anew
        assert [fields["claims"] for event, fields in running.logged if event == "frees"] == [
            ["claim default/d"]
        ]


def cordoned(running: Running) -> bool:
    node = running.scheduler.state.table.nodes[1]
    return node is not None and bool(node.taints)


def test_a_group_with_claims_starts_together_or_not_at_all() -> None:
    with cluster(2) as (api, running):
        labels = {"topoplace.io/group": "g", "topoplace.io/group-size": "3"}
        for i in range(3):
            api.store.add("resourceclaims", claim_json(f"c{i}", exactly("gpus", 6)))
            add(api, f"g{i}", f"c{i}", labels=labels)
        until(lambda: "2 of 3 pods of the group fit" in "".join(running.reasons()))
        assert not any(devices(api, f"c{i}") for i in range(3))
        assert running.scheduler.state.cluster.allocations == {}
        api.store.remove("resourceclaims", "c2")
        smaller = claim_json("c2", exactly("gpus", 2))
        smaller["metadata"]["uid"] = "uid-of-another"  # no uid comes twice
        api.store.add("resourceclaims", smaller)
        until(lambda: not api.store.waiting())


def test_an_api_server_without_claims_schedules_all_else_and_says_so() -> None:
    topology = tp.Topology.cluster(MACHINE, 1, names=["n0"])
    with ApiServer() as api:
        for kind in ("resourceslices", "deviceclasses", "resourceclaims"):
            api.fail(f"resource.k8s.io/v1/{kind}", 404, times=10_000)
        api.store.add("nodes", node_json("n0"))
        api.store.add("pods", pod_json("plain", 2))
        add(api, "a", "c")
        running = Running(api, topology)
        until(lambda: where(api, "plain") != "")
        until(lambda: "does not serve resource.k8s.io/v1" in "".join(running.reasons()))
        running.stop()


def test_a_group_that_shares_a_claim_runs_where_it_is() -> None:
    with cluster(2) as (api, running):
        labels = {"topoplace.io/group": "g", "topoplace.io/group-size": "4"}
        api.store.add("resourceclaims", claim_json("shared", exactly("gpus", 2)))
        for i in range(4):
            add(api, f"g{i}", "shared", labels=labels)
        until(lambda: not api.store.waiting())
        assert len({where(api, f"g{i}") for i in range(4)}) == 1
        assert "not_bound" not in [
            event for event, _ in running.logged
        ]  # they wait for the one that writes it
        assert {one["name"] for one in status(api, "shared")["reservedFor"]} == {"g0", "g1", "g2", "g3"}


def test_a_right_that_is_missing_is_an_event() -> None:
    with cluster() as (api, running):
        api.fail("resourceclaims/c/status", 403, times=10_000)
        api.store.add("resourceclaims", claim_json("c", exactly("gpus", 2)))
        add(api, "a", "c")
        add(api, "plain")
        until(lambda: where(api, "plain"))
        events = api.store.events
        until(lambda: [one for one in events if "claim default/c: 403" in one["message"]])
        until(lambda: len([event for event, _ in running.logged if event == "not_bound"]) > 1)
        assert len([one for one in events if "claim default/c: 403" in one["message"]]) == 1
        assert running.scheduler.figures.not_bound > 1
