"""The client: credentials, and what it makes of wrong answers."""

from __future__ import annotations

import argparse
import base64
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, cast

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from certificates import write_certificates
from kubernetes_objects import pod_json
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.client import access, api, proxies
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.kubernetes.options import arguments
from topoplace_hosts.kubernetes.testing import ApiServer

V1 = "client.authentication.k8s.io/v1"


def kubeconfig(path: Path, server: str, cluster: Mapping[str, Any] | None = None, **user: Any) -> Path:
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
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


def with_program(
    tmp_path: Path,
    status: object,
    version: str = V1,
    server: str = "https://localhost",
    cluster: Mapping[str, Any] | None = None,
    **fields: Any,
) -> access.Access:
    """Return the access by a program that answers with this status."""
    program = tmp_path / "program"
    program.write_text(PROGRAM.format(folder=tmp_path, version=version, status=json.dumps(status)))
    program.chmod(0o755)
    given = {"apiVersion": V1, "command": "./program", "env": [{"name": "A", "value": "b"}], **fields}
    return access.from_kubeconfig(kubeconfig(tmp_path, server, cluster, exec=given))


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
    with pytest.raises(KubernetesError, match="sh exited with 3: log in first"):
        found.authorization()


def test_the_proxy_of_the_environment_and_its_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert proxies.from_environment("api.example.com", 443) is None
    monkeypatch.setenv("https_proxy", "http://user:a%40b@proxy.example.com:3128")
    found = proxies.from_environment("api.example.com", 443)
    assert found == ("proxy.example.com", 3128, (("Proxy-Authorization", "Basic dXNlcjphQGI="),))
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,.example.com")
    for host in ("api.example.com", "10.1.2.3", "127.0.0.1", "localhost"):
        assert proxies.from_environment(host, 6443) is None
    assert proxies.from_environment("192.0.2.1", 443) is not None
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


def test_a_program_learns_of_the_cluster_only_if_it_wants_to(tmp_path: Path) -> None:
    cluster = {"tls-server-name": "api", "proxy-url": "http://proxy.example.com:3128"}
    for wants in (True, False):
        found = with_program(tmp_path, {"token": "x"}, cluster=cluster, provideClusterInfo=wants)
        found.authorization()
        spec = json.loads((tmp_path / "info").read_text("utf-8"))["spec"]
        assert spec.get("cluster") == ({"server": "https://localhost", **cluster} if wants else None)
    extended = {"extensions": [{"name": "client.authentication.k8s.io/exec", "extension": {"audience": 3}}]}
    with_program(tmp_path, {"token": "x"}, cluster=extended)
    with pytest.raises(KubernetesError, match=r"the extension client\.authentication\.k8s\.io/exec"):
        with_program(tmp_path, {"token": "x"}, cluster=extended, provideClusterInfo=True)


# ---- TLS ------------------------------------------------------------------------------------------------------------


class _TlsHandler(BaseHTTPRequestHandler):
    """Answers with the name in the client's certificate."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        subject: Any = cast("ssl.SSLSocket", self.connection).getpeercert() or {}
        data = json.dumps({"client": dict(one[0] for one in subject.get("subject", ()))}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def tls_server(folder: Path) -> Iterator[int]:
    """Serve on a port of 127.0.0.1, with the certificate server.crt, those whose certificate is of ca.crt."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(folder / "ca.crt"))
    context.load_cert_chain(folder / "server.crt", folder / "server.key")
    context.verify_mode = ssl.CERT_OPTIONAL
    server = ThreadingHTTPServer(("127.0.0.1", 0), _TlsHandler)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def proxy_to(port: int, asked: list[bytes]) -> Iterator[int]:
    """Serve one tunnel to a port of this host; `asked` gets what was asked for."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def copy(source: socket.socket, target: socket.socket) -> None:
            with suppress(OSError):
                while data := source.recv(4096):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

        def serve() -> None:
            with listening.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as server:
                asked.append(client.recv(4096))
                client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = Thread(target=copy, args=(server, client))
                back.start()
                copy(client, server)
                back.join()

        thread = Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_a_certificate_that_a_program_renews_counts_on_connections_that_are_open(tmp_path: Path) -> None:
    write_certificates(tmp_path, {"server": "/CN=server", "a": "/CN=a", "b": "/CN=b"})
    ended = "2020-01-01T00:00:00Z"

    def status(name: str, ends: str | None) -> dict[str, str | None]:
        texts = [(tmp_path / f"{name}.{kind}").read_text("utf-8") for kind in ("crt", "key")]
        return {"clientCertificateData": texts[0], "clientKeyData": texts[1], "expirationTimestamp": ends}

    authority = base64.b64encode((tmp_path / "ca.crt").read_bytes()).decode()
    with tls_server(tmp_path) as port:
        server, cluster = f"https://127.0.0.1:{port}", {"certificate-authority-data": authority}
        found = with_program(
            tmp_path, {}, server=server, cluster=cluster, command="cat", args=[str(tmp_path / "answer")]
        )
        assert found.plugin is not None
        with closing(Connection(found)) as connection:
            for name, ends in (("a", ended), ("b", ended), ("a", None), ("a", None)):
                answer = {"apiVersion": V1, "kind": "ExecCredential", "status": status(name, ends)}
                (tmp_path / "answer").write_text(json.dumps(answer))
                assert connection.call("GET", "/") == {"client": {"commonName": name}}
    assert found.num_certificates == 3


def test_a_server_may_have_another_name_in_its_certificate_and_be_behind_a_proxy(tmp_path: Path) -> None:
    write_certificates(tmp_path, {"server": "/CN=server", "a": "/CN=a"})
    authority = {"certificate-authority": "ca.crt"}
    user = {"client-certificate": "a.crt", "client-key": "a.key"}
    asked: list[bytes] = []
    with tls_server(tmp_path) as port:
        server = f"https://localhost:{port}"  # the certificate is for 127.0.0.1
        other = access.from_kubeconfig(kubeconfig(tmp_path, server, authority, **user))
        with (
            closing(Connection(other)) as connection,
            pytest.raises(ApiError, match=r"(?i)hostname mismatch"),
        ):
            connection.call("GET", "/")
        named = {**authority, "tls-server-name": "127.0.0.1"}
        with closing(
            Connection(access.from_kubeconfig(kubeconfig(tmp_path, server, named, **user)))
        ) as connection:
            assert connection.call("GET", "/") == {"client": {"commonName": "a"}}
        with proxy_to(port, asked) as through:
            proxied = {**named, "proxy-url": f"http://me:secret@127.0.0.1:{through}"}
            found = access.from_kubeconfig(kubeconfig(tmp_path, server, proxied, **user))
            with closing(Connection(found)) as connection:
                assert [connection.call("GET", "/") for _ in range(2)] == [
                    {"client": {"commonName": "a"}}
                ] * 2
    assert asked[0].startswith(f"CONNECT localhost:{port} ".encode())
    assert b"Proxy-Authorization: Basic " in asked[0]


# ---- the official client as the judge -------------------------------------------------------------------------------


def official(file: Path) -> Any:
    """Return the configuration that the official client reads from a kubeconfig."""
    client = pytest.importorskip("kubernetes.client", reason="the group test is not installed")
    config = pytest.importorskip("kubernetes.config", reason="the group test is not installed")
    found = client.Configuration()
    config.load_kube_config(str(file), client_configuration=found, persist_config=False)
    return found


@pytest.mark.parametrize(
    ("server", "cluster", "user"),
    [
        ("http://127.0.0.1:8001/base/", {}, {"token": "secret"}),
        ("https://api.example.com", {"tls-server-name": "api"}, {"tokenFile": "token"}),
        (
            "https://[::1]:6443",
            {"proxy-url": "http://proxy.example.com:3128"},
            {"token": "a"},
        ),
        (
            "https://api.example.com:6443",
            {},
            {"exec": {"apiVersion": V1, "command": "sh", "args": ["program"]}},
        ),
    ],
)
def test_a_kubeconfig_is_read_as_the_official_client_reads_it(
    tmp_path: Path, server: str, cluster: dict[str, str], user: dict[str, Any]
) -> None:
    (tmp_path / "token").write_text("from a file")
    (tmp_path / "program").write_text(
        PROGRAM.format(folder=tmp_path, version=V1, status='{"token": "asked"}')
    )
    if "exec" in user:
        user["exec"]["args"] = [str(tmp_path / "program")]
    file = kubeconfig(tmp_path, server, cluster, **user)
    found, theirs = access.from_kubeconfig(file), official(file)
    host = f"[{found.host}]" if ":" in found.host else found.host
    port = f":{found.port}" if f":{found.port}" in server else ""
    assert f"http{'s' if found.tls else ''}://{host}{port}{found.path}" == theirs.host
    assert found.authorization() == theirs.auth_settings()["BearerToken"]["value"]
    assert (found.server_name or None) == theirs.tls_server_name
    assert (f"http://{found.proxy.host}:{found.proxy.port}" if found.proxy else None) == theirs.proxy


NO_PROXIES = [
    "*",
    "example.com",
    ".example.com",
    "api.example.com:6443",
    "api.example.com:1",
    "10.0.0.0/8",
    "10.1.2.3",
]


@for_all(
    st.sampled_from(["api.example.com", "example.com", "other.net", "10.1.2.3", "10.200.0.1", "192.0.2.1"]),
    st.lists(st.sampled_from(NO_PROXIES), max_size=3),
    st.sampled_from([", ", ","]),
)
def test_no_proxy_excepts_what_it_excepts_for_the_official_client(
    host: str, excepted: list[str], separator: str
) -> None:
    rest = pytest.importorskip("kubernetes.client.rest", reason="the group test is not installed")
    no_proxy = separator.join(excepted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("https_proxy", "http://proxy.example.com:3128")
        patch.setenv("no_proxy", no_proxy)
        is_direct = proxies.from_environment(host, 6443) is None
    assert is_direct == rest.should_bypass_proxies(f"https://{host}:6443", no_proxy=no_proxy)
