"""Pods and nodes are read as Kubernetes means them, and refused where they cannot be."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubernetes_objects import GPU, node_json, pod_json
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.annotations import GPUS, REQUEST, Group, gpus_of, request_of, written
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import pod
from topoplace_hosts.kubernetes.objects.quantities import MOST, thousandths
from topoplace_hosts.kubernetes.objects.requests import Requests


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        ("0", 0),
        ("2", 2000),
        ("500m", 500),
        ("1.5", 1500),
        (".5", 500),
        ("1.", 1000),
        ("100u", 1),
        ("1n", 1),
        ("3k", 3_000_000),
        ("1e3", 1_000_000),
        ("12E-1", 1200),
        ("4Ki", 4096_000),
        ("1Gi", (1 << 30) * 1000),
        ("+7", 7000),
        ("-0", 0),
        ("9E", MOST),
        ("9" * 40, MOST),
    ],
)
def test_quantities(quantity: str, amount: int) -> None:
    assert thousandths(quantity) == amount


@pytest.mark.parametrize(
    "quantity", ["", "x", "1 ", "1KiB", "-1", "1e999", "0x10", "١", "1" * 65, "1Mi5", "NaN"]
)
def test_what_is_no_quantity(quantity: str) -> None:
    with pytest.raises(KubernetesError, match="quantity"):
        thousandths(quantity)


def container(name: str, **limits: str) -> dict[str, Any]:
    return {
        "name": name,
        "resources": {"limits": {key.replace("gpu", GPU): value for key, value in limits.items()}},
    }


def test_init_containers_run_one_by_one_before_the_others_and_some_go_on() -> None:
    spec = pod_json("a")
    spec["spec"]["initContainers"] = [
        container("first", cpu="3", gpu="2"),
        {**container("sidecar", cpu="1"), "restartPolicy": "Always"},
        container("second", cpu="5", gpu="1"),
    ]
    spec["spec"]["containers"] = [container("main", cpu="2", gpu="3"), container("other", cpu="1", gpu="1")]
    spec["spec"]["overhead"] = {"cpu": "250m"}
    asked = pod(spec).requests
    assert dict(asked.amounts) == {
        "cpu": 6250,
        GPU: 4000,
        "pods": 1000,
    }  # second next to the sidecar, and the overhead
    assert asked.gpus == 4
    assert asked.gpus_of == (("first", 2), ("second", 1), ("main", 3), ("other", 1))
    assert asked.num_init == 2


def test_requests_win_over_limits_and_those_of_the_pod_over_all() -> None:
    spec = pod_json("a")
    spec["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "1"},
        "limits": {"cpu": "4", "memory": "1Ki"},
    }
    assert dict(pod(spec).requests.amounts) == {"cpu": 1000, "memory": 1024_000, "pods": 1000}
    spec["spec"]["resources"] = {"requests": {"cpu": "2"}}
    assert dict(pod(spec).requests.amounts)["cpu"] == 2000


def test_amounts_may_be_numbers() -> None:
    spec = pod_json("a")
    spec["spec"]["containers"][0]["resources"] = {"requests": {"cpu": 2, "memory": 10**30}}
    assert dict(pod(spec).requests.amounts) == {"cpu": 2000, "memory": MOST, "pods": 1000}


def test_the_annotation_gives_containers_their_gpus_one_after_another() -> None:
    requests = Requests((), 4, (("init", 2), ("main", 3), ("other", 1)), 1)
    text = written(requests, [6, 1, 3, 2])
    assert json.loads(text) == {"init": [6, 1], "main": [6, 1, 3], "other": [2]}
    assert gpus_of({GPUS: text}, requests) == (6, 1, 3, 2)


def test_an_init_container_may_have_more_gpus_than_the_others() -> None:
    requests = Requests((), 3, (("init", 3), ("main", 1)), 1)
    assert gpus_of({GPUS: written(requests, [4, 0, 2])}, requests) == (4, 0, 2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        '{"main":3}',
        '{"main":[0]}',
        '{"main":[0,0]}',
        '{"main":[0,true]}',
        '{"main":[0,-1]}',
        '{"main":[0,1.0]}',
        '{"main":[0,256]}',
        '{"other":[0,1]}',
        '{"main":[0,1],"other":[2]}',
        "[" * 3000,
        '{"main":[0,1]}' + " " * 5000,
    ],
)
def test_other_annotations_say_nothing(text: str) -> None:
    assert gpus_of({GPUS: text}, Requests((), 2, (("main", 2),), 0)) is None


def test_groups() -> None:
    labels = {"topoplace.io/group": "g", "topoplace.io/group-size": "4"}
    assert pod(pod_json("a", labels=labels)).group == Group("default", "g", 4)
    assert pod(pod_json("a")).group is None
    for size in ("", "0", "-1", "x", "4097", "1e2", "²"):
        with pytest.raises(KubernetesError, match="group-size"):
            _ = pod(pod_json("a", labels={**labels, "topoplace.io/group-size": size})).group


def test_groups_of_kueue_for_plain_pods() -> None:
    labels = {"kueue.x-k8s.io/pod-group-name": "k"}
    size = {"kueue.x-k8s.io/pod-group-total-count": "3"}
    assert pod(pod_json("a", labels=labels, annotations=size)).group == Group("default", "k", 3)
    ours = {"topoplace.io/group": "g", "topoplace.io/group-size": "4"}
    assert pod(pod_json("a", labels={**labels, **ours}, annotations=size)).group == Group("default", "g", 4)
    for wrong in ({}, {"kueue.x-k8s.io/pod-group-total-count": "many"}):
        with pytest.raises(
            KubernetesError, match=r"pod-group-total-count = '(many)?' is not a number from 1"
        ):
            _ = pod(pod_json("a", labels=labels, annotations=wrong)).group


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"annotations": {"pod-group-name": "pg"}}, "pod-group-name = 'pg'"),
        ({"annotations": {"scheduling.k8s.io/group-name": "pg"}}, "scheduling.k8s.io/group-name = 'pg'"),
        ({"labels": {"scheduling.x-k8s.io/pod-group": "pg"}}, "scheduling.x-k8s.io/pod-group = 'pg'"),
        ({"schedulingGroup": {"podGroupName": "pg"}}, "spec.schedulingGroup"),
        ({"workloadRef": {"name": "w", "podGroup": "pg"}}, "spec.workloadRef"),
    ],
)
def test_groups_that_are_not_read_are_refused_with_the_remedy(fields: dict[str, Any], named: str) -> None:
    remedy = "(give the pods the labels topoplace.io/group and topoplace.io/group-size)"
    assert pod(pod_json("a", **fields)).refused == f"{named}, a group that is not read {remedy},"
    ours = {"topoplace.io/group": "g", "topoplace.io/group-size": "4"}
    assert pod(pod_json("a", **{**fields, "labels": {**fields.get("labels", {}), **ours}})).refused == ""


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        (
            {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "podAffinity",
        ),
        (
            {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}},
            "podAntiAffinity",
        ),
        (
            {"topologySpreadConstraints": [{"whenUnsatisfiable": "DoNotSchedule"}]},
            "topologySpreadConstraints",
        ),
        ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, "volume claim"),
        ({"volumes": [{"name": "v", "ephemeral": {}}]}, "volume claim"),
    ],
)
def test_what_is_not_honoured_is_named(fields: dict[str, Any], what: str) -> None:
    assert what in pod(pod_json("a", **fields)).refused


def test_what_only_prefers_is_no_reason_to_refuse() -> None:
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{}]}
    affinity = {"podAffinity": preferred, "podAntiAffinity": preferred, "nodeAffinity": preferred}
    spread = [{"whenUnsatisfiable": "ScheduleAnyway"}]
    found = pod(
        pod_json("a", affinity=affinity, topologySpreadConstraints=spread, volumes=[{"emptyDir": {}}])
    )
    assert found.refused == ""
    assert found.place.terms is None
    assert not found.gated
    assert pod(pod_json("a", schedulingGates=[{"name": "x"}])).gated


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata",), []),
        (("metadata", "uid"), ""),
        (("metadata", "name"), 7),
        (("metadata", "labels"), {"a": 1}),
        (("metadata", "labels"), {"a": "x" * 2000}),
        (("spec", "containers"), {}),
        (("spec", "containers"), [{}] * 1001),
        (("spec", "containers", 0, "resources", "limits"), {"cpu": []}),
        (("spec", "containers", 0, "resources", "limits"), {"cpu": "x"}),
        (("spec", "containers", 0, "resources", "limits"), {GPU: "1.5"}),
        (("spec", "containers", 0, "resources", "limits"), {GPU: "257"}),
        (("spec", "containers", 0, "resources", "limits"), {"cpu": True}),
        (("spec", "containers", 0, "resources", "limits"), {f"example.com/{i}": "1" for i in range(101)}),
        (("metadata", "labels"), {f"label{i}": "" for i in range(1001)}),
        (("spec", "containers", 0, "ports"), [{"hostPort": "80"}]),
        (("spec", "priority"), 1 << 40),
        (("spec", "priority"), True),
        (("spec", "nodeSelector"), {"a": ["b"]}),
        (("spec", "tolerations"), [{"operator": "Gt"}]),
    ],
)
def test_pods_that_cannot_be_read(path: tuple[str | int, ...], value: Any) -> None:
    found = pod_json("a")
    place: Any = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(KubernetesError):
        pod(found)


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "Near", "values": ["b"]},
        {"key": "a", "operator": "Gt", "values": ["x"]},
        {"key": "a", "operator": "Gt", "values": []},
        {"key": "a", "operator": "Lt", "values": ["1", "2"]},
    ],
)
def test_affinity_that_cannot_be_read(expression: dict[str, Any]) -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    with pytest.raises(KubernetesError):
        pod(pod_json("a", affinity=affinity))


def test_fields_of_nodes_that_are_none() -> None:
    terms = {"nodeSelectorTerms": [{"matchFields": [{"key": "spec.x", "operator": "In", "values": ["n0"]}]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    with pytest.raises(KubernetesError, match=r"matchFields: 'spec\.x' is no field"):
        pod(pod_json("a", affinity=affinity))


def test_a_long_request_is_not_read() -> None:
    with pytest.raises(KubernetesError, match=f"{REQUEST} has more than"):
        request_of({REQUEST: '{"pattern": "' + "r" * 100_000 + '"}'})


def test_a_sidecar_with_gpus_is_refused() -> None:
    sidecar = {**container("s", gpu="1"), "restartPolicy": "Always"}
    with pytest.raises(KubernetesError, match="init container"):
        pod(pod_json("a", initContainers=[sidecar]))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "metadata",
                        "spec",
                        "status",
                        "uid",
                        "name",
                        "namespace",
                        "containers",
                        "affinity",
                        "taints",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
    )
)
def test_any_json_is_read_or_refused(value: object) -> None:
    for read in (pod, node):
        try:
            read(value)
        except KubernetesError as error:
            message = str(error)
        else:
            message = ""
        assert len(message) < 300


def test_nodes() -> None:
    found = node(
        node_json(
            "n", taints=[{"key": "a", "effect": "PreferNoSchedule"}, {"key": "b", "effect": "NoExecute"}]
        )
    )
    assert [taint.key for taint in found.taints] == ["b"]
    assert found.ready
    assert not node(node_json("n", ready=False)).ready
    assert [taint.key for taint in node(node_json("n", unschedulable=True)).taints] == [
        "node.kubernetes.io/unschedulable"
    ]
    with pytest.raises(KubernetesError, match="effect"):
        node(node_json("n", taints=[{"key": "a", "effect": "Never"}]))
    gone = node_json("n")
    gone["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert not node(gone).ready
