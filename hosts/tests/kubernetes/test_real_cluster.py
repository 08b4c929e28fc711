"""A real kube-apiserver with TLS and RBAC, and a real kube-scheduler: `make test-kubernetes`."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import topoplace as tp
from kubernetes_manifests import PATHS, is_part
from kubernetes_objects import node_json, pod_json
from real_kubernetes import RealCluster, binaries
from topoplace_hosts.kubernetes.client import access, api
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.kubernetes.client.watch import News, Watcher
from topoplace_hosts.slurm.testing.daemons import free_ports
from waiting import WAIT, until

yaml = pytest.importorskip("yaml", reason="the extra discovery is not installed")

EXAMPLES = Path(__file__).parents[3] / "examples/kubernetes"
GPUS = "topoplace.io/gpus"
NODES, PODS = 40, 200
LEASE = "kube-system/topoplace-scheduler"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCluster]:
    with RealCluster(binaries(), tmp_path_factory.mktemp("kubernetes")) as found:
        for file in sorted(EXAMPLES.glob("*.yaml")):
            for value in yaml.safe_load_all(file.read_text("utf-8")):
                path = PATHS[value["kind"]].format(value["metadata"].get("namespace"))
                try:
                    made = found.create(path, value)
                except ApiError as error:
                    if error.status == 404 and path.startswith("/apis/"):
                        continue  # a group or kind that is younger than this server
                    raise
                assert is_part(value, made), f"{file.name}: {value['kind']} is not as it was written"
        yield found


class Program:
    """A command of topoplace with the rights of a service account, as a process."""

    def __init__(
        self,
        cluster: RealCluster,
        account: str,
        prefix: str,
        count: int,
        *words: str,
        described: bool = False,
    ) -> None:
        """described: nodes have described their machines themselves."""
        names = [f"{prefix}{i}" for i in range(count)]
        cluster.create_nodes([node_json(name) for name in names])
        topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), count, names=names)
        (cluster.folder / f"{prefix}.json").write_text(topology.to_json(), "utf-8")
        (cluster.folder / f"{account}.token").write_text(cluster.token(account), "utf-8")
        kubeconfig = cluster.kubeconfig(account, tokenFile=f"{account}.token")
        self._log = cluster.folder / f"{prefix}.log"
        machines = [] if described else [f"{prefix}.json"]
        self._words = [words[0], *machines, "--kubeconfig", str(kubeconfig), *words[1:]]
        self._folder = cluster.folder
        self.start()

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def start(self) -> None:
        command = [sys.executable, "-m", "topoplace", "kubernetes", *self._words]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=self._folder, stderr=log)

    def end(self, number: int = signal.SIGTERM) -> None:
        assert self._process.poll() is None, self._log.read_text("utf-8")[-3000:]
        self._process.send_signal(number)
        self._process.wait(WAIT)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return what the program has logged under a name."""
        found = [json.loads(line) for line in self._log.read_text("utf-8").splitlines() if line[:1] == "{"]
        return [one for one in found if one["event"] == name]


def jobs(prefix: str, scheduler: str, *, groups: bool) -> list[dict[str, Any]]:
    """Return pods that all fit, and some of them in groups of four."""
    generator = random.Random(1)
    found: list[dict[str, Any]] = []
    while len(found) < PODS:
        name = f"{prefix}{len(found)}"
        if groups and generator.random() < 0.1 and len(found) + 4 <= PODS:
            labels = {"topoplace.io/group": name, "topoplace.io/group-size": "4"}
            found += [
                pod_json(f"{name}-{i}", 2, labels=labels, schedulerName=scheduler, cpu="100m")
                for i in range(4)
            ]
        else:
            gpus = generator.choice((0, 1, 1, 2, 2))
            found.append(pod_json(name, gpus, schedulerName=scheduler, cpu="100m"))
    return found


def bound(cluster: RealCluster, prefix: str) -> dict[str, dict[str, Any]]:
    return {
        name: pod
        for name, pod in cluster.pods().items()
        if name.startswith(prefix) and pod["spec"].get("nodeName")
    }


def check_as_decided(pods: dict[str, dict[str, Any]], decided: list[dict[str, Any]], prefix: str) -> None:
    """Check that each pod is where the log says, with its own GPUs."""
    told = {one["pod"].removeprefix("default/"): (one["node"], one["gpus"]) for one in decided}
    there = {
        name: (pod["spec"]["nodeName"], pod["metadata"].get("annotations", {}).get(GPUS, ""))
        for name, pod in pods.items()
    }
    assert {name: told[name] for name in there} == there
    held = Counter[tuple[str, int]]()
    for name, (node, gpus) in there.items():
        limits = pods[name]["spec"]["containers"][0]["resources"]["limits"]
        numbers = json.loads(gpus)["main"] if gpus else []
        assert len(numbers) == int(limits.get("nvidia.com/gpu", "0"))
        assert not numbers or node.startswith(prefix)
        held.update((node, number) for number in numbers)
    assert held
    assert max(held.values()) == 1


def test_a_watch_goes_on_after_the_history_was_lost(cluster: RealCluster) -> None:
    """An API server that has started anew remembers nothing: the version that the watch saw is too old (410)."""
    seen: list[News] = []
    watcher = Watcher(access.from_kubeconfig(cluster.kubeconfig("admin")), "nodes", seen.append)
    watcher.start()
    until(lambda: seen)
    cluster.create_pod(pod_json("w", 1, schedulerName="nobody"))  # the version of nodes is older than this
    cluster.kill("kube-apiserver")
    cluster.start_api_server()
    until(lambda: watcher.num_lists == 2, watcher.last_error)
    cluster.create_nodes([node_json("w0")])
    until(lambda: seen[-1].type == "ADDED")
    watcher.stop()
    assert [news.type for news in seen] == ["LISTED", "LISTED", "ADDED"]


def test_200_pods_get_node_and_annotation_as_decided(cluster: RealCluster) -> None:
    """The API server is killed on the way: answers to bindings are lost, and watches are cut."""
    with Program(
        cluster, "topoplace-scheduler", "s", NODES, "scheduler", "--journal", "s.journal"
    ) as program:
        todo = jobs("s", "topoplace", groups=True)
        for one in todo[:100]:
            cluster.create_pod(one)
        until(lambda: len(bound(cluster, "s")) > 50)
        cluster.kill("kube-apiserver")
        cluster.start_api_server()
        for one in todo[100:]:
            cluster.create_pod(one)
        until(lambda: len(bound(cluster, "s")) == PODS, f"{len(bound(cluster, 's'))} of {PODS} are bound")
        until(lambda: len(program.events("bound")) == PODS)
        check_as_decided(bound(cluster, "s"), program.events("bound"), "s")
        assert program.events("pod_unreadable") == program.events("node_unreadable") == []
        last = {one["metadata"]["name"] for one in todo[100:]}
        until(lambda: last <= reported(cluster, "Scheduled"), "pods without an event")
        program.end()


def reported(cluster: RealCluster, reason: str) -> set[str]:
    """Return the names of the pods about which there is an event."""
    events = cluster.admin.call("GET", "/api/v1/namespaces/default/events")["items"]
    return {one["involvedObject"]["name"] for one in events if one["reason"] == reason}


def test_nodes_describe_their_machines_with_the_rights_of_their_account(cluster: RealCluster) -> None:
    (cluster.folder / "label.token").write_text(cluster.token("topoplace-label", "topoplace"), "utf-8")
    kubeconfig = cluster.kubeconfig("label", tokenFile="label.token")
    command = [sys.executable, "-m", "topoplace", "kubernetes", "label", "dgx1-v100", "--node", "d0"]
    for _ in range(2):
        subprocess.run([*command, "--kubeconfig", kubeconfig], check=True, capture_output=True)
    with Program(cluster, "topoplace-scheduler", "d", 1, "scheduler", described=True) as program:
        until(lambda: program.events("ready"))
        cluster.create_pod(pod_json("d", 8))
        until(lambda: bound(cluster, "d"))
        check_as_decided(bound(cluster, "d"), program.events("bound"), "d0")
        program.end()


def test_a_pod_of_higher_priority_gets_the_gpus_once_the_others_have_ended(cluster: RealCluster) -> None:
    for name, value in (("low", 1), ("high", 1000)):
        one = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        cluster.create("/apis/scheduling.k8s.io/v1/priorityclasses", {**one, "value": value})
    with Program(cluster, "topoplace-scheduler", "p", 1, "scheduler", "--lease", LEASE) as program:
        for i in range(2):
            cluster.create_pod(pod_json(f"plow{i}", 4, priorityClassName="low"))
        until(lambda: len(bound(cluster, "plow")) == 2)
        cluster.create_pod(pod_json("phigh", 6, priorityClassName="high"))
        until(lambda: bound(cluster, "phigh"))
        assert not bound(cluster, "plow")
        assert {one["pod"] for one in program.events("preempts")} == {"default/plow0", "default/plow1"}
        cluster.finish("phigh")
        cluster.create_pod(pod_json("plast", 8, priorityClassName="low"))
        until(lambda: bound(cluster, "plast"))
        path = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/topoplace-scheduler"
        assert cluster.admin.call("GET", path)["spec"]["holderIdentity"]
        program.end()
        assert not cluster.admin.call("GET", path)["spec"].get("holderIdentity")


def test_kube_scheduler_with_the_extender_binds_200_pods_as_decided(cluster: RealCluster) -> None:
    (port,) = free_ports(1)
    account = "topoplace-extender"
    words = ("extender", "--listen", f"127.0.0.1:{port}")
    with Program(cluster, account, "e", NODES, *words) as program:
        until(lambda: program.events("ready"))
        (config,) = [
            one
            for one in yaml.safe_load_all((EXAMPLES / "extender.yaml").read_text("utf-8"))
            if one["kind"] == "ConfigMap"
        ]
        settings = yaml.safe_load(config["data"]["scheduler.yaml"])
        settings["apiVersion"] = f"kubescheduler.config.k8s.io/{config_version()}"
        settings["clientConnection"] = {"kubeconfig": str(cluster.folder / f"{account}.kubeconfig")}
        settings["extenders"][0]["urlPrefix"] = f"http://127.0.0.1:{port}"
        (cluster.folder / "scheduler.yaml").write_text(json.dumps(settings), "utf-8")
        cluster.start(
            "kube-scheduler", "--config", str(cluster.folder / "scheduler.yaml"), "--secure-port", "0"
        )
        for one in jobs("e", "topoplace-extended", groups=False):
            cluster.create_pod(one)
        until(lambda: len(bound(cluster, "e")) == PODS, cluster.log("kube-scheduler")[-3000:])
        cluster.kill("kube-scheduler")
        with_gpus = {
            name: pod
            for name, pod in bound(cluster, "e").items()
            if "nvidia.com/gpu" in pod["spec"]["containers"][0]["resources"]["limits"]
        }
        until(lambda: len(program.events("bound")) == len(with_gpus))
        program.end()
        check_as_decided(with_gpus, program.events("bound"), "e")


def config_version() -> str:
    """Return the version of kube-scheduler's configuration that this one reads."""
    found = subprocess.run(
        [binaries() / "kube-scheduler", "--version"], check=True, capture_output=True, text=True
    )
    minor = int(found.stdout.split(".")[1])
    return "v1" if minor >= 25 else "v1beta1"


@pytest.mark.parametrize("account", ["topoplace-scheduler", "topoplace-extender", "topoplace-device-plugin"])
def test_service_accounts_may_do_nothing_else(
    cluster: RealCluster, account: str, request: pytest.FixtureRequest
) -> None:
    token = cluster.token(account)
    connection = Connection(access.from_kubeconfig(cluster.kubeconfig("limited", token=token)))
    request.addfinalizer(connection.close)
    connection.call("GET", "/api/v1/pods")
    forbidden = [
        ("GET", "/api/v1/secrets"),
        ("GET", "/api/v1/namespaces/kube-system/configmaps/topoplace-extender"),
        ("POST", "/api/v1/namespaces/default/pods"),
        ("PUT", "/api/v1/nodes/s0"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-scheduler"),
    ]
    if account == "topoplace-extender":  # kube-scheduler, in the same pod, may delete pods and has a Lease
        forbidden.pop()
    else:
        forbidden.append(("DELETE", "/api/v1/namespaces/default/pods/x"))
    for method, path in forbidden:
        with pytest.raises(ApiError) as caught:
            connection.call(method, path, {} if method in ("POST", "PUT") else None)
        assert caught.value.status == 403, (method, path)


# ---- the client over TLS -------------------------------------------------------------------------------------------


def test_tokens_and_certificates_are_asked_for(
    cluster: RealCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = Connection(access.from_kubeconfig(cluster.kubeconfig("nobody", token="wrong")))
    with pytest.raises(ApiError, match="401"):
        nobody.call("GET", "/api/v1/pods")
    nobody.close()
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(cluster.port))
    (tmp_path / "token").write_text(cluster.token("topoplace-scheduler"), "utf-8")
    (tmp_path / "ca.crt").write_bytes((cluster.folder / "ca.crt").read_bytes())
    pod = Connection(access.in_cluster(tmp_path))
    assert pod.call("GET", "/api/v1/nodes")["kind"] == "NodeList"
    pod.close()
    (tmp_path / "ca.crt").write_bytes((cluster.folder / "account.crt").read_bytes())
    stranger = Connection(access.in_cluster(tmp_path))
    with pytest.raises(ApiError, match="SSLCertVerificationError"):
        stranger.call("GET", "/api/v1/nodes")


def test_bindings_are_refused_as_the_simulated_server_refuses_them(cluster: RealCluster) -> None:
    cluster.create_nodes([node_json("b0")])
    cluster.create_pod(pod_json("b", 1, schedulerName="nobody"))
    uid = cluster.pods()["b"]["metadata"]["uid"]
    with pytest.raises(ApiError) as missing:
        api.bind(cluster.admin, "default", "nothing", uid, "b0", {})
    assert missing.value.status == 404
    api.bind(cluster.admin, "default", "b", uid, "b0", {GPUS: '{"main":[3]}'})
    pod = cluster.pods()["b"]
    assert (pod["spec"]["nodeName"], pod["metadata"]["annotations"][GPUS]) == ("b0", '{"main":[3]}')
    with pytest.raises(ApiError) as twice:
        api.bind(cluster.admin, "default", "b", uid, "b0", {})
    assert twice.value.status == 409
