"""Snapshots of Kubernetes: pods that run hold GPUs, those that wait are jobs, alone or in groups."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import node_json, pod_json

GPUS = "topoplace.io/gpus"


def text(*objects: dict[str, Any], kind: str = "Pod") -> str:
    """Return a List as kubectl prints it; nodes have no nodeName and no containers."""
    items = [{"kind": kind if "containers" in one["spec"] else "Node", **one} for one in objects]
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": items})


def node(name: str, gpus: int = 4, **fields: Any) -> dict[str, Any]:
    found = node_json(name, gpus, **fields)
    found["status"]["capacity"] = found["status"]["allocatable"]
    return found


def bound(name: str, gpus: int, on: str, numbers: list[int] | None = None, **fields: Any) -> dict[str, Any]:
    """Return a pod that runs; numbers: of its GPUs, in the annotation of topoplace's scheduler."""
    noted = {} if numbers is None else {"annotations": {GPUS: json.dumps({"main": numbers})}}
    return pod_json(name, gpus, nodeName=on, phase="Running", **noted, **fields)


NODES = node("n1"), node("n2", labels={"zone": "a"})


def test_running_pods_hold_their_gpus() -> None:
    found = tp.snapshot.read(
        text(*NODES, bound("b", 2, "n1"), bound("a", 2, "n1", [1, 0]), bound("c", 4, "n2"))
    )
    assert found.cluster.allocations == {
        "default/a": (1, 0),
        "default/b": (2, 3),
        "default/c": (4, 5, 6, 7),
    }
    assert {one.seconds_left for one in found.running.values()} == {math.inf}
    assert any(note.endswith("taken to be the lowest: pod default/b, pod default/c.") for note in found.notes)


def test_pods_that_ended_or_need_no_gpu_are_no_jobs() -> None:
    ended = bound("a", 2, "n1")
    ended["status"]["phase"] = "Succeeded"
    found = tp.snapshot.read(text(*NODES, ended, pod_json("b", 0)))
    assert (dict(found.running), found.waiting) == ({}, ())


def test_waiting_pods_by_priority_and_age() -> None:
    old, new, first = (pod_json(name, 2) for name in ("old", "new", "first"))
    new["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
    first["spec"]["priority"] = 1000
    found = tp.snapshot.read(text(*NODES, new, old, first))
    assert [one.job_id for one in found.waiting] == ["default/first", "default/old", "default/new"]
    assert found.waiting_job("new").job.single_machine


def test_selectors_and_taints_limit_the_nodes() -> None:
    tainted = node("n3", taints=[{"key": "own", "effect": "NoSchedule"}])
    pods = pod_json("a", 1, nodeSelector={"zone": "a"}), pod_json("b", 1)
    found = tp.snapshot.read(text(*NODES, tainted, *pods))
    assert found.waiting_job("a").machines == frozenset({"n2"})
    assert found.waiting_job("b").machines == frozenset({"n1", "n2"})


def group_of(system: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return two pods of a group of three, and the objects that say so."""
    marks: dict[str, Any] = {
        "topoplace": {"labels": {"topoplace.io/group": "train", "topoplace.io/group-size": "3"}},
        "kueue": {
            "labels": {"kueue.x-k8s.io/pod-group-name": "train"},
            "annotations": {"kueue.x-k8s.io/pod-group-total-count": "3"},
        },
        "volcano": {"annotations": {"scheduling.k8s.io/group-name": "train"}},
    }[system]
    pod_group = {
        "kind": "PodGroup",
        "metadata": {"namespace": "default", "name": "train"},
        "spec": {"minMember": 3},
    }
    return [pod_json(f"w{i}", 2, **marks) for i in range(2)], [pod_group] if system == "volcano" else []


@pytest.mark.parametrize("system", ["topoplace", "kueue", "volcano"])
def test_pods_of_a_group_are_one_job(system: str) -> None:
    pods, more = group_of(system)
    found = tp.snapshot.read([text(*NODES, *pods), json.dumps({"kind": "List", "items": more})])
    (job,) = found.waiting
    assert (job.job_id, job.job.num_tasks) == ("default/train", 6)
    assert [group.tasks for group in job.job.groups if group.within == "machine"] == [(0, 1), (2, 3), (4, 5)]
    assert any("1 pods of its group are not made yet" in note for note in found.notes)


def workload(*, admitted: bool = False, **fields: Any) -> dict[str, Any]:
    """Return a Workload of Kueue for a Job with three pods of two GPUs."""
    one = pod_json("x", 2)
    conditions = [{"type": "Admitted", "status": "True"}] if admitted else []
    return {
        "kind": "Workload",
        "metadata": {
            "namespace": "default",
            "name": "job-train-1a2b",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"kind": "Job", "name": "train"}],
        },
        "spec": {
            "priority": 7,
            "podSets": [{"name": "main", "count": 3, "template": {"spec": one["spec"]}, **fields}],
        },
        "status": {"conditions": conditions},
    }


def test_a_workload_of_kueue_waits_without_pods() -> None:
    found = tp.snapshot.read([text(*NODES), json.dumps({"kind": "WorkloadList", "items": [workload()]})])
    (job,) = found.waiting
    assert (job.job_id, job.job.num_tasks, job.priority) == ("default/train", 6, 7)


def test_pods_of_an_admitted_workload_are_one_job() -> None:
    pods = [bound(f"train-{i}", 2, "n1" if i < 2 else "n2") for i in range(3)]
    for one in pods:
        one["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "train"}]
    found = tp.snapshot.read([text(*NODES, *pods), json.dumps(workload(admitted=True))])
    assert found.cluster.allocations == {"default/train": (0, 1, 2, 3, 4, 5)}
    assert found.waiting == ()


def test_a_workload_says_at_which_level_its_pods_are_together() -> None:
    racks = [node(f"n{i}", labels={"example.com/rack": f"r{i // 2}"}) for i in range(4)]
    asked = workload(topologyRequest={"required": "example.com/rack"})
    found = tp.snapshot.read([text(*racks), json.dumps(asked)])
    assert found.waiting[0].job.within == "rack"


def test_a_gate_of_others_holds_a_pod() -> None:
    gated = pod_json("a", 1, schedulingGates=[{"name": "example.com/quota"}])
    kueue = pod_json("b", 1, schedulingGates=[{"name": "kueue.x-k8s.io/admission"}])
    found = tp.snapshot.read(text(*NODES, gated, kueue))
    assert [one.held for one in found.waiting] == ["gate 'example.com/quota'", ""]


def test_when_a_pod_starts() -> None:
    pods = bound("a", 3, "n1", [0, 1, 2]), bound("b", 3, "n2", [0, 1, 2]), pod_json("c", 1), pod_json("d", 4)
    found = tp.snapshot.read(text(*NODES, *pods))
    assert tp.snapshot.when(found, "c").is_now
    start = tp.snapshot.when(found, "default/d")
    assert (start.seconds, start.after, start.reason) == (math.inf, ("default/a",), "")
    more = tp.snapshot.read(text(*NODES, *pods, pod_json("f", 4)))
    assert tp.snapshot.when(more, "f").behind == ("default/d",)
    never = tp.snapshot.when(tp.snapshot.read(text(*NODES, pod_json("e", 5))), "e")
    assert never.reason


def test_the_topology_of_a_node_may_be_given() -> None:
    machine = tp.machines.get("dgx1-v100")
    found = tp.snapshot.read(text(node("n1", 8), pod_json("a", 2)), machine)
    assert found.cluster.topology.bandwidth(0, 3) == machine.bandwidth(0, 3)


def test_other_objects_are_noted() -> None:
    service = {"kind": "Service", "metadata": {"name": "s"}}
    found = tp.snapshot.read([text(*NODES), json.dumps({"kind": "List", "items": [service]})])
    assert "Objects that are left out: 1 'Service'." in found.notes


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        ([bound("a", 5, "n1")], "pod default/a fits nowhere: it runs on 5 GPUs of 'n1', which has 4"),
        ([bound("a", 3, "n1"), bound("b", 2, "n1")], "pod default/b fits nowhere: it runs on 2 GPUs of 'n1'"),
        ([bound("a", 1, "n9")], "pod default/a runs on 'n9', which the topology does not have"),
        ([bound("a", 1, "n1", [4])], "pod default/a fits nowhere: it has GPU 4 of 'n1', which has 4"),
        ([bound("a", 1, "n1", [0]), bound("b", 1, "n1", [0])], "pod default/b: "),
        ([pod_json("a", 999)], "pod default/a: "),
        (
            [pod_json("a", 1, labels={"topoplace.io/group": "g", "topoplace.io/group-size": "x"})],
            "pod default/a: ",
        ),
    ],
)
def test_one_error_names_the_pod(objects: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(tp.SnapshotError) as caught:
        tp.snapshot.read(text(*NODES, *objects))
    assert str(caught.value).startswith(message)


def test_texts_of_two_schedulers_are_refused() -> None:
    with pytest.raises(tp.SnapshotError, match="the texts are of several schedulers"):
        tp.snapshot.read([text(*NODES), "JobId=1 JobState=RUNNING"])
    with pytest.raises(tp.SnapshotError, match="there are pods and no nodes"):
        tp.snapshot.read(text(pod_json("a", 1)))


def test_objects_that_are_there_twice_are_refused() -> None:
    pods, more = group_of("volcano")
    for listed, named in (([*pods, pods[0]], "pod default/w0"), ([*more, *more], "podgroup default/train")):
        with pytest.raises(tp.SnapshotError, match=f"{named} appears twice"):
            tp.snapshot.read(
                [
                    text(*NODES),
                    json.dumps({"kind": "List", "items": [{"kind": "Pod", **one} for one in listed]}),
                ]
            )


def test_a_group_of_too_many_pods_is_refused() -> None:
    pods, (group,) = group_of("volcano")
    group["spec"]["minMember"] = 1_000_000_000
    with pytest.raises(
        tp.SnapshotError, match="podgroup default/train: minMember = 1000000000 is not 0 to 4096"
    ):
        tp.snapshot.read([text(*NODES, *pods), json.dumps({"kind": "List", "items": [group]})])
