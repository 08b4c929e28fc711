"""The extender's HTTP server: limits on body, time and connections, TLS with client certificates, bearer token."""

from __future__ import annotations

import hmac
import json
import logging
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedReader
from ipaddress import ip_address
from threading import Lock, Thread, Timer
from types import MappingProxyType
from typing import Any, Final, Self, cast

from topoplace import _checks
from topoplace.errors import KubernetesError

_log = logging.getLogger(__name__)
_MOST_BYTES: Final = 64 << 20
_BASE_BYTES: Final = 4 << 20
_NODE_BYTES: Final = 16 << 10
_BYTES_OF_VALUE: Final = 16
"""A body may have one JSON value for each of these bytes of its limit: Python takes about 100 bytes for each."""
_AT_ONCE: Final = 2
"""Limit on the number of bodies of the largest size in memory."""
_HANDSHAKE_S: Final = 5.0
_STRANGERS: Final = 128
_STRANGERS_OF_PEER: Final = 16
_CHUNK = 1 << 20
_NO_TOKEN = "no token, or a wrong one"
Answer = Callable[[Any], Any]
Page = Callable[[], bytes]
"""Returns a text in UTF-8, such as the metrics."""


def most_bytes(num_nodes: int) -> int:
    """Return the limit on the bytes of a question's body, which may have `num_nodes` complete nodes."""
    return min(_MOST_BYTES, _BASE_BYTES + _NODE_BYTES * num_nodes)


def check_host(host: str, tls: ssl.SSLContext | None, token: str) -> None:
    """Raise ValueError unless `host` is a loopback address, or an address with TLS and authenticated clients."""
    try:
        address = ip_address(host)
    except ValueError:
        raise ValueError(f"host = {_checks.shown(host)} is not an address") from None
    knows_clients = token or (tls is not None and tls.verify_mode == ssl.CERT_REQUIRED)
    if not address.is_loopback and not (tls and knows_clients):
        raise ValueError(f"host = {host!r} is not loopback: it needs TLS, and a token or client certificates")


class ExtenderServer:
    """Serves functions of decoded JSON, each at its path, to one kube-scheduler.

    host: an address of this host; one that is not loopback needs `tls`, and a token or client certificates. tls: a
    context for servers. token: the bearer token of requests; "" for none. request_s: limit in seconds on receiving a
    request and sending its answer; idle connections are closed after the same time. connections: limit on the
    connections of known clients; others must try again. most_bytes: limit on the body of a question. pages: what GET
    returns at each path. ValueError names a wrong argument.

    A client is known once a question bears the token, or follows a handshake with a certificate. Unknown clients take
    no place of known ones; if there are too many, the oldest connection is closed.
    """

    def __init__(
        self,
        answers: Mapping[str, Answer],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        tls: ssl.SSLContext | None = None,
        token: str = "",
        request_s: float = 30.0,
        connections: int = 32,
        most_bytes: int = most_bytes(0),
        pages: Mapping[str, Page] = MappingProxyType({}),
    ) -> None:
        check_host(host, tls, token)
        made = _Server((host, port), _Handler, bind_and_activate=False)
        made.limits(
            answers, pages, tls, token, _checks.positive(request_s, "request_s", ValueError), connections
        )
        made.most_bytes = most_bytes
        made.bodies = _Places(_AT_ONCE * most_bytes)
        if ":" in host:
            made.address_family = socket.AF_INET6
            made.socket.close()
            made.socket = socket.socket(made.address_family, made.socket_type)
        try:
            made.server_bind()
            made.server_activate()
        except OSError:
            made.server_close()
            raise
        self._server = made
        self.port: int = made.server_address[1]
        self._thread = Thread(target=made.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5.0)


class _Places:
    """So many places that may be taken at a time."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = Lock()

    def take(self, count: int) -> bool:
        """Take places, and return True; False if there are too few."""
        with self._lock:
            is_free = self._free >= count
            self._free -= count if is_free else 0
            return is_free

    def give_back(self, count: int) -> None:
        """Free places."""
        with self._lock:
            self._free += count


_Peer = tuple[Any, ...]
"""Address and port of a client."""


class _Strangers:
    """Connections of clients that are not known yet, the oldest first."""

    def __init__(self) -> None:
        self._connections: dict[_Peer, socket.socket] = {}
        self._lock = Lock()

    def add(self, connection: socket.socket, peer: _Peer) -> None:
        """Take one more connection; close the oldest one of its host, or of all hosts, if there are too many."""
        with self._lock:
            own = [one for one in self._connections if one[0] == peer[0]]
            if len(own) >= _STRANGERS_OF_PEER:
                self._close(own[0])
            elif len(self._connections) >= _STRANGERS:
                self._close(next(iter(self._connections)))
            self._connections[peer] = socket.socket(fileno=socket.dup(connection.fileno()))

    def remove(self, peer: _Peer) -> bool:
        """Forget a connection; False if it was closed, or is known."""
        with self._lock:
            found = self._connections.pop(peer, None)
        if found is not None:
            found.close()
        return found is not None

    def _close(self, peer: _Peer) -> None:
        connection = self._connections.pop(peer)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = _STRANGERS
    most_bytes: int
    bodies: _Places
    block_on_close = False
    allow_reuse_address = True

    def limits(
        self,
        answers: Mapping[str, Answer],
        pages: Mapping[str, Page],
        tls: ssl.SSLContext | None,
        token: str,
        request_s: float,
        most: int,
    ) -> None:
        self.answers = answers
        self.pages = pages
        self.tls = tls
        self.authorization = f"Bearer {token}".encode() if token else b""
        self.request_s = request_s
        self._places = _Places(most)
        self._strangers = _Strangers()
        self._known: set[_Peer] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection of a client that is not known yet."""
        self._strangers.add(request, client_address)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._strangers.remove(client_address)
            if client_address in self._known:
                self._known.discard(client_address)
                self._places.give_back(1)

    def admit(self, peer: _Peer) -> bool:
        """Give the connection of a known client a place, if it has none; False if all are taken."""
        if peer in self._known:
            return True
        if not self._places.take(1):
            return False
        self._known.add(peer)
        self._strangers.remove(peer)
        return True

    def finish_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection, after the handshake if there is one."""
        request.settimeout(self.request_s)
        if self.tls is None:
            _Handler(request, client_address, self)
            return
        with _Deadline(request, min(self.request_s, _HANDSHAKE_S)):
            encrypted = self.tls.wrap_socket(request, server_side=True)
        with encrypted:
            _Handler(encrypted, client_address, self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.info("a connection from %s ended early", client_address[0])


class _Deadline:
    """Closes a connection that takes too long, whatever its peer sends meanwhile."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = socket.socket(fileno=socket.dup(connection.fileno()))
        self._timer = Timer(seconds, self._close)
        self._timer.daemon = True

    def _close(self) -> None:
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    @property
    def _limits(self) -> _Server:
        return cast("_Server", self.server)

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug(format, *args)

    def handle_one_request(self) -> None:
        """Serve one request, for which the time begins with its first byte."""
        try:
            begun = cast("BufferedReader", self.rfile).peek(1)
        except OSError:
            begun = b""
        if not begun:
            self.close_connection = True
            return
        with _Deadline(self.connection, self._limits.request_s):
            super().handle_one_request()

    def do_GET(self) -> None:
        page = self._limits.pages.get(self.path)
        if self.path == "/healthz":
            self._send(200, {})
        elif page is None:
            self._send(404, {"Error": self._known()})
        elif not self._is_known():
            self._refuse(401, _NO_TOKEN)
        else:
            self._send_data(200, page(), "text/plain; version=0.0.4; charset=utf-8")

    def _known(self) -> str:
        """Return what may be asked here."""
        asked = [f"POST {path}" for path in self._limits.answers]
        return ", ".join([*asked, *(f"GET {path}" for path in ("/healthz", *self._limits.pages))])

    def _is_known(self) -> bool:
        """Return True if a request bears the token, or none is needed."""
        given = self.headers.get("Authorization", "").encode("utf-8", "replace")
        wanted = self._limits.authorization
        return not wanted or hmac.compare_digest(given, wanted)

    def do_POST(self) -> None:
        answer = self._limits.answers.get(self.path)
        length = self.headers.get("Content-Length", "")
        if not self._is_known():
            self._refuse(401, _NO_TOKEN)
        elif answer is None:
            self._refuse(404, self._known())
        elif not self._limits.admit(self.client_address):
            self._refuse(503, "too many connections")
        elif not (length.isascii() and length.isdigit() and len(length) < 12):
            self._refuse(411, "Content-Length is missing")
        elif int(length) > self._limits.most_bytes:
            self._refuse(413, f"a body of more than {self._limits.most_bytes} bytes")
        elif not self._limits.bodies.take(int(length)):
            self._refuse(503, "too many large questions at a time")
        else:
            try:
                self._answer(answer, int(length))
            finally:
                self._limits.bodies.give_back(int(length))

    def _body(self, length: int) -> bytearray | None:
        """Return the body of a request; None if it does not come."""
        body = bytearray()
        while len(body) < length:
            part = self.rfile.read(min(_CHUNK, length - len(body)))
            if not part:
                self.close_connection = True
                return None
            body += part
        return body

    def _answer(self, answer: Answer, length: int) -> None:
        body = self._body(length)
        if body is None:
            return
        most = self._limits.most_bytes // _BYTES_OF_VALUE
        if sum(map(body.count, (b",", b"[", b"{"))) > most:
            self._refuse(413, f"a body of more than {most} values")
            return
        try:
            self._send(200, answer(json.loads(body)))
        except KubernetesError as error:
            self._send(400, {"Error": str(error)})
        except (ValueError, RecursionError) as error:
            self._send(400, {"Error": _checks.shown(str(error), 200)})

    def _refuse(self, status: int, why: str) -> None:
        """Answer without reading the body, and close the connection."""
        self.close_connection = True
        self._send(status, {"Error": why})

    def _send(self, status: int, value: Any) -> None:
        self._send_data(status, json.dumps(value, separators=(",", ":")).encode(), "application/json")

    def _send_data(self, status: int, data: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()
