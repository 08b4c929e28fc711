"""The scheduler against a simulated API server: what it binds, and what becomes of it when things go wrong."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from kubernetes_objects import node_json, pod_json
from kubernetes_scheduler import Running, running_scheduler, where
from topoplace_hosts.journal import Journal
from topoplace_hosts.kubernetes.testing import ApiServer, ObjectStore
from waiting import until


def cluster(count: int = 2, **options: Any) -> AbstractContextManager[tuple[ApiServer, Running]]:
    return running_scheduler(count, lambda api, name: api.store.add("nodes", node_json(name)), **options)


def all_bound(api: ApiServer) -> bool:
    return not api.store.waiting()


def test_a_pod_gets_node_and_annotation_at_once() -> None:
    with cluster() as (api, running):
        api.store.add("pods", pod_json("a", 3))
        until(lambda: all_bound(api))
        assert len(api.store.held()) == 3
        assert "POST /api/v1/namespaces/default/pods/a/binding" in api.requests
        assert not any(line.startswith(("PATCH", "PUT")) for line in api.requests)
        until(lambda: [event["reason"] for event in api.store.events] == ["Scheduled"])
        assert api.store.events[0]["involvedObject"]["name"] == "a"
        assert running.scheduler.waiting.uids() == []


def test_pods_of_others_and_gated_ones_are_left_alone() -> None:
    with cluster() as (api, _):
        api.store.add("pods", pod_json("gated", schedulingGates=[{"name": "x"}]))
        api.store.add("pods", pod_json("other", schedulerName="default-scheduler"))
        api.store.add("pods", pod_json("ours"))
        until(lambda: where(api, "ours") != "")
        assert where(api, "gated") == where(api, "other") == ""
        api.store.change("pods", "gated", lambda pod: pod["spec"].pop("schedulingGates"))
        until(lambda: where(api, "gated") != "")


def test_a_pod_waits_until_gpus_are_free_and_says_why() -> None:
    with cluster(1) as (api, running):
        api.store.add("pods", pod_json("a", 8))
        until(lambda: all_bound(api))
        api.store.add("pods", pod_json("b", 2))
        no_gpus = (
            "0 of 4 nodes: 2 too little cpu, 1 taint node-role.kubernetes.io/control-plane, "
            "1 too little nvidia.com/gpu"
        )
        until(lambda: running.reasons() == [no_gpus])
        until(lambda: any(event["reason"] == "FailedScheduling" for event in api.store.events))
        api.store.finish("a")
        until(lambda: all_bound(api) and where(api, "b") == "n0")


def test_a_refusal_by_name_is_an_event() -> None:
    with cluster() as (api, _):
        api.store.add("pods", pod_json("a", volumes=[{"persistentVolumeClaim": {"claimName": "c"}}]))
        until(
            lambda: any("a volume claim cannot be honoured" in event["message"] for event in api.store.events)
        )
        assert where(api, "a") == ""


def test_a_label_that_is_no_level_is_an_event() -> None:
    annotation = "kueue.x-k8s.io/podset-required-topology"
    with cluster() as (api, _):
        for i in range(2):
            api.store.add("pods", group("g", i, 2, 8, annotations={annotation: "example.com/rack"}))
        said = f"{annotation} = 'example.com/rack' is the label of no level of the topology; it has 'machine'"
        until(lambda: any(said in event["message"] for event in api.store.events))
        assert {where(api, f"g-{i}") for i in range(2)} == {""}


def group(name: str, index: int, size: int, gpus: int, **fields: Any) -> dict[str, Any]:
    labels = {"topoplace.io/group": name, "topoplace.io/group-size": str(size)}
    return pod_json(f"{name}-{index}", gpus, labels=labels, **fields)


def test_a_group_starts_when_all_its_pods_are_there_and_fit() -> None:
    with cluster(2) as (api, running):
        api.store.add("pods", pod_json("first", 1))
        until(lambda: all_bound(api))
        for i in range(3):
            api.store.add("pods", group("g", i, 4, 4))
        until(lambda: "3 of 4 pods of its group are there" in running.reasons())
        api.store.add("pods", group("g", 3, 4, 4))
        until(lambda: any("3 of 4 pods of the group fit" in reason for reason in running.reasons()))
        assert api.store.bound == ["first"]
        api.store.finish("first")
        until(lambda: all_bound(api))
        assert len(api.store.held()) == 16


def test_a_group_of_kueue_starts_when_all_its_pods_are_there() -> None:
    of_kueue = {
        "labels": {"kueue.x-k8s.io/pod-group-name": "k"},
        "annotations": {"kueue.x-k8s.io/pod-group-total-count": "2"},
    }
    with cluster(2) as (api, running):
        api.store.add("pods", pod_json("k-0", 8, **of_kueue))
        until(lambda: "1 of 2 pods of its group are there" in running.reasons())
        api.store.add("pods", pod_json("k-1", 8, **of_kueue))
        until(lambda: all_bound(api))
        api.store.finish("k-0")
        api.store.add("pods", pod_json("k-0-again", 8, **of_kueue))
        until(lambda: where(api, "k-0-again") != "")


def test_pods_of_higher_priority_go_first() -> None:
    with cluster(1) as (api, _):
        api.store.add("pods", pod_json("a", 8, priority=9))
        until(lambda: all_bound(api))
        api.store.add("pods", pod_json("low", 8, priority=1))
        api.store.add("pods", pod_json("high", 8, priority=5, preemptionPolicy="Never"))
        until(lambda: len(api.store.events) >= 3)
        api.store.finish("a")
        until(lambda: where(api, "high") != "")
        assert where(api, "low") == ""


def test_a_pod_of_higher_priority_preempts_the_fewest_and_keeps_their_gpus() -> None:
    with cluster(2) as (api, running):
        for i, gpus in enumerate((4, 4, 8)):
            api.store.add("pods", pod_json(f"low{i}", gpus, priority=i))
            until(lambda: all_bound(api))
        api.store.add(
            "pods", pod_json("late", 2, priority=0)
        )  # of the lowest priority: it must not get in between
        until(lambda: bool(running.reasons()))
        api.store.add("pods", pod_json("high", 3, priority=100))
        until(lambda: where(api, "high") != "")
        assert "low0" not in api.store.pods()
        assert {"low1", "low2"} < set(api.store.pods())
        assert [fields["pod"] for event, fields in running.logged if event == "preempts"] == ["default/low0"]
        until(lambda: any(event["reason"] == "Preempted" for event in api.store.events))


def test_nobody_preempts_equals_or_by_a_policy_of_never() -> None:
    with cluster(1) as (api, running):
        api.store.add("pods", pod_json("a", 8, priority=5))
        until(lambda: all_bound(api))
        api.store.add("pods", pod_json("equal", 8, priority=5))
        api.store.add("pods", pod_json("never", 8, priority=9, preemptionPolicy="Never"))
        until(lambda: len(running.reasons()) == 2)
        assert "a" in api.store.pods()
        assert not any("eviction" in line for line in api.requests)


def test_a_disruption_budget_is_waited_for_and_the_reservation_ends() -> None:
    with cluster(1, reserve_s=0.2) as (api, running):
        api.store.add("pods", pod_json("low", 8, priority=0))
        until(lambda: all_bound(api))
        api.fail("low/eviction", 429)
        api.store.add("pods", pod_json("high", 8, priority=9))
        until(lambda: any(event == "reservation_ended" for event, _ in running.logged))
        until(lambda: where(api, "high") != "")


def test_an_api_server_that_knows_only_the_older_eviction(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    evict = ObjectStore.evict

    def noted(store: ObjectStore, name: str, uid: str | None) -> None:
        asked.append(name)
        evict(store, name, uid)

    monkeypatch.setattr(ObjectStore, "evict", noted)
    with cluster(1) as (api, _):
        api.store.add("pods", pod_json("low", 8, priority=0))
        until(lambda: all_bound(api))
        api.fail("low/eviction", 400)
        api.store.add("pods", pod_json("high", 8, priority=9))
        until(lambda: where(api, "high") != "")
        assert (asked, sum("low/eviction" in line for line in api.requests)) == (["low"], 2)


def test_a_cordoned_node_gets_nothing_more() -> None:
    with cluster(2) as (api, running):
        changes = running.scheduler.state.freed
        api.store.change("nodes", "n0", lambda node: node["spec"].update(unschedulable=True))
        until(lambda: running.scheduler.state.freed > changes)  # it has seen this before the pods
        for i in range(3):
            api.store.add("pods", pod_json(f"a{i}", 4))
        until(lambda: len(api.store.waiting()) == 1)
        assert {node for node, _, _ in api.store.held()} == {"n1"}
        api.store.change("nodes", "n0", lambda node: node["spec"].pop("unschedulable"))
        until(lambda: all_bound(api))


# ---- faults --------------------------------------------------------------------------------------------------------


def test_a_conflict_is_settled_by_reading_the_pod() -> None:
    with cluster(1) as (api, running):
        api.fail("a/binding", 409)
        api.fail("b/binding", 403)
        api.store.add("pods", pod_json("a", 4))
        api.store.add("pods", pod_json("b", 4))
        until(lambda: all_bound(api))
        assert [fields["pod"] for event, fields in running.logged if event == "not_bound"] == ["default/b"]
        assert len(api.store.held()) == 8


def test_the_rest_of_a_group_starts_though_the_others_have_ended() -> None:
    with cluster(1) as (api, _):
        api.fail("g-1/binding", 403)
        for i in range(2):
            api.store.add("pods", group("g", i, 2, 1))
        until(lambda: where(api, "g-0") != "")
        api.store.remove("pods", "g-0")
        until(lambda: all_bound(api))


@pytest.mark.parametrize("status", [0, 429, 500, 503])
def test_a_binding_without_a_clear_answer_is_asked_for_again(status: int) -> None:
    with cluster(1) as (api, running):
        api.fail("a/binding", status)
        api.store.add("pods", pod_json("a", 4))
        api.store.add("pods", pod_json("b", 4))
        until(lambda: all_bound(api))
        assert len(api.store.held()) == 8
        until(lambda: sum(event == "bound" for event, _ in running.logged) == 2)
        assert "not_bound" not in [event for event, _ in running.logged]
        until(lambda: len(api.store.events) == 2)


def test_a_pod_that_is_gone_before_it_is_bound_frees_its_gpus() -> None:
    with cluster(1) as (api, running):
        api.fail("a/binding", 503, times=3)
        api.store.add("pods", pod_json("a", 8))
        until(lambda: any(line.endswith("a/binding") for line in api.requests))
        api.store.remove("pods", "a")
        api.store.add("pods", pod_json("b", 8))
        until(lambda: where(api, "b") != "")
        until(lambda: len(running.scheduler.state.pods) == 1)


def test_a_pod_bound_by_somebody_else_holds_what_it_was_given() -> None:
    with cluster(1) as (api, running):
        api.fail("a/binding", 503)
        api.store.add("pods", pod_json("a", 2))
        until(lambda: any(line.endswith("a/binding") for line in api.requests))
        api.store.bind(
            "a",
            {"metadata": {"annotations": {"topoplace.io/gpus": '{"main":[6,7]}'}}, "target": {"name": "n0"}},
        )
        until(lambda: running.scheduler.state.is_confirmed("uid-a"))
        assert set(running.scheduler.state.cluster.gpus_of("default/a/uid-a")) == {6, 7}


def test_cut_watches_lost_history_and_restarts_lose_nothing() -> None:
    with cluster(4) as (api, running):
        for i in range(40):
            api.store.add("pods", pod_json(f"a{i}", 1))
            if i % 10 == 3:
                api.cut_watches()
            if i % 10 == 6:
                api.store.forget_history()
            if i == 18:
                api.restart()
            if i % 4 == 1:
                until(lambda i=i: where(api, f"a{i - 1}") != "")
                api.store.finish(f"a{i - 1}")
        until(lambda: all_bound(api))
        until(lambda: len(running.scheduler.state.pods) == 30)


def test_a_list_in_pages_and_after_a_failure() -> None:
    names = ["n0"]
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=names)
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0", cpu="10000", allocatable={"pods": "2000", "memory": "2Ti"}))
        for i in range(1100):
            api.store.add("pods", pod_json(f"a{i}", 0, cpu="1"))
        api.fail("/api/v1/pods", 500, times=2)
        running = Running(api, topology)
        until(lambda: all_bound(api))
        running.stop()


def test_a_scheduler_that_starts_later_finds_what_is_held(tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    with cluster(1, journal=journal) as (api, running):
        api.store.add("pods", pod_json("a", 3))
        until(lambda: all_bound(api))
        until(lambda: running.scheduler.state.is_confirmed("uid-a"))
        running.stop()
        api.store.add("pods", pod_json("b", 5))
        again = Running(api, running.scheduler.state.topology, journal=journal)
        until(lambda: all_bound(api))
        again.stop()
        assert len(api.store.held()) == 8
    with Journal(journal, read_only=True) as kept:
        assert {entry.job_id for entry in kept.latest().values()} == {"default/a/uid-a", "default/b/uid-b"}


def test_what_was_decided_before_a_crash_is_bound_there(tmp_path: Path) -> None:
    """The journal has an intent for a pod that no one has bound, on GPUs that the policy would not choose."""
    from topoplace_hosts.journal import Entry, Stage
    from topoplace_hosts.journal.entry import named

    names = ["n0", "n1"]
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 2, names=names)
    with Journal(tmp_path / "journal") as journal:
        journal.append(Entry("default/a/uid-a", Stage.INTENT, named(topology, (13, 8, 11)), "chosen"))
        journal.append(Entry("default/gone/uid-gone", Stage.INTENT, named(topology, (0,)), "chosen"))
    with ApiServer() as api:
        for name in names:
            api.store.add("nodes", node_json(name))
        api.store.add("pods", pod_json("a", 3))
        running = Running(api, topology, journal=tmp_path / "journal")
        until(lambda: all_bound(api))
        running.stop()
        assert api.store.pods()["a"]["metadata"]["annotations"]["topoplace.io/gpus"] == '{"main":[5,0,3]}'
        assert where(api, "a") == "n1"
    with Journal(tmp_path / "journal", read_only=True) as kept:
        assert kept.latest()["default/gone/uid-gone"].stage is Stage.WITHDRAWN


def test_unreadable_objects_close_nodes_and_stop_nothing() -> None:
    with cluster(2) as (api, running):
        strange = pod_json("strange", nodeName="n0", tolerations=[{"operator": "Near"}], phase="Running")
        api.store.add("pods", strange)
        api.store.add("pods", pod_json("unread", tolerations=[{"operator": "Near"}]))
        until(lambda: len([event for event, _ in running.logged if event == "pod_unreadable"]) >= 2)
        for i in range(8):
            api.store.add("pods", pod_json(f"a{i}", 1))
        until(lambda: api.store.waiting() == ["unread"])
        assert {node for node, _, _ in api.store.held()} == {"n1"}
        until(lambda: any("cannot be honoured" in event["message"] for event in api.store.events))
        api.store.add("pods", pod_json("without", 0, cpu="1"))
        until(lambda: where(api, "without") == "n1")  # nobody knows which CPUs are left on n0
        api.store.change("nodes", "n1", lambda node: node["status"].update(allocatable={"cpu": "many"}))
        until(lambda: any(event == "node_unreadable" for event, _ in running.logged))
        api.store.remove("pods", "strange")
        api.store.add("pods", pod_json("b", 1))
        until(lambda: where(api, "b") == "n0")


def test_after_a_restart_the_journal_counts_and_not_an_edited_annotation(tmp_path: Path) -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        api.store.add("pods", pod_json("a", 1))
        running = Running(api, topology, journal=tmp_path / "journal")
        until(lambda: any(event == "bound" for event, _ in running.logged))
        running.stop()
        given = api.store.pods()["a"]["metadata"]["annotations"]["topoplace.io/gpus"]
        mine = int(given.removeprefix('{"main":[').removesuffix("]}"))
        edited = {"topoplace.io/gpus": f'{{"main":[{(mine + 1) % 8}]}}'}
        api.store.change("pods", "a", lambda pod: pod["metadata"].update(annotations=edited))
        running = Running(api, topology, journal=tmp_path / "journal")
        api.store.add("pods", pod_json("b", 7))
        until(lambda: where(api, "b"))
        running.stop()
        assert ("annotation_edited", {"pod": "a", "node": "n0", "gpus": given}) in running.logged
        assert running.scheduler.figures.differences["edited annotation"] == 1
        free = json.loads(api.store.pods()["b"]["metadata"]["annotations"]["topoplace.io/gpus"])["main"]
        assert sorted(free) == [gpu for gpu in range(8) if gpu != mine]
