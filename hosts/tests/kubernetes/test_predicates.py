"""Each predicate of the standard scheduler keeps away just the pods that it should, alone and in the table of nodes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kubernetes_objects import node_json, pod_json
from topoplace_hosts.kubernetes.objects.node import node
from topoplace_hosts.kubernetes.objects.pod import pod
from topoplace_hosts.kubernetes.scheduler.node_table import NodeTable
from topoplace_hosts.kubernetes.scheduler.predicates import why_not


def why(pod_fields: dict[str, Any], node_fields: dict[str, Any]) -> str:
    return why_not(pod(pod_json("a", **pod_fields)).place, node(node_json("n", **node_fields)))


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    selector = {"nodeSelectorTerms": list(terms)}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def test_readiness_and_cordon() -> None:
    assert why({}, {}) == ""
    assert why({}, {"ready": False}) == "not ready"
    assert why({}, {"unschedulable": True}) == "cordoned"
    tolerated = [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]
    assert why({"tolerations": tolerated}, {"unschedulable": True}) == ""


@pytest.mark.parametrize(
    ("toleration", "is_tolerated"),
    [
        ({"key": "team", "value": "a", "effect": "NoSchedule"}, True),
        ({"key": "team", "value": "a"}, True),
        ({"key": "team", "operator": "Equal", "value": "a"}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "team", "value": "b"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "team", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"value": "a"}, False),
    ],
)
@pytest.mark.parametrize("effect", ["NoSchedule", "NoExecute"])
def test_taints(toleration: dict[str, str], is_tolerated: bool, effect: str) -> None:
    taints = [{"key": "team", "value": "a", "effect": effect}]
    swapped = {"NoSchedule": effect, "NoExecute": "NoSchedule" if effect == "NoExecute" else "NoExecute"}
    entry = {**toleration, **({"effect": swapped[toleration["effect"]]} if "effect" in toleration else {})}
    assert why({"tolerations": [entry]}, {"taints": taints}) == ("" if is_tolerated else "taint team")
    assert why({}, {"taints": taints}) == "taint team"


def test_prefer_no_schedule_keeps_nobody_away() -> None:
    assert why({}, {"taints": [{"key": "team", "effect": "PreferNoSchedule"}]}) == ""


def test_node_selector() -> None:
    labels = {"pool": "a", "disk": "ssd"}
    assert why({"nodeSelector": {"pool": "a", "disk": "ssd"}}, {"labels": labels}) == ""
    assert why({"nodeSelector": {"pool": "b"}}, {"labels": labels}) == "nodeSelector"
    assert why({"nodeSelector": {"pool": "a", "zone": "z"}}, {"labels": labels}) == "nodeSelector"


@pytest.mark.parametrize(
    ("operator", "values", "label", "holds"),
    [
        ("In", ["a", "b"], "b", True),
        ("In", ["a", "b"], "c", False),
        ("In", ["a", "b"], None, False),
        ("NotIn", ["a"], "b", True),
        ("NotIn", ["a"], "a", False),
        ("NotIn", ["a"], None, True),
        ("Exists", [], "", True),
        ("Exists", [], None, False),
        ("DoesNotExist", [], None, True),
        ("DoesNotExist", [], "x", False),
        ("Gt", ["4"], "5", True),
        ("Gt", ["4"], "4", False),
        ("Gt", ["4"], "x", False),
        ("Gt", ["4"], None, False),
        ("Gt", ["9"], "10", True),
        ("Lt", ["4"], "3", True),
        ("Lt", ["4"], "-3", True),
        ("Lt", ["4"], "4", False),
        ("Lt", ["4"], "1_0", False),
    ],
)
def test_match_expressions(operator: str, values: list[str], label: str | None, holds: bool) -> None:
    labels = {} if label is None else {"key": label}
    found = why(required(expression("key", operator, *values)), {"labels": labels})
    assert found == ("" if holds else "node affinity")


def test_terms_are_alternatives_and_their_lines_are_not() -> None:
    a, b = expression("a", "Exists"), expression("b", "Exists")
    both = {"matchExpressions": a["matchExpressions"] + b["matchExpressions"]}
    for labels, either, together in (
        ({"a": ""}, True, False),
        ({"a": "", "b": ""}, True, True),
        ({}, False, False),
    ):
        assert (why(required(a, b), {"labels": labels}) == "") is either
        assert (why(required(both), {"labels": labels}) == "") is together


def test_match_fields_and_empty_terms() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    other = {"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}
    assert why(required(named), {}) == ""
    assert why(required(other), {}) == "node affinity"
    assert why(required({}), {}) == "node affinity"  # an empty term matches no node
    assert why(required(), {}) == "node affinity"


# ---- what changes with the pods that are bound ---------------------------------------------------------------------


def table(*nodes: dict[str, Any]) -> NodeTable:
    made = NodeTable([one["metadata"]["name"] for one in nodes])
    for one in nodes:
        made.set_node(node(one))
    return made


def test_amounts() -> None:
    made = table(node_json("n0", cpu="4"), node_json("n1", cpu="8", allocatable={"example.com/nic": "2"}))
    made.hold(pod(pod_json("x", cpu="3")), 0)
    assert made.mask(pod(pod_json("a", cpu="1"))).tolist() == [True, True]
    assert made.mask(pod(pod_json("a", cpu="1001m"))).tolist() == [False, True]
    assert made.mask(pod(pod_json("a", gpus=8))).tolist() == [False, True]
    nics = pod_json("a")
    nics["spec"]["containers"][0]["resources"]["limits"]["example.com/nic"] = "1"
    assert made.mask(pod(nics)).tolist() == [False, True]
    nics["spec"]["containers"][0]["resources"]["limits"]["example.com/nic"] = "3"
    assert made.reasons(pod(nics)) == {"too little example.com/nic": 2}
    made.release(pod(pod_json("x", cpu="3")), 0)
    assert made.mask(pod(pod_json("a", cpu="4"))).tolist() == [True, True]


def test_the_number_of_pods() -> None:
    made = table(node_json("n0", allocatable={"pods": "1"}))
    assert made.mask(pod(pod_json("a"))).all()
    made.hold(pod(pod_json("x", gpus=0)), 0)
    assert made.reasons(pod(pod_json("a"))) == {"too little pods": 1}


@pytest.mark.parametrize(
    ("held", "wanted", "conflict"),
    [
        ({"hostPort": 80}, {"hostPort": 80}, True),
        ({"hostPort": 80}, {"hostPort": 81}, False),
        ({"hostPort": 80}, {"hostPort": 80, "protocol": "UDP"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "10.0.0.2"}, False),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, {"hostPort": 80, "hostIP": "0.0.0.0"}, True),
        ({"containerPort": 80}, {"hostPort": 80}, False),
    ],
)
def test_host_ports(held: dict[str, Any], wanted: dict[str, Any], conflict: bool) -> None:
    def with_port(name: str, port: dict[str, Any]) -> dict[str, Any]:
        made = pod_json(name)
        made["spec"]["containers"][0]["ports"] = [port]
        return made

    made = table(node_json("n0"))
    made.hold(pod(with_port("x", held)), 0)
    assert made.mask(pod(with_port("a", wanted))).tolist() == [not conflict]
    made.release(pod(with_port("x", held)), 0)
    assert made.mask(pod(with_port("a", wanted))).all()


def test_a_pod_on_the_hosts_network_holds_its_ports() -> None:
    on_host = pod_json("x", hostNetwork=True)
    on_host["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    made = table(node_json("n0"))
    made.hold(pod(on_host), 0)
    assert not made.mask(pod(on_host)).any()


def test_the_anti_affinity_of_bound_pods_is_honoured() -> None:
    term = {"topologyKey": "rack", "labelSelector": {"matchLabels": {"app": "web"}}}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    racks = [node_json(f"n{i}", labels={"rack": rack}) for i, rack in enumerate("aab")]
    made = table(*racks, node_json("n3"))
    repelling = pod(pod_json("x", affinity=affinity))
    made.hold(repelling, 0)
    assert made.mask(pod(pod_json("a", labels={"app": "web"}))).tolist() == [False, False, True, True]
    assert made.mask(pod(pod_json("a", labels={"app": "db"}))).all()
    elsewhere = pod_json("a", labels={"app": "web"})
    elsewhere["metadata"]["namespace"] = "other"
    assert made.mask(pod(elsewhere)).all()
    made.release(repelling, 0)
    assert made.mask(pod(pod_json("a", labels={"app": "web"}))).all()


def test_answers_follow_changes_of_nodes() -> None:
    generator = random.Random(7)
    selectors: list[dict[str, Any]] = [
        {},
        {"nodeSelector": {"pool": "a"}},
        {"tolerations": [{"operator": "Exists"}]},
        required(expression("pool", "NotIn", "a")),
        required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1", "n40"]}]}),
    ]
    pods = [pod(pod_json("a", **fields)) for fields in selectors]
    made, present = NodeTable(["n0", "n1"]), dict[str, Any]()
    for _ in range(300):
        name = f"n{generator.randrange(60)}"
        if name in present and generator.random() < 0.2:
            made.remove_node(name)
            del present[name]
        else:
            taints = [{"key": "t", "effect": "NoSchedule"}] if generator.random() < 0.3 else []
            ready = generator.random() < 0.8
            present[name] = node(
                node_json(name, labels={"pool": generator.choice("ab")}, taints=taints, ready=ready)
            )
            made.set_node(present[name])
        asked = generator.choice(pods)
        allowed = {name for name, row in made.row_of.items() if made.mask(asked)[row]}
        assert allowed == {name for name, one in present.items() if not why_not(asked.place, one)}
