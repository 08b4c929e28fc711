"""The extender: kube-scheduler's questions over HTTP, and what bad clients may send."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import topoplace as tp
from certificates import write_certificates
from kubernetes_objects import node_json, pod_json
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.extender import ExtenderServer, RunningExtender
from topoplace_hosts.kubernetes.extender import running as running_module
from topoplace_hosts.kubernetes.extender.running import server_tls
from topoplace_hosts.kubernetes.extender.server import most_bytes
from topoplace_hosts.kubernetes.objects.annotations import REQUEST
from topoplace_hosts.kubernetes.testing import ApiServer
from waiting import WAIT, until

GPUS = "topoplace.io/gpus"


def call(port: int, path: str, body: object, **headers: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT)
    try:
        connection.request("POST", path, body if isinstance(body, bytes) else json.dumps(body), headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


@contextmanager
def extending(policy: str = "topo-aware") -> Iterator[tuple[ApiServer, ExtenderServer, RunningExtender]]:
    """Three nodes: n0 is idle, n1 has pairs of slow GPUs left, n2 is full; n3 is not in the topology."""
    names = [f"n{i}" for i in range(3)]
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 3, names=names)
    with ApiServer() as api:
        for name in (*names, "n3"):
            api.store.add("nodes", node_json(name))
        api.store.add("pods", pod_json("x1", 6, nodeName="n1", annotations={GPUS: '{"main":[0,1,2,3,4,6]}'}))
        api.store.add(
            "pods", pod_json("x2", 8, nodeName="n2", annotations={GPUS: '{"main":[0,1,2,3,4,5,6,7]}'})
        )
        running = RunningExtender(topology, tp.policies.get(policy), Access("127.0.0.1", api.port))
        stop, ready = Event(), Event()
        thread = Thread(target=running.follow, args=(stop, ready))
        thread.start()
        assert ready.wait(WAIT)
        with ExtenderServer(running.answers()) as server:
            yield api, server, running
        stop.set()
        thread.join(WAIT)


NAMES = ["n3", "n2", "n1", "n0", "n9"]


def test_filter_prioritize_and_bind() -> None:
    with extending() as (api, server, _):
        pod = pod_json("a", 2, schedulerName="default-scheduler")
        api.store.add("pods", pod)
        status, found = call(server.port, "/filter", {"Pod": pod, "NodeNames": NAMES})
        assert (status, found["NodeNames"], found["Nodes"], found["Error"]) == (200, ["n1", "n0"], None, "")
        assert set(found["FailedNodes"]) == {"n3", "n2", "n9"}
        assert found["FailedNodes"]["n2"] == "it has no such GPUs free"
        _, scores = call(server.port, "/prioritize", {"Pod": pod, "NodeNames": NAMES})
        by_host = {one["Host"]: one["Score"] for one in scores}
        assert [one["Host"] for one in scores] == NAMES
        assert (by_host["n2"], by_host["n3"], by_host["n9"]) == (0, 0, 0)
        assert sorted((by_host["n0"], by_host["n1"])) == [0, 10]
        best = max(by_host, key=lambda name: by_host[name])
        binding = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}
        assert call(server.port, "/bind", binding) == (200, {"Error": ""})
        bound = api.store.pods()["a"]
        assert bound["spec"]["nodeName"] == "n1"
        assert sorted(json.loads(bound["metadata"]["annotations"][GPUS])["main"]) == [5, 7]
        _, found = call(server.port, "/filter", {"Pod": pod, "NodeNames": ["n1"]})
        assert found["NodeNames"] == []
        assert best in ("n0", "n1")


def bind(server: ExtenderServer, pod: str, node: str) -> str:
    body = {"PodName": pod, "PodNamespace": "default", "PodUID": f"uid-{pod}", "Node": node}
    status, found = call(server.port, "/bind", body)
    assert status == 200
    return str(found["Error"])


def test_a_repeated_binding_frees_nothing() -> None:
    with extending() as (api, server, running):
        api.store.add("pods", pod_json("a", 4))
        api.store.add("pods", pod_json("b", 8))
        assert bind(server, "a", "n0") == ""
        assert bind(server, "a", "n0") == ""  # it is there
        assert bind(server, "a", "n1") == "the pod is bound to n0, or has ended"
        assert bind(server, "x2", "n0") == "the pod is bound to n2, or has ended"
        assert running.extender.state.free_by_row()[:3].tolist() == [4, 2, 0]
        assert bind(server, "b", "n0") == "node n0 has no such GPUs free any more"
        assert not api.store.twice


def test_a_binding_whose_answer_is_lost_holds_its_gpus() -> None:
    with extending() as (api, server, _):
        api.store.add("pods", pod_json("a", 4))
        api.store.add("pods", pod_json("b", 8))
        api.fail("/api/v1/pods", 500, 3)
        api.cut_watches()  # what happens is not seen for a moment
        api.fail("a/binding", 0)  # done, and the answer is lost
        assert bind(server, "a", "n0") == ""
        assert bind(server, "b", "n0") == "node n0 has no such GPUs free any more"
        assert not api.store.twice


def test_a_request_has_its_time_from_its_first_byte() -> None:
    """The connection was idle for most of the limit before; the answer takes half of it."""

    def slowly(_: Any) -> dict[str, Any]:
        time.sleep(0.6)
        return {}

    with ExtenderServer({"/filter": slowly}, request_s=1.2) as server:
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=WAIT)
        for _ in range(2):
            connection.request("POST", "/filter", "{}")
            assert connection.getresponse().read() == b"{}"
            time.sleep(0.9)
        connection.close()


def test_the_best_node_is_the_one_that_the_policy_would_choose() -> None:
    with extending() as (_, server, running):
        for gpus in (1, 2, 3, 6):
            pod = pod_json("a", gpus)
            _, scores = call(server.port, "/prioritize", {"Pod": pod, "NodeNames": ["n0", "n1", "n2"]})
            best = max(scores, key=lambda one: one["Score"])["Host"]
            job = tp.JobGraph.ring(gpus).with_(bandwidth_sensitive=True, single_machine=True)
            with running.extender.lock:
                state = running.extender.state
                placed = tp.policies.get("topo-aware").place(job, state.focus(state.known_gpus()))
            assert placed is not None
            assert best == state.topology.gpus[placed.gpus[0]].machine


def test_whole_nodes_come_back_as_they_were() -> None:
    with extending() as (_, server, _):
        items = [{**node_json("n0"), "extra": 1}, node_json("n2")]
        status, found = call(server.port, "/filter", {"Pod": pod_json("a", 1), "Nodes": {"items": items}})
        assert status == 200
        assert found["Nodes"] == {"items": items[:1]}
        assert found["NodeNames"] is None


def test_pods_without_gpus_and_policies_by_search() -> None:
    with extending("mapa-preserve") as (_, server, _):
        _, found = call(server.port, "/filter", {"Pod": pod_json("a", 0), "NodeNames": NAMES})
        assert found["NodeNames"] == NAMES
        _, found = call(server.port, "/filter", {"Pod": pod_json("a", 2), "NodeNames": NAMES})
        assert found["NodeNames"] == ["n1", "n0"]


def test_a_pod_without_gpus_goes_to_any_node() -> None:
    with extending() as (api, server, _):
        api.store.add("pods", pod_json("a", 0))
        _, scores = call(server.port, "/prioritize", {"Pod": pod_json("a", 0), "NodeNames": NAMES})
        assert scores == [{"Host": name, "Score": 0} for name in NAMES]
        assert bind(server, "a", "n2") == ""
        assert api.store.pods()["a"]["spec"]["nodeName"] == "n2"


def test_a_node_with_a_pod_that_tells_no_gpus_gets_none() -> None:
    with extending() as (api, server, running):
        api.store.add("pods", pod_json("silent", 1, nodeName="n0"))
        until(lambda: not running.extender.state.known_gpus()[0])
        _, found = call(server.port, "/filter", {"Pod": pod_json("a", 1), "NodeNames": ["n0", "n1"]})
        assert found["NodeNames"] == ["n1"]
        assert found["FailedNodes"] == {"n0": "it is unknown which of its GPUs are free"}


def test_bindings_that_are_not_possible_say_why_and_hold_nothing() -> None:
    with extending() as (api, server, running):
        api.store.add("pods", pod_json("a", 4))
        binding = {"PodName": "a", "PodNamespace": "default", "PodUID": "uid-a", "Node": "n1"}
        assert "has no such GPUs free" in call(server.port, "/bind", binding)[1]["Error"]
        assert "not known" in call(server.port, "/bind", {**binding, "Node": "n9"})[1]["Error"]
        assert (
            "another one"
            in call(server.port, "/bind", {**binding, "Node": "n0", "PodUID": "old"})[1]["Error"]
        )
        assert call(server.port, "/bind", {**binding, "PodName": "gone"})[0] == 400
        api.fail("a/binding", 403)
        assert "403" in call(server.port, "/bind", {**binding, "Node": "n0"})[1]["Error"]
        assert "uid-a" not in running.extender.state.pods
        api.fail("a/binding", 409)  # the pod has changed: it is asked for again
        assert call(server.port, "/bind", {**binding, "Node": "n0"})[1] == {"Error": ""}
        assert not api.store.twice


# ---- bad clients ---------------------------------------------------------------------------------------------------


def refusing(arguments: Any) -> Any:
    raise KubernetesError(f"no {arguments}")


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"\xff\xfe", 400), (b"[" * 100_000, 400), (b"3", 400), (b"", 400)],
)
def test_malformed_bodies(body: bytes, status: int) -> None:
    with ExtenderServer({"/filter": refusing}) as server:
        assert call(server.port, "/filter", body)[0] == status


POD = pod_json("a")
KUEUE = "kueue.x-k8s.io/podset-required-topology"


@pytest.mark.parametrize(
    "arguments",
    [
        *(None, [], {}, {"Pod": 3}, {"Pod": POD}),
        {"Pod": POD, "NodeNames": [3]},
        {"Pod": POD, "Nodes": {"items": 3}},
        {"Pod": pod_json("a", annotations={REQUEST: '{"min_bandwidth": 20}'}), "NodeNames": ["n0"]},
        {"Pod": pod_json("a", annotations={REQUEST: '{"groups": "2@machine"}'}), "NodeNames": ["n0"]},
        {"Pod": pod_json("a", annotations={KUEUE: "kubernetes.io/hostname"}), "NodeNames": ["n0"]},
        {
            "Pod": pod_json("a", annotations={KUEUE: "rack"}, labels={"topoplace.io/group": "g"}),
            "NodeNames": ["n0"],
        },
    ],
)
def test_wrong_questions(arguments: Any) -> None:
    with extending() as (_, server, _):
        for path in ("/filter", "/prioritize"):
            status, found = call(server.port, path, arguments)
            assert status == 400
            assert found["Error"]


def connected(server: ExtenderServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), WAIT)


def test_a_body_of_100_mb_is_refused_unread() -> None:
    with (
        ExtenderServer({"/filter": lambda _: {}}) as server,
        socket.create_connection(("127.0.0.1", server.port)) as peer,
    ):
        peer.sendall(b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 104857600\r\n\r\n")
        assert b"413" in peer.recv(4096)


@pytest.mark.parametrize("length", ["", "-1", "x", "1e9", "٣"])
def test_lengths_that_are_none(length: str) -> None:
    with (
        ExtenderServer({"/filter": lambda _: {}}) as server,
        socket.create_connection(("127.0.0.1", server.port)) as peer,
    ):
        peer.sendall(f"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n".encode())
        assert b"411" in peer.recv(4096)


@pytest.mark.parametrize(
    "start", [b"", b"POST /filter HT", b"POST /filter HTTP/1.1\r\nContent-Length: 50\r\n\r\n{"]
)
def test_slow_clients_are_cut_off_however_they_drip(start: bytes) -> None:
    with ExtenderServer({"/filter": lambda _: {}}, request_s=0.3) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as peer:
            peer.settimeout(WAIT)
            peer.sendall(start)
            try:
                for _ in range(100):
                    peer.sendall(b" ")
                    time.sleep(0.02)
                closed = peer.recv(1) == b""
            except OSError:
                closed = True
            assert closed
        assert call(server.port, "/filter", {})[0] == 200


def test_known_clients_are_limited_and_freed() -> None:
    question = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
    with ExtenderServer({"/filter": lambda _: {}}, connections=3) as server:
        peers = [connected(server) for _ in range(3)]
        for peer in peers:
            peer.sendall(question)
            assert b"200" in peer.recv(4096)
        assert call(server.port, "/filter", {})[0] == 503
        for peer in peers:
            peer.sendall(question)
            assert b"200" in peer.recv(4096)
            peer.close()
        until(lambda: call(server.port, "/filter", {})[0] == 200)


def test_connections_without_a_certificate_keep_no_client_out(tmp_path: Path) -> None:
    write_certificates(tmp_path, {"a": "/CN=a"})
    files = [str(tmp_path / name) for name in ("a.crt", "a.key", "ca.crt")]
    context = ssl.create_default_context(cafile=files[2])
    context.load_cert_chain(files[0], files[1])
    with ExtenderServer({"/filter": lambda _: {"ok": 1}}, tls=server_tls(*files), connections=2) as server:
        silent = [connected(server) for _ in range(300)]
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=WAIT, context=context)
        connection.request("POST", "/filter", "{}")
        assert json.loads(connection.getresponse().read()) == {"ok": 1}
        for peer in silent[:200]:
            peer.settimeout(WAIT)
            assert peer.recv(1) == b""  # closed long before its time for a handshake has passed
        for peer in silent:
            peer.close()
        connection.close()


@pytest.mark.parametrize("body", [b"[" + b"[]," * 100_000 + b"1]", b"{" + b'"a":1,' * 100_000 + b'"a":1}'])
def test_a_body_of_many_values_is_not_decoded(body: bytes) -> None:
    with ExtenderServer({"/filter": lambda _: {}}, most_bytes=1 << 20) as server:
        assert len(body) < 1 << 20
        assert call(server.port, "/filter", body)[0] == 413


def test_large_bodies_come_one_after_another() -> None:
    with ExtenderServer({"/filter": lambda _: {}}, most_bytes=1000) as server:
        start = b"POST /filter HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        slow = [connected(server) for _ in range(2)]
        for one in slow:
            one.sendall(start)
        # A question asked meanwhile could take the room of the second body.
        until(lambda: server._server.bodies._free == 0)
        assert call(server.port, "/filter", {})[0] == 503
        for one in slow:
            one.sendall(b"{" + b" " * 998 + b"}")
            assert b"200" in one.recv(4096)
        until(lambda: call(server.port, "/filter", {})[0] == 200)
        for one in slow:
            one.close()


def test_the_limit_of_a_body_grows_with_the_nodes() -> None:
    assert most_bytes(10) < 5 << 20
    assert most_bytes(1000) == 20_578_304
    assert most_bytes(100_000) == 64 << 20


def test_a_token_is_needed_where_there_is_one() -> None:
    with ExtenderServer({"/filter": lambda _: {}}, token="secret") as server:
        assert call(server.port, "/filter", {})[0] == 401
        assert call(server.port, "/filter", {}, Authorization="Bearer wrong")[0] == 401
        assert call(server.port, "/filter", {}, Authorization="Bearer secret")[0] == 200


def test_it_does_not_leave_this_host_without_tls_and_a_check_of_clients() -> None:
    for host in ("0.0.0.0", "::", "192.0.2.1"):
        with pytest.raises(ValueError, match="needs TLS"):
            ExtenderServer({}, host, token="secret")
    with pytest.raises(ValueError, match="is not an address"):
        ExtenderServer({}, "localhost")


def test_finishing_waits_for_bindings_and_lets_no_other_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = Event(), Event()
    bind = running_module.bind

    def slow(*arguments: Any) -> Any:
        begun.set()
        assert go_on.wait(WAIT)
        return bind(*arguments)

    monkeypatch.setattr(running_module, "bind", slow)
    with extending() as (api, _, running):
        for name in "ab":
            api.store.add("pods", pod_json(name, 2))
        answer = running.answers()["/bind"]
        binding = Thread(target=answer, args=({"PodName": "a", "PodNamespace": "default", "Node": "n0"},))
        binding.start()
        assert begun.wait(WAIT)
        finishing = Thread(target=running.finish)
        finishing.start()
        late = answer({"PodName": "b", "PodNamespace": "default", "Node": "n0"})
        assert "the extender ends" in late["Error"]
        assert finishing.is_alive()
        go_on.set()
        finishing.join(WAIT)
        binding.join(WAIT)
        assert not finishing.is_alive()
        assert api.store.bound == ["a"]


def test_tls_with_client_certificates(tmp_path: Path) -> None:
    write_certificates(tmp_path, {"a": "/CN=a"})
    files = [str(tmp_path / name) for name in ("a.crt", "a.key", "ca.crt")]
    with ExtenderServer({"/filter": lambda _: {"ok": 1}}, tls=server_tls(*files), request_s=1.0) as server:
        context = ssl.create_default_context(cafile=files[2])

        def asked() -> Any:
            connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=WAIT, context=context)
            try:
                connection.request("POST", "/filter", "{}")
                return json.loads(connection.getresponse().read())
            finally:
                connection.close()

        with pytest.raises((ssl.SSLError, ConnectionError)):
            asked()  # without a certificate
        context.load_cert_chain(files[0], files[1])
        assert asked() == {"ok": 1}
        with socket.create_connection(("127.0.0.1", server.port)) as silent:  # it never begins the handshake
            silent.settimeout(WAIT)
            assert asked() == {"ok": 1}
            assert silent.recv(1) == b""


def test_the_command_answers_until_it_is_told_to_end(tmp_path: Path) -> None:
    topology = tp.Topology.cluster(tp.machines.get("dgx1-v100"), 1, names=["n0"])
    (tmp_path / "topology.json").write_text(topology.to_json(), "utf-8")
    (tmp_path / "token").write_text("secret", "utf-8")
    with ApiServer() as api:
        api.store.add("nodes", node_json("n0"))
        (tmp_path / "kubeconfig").write_text(api.kubeconfig(), "utf-8")
        words = "kubernetes extender topology.json --kubeconfig kubeconfig --listen 127.0.0.1:0 --token-file token"
        command = [sys.executable, "-m", "topoplace", *words.split()]
        with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
            try:
                assert process.stderr is not None
                assert json.loads(process.stderr.readline())["event"] == "listing nodes and pods"
                port = json.loads(process.stderr.readline())["port"]
                question = {"Pod": pod_json("a", 2), "NodeNames": ["n0"]}
                assert call(port, "/filter", question)[0] == 401
                assert call(port, "/filter", question, Authorization="Bearer secret")[1]["NodeNames"] == [
                    "n0"
                ]
            finally:
                process.terminate()
        assert process.returncode == 0
