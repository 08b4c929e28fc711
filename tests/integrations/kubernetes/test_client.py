"""The client: credentials, and what it makes of wrong answers."""

from __future__ import annotations

import argparse
import base64
import json
import socket
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kubernetes_objects import pod_json
from topoplace.cli.kubernetes import arguments
from topoplace.errors import KubernetesError
from topoplace.integrations.kubernetes.client import access, api, proxies
from topoplace.integrations.kubernetes.client.connection import ApiError, Connection
from topoplace.integrations.kubernetes.testing import ApiServer

V1 = "client.authentication.k8s.io/v1"


def kubeconfig(path: Path, server: str, **user: Any) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }
    file = path / "kubeconfig"
    file.write_text(json.dumps(config))
    return file


def test_tokens_come_from_the_kubeconfig_or_a_file(tmp_path: Path) -> None:
    found = access.from_kubeconfig(kubeconfig(tmp_path, "http://127.0.0.1:80/base", token="secret"))
    assert (found.host, found.port, found.path, found.tls) == ("127.0.0.1", 80, "/base", None)
    assert found.authorization() == "Bearer secret"
    (tmp_path / "token").write_text("from a file\n")
    found = access.from_kubeconfig(kubeconfig(tmp_path, "https://[::1]:6443", tokenFile="token"))
    assert (found.host, found.port, found.tls is not None) == ("::1", 6443, True)
    assert found.authorization() == "Bearer from a file"


@pytest.mark.parametrize(
    ("server", "user", "message"),
    [
        ("http://example.com", {}, "not encrypted"),
        ("ftp://localhost", {}, "not an http or https URL"),
        ("https://localhost", {"exec": {"command": "x"}}, "exec.apiVersion = '' is not one of"),
        ("https://localhost", {"exec": {"apiVersion": V1}}, "exec has no command"),
        ("https://localhost", {"exec": 3}, "exec of a user needs a command"),
        ("http://localhost", {"exec": {"apiVersion": V1, "command": "x"}}, "a server that is encrypted"),
        (
            "https://localhost",
            {"exec": {"apiVersion": V1, "command": "x", "interactiveMode": "Always"}},
            "terminal",
        ),
        ("https://localhost", {"username": "x", "password": "y"}, "password of a user is not supported"),
        ("https://localhost", {"client-certificate-data": "!"}, "not base64"),
        ("https://localhost", {"client-certificate-data": base64.b64encode(b"x").decode()}, "cannot be used"),
        ("https://localhost", {"client-certificate": "nowhere"}, "nowhere"),
    ],
)
def test_what_is_not_supported_is_named(
    tmp_path: Path, server: str, user: dict[str, str], message: str
) -> None:
    with pytest.raises(KubernetesError, match=message):
        access.from_kubeconfig(kubeconfig(tmp_path, server, **user))


def test_certificates_are_never_left_unchecked(tmp_path: Path) -> None:
    file = kubeconfig(tmp_path, "https://localhost")
    config = json.loads(file.read_text("utf-8"))
    config["clusters"][0]["cluster"]["insecure-skip-tls-verify"] = True
    file.write_text(json.dumps(config))
    with pytest.raises(KubernetesError, match="insecure-skip-tls-verify is not supported"):
        access.from_kubeconfig(file)


def test_a_kubeconfig_that_is_missing_is_named_once(tmp_path: Path) -> None:
    with pytest.raises(KubernetesError) as raised:
        access.from_kubeconfig(tmp_path / "nowhere")
    assert str(raised.value) == f"{tmp_path / 'nowhere'}: No such file or directory"


@pytest.mark.parametrize("text", ["", "[]", "{", "a: [", '{"current-context": "c", "contexts": 3}', "{}"])
def test_kubeconfigs_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "kubeconfig").write_text(text)
    with pytest.raises(KubernetesError) as raised:
        access.from_kubeconfig(tmp_path / "kubeconfig")
    assert "unpack" not in str(raised.value)


def test_a_pod_reads_its_service_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "token").write_text("mine")
    with pytest.raises(KubernetesError, match=r"ca\.crt"):
        access.in_cluster(tmp_path)
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(KubernetesError, match="certificate authority cannot be read"):
        access.in_cluster(tmp_path)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST")
    with pytest.raises(KubernetesError, match=r"not in a pod: .*; name a kubeconfig \(--kubeconfig\)$"):
        access.in_cluster(tmp_path)


def test_names_cannot_leave_their_place_in_a_path() -> None:
    with ApiServer() as server:
        connection = Connection(access.Access("127.0.0.1", server.port))
        with pytest.raises(ApiError, match="404"):
            api.read_pod(connection, "default", "../../nodes?x=")
        assert server.requests == ["GET /api/v1/namespaces/default/pods/..%2F..%2Fnodes%3Fx%3D"]
        connection.close()


def test_a_connection_that_the_server_closed_meanwhile_is_opened_again_for_reading() -> None:
    with ApiServer() as server:
        server.store.add("pods", pod_json("a"))
        connection = Connection(access.Access("127.0.0.1", server.port))
        assert api.read_pod(connection, "default", "a")["metadata"]["name"] == "a"
        server.restart()
        assert api.read_pod(connection, "default", "a")["metadata"]["name"] == "a"
        connection.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_wrong_answers_are_errors_of_the_api(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            for _ in range(1):
                peer, _ = listener.accept()
                with peer:
                    peer.recv(4096)
                    peer.sendall(answer)

        thread = Thread(target=serve)
        thread.start()
        connection = Connection(access.Access("127.0.0.1", listener.getsockname()[1]), 5.0)
        with pytest.raises(ApiError) as caught:
            connection.call("POST", "/x", {})
        assert caught.value.retry_after_s == (7.0 if b"503" in answer else 0.0)
        connection.close()
        thread.join()


def test_the_command_line_names_its_option_for_a_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("{}")
    for file, why in (("kubeconfig", "contexts has no ''"), ("nowhere", "No such file")):
        given = argparse.Namespace(kubeconfig=str(tmp_path / file))
        with pytest.raises(KubernetesError, match=f"^--kubeconfig: .*{why}"):
            arguments.access(given)


# ---- programs that have credentials, and proxies --------------------------------------------------------------------


PROGRAM = """#!/bin/sh
echo "$KUBERNETES_EXEC_INFO" > {folder}/info
echo x >> {folder}/runs
echo '{{"apiVersion": "{version}", "kind": "ExecCredential", "status": {status}}}'
"""


def with_program(tmp_path: Path, status: object, version: str = V1, **fields: Any) -> access.Access:
    """Return the access by a program that answers with this status."""
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(folder=tmp_path, version=version, status=json.dumps(status)))
    program.chmod(0o755)
    given = {"apiVersion": V1, "command": "./program", "env": [{"name": "A", "value": "b"}], **fields}
    return access.from_kubeconfig(kubeconfig(tmp_path, "https://localhost", exec=given))


def test_a_program_has_the_token_and_is_asked_again_before_it_ends(tmp_path: Path) -> None:
    found = with_program(tmp_path, {"token": "secret"}, provideClusterInfo=True)
    assert [found.authorization() for _ in range(3)] == ["Bearer secret"] * 3
    assert (tmp_path / "runs").read_text("utf-8") == "x\n"
    info = json.loads((tmp_path / "info").read_text("utf-8"))
    assert info["apiVersion"] == V1
    assert info["spec"] == {"interactive": False, "cluster": {"server": "https://localhost"}}
    assert found.plugin is not None
    found.plugin.forget()
    assert found.authorization() == "Bearer secret"
    assert (tmp_path / "runs").read_text("utf-8") == "x\nx\n"
    ending = with_program(tmp_path, {"token": "old", "expirationTimestamp": "2020-01-01T00:00:00Z"})
    assert [ending.authorization() for _ in range(2)] == ["Bearer old"] * 2
    assert (tmp_path / "runs").read_text("utf-8") == "x\n" * 4


@pytest.mark.parametrize(
    ("status", "version", "message"),
    [
        ({}, V1, "no token and no certificate"),
        ({"token": "x"}, "client.authentication.k8s.io/v1beta1", "is not of client.authentication.k8s.io/v1"),
        ([], V1, "status"),
        ({"token": "x", "expirationTimestamp": "soon"}, V1, "soon"),
        ({"clientCertificateData": "x", "clientKeyData": "y"}, V1, "certificate cannot be used"),
    ],
)
def test_what_a_program_may_answer_wrongly(tmp_path: Path, status: Any, version: str, message: str) -> None:
    found = with_program(tmp_path, status, version)
    with pytest.raises(KubernetesError, match=message):
        found.authorization()
    with pytest.raises(ApiError, match=message):  # a call goes on trying, and its thread does not end
        Connection(found).call("GET", "/")


def test_a_program_that_fails_is_named_with_what_it_says(tmp_path: Path) -> None:
    given = {"apiVersion": V1, "command": "./nowhere", "installHint": "install it"}
    found = access.from_kubeconfig(kubeconfig(tmp_path, "https://localhost", exec=given))
    with pytest.raises(KubernetesError, match=r"nowhere.*install it"):
        found.authorization()
    given = {"apiVersion": V1, "command": "sh", "args": ["-c", "echo log in first >&2; exit 3"]}
    found = access.from_kubeconfig(kubeconfig(tmp_path, "https://localhost", exec=given))
    with pytest.raises(KubernetesError, match="sh has ended with 3: log in first"):
        found.authorization()


def test_the_proxy_of_the_environment_and_its_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxies.from_environment("api.example.com") is None
    monkeypatch.setenv("https_proxy", "http://user:a%40b@proxy.example.com:3128")
    found = proxies.from_environment("api.example.com")
    assert found == ("proxy.example.com", 3128, (("Proxy-Authorization", "Basic dXNlcjphQGI="),))
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,.example.com")
    for host in ("api.example.com", "10.1.2.3", "127.0.0.1", "localhost"):
        assert proxies.from_environment(host) is None
    assert proxies.from_environment("192.0.2.1") is not None
    with pytest.raises(KubernetesError, match="is not an http URL"):
        proxies.proxy("socks5://proxy.example.com")


def test_a_server_is_reached_through_a_proxy(tmp_path: Path) -> None:
    config = json.loads(kubeconfig(tmp_path, "https://api.example.com:6443").read_text("utf-8"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config["clusters"][0]["cluster"]["proxy-url"] = f"http://127.0.0.1:{listening.getsockname()[1]}"
        (tmp_path / "kubeconfig").write_text(json.dumps(config))
        asked: list[bytes] = []

        def refuse() -> None:
            with listening.accept()[0] as peer:
                asked.append(peer.recv(4096))
                peer.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

        thread = Thread(target=refuse)
        thread.start()
        with pytest.raises(ApiError, match="403"):
            Connection(access.from_kubeconfig(tmp_path / "kubeconfig")).call("GET", "/")
        thread.join()
    assert asked[0].startswith(b"CONNECT api.example.com:6443 ")
