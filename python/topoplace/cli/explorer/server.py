"""The server of the page, on 127.0.0.1 only, for users who know the token in the address."""

from __future__ import annotations

import hmac
import json
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from threading import Lock
from typing import Any, Final, TypeVar

from topoplace import _installed
from topoplace.cli.explorer import copies, subject
from topoplace.cli.explorer.answer import answer, choices
from topoplace.cli.explorer.state import State, StateError
from topoplace.drawing import style
from topoplace.topology.topology import Topology

Asked = TypeVar("Asked")
HOST: Final = "127.0.0.1"
MAX_BODY: Final = 8 << 20
"""Limit on the bytes of a request; a pasted text has kilobytes."""
_HOME: Final = "topoplace.cli.explorer"
_IDLE_S: Final = 30.0
"""Seconds after which an idle connection is closed."""
_JSON: Final = "application/json"
_SCRIPTS: Final = ("words.js", "server.js", "drawing.js", "queue.js", "page.js")
_GANTT: Final = "gantt.js"
_PAGES: Final = {"": "text/html", "page.css": "text/css", **dict.fromkeys(_SCRIPTS, "text/javascript")}
_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Server(ThreadingHTTPServer):
    """The server of the page of a topology, until it is closed; a browser opens `address`.

    Args:
        own: The topology given to the command; None for none.
        start: The fields of the state that the page begins with.
        port: Number of the port; 0 for a free one.

    Raises:
        OSError: The port is in use.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self, own: Topology | None = None, start: Mapping[str, Any] | None = None, port: int = 0
    ) -> None:
        super().__init__((HOST, port), _Handler)
        self.own, self.start = own, dict(start or {})
        self.token = secrets.token_urlsafe(24)
        self.answering = Lock()  # answers of several tabs share the tables of a cluster
        self.simulating = Lock()  # a queue takes seconds, and has tables of its own

    @property
    def address(self) -> str:
        """Return the address of the page, with its token."""
        return f"http://{HOST}:{self.server_address[1]}/{self.token}/"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the accepted values of the header Host; requests under any other name are refused."""
        return tuple(f"{name}:{self.server_address[1]}" for name in (HOST, "localhost"))

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that closed the connection."""


class _RefusalError(Exception):
    """A request is refused with a status and a sentence."""

    def __init__(self, status: HTTPStatus, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    """Answers one connection."""

    protocol_version = "HTTP/1.1"
    timeout = _IDLE_S
    disable_nagle_algorithm = True

    @property
    def _own(self) -> Server:
        assert isinstance(self.server, Server)
        return self.server

    def do_GET(self) -> None:
        """Send a file of the page."""
        self._reply(self._page)

    def do_POST(self) -> None:
        """Answer a state."""
        self._reply(self._answer)

    def _reply(self, make: Any) -> None:
        try:
            kind, body = make(self._checked_path())
        except _RefusalError as refused:
            self.close_connection = True  # what is left of the request is not read
            self._send(refused.status, _JSON, _written({"error": str(refused)}))
            return
        self._send(HTTPStatus.OK, kind, body)

    def _checked_path(self) -> str:
        """Return what follows the token; _RefusalError for another host, a page elsewhere, or without the token."""
        host, port = self.headers.get("Host", ""), self._own.server_address[1]
        if host not in self._own.hosts:
            raise _RefusalError(HTTPStatus.MISDIRECTED_REQUEST, f"this page is at 127.0.0.1:{port} alone")
        if self.headers.get("Origin", f"http://{host}") != f"http://{host}":
            raise _RefusalError(HTTPStatus.FORBIDDEN, "another page asks")
        _, token, *rest = [*self.path.split("?")[0].split("/", 2), ""]
        if not hmac.compare_digest(token.encode(), self._own.token.encode()):
            raise _RefusalError(
                HTTPStatus.FORBIDDEN,
                "the address lacks the token; open the one that `topoplace explore` prints",
            )
        return rest[0]

    def _page(self, path: str) -> tuple[str, bytes]:
        if path == "start.json":
            own = None if self._own.own is None else self._own.own.name
            return _JSON, _written({**choices(), "own": own, "start": self._own.start})
        if path == "drawing.css":
            return "text/css", style.css().encode()
        if path == _GANTT:
            return "text/javascript", self._lab().gantt_script()
        if path not in _PAGES:
            raise _RefusalError(HTTPStatus.NOT_FOUND, "there is no such page")
        return _PAGES[path], (files(_HOME) / (path or "page.html")).read_bytes()

    def _answer(self, path: str) -> tuple[str, bytes]:
        if path not in ("answer", "queue", "topology.json"):
            raise _RefusalError(HTTPStatus.NOT_FOUND, "there is no such page")
        if path == "queue":
            return self._queue()
        state = self._read(State.of)
        if path == "answer":
            with self._own.answering:
                return _JSON, _written(answer(state, self._own.own))
        try:
            return _JSON, copies.topology_json(state, self._own.own).encode()
        except subject.FieldError as problem:
            raise _RefusalError(HTTPStatus.BAD_REQUEST, problem.message) from None

    def _lab(self) -> Any:
        """Return the module that simulates queues; _RefusalError if it is not installed."""
        found = _installed.module("queue", _installed.EXPLORE)
        if found is None:
            why = _installed.how_to_get("simulate")
            raise _RefusalError(HTTPStatus.NOT_FOUND, f"a queue is simulated, and {why}")
        return found

    def _queue(self) -> tuple[str, bytes]:
        queue = self._lab()
        asked = self._read(queue.QueueState.of)
        with self._own.simulating:
            return _JSON, _written(queue.simulated(asked, self._own.own))

    def _read(self, make: Callable[[object], Asked]) -> Asked:
        """Return what the JSON of the request says; _RefusalError if it is none, or not what is asked."""
        body = self._body()
        try:
            return make(json.loads(body, parse_constant=_refuse_constant))
        except StateError as error:
            raise _RefusalError(HTTPStatus.BAD_REQUEST, str(error)) from None
        except (ValueError, RecursionError) as error:
            why = str(error) or "nested too deeply"
            raise _RefusalError(HTTPStatus.BAD_REQUEST, f"the request is no JSON: {why[:200]}") from None

    def _body(self) -> bytes:
        if self.headers.get_content_type() != _JSON:
            raise _RefusalError(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"a state is sent as {_JSON}")
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()):
            raise _RefusalError(HTTPStatus.LENGTH_REQUIRED, "the request has no Content-Length")
        if len(length) > 12 or int(length) > MAX_BODY:
            raise _RefusalError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
                f"the request has {length[:12]} bytes, more than {MAX_BODY:,}",
            )
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            raise _RefusalError(HTTPStatus.BAD_REQUEST, "the request ended early")
        return body

    def _send(self, status: HTTPStatus, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return what the header Server says."""
        return "topoplace"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: addresses contain the token."""


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


def _written(values: Any) -> bytes:
    return json.dumps(values, allow_nan=False, separators=(",", ":")).encode()
