"""The server of `topoplace explore` answers its own page alone, and survives whatever it is sent."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import webbrowser
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from typing import Any

import pytest

import topoplace as tp
from command_line import Call, hear_interrupts
from topoplace.cli import gpu_list
from topoplace.cli.explorer.answer import answer
from topoplace.cli.explorer.server import MAX_BODY, Server
from topoplace.cli.explorer.state import State

OPENING = "some in use, scattered"
STATE = {"machine": "dgx1-v100", "busy": "0,5"}
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server(tp.machines.get("summit"), STATE) as made:
        thread = Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(
    server: Server, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=30)
    try:
        connection.request(method, path.replace("TOKEN", server.token), body, headers or {})
        reply = connection.getresponse()
        return reply.status, dict(reply.getheaders()), reply.read()
    finally:
        connection.close()


def sentence(body: bytes) -> str:
    error: str = json.loads(body)["error"]
    return error


def post(server: Server, body: Any, path: str = "/TOKEN/answer") -> tuple[int, Any]:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    status, _, got = ask(server, "POST", path, sent, JSON)
    return status, json.loads(got)


@pytest.mark.parametrize(
    ("path", "kind", "part"),
    [
        ("", "text/html", b"<h1>"),
        ("page.css", "text/css", b"prefers-color-scheme"),
        ("page.js", "text/javascript", b"async function changed"),
        ("server.js", "text/javascript", b"const source"),
        ("drawing.css", "text/css", b".topoplace"),
        ("start.json", "application/json", b'"own":"summit"'),
    ],
)
def test_the_page_is_served_with_a_strict_policy(server: Server, path: str, kind: str, part: bytes) -> None:
    status, headers, body = ask(server, "GET", f"/TOKEN/{path}")
    assert status == 200
    assert headers["Content-Type"] == f"{kind}; charset=utf-8"
    assert part in body
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
    assert "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_the_page_names_no_other_place(server: Server) -> None:
    for path in ("", "page.css", "page.js", "drawing.css"):
        text = ask(server, "GET", f"/TOKEN/{path}")[2].decode()
        assert set(re.findall(r"https?://[^\"'\s)]+", text)) <= {"http://www.w3.org/2000/svg"}
    page = ask(server, "GET", "/TOKEN/")[2].decode()
    assert not re.search(r"<script>|<style>| style=| on\w+=", page)  # which the policy forbids


def test_an_answer_is_that_of_the_function(server: Server) -> None:
    status, found = post(server, STATE)
    expected = json.loads(json.dumps(answer(State.of(STATE), server.own)))
    assert status == 200
    for one in (found, expected):
        for row in one["rows"]:
            del row["microseconds"]
    assert found == expected
    assert post(server, {"gpus": "2"})[1]["about"]["name"] == "summit"


def test_the_topology_is_served_as_json(server: Server) -> None:
    status, _, body = ask(server, "POST", "/TOKEN/topology.json", json.dumps(STATE).encode(), JSON)
    assert status == 200
    assert tp.Topology.from_json(body.decode()) == tp.machines.get("dgx1-v100")
    status, found = post(server, {"machine": "dgx1-v10"}, "/TOKEN/topology.json")
    assert (status, "did you mean" in found["error"]) == (400, True)


@pytest.mark.parametrize(
    "path", ["/", "/TOKE/", "/TOKENx/", "/token/", "/x/TOKEN/", "/é/", "/%54OKEN", "", "*"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_the_token_nothing_is_answered(server: Server, method: str, path: str) -> None:
    quoted = path.replace("TOKEN", server.token).encode("utf-8").decode("latin-1")
    got = raw(
        server, f"{method} {quoted or '/'} HTTP/1.1\r\nHost: 127.0.0.1:{server.server_address[1]}\r\n\r\n"
    )
    assert got.startswith(b"HTTP/1.1 403 ")
    assert b"the address lacks the token" in got
    assert server.token.encode() not in got


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:PORT", ""])
def test_another_host_is_refused(server: Server, host: str) -> None:
    """A name of someone else's that leads to 127.0.0.1 is in the header Host."""
    named = host.replace("PORT", str(server.server_address[1]))
    status, _, body = ask(server, "GET", "/TOKEN/", headers={"Host": named})
    assert status == 421
    assert "at 127.0.0.1:" in sentence(body)
    assert ask(server, "GET", "/TOKEN/", headers={"Host": f"localhost:{server.server_address[1]}"})[0] == 200


@pytest.mark.parametrize("origin", ["http://example.org", "null", "http://127.0.0.1:1"])
def test_another_page_is_refused(server: Server, origin: str) -> None:
    status, _, body = ask(server, "POST", "/TOKEN/answer", b"{}", {**JSON, "Origin": origin})
    assert (status, sentence(body)) == (403, "another page asks")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"])
def test_other_methods_are_refused(server: Server, method: str) -> None:
    assert ask(server, method, "/TOKEN/")[0] == 501


@pytest.mark.parametrize("path", ["x", "../page.js", "page.html", "__init__.py", "answer", "..%2fserver.py"])
def test_there_is_nothing_else(server: Server, path: str) -> None:
    assert ask(server, "GET", f"/TOKEN/{path}")[0] == 404
    assert post(server, {}, "/TOKEN/page.css")[0] == 404


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "the request is no JSON"),
        (b"{", "the request is no JSON"),
        (b"\xff\xfe", "the request is no JSON"),
        (b"[" * 200_000, "the request is no JSON"),
        (b'{"count": NaN}', "NaN is no number of JSON"),
        (b'{"count": ' + b"9" * 10_000 + b"}", "the request is no JSON"),
        (b"[]", "a state is an object"),
        (b'{"busy": {}}', "is not a text"),
        (b'{"nothing": 1}', "a field of the state"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_state_is_refused_in_a_sentence(server: Server, body: bytes, said: str) -> None:
    status, found = post(server, body)
    assert status == 400
    assert said in found["error"]
    assert post(server, STATE)[0] == 200


def test_a_large_body_is_refused_unread(server: Server) -> None:
    port = server.server_address[1]
    head = f"POST /{server.token}/answer HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    for length in ("10000000", str(MAX_BODY + 1), "9" * 4000):
        got = raw(server, f"{head}Content-Length: {length}\r\n\r\n")
        assert got.startswith(b"HTTP/1.1 413 ")
        assert f"more than {MAX_BODY:,}".encode() in got
    for more in ("", "Content-Length: -1\r\n", "Content-Length: \xb2\r\n", "Transfer-Encoding: chunked\r\n"):
        assert raw(server, f"{head}{more}\r\n").startswith(b"HTTP/1.1 411 ")
    assert ask(server, "POST", "/TOKEN/answer", b"{}", {"Content-Type": "text/plain"})[0] == 415


def raw(server: Server, request: str) -> bytes:
    with socket.create_connection(("127.0.0.1", server.server_address[1]), timeout=30) as connection:
        connection.sendall(request.encode("latin-1"))
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "request_", ["\r\n", "GET\r\n\r\n", "\0" * 99, "GET / HTTP/9.9\r\n\r\n", "x" * 70_000]
)
def test_what_is_no_request_does_no_harm(server: Server, request_: str) -> None:
    raw(server, request_)
    assert post(server, STATE)[0] == 200


def test_tabs_are_answered_side_by_side(server: Server) -> None:
    states = [{"machine": name, "gpus": "2", "busy": "0"} for name in tp.machines.names()[:8]] * 2
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda state: post(server, state), states))
    assert [one["about"]["name"] for _, one in found] == [state["machine"] for state in states]
    assert all(status == 200 and one["problem"] is None for status, one in found)


def test_it_listens_on_this_host_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert server.address == f"http://127.0.0.1:{server.server_address[1]}/{server.token}/"
    with Server() as other:
        assert len(other.token) >= 32
        assert other.token != server.token


def test_the_command_serves_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "topoplace", "explore", "summit", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=hear_interrupts) as process:
        assert process.stdout
        address = process.stdout.readline().strip()
        found = re.fullmatch(r"http://(127\.0\.0\.1:\d+)(/[\w-]{32}/)", address)
        assert found
        connection = http.client.HTTPConnection(found[1], timeout=30)
        connection.request("GET", f"{found[2]}start.json")
        found = json.loads(connection.getresponse().read())
        assert (found["start"], found["own"]) == ({"machine": "summit", "preset": OPENING}, None)
        connection.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


@pytest.mark.parametrize("name", ["dgx1-v100", "mi250x", "torus2d-16", "l40s-8", "tpu-v4-64"])
def test_a_built_in_machine_opens_in_use_so_that_choices_differ(
    call: Call, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    opened: list[Server] = []

    def end(self: Server, poll_interval: float) -> None:
        opened.append(self)
        raise KeyboardInterrupt

    monkeypatch.setattr(Server, "serve_forever", end)
    assert call("explore", name, "--no-browser").code == 130
    (server,) = opened
    assert (server.own, server.start["machine"]) == (None, name)
    found = answer(State.of({**server.start, "part": "choices"}))
    assert found["problem"] is None
    assert len({tuple(row["gpus"]) for row in found["rows"] if row["gpus"]}) > 1
    busy = gpu_list.parse(found["fields"]["busy"], tp.machines.get(name).num_gpus, "busy")
    assert len(busy) == min(tp.machines.get(name).num_gpus // 2, tp.machines.get(name).num_gpus - 6)


def test_the_browser_is_opened_at_the_address(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def end(self: Server, poll_interval: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(Server, "serve_forever", end)
    done = call("explore", "summit")
    assert done.code == 130
    assert opened == [done.out.splitlines()[0]]
    assert call("explore", "summit", "--no-browser").code == 130
    assert len(opened) == 1


def test_a_port_in_use_is_said(server: Server, call: Call) -> None:
    done = call("explore", "summit", "--no-browser", "--port", server.server_address[1])
    assert done.code == 2
    assert f"--port {server.server_address[1]}: Address already in use" in done.err
