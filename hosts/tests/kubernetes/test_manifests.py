"""The manifests in examples/kubernetes: complete, consistent, and with no more rights than the programs use."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable
from itertools import dropwhile, takewhile
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import topoplace as tp
from kubernetes_manifests import PATHS, is_part
from kubernetes_objects import (
    DRIVER,
    claim_json,
    claims_of,
    class_json,
    exactly,
    node_json,
    pod_json,
)
from topoplace import cli
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.api import put_config_map
from topoplace_hosts.kubernetes.client.connection import Connection
from topoplace_hosts.kubernetes.client.lease import Leadership
from topoplace_hosts.kubernetes.device_plugin.decided import DecidedPods
from topoplace_hosts.kubernetes.extender import RunningExtender
from topoplace_hosts.kubernetes.machines import NAMESPACE, FollowedMachines, config_map
from topoplace_hosts.kubernetes.objects.node import node as read_node
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.objects.pod import pod as read_pod
from topoplace_hosts.kubernetes.resource_slices import resource_slices
from topoplace_hosts.kubernetes.scheduler import ClusterState, Scheduler, decide
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import WAIT

yaml = pytest.importorskip("yaml", reason="the extra discovery is not installed")

FOLDER = Path(__file__).parents[3] / "examples/kubernetes"
PROGRAMS = ("device-plugin.yaml", "extender.yaml", "scheduler.yaml")
FILES = (*PROGRAMS, "machines.yaml")
FIELDS = {
    "Namespace": set(),
    "Role": {"rules"},
    "RoleBinding": {"roleRef", "subjects"},
    "ServiceAccount": set(),
    "ClusterRole": {"rules"},
    "ClusterRoleBinding": {"roleRef", "subjects"},
    "ConfigMap": {"data"},
    "Deployment": {"spec"},
    "DaemonSet": {"spec"},
}
VERSIONS = {
    "Namespace": "v1",
    "ServiceAccount": "v1",
    "ConfigMap": "v1",
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
}
EXTENDER = {
    *(
        "urlPrefix",
        "filterVerb",
        "prioritizeVerb",
        "bindVerb",
        "preemptVerb",
        "weight",
        "enableHTTPS",
        "tlsConfig",
    ),
    *("httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"),
}


def documents(name: str) -> list[dict[str, Any]]:
    return [one for one in yaml.safe_load_all((FOLDER / name).read_text("utf-8")) if one]


def of_kind(name: str, *kinds: str) -> list[dict[str, Any]]:
    return [one for one in documents(name) if one["kind"] in kinds]


def test_every_manifest_is_looked_at() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(
        (*FILES, "Dockerfile", "annotations.yaml", "pod.yaml")
    )


def test_a_real_api_server_can_be_asked_about_every_kind_of_manifest() -> None:
    """`make test-kubernetes` does so; it needs programs that are not built at each change."""
    root = FOLDER.parents[1]
    texts = [
        path.read_text("utf-8")
        for folder in ("docs", "examples")
        for path in (root / folder).rglob("*.*")
        if path.suffix in (".md", ".yaml")
    ]
    kinds = {kind for text in texts for kind in re.findall(r"^ *kind: (\w+)$", text, re.MULTILINE)}
    inside = {"KubeSchedulerConfiguration"}  # of a ConfigMap's text
    assert {"Pod", "ResourceClaim", "Deployment"} <= kinds
    assert kinds - inside - {"ClusterRole", "Role", "ServiceAccount"} <= PATHS.keys()
    assert PATHS.keys() <= kinds


def test_what_the_api_server_keeps_is_compared_as_it_writes_it() -> None:
    written = {"limits": {"gpu": 2}, "args": ["a"], "on": True}
    assert is_part(written, {"limits": {"gpu": "2", "cpu": "1"}, "args": ["a"], "on": True})
    assert not is_part(written, {"limits": {"gpu": "3"}, "args": ["a"], "on": True})
    assert not is_part(written, {"limits": {"gpu": "2"}, "args": ["a"], "on": "True"})
    assert not is_part(written, {"limits": {"gpu": "2"}, "args": [], "on": True})


KEY = "topoplace.io/gpus"


@pytest.mark.parametrize(
    ("before", "now", "refused"),
    [
        (None, {}, False),
        (None, {KEY: "x"}, True),
        ({}, {}, False),
        ({KEY: "x"}, {KEY: "x", "other": "y"}, False),
        ({KEY: "x"}, {KEY: "y"}, True),
        ({KEY: "x"}, {}, True),
        ({}, {KEY: "x"}, True),
    ],
)
@pytest.mark.parametrize("node", ["", "n0"])
def test_users_change_no_annotation_about_gpus(
    before: dict[str, str] | None, now: dict[str, str], node: str, *, refused: bool
) -> None:
    policy, binding = documents("annotations.yaml")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    assert binding["spec"]["validationActions"] == ["Deny"]
    pod, old = pod_json("a", 1), pod_json("a", 1)
    pod["metadata"]["annotations"], old["metadata"]["annotations"] = now, before
    pod["spec"]["nodeName"] = node
    known: dict[str, Any] = {
        "object": pod,
        "request": {"operation": "CREATE" if before is None else "UPDATE"},
    }
    known |= {"oldObject": {} if before is None else old}
    known["variables"] = {
        one["name"]: str(found)
        if isinstance(found := evaluated(one["expression"], known), str)
        else bool(found)
        for one in policy["spec"]["variables"]
    }
    allowed = all(evaluated(one["expression"], known) for one in policy["spec"]["validations"])
    assert allowed == (not refused and not (before is None and node))


def evaluated(expression: str, known: dict[str, Any]) -> Any:
    celpy = pytest.importorskip("celpy", reason="the extra kubernetes is not installed")
    environment = celpy.Environment()
    program = environment.program(environment.compile(expression))
    return program.evaluate({name: celpy.json_to_cel(value) for name, value in known.items()})


def test_the_image_is_that_of_the_manifests_and_has_the_extras_that_exist() -> None:
    lines = (FOLDER / "Dockerfile").read_text("utf-8")
    images = {
        container["image"]
        for name in FILES
        for workload in of_kind(name, "Deployment", "DaemonSet")
        for container in workload["spec"]["template"]["spec"]["containers"]
        if container["args"][0] == "kubernetes"
    }
    assert images == set(re.findall(r"-t (\S+) -$", lines, re.MULTILINE))
    for name, extras in re.findall(r'"topoplace(-hosts)?\[([a-z,]+)\]"', lines):
        folder = FOLDER.parents[1] / name.removeprefix("-")
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        assert set(extras.split(",")) <= set(project["optional-dependencies"])
    project = tomllib.loads((FOLDER.parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    (program,) = re.findall(r'^ENTRYPOINT \["(\w+)"\]$', lines, re.MULTILINE)
    assert program in project["scripts"]
    assert "USER" not in lines.replace("# The manifests name the user", "")  # the device plugin must be root


def test_the_test_pod_gets_a_node_and_gpus() -> None:
    (pod,) = documents("pod.yaml")
    pod["metadata"] |= {
        "uid": "uid-of-test",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }  # as the API server does
    pod["status"] = {"phase": "Pending"}
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        api.store.add("pods", pod)
        scheduler = Scheduler(topology, tp.policies.get("topo-aware"), Access("127.0.0.1", api.port))
        stop = Event()
        thread = Thread(target=scheduler.run, args=(stop,))
        thread.start()
        wait(lambda: not api.store.waiting())
        stop.set()
        thread.join(WAIT)
        bound = api.store.pods()[pod["metadata"]["name"]]
    assert bound["spec"]["nodeName"] == "n0"
    assert len(json.loads(bound["metadata"]["annotations"]["topoplace.io/gpus"])["main"]) == 2


@pytest.mark.parametrize("name", FILES)
def test_objects_have_the_fields_of_their_kind(name: str) -> None:
    for one in documents(name):
        kind = one["kind"]
        assert one["apiVersion"] == VERSIONS.get(kind, "rbac.authorization.k8s.io/v1")
        assert set(one) - {"apiVersion", "kind", "metadata"} == FIELDS[kind]
        assert one["metadata"]["name"].startswith("topoplace")
        assert ("namespace" in one["metadata"]) is not kind.startswith(("Cluster", "Namespace"))


@pytest.mark.parametrize("name", FILES)
def test_pods_are_selected_locked_down_and_have_what_they_mount(name: str) -> None:
    (workload,) = of_kind(name, "Deployment", "DaemonSet")
    spec = workload["spec"]
    pod = spec["template"]["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]
    volumes = {volume["name"] for volume in pod.get("volumes", ())}
    mounted = {
        mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", ())
    }
    assert mounted == volumes
    for container in pod["containers"]:
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["readOnlyRootFilesystem"] is True
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert container["image"].partition(":")[2] not in ("", "latest")
        assert set(container["resources"]) == {"requests", "limits"}
        if container["args"][0] == "kubernetes":
            cli.command_parser().parse_args(container["args"])
    if workload["kind"] == "Deployment":
        assert (spec["replicas"], spec["strategy"]) == (1, {"type": "Recreate"})
        assert pod["securityContext"]["runAsNonRoot"] is True


@pytest.mark.parametrize("name", PROGRAMS)
def test_accounts_roles_and_bindings_belong_together(name: str) -> None:
    (account,) = of_kind(name, "ServiceAccount")
    (role,) = of_kind(name, "ClusterRole")
    (workload,) = of_kind(name, "Deployment", "DaemonSet")
    bindings = of_kind(name, "ClusterRoleBinding")
    own = {key: account["metadata"][key] for key in ("name", "namespace")}
    assert all(binding["subjects"] == [{"kind": "ServiceAccount", **own}] for binding in bindings)
    assert role["metadata"]["name"] in [binding["roleRef"]["name"] for binding in bindings]
    assert workload["spec"]["template"]["spec"]["serviceAccountName"] == own["name"]


def test_the_roles_for_machines_are_bound_to_those_who_write_and_read_them() -> None:
    accounts = {
        role: {(one["name"], one["namespace"]) for one in binding["subjects"]}
        for binding in of_kind("machines.yaml", "RoleBinding")
        for role in [binding["roleRef"]["name"]]
    }
    (writer,) = of_kind("machines.yaml", "ServiceAccount")
    (workload,) = of_kind("machines.yaml", "DaemonSet")
    readers = {
        (account["metadata"]["name"], account["metadata"]["namespace"])
        for name in ("scheduler.yaml", "extender.yaml")
        for account in of_kind(name, "ServiceAccount")
    }
    own = writer["metadata"]["name"]
    assert accounts == {
        "topoplace-machine-writer": {(own, NAMESPACE)},
        "topoplace-machine-reader": readers,
    }
    assert workload["spec"]["template"]["spec"]["serviceAccountName"] == own
    assert {one["metadata"].get("namespace", NAMESPACE) for one in documents("machines.yaml")} == {NAMESPACE}


def test_the_configuration_of_kube_scheduler() -> None:
    (config,) = of_kind("extender.yaml", "ConfigMap")
    settings = yaml.safe_load(config["data"]["scheduler.yaml"])
    assert settings["kind"] == "KubeSchedulerConfiguration"
    (extender,) = settings["extenders"]
    assert set(extender) <= EXTENDER
    assert extender["nodeCacheCapable"] is True
    verbs = {f"/{extender[f'{verb}Verb']}" for verb in ("filter", "prioritize", "bind")}
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    running = RunningExtender(topology, tp.policies.get("topo-aware"), Access("127.0.0.1", 1))
    assert verbs == set(running.answers())
    (workload,) = of_kind("extender.yaml", "Deployment")
    arguments = workload["spec"]["template"]["spec"]["containers"][0]["args"]
    assert extender["urlPrefix"] == f"http://{arguments[arguments.index('--listen') + 1]}"


# ---- rights --------------------------------------------------------------------------------------------------------


def granted(name: str, role: str = "") -> set[tuple[str, str]]:
    """Return the verbs and resources of a role: that of this name, or the only ClusterRole."""
    if role:
        (found,) = [one for one in of_kind(name, "Role") if one["metadata"]["name"] == role]
    else:
        (found,) = of_kind(name, "ClusterRole")
    return {(verb, one) for rule in found["rules"] for one in rule["resources"] for verb in rule["verbs"]}


def used(requests: Iterable[str]) -> set[tuple[str, str]]:
    """Return the verbs and resources of requests that a server has noted."""
    verbs = {"POST": "create", "PUT": "update"}
    found: set[tuple[str, str]] = set()
    for line in requests:
        method, path = line.split(" ")
        words = path.removesuffix("?watch").split("/")
        words = words[3 if words[1] == "api" else 4 :]
        if words[0] == "namespaces":
            words = words[2:]
        resource = f"{words[0]}/{words[2]}" if len(words) == 3 else words[0]
        read = "get" if len(words) == 2 else "watch" if "?watch" in line else "list"
        found.add((verbs.get(method, read), resource))
    return found


def wait(done: Any) -> None:
    event = Event()
    for _ in range(int(WAIT / 0.01)):
        if done():
            return
        event.wait(0.01)
    raise AssertionError("it took too long")


def test_the_scheduler_uses_all_of_its_rights_and_no_others() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        scheduler = Scheduler(topology, tp.policies.get("topo-aware"), Access("127.0.0.1", api.port))
        stop = Event()
        thread = Thread(target=scheduler.run, args=(stop,))
        thread.start()
        api.fail("low/binding", 503)
        api.store.add("pods", pod_json("low", 8))
        wait(lambda: not api.store.waiting())
        api.store.add("pods", pod_json("high", 8, priority=9))
        wait(lambda: set(api.store.pods()) == {"high"} and not api.store.waiting())
        wait(lambda: len(api.store.events) >= 3)
        wait(lambda: sum(line.endswith("?watch") for line in api.requests) >= 5)
        api.store.remove("pods", "high")
        (slices,) = resource_slices("n0", tp.machines.get("dgx1-v100"), DRIVER)
        for kind, value in (
            ("resourceslices", slices),
            ("deviceclasses", class_json()),
            ("resourceclaims", claim_json("c", exactly("gpus", 8))),
            ("pods", pod_json("claims", 0, resourceClaims=claims_of("c"))),
        ):
            api.store.add(kind, value)
        wait(lambda: not api.store.waiting())
        stop.set()
        thread.join(WAIT)
        synthetic = {("update", "resourceclaims/binding")}  # checked next to resourceclaims/status since 1.36
        assert used(api.requests) | synthetic == granted("scheduler.yaml")


def test_the_extender_uses_all_of_its_rights_and_no_others() -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        api.store.add("pods", pod_json("a", 2))
        running = RunningExtender(topology, tp.policies.get("topo-aware"), Access("127.0.0.1", api.port))
        stop, ready = Event(), Event()
        thread = Thread(target=running.follow, args=(stop, ready))
        thread.start()
        assert ready.wait(WAIT)
        binding = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n0"}
        assert running.answers()["/bind"](binding) == {"Error": ""}
        wait(lambda: sum(line.endswith("?watch") for line in api.requests) >= 2)
        stop.set()
        thread.join(WAIT)
        assert used(api.requests) == granted("extender.yaml")


def test_the_device_plugin_uses_all_of_its_rights_and_no_others() -> None:
    with ApiServer() as api:
        decided = DecidedPods(Access("127.0.0.1", api.port), "n0", ["0", "1"])
        assert decided.choose(["0", "1"], [], 1) is None
        decided.close()
        assert used(api.requests) == granted("device-plugin.yaml")


def test_machines_are_written_and_read_with_all_rights_of_their_roles_and_no_others() -> None:
    with ApiServer() as api:
        reached = Access("127.0.0.1", api.port)
        connection = Connection(reached)
        for _ in range(2):
            put_config_map(connection, NAMESPACE, config_map("n0", tp.machines.get("summit")))
        connection.close()
        assert used(api.requests) == granted("machines.yaml", "topoplace-machine-writer")
        api.requests.clear()
        stop, there = Event(), Event()

        def work(_: tp.Topology, end: Event) -> None:
            there.set()
            end.wait(WAIT)

        thread = Thread(target=FollowedMachines(reached, NAMESPACE).run, args=(work, stop))
        thread.start()
        assert there.wait(WAIT)
        wait(lambda: any(line.endswith("?watch") for line in api.requests))
        stop.set()
        thread.join(WAIT)
        assert used(api.requests) == granted("machines.yaml", "topoplace-machine-reader")


def test_a_lease_is_held_with_all_rights_of_its_role_and_no_others() -> None:
    (role,) = of_kind("scheduler.yaml", "Role")
    (binding,) = of_kind("scheduler.yaml", "RoleBinding")
    (workload,) = of_kind("scheduler.yaml", "Deployment")
    (account,) = of_kind("scheduler.yaml", "ServiceAccount")
    own = {key: account["metadata"][key] for key in ("name", "namespace")}
    assert binding["subjects"] == [{"kind": "ServiceAccount", **own}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    arguments = workload["spec"]["template"]["spec"]["containers"][0]["args"]
    (namespace, name) = next(one for one in arguments if "--lease" in one).split("=")[1].split("/")
    assert namespace == role["metadata"]["namespace"]
    assert [rule.get("resourceNames") for rule in role["rules"]] == [None, [name]]
    with ApiServer() as api:
        stop = Event()

        def work(_: Event) -> None:
            stop.set()

        Leadership(Access("127.0.0.1", api.port), namespace, name).run(work, stop)
        assert used(api.requests) == granted("scheduler.yaml", role["metadata"]["name"])


# ---- pods that are together ------------------------------------------------------------------------------------


def documented(heading: str) -> list[Any]:
    """Return the objects that the documentation shows below a heading."""
    text = (FOLDER.parents[1] / "docs/integrations/kubernetes.md").read_text("utf-8")
    lines = iter(text.split(f"### {heading}\n", 1)[1].splitlines())
    shown = takewhile(lambda line: line.startswith("    "), dropwhile(lambda line: line[:4] != "    ", lines))
    return list(yaml.safe_load_all("\n".join(line[4:] for line in shown)))


def pods_of(job: Any) -> list[Pod]:
    """Return the pods of an indexed job, in any order."""
    template = job["spec"]["template"]
    return [
        read_pod(
            {
                **template,
                "metadata": {
                    "uid": f"{i}",
                    "namespace": "default",
                    "name": f"train-{i}",
                    **template["metadata"],
                },
            }
        )
        for i in range(job["spec"]["completions"])
    ]


def test_the_job_of_the_documentation_is_placed_as_the_text_says() -> None:
    """Its pods are in one block, and each half of them in one rack of it."""
    (job,) = documented("Pods that are together")
    pods = pods_of(job)
    names = tuple(f"n{i}" for i in range(24))  # racks of 5, 5, 5, 3 and 6 nodes
    racks = ["r0"] * 5 + ["r1"] * 5 + ["r2"] * 5 + ["r3"] * 3 + ["r4"] * 6
    blocks = {"r0": "b0", "r1": "b1", "r2": "b1", "r3": "b0", "r4": "b2"}
    levels = (tp.Level("rack", tuple(racks)), tp.Level("block", tuple(blocks[rack] for rack in racks)))
    topology = tp.Topology.cluster(tp.machines.get("dgx-h100"), fabric=tp.Fabric(names, levels))
    state = ClusterState(topology)
    for name in names:
        state.set_node(read_node(node_json(name)))
    found = decide(tp.policies.get("topo-aware"), state, pods)
    assert not isinstance(found, tp.Refusal), found.reason
    rack_of = [racks[int(seat.node[1:])] for seat in found]
    assert len({*rack_of[:4]}) == len({*rack_of[4:]}) == 1
    assert {*rack_of} == {"r1", "r2"}


def test_the_ranks_of_the_documentation_are_the_tasks_of_the_job() -> None:
    """torchrun gives node rank i the ranks from i times the GPUs of a pod: these are on the GPUs of these tasks."""
    service, job = documented("Each rank where it was decided")
    template = job["spec"]["template"]["spec"]
    assert (template["subdomain"], service["spec"]["selector"]) == (
        service["metadata"]["name"],
        {"job-name": "train"},
    )
    (container,) = template["containers"]
    each, completions = container["resources"]["limits"]["nvidia.com/gpu"], job["spec"]["completions"]
    for words in (f"--nnodes={completions}", f"--nproc-per-node={each}", "--master-addr=train-0.train"):
        assert words in container["args"][0]
    names = [f"n{i}" for i in range(6)]
    state = ClusterState(tp.Topology.cluster(tp.machines.get("dgx1-v100"), 6, names=names))
    for name in names:
        state.set_node(read_node(node_json(name)))
    policy = tp.policies.get("topo-aware")
    seats = decide(policy, state, pods_of(job))
    assert not isinstance(seats, tp.Refusal), seats.reason
    placement = policy.place(
        tp.JobGraph.ring(completions * each).with_(bandwidth_sensitive=True), tp.Cluster(state.topology)
    )
    assert placement is not None
    assert tuple(gpu for seat in seats for gpu in seat.gpus) == placement.gpus
