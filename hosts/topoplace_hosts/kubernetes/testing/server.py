"""A simulated API server: the calls that a scheduler makes over HTTP, with faults on demand."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from topoplace_hosts.kubernetes.testing.objects import ObjectStore, StoreError, encoded

_POLL_S = 0.2
_WATCHED = ("pods", "nodes", "resourceslices", "deviceclasses", "resourceclaims")
_WRITTEN = ("configmaps", "leases")
"""Kinds of objects that clients may create and replace."""


class ApiServer:
    """Serves a store on a port of the loopback interface; its methods make faults."""

    def __init__(self, store: ObjectStore | None = None) -> None:
        """Start serving."""
        self.store = store or ObjectStore()
        self.port = 0
        self.requests: list[str] = []
        """The method and path of each request, without its query; watches end in `?watch`."""
        self._lock = Lock()
        self._faults: list[tuple[str, int]] = []
        self._connections: set[socket.socket] = set()
        self._watches: set[socket.socket] = set()
        self._start()

    @property
    def url(self) -> str:
        """Return the server's URL."""
        return f"http://127.0.0.1:{self.port}"

    def kubeconfig(self) -> str:
        """Return a kubeconfig for this server."""
        return json.dumps(
            {
                "current-context": "test",
                "contexts": [{"name": "test", "context": {"cluster": "test"}}],
                "clusters": [{"name": "test", "cluster": {"server": self.url}}],
            }
        )

    # ---- faults --------------------------------------------------------------------------------------------------

    def fail(self, path: str, status: int, times: int = 1) -> None:
        """Answer the next `times` requests whose path ends in `path` with a status.

        Status 0 carries out the request, then closes the connection without an answer.
        """
        with self._lock:
            self._faults += [(path, status)] * times

    def cut_watches(self) -> None:
        """Close the connections of all watches, even in the middle of a line."""
        with self._lock:
            _shut(self._watches)

    def stop(self) -> None:
        """Stop serving, and close all connections; the store remains."""
        self._server.shutdown()
        self._server.server_close()
        with self.store.changed:
            self.store.changed.notify_all()
        with self._lock:
            _shut(self._connections)
        self._thread.join(5.0)

    def restart(self) -> None:
        """Stop, and serve the same store on the same port."""
        self.stop()
        self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # ---- inside --------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._server = _ApiServer(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_address[1]
        self._thread = Thread(target=self._server.serve_forever, args=(_POLL_S,), daemon=True)
        self._thread.start()

    def fault_for(self, path: str) -> int | None:
        """Return the status of the fault that is due for a path, and forget it."""
        with self._lock:
            for i, (ending, status) in enumerate(self._faults):
                if path.endswith(ending):
                    del self._faults[i]
                    return status
        return None

    def note(self, connection: socket.socket, *, is_watch: bool) -> None:
        """Remember an open connection."""
        with self._lock:
            (self._watches if is_watch else self._connections).add(connection)

    def forget(self, connection: socket.socket) -> None:
        """Forget a closed connection."""
        with self._lock:
            self._watches.discard(connection)
            self._connections.discard(connection)

    def serves(self, server: object) -> bool:
        """Return True until the server that runs a request is stopped."""
        return self._server is server and self._thread.is_alive()


class _ApiServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing about connections that were closed."""


def _words(path: str) -> list[str]:
    """Return the words of a path after the version of its API."""
    words = path.split("/")
    return words[3 if words[1] == "api" else 4 :]


def _shut(connections: set[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


def _handler(api: ApiServer) -> type[BaseHTTPRequestHandler]:
    class Handler(_ApiHandler):
        owner = api

    return Handler


class _ApiHandler(BaseHTTPRequestHandler):
    owner: ApiServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def setup(self) -> None:
        super().setup()
        self.owner.note(self.connection, is_watch=False)

    def finish(self) -> None:
        self.owner.forget(self.connection)
        with suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve(self._get)

    def do_POST(self) -> None:
        self._serve(self._post)

    def do_PUT(self) -> None:
        self._serve(self._put)

    def _serve(self, answer: Callable[[str, dict[str, list[str]]], Any]) -> None:
        parts = urlsplit(self.path)
        watch = "?watch" if "watch=1" in parts.query else ""
        self.owner.requests.append(f"{self.command} {parts.path}{watch}")
        length = int(self.headers.get("Content-Length") or 0)
        self._body = self.rfile.read(length) if length else b"{}"
        fault = self.owner.fault_for(parts.path)
        if fault:
            self._send(fault, {"message": f"made to fail with {fault}"})
            return
        try:
            found = answer(parts.path, parse_qs(parts.query))
        except StoreError as error:
            self._send(error.status, {"kind": "Status", "code": error.status, "message": str(error)})
            return
        if fault == 0:
            self.close_connection = True
            _shut({self.connection})
        elif found is not None:
            self._send(200, found)

    def _send(self, status: int, value: Any) -> None:
        data = encoded(value)
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    # ---- calls ---------------------------------------------------------------------------------------------------

    def _get(self, path: str, query: dict[str, list[str]]) -> Any:
        words = _words(path)
        if (len(words) == 1 and words[0] in _WATCHED) or (len(words) == 3 and words[2] == "configmaps"):
            if "watch" in query:
                self._watch(words[-1], int(query["resourceVersion"][0]))
                return None
            return self._listed(words[-1], query)
        if len(words) == 4 and words[2] in ("pods", "leases", "resourceclaims"):
            return self.owner.store.get(words[2], words[3])
        raise StoreError(404, path)

    def _listed(self, kind: str, query: dict[str, list[str]]) -> Any:
        found, version = self.owner.store.listed(kind)
        field, _, value = query.get("fieldSelector", [""])[0].partition("=")
        if field == "spec.nodeName":
            found = [one for one in found if one["spec"].get("nodeName") == value]
        key, _, label = query.get("labelSelector", [""])[0].partition("=")
        if key:
            found = [one for one in found if one["metadata"].get("labels", {}).get(key) == label]
        start = int(query.get("continue", ["0"])[0])
        end = start + int(query.get("limit", ["1000000"])[0])
        metadata = {"resourceVersion": str(version), "continue": str(end) if end < len(found) else ""}
        return {"metadata": metadata, "items": found[start:end]}

    def _post(self, path: str, query: dict[str, list[str]]) -> Any:
        words = _words(path)
        body = json.loads(self._body)
        store = self.owner.store
        if words[-1] == "binding":
            store.bind(words[3], body)
        elif words[-1] == "eviction":
            store.evict(words[3], body["deleteOptions"]["preconditions"]["uid"])
        elif words[-1] == "events":
            store.events.append(body)
        elif words[-1] in _WRITTEN:
            store.add(words[-1], body)
        else:
            raise StoreError(404, path)
        return {"kind": "Status", "status": "Success"}

    def _put(self, path: str, query: dict[str, list[str]]) -> Any:
        words = _words(path)
        if len(words) in (4, 5) and words[2] == "resourceclaims":
            part = words[4] if len(words) == 5 else ""
            return self.owner.store.replace_claim(words[3], json.loads(self._body), part)
        if len(words) != 4 or words[2] not in _WRITTEN:
            raise StoreError(404, path)
        self.owner.store.replace(words[2], words[3], json.loads(self._body))
        return {"kind": "Status", "status": "Success"}

    def _watch(self, kind: str, version: int) -> None:
        store, server = self.owner.store, self.server
        with store.changed:
            store.after(kind, version)  # 410 before the answer begins
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        self.owner.note(self.connection, is_watch=True)
        while self.owner.serves(server):
            with store.changed:
                try:
                    changes = store.after(kind, version)
                    if not changes:
                        store.changed.wait(_POLL_S)
                        continue
                    lines = b"".join([change.line for change in changes])
                    version = changes[-1].version
                except StoreError as error:
                    status = {"kind": "Status", "code": error.status, "message": str(error)}
                    lines = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
                    version = store.version
            self.wfile.write(b"%x\r\n%s\r\n" % (len(lines), lines))
            self.wfile.flush()
