"""One connection to the API server: requests and answers in JSON, kept open between them."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from contextlib import suppress
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.decoding import decoded
from topoplace_hosts.kubernetes.objects.fields import MOST_DEPTH, TooDeep

MOST_BYTES: Final = 64 << 20
"""Limit on the bytes of one answer; lists are read in pages."""
_FAILURES = (OSError, http.client.HTTPException)
_OTHER_TYPE = "application/json"
_UNAUTHORIZED = 401


class ApiError(KubernetesError):
    """An answer of the API server that is not success."""

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        """The HTTP status; 0 without an answer, so that the request may or may not have taken effect."""
        self.retry_after_s = retry_after_s


class TooLargeError(ApiError):
    """An answer that is too large to be read."""

    def __init__(self, message: str) -> None:
        super().__init__(0, message)


class Connection:
    """A connection that opens when needed, and again after it was lost; for one thread at a time."""

    def __init__(self, access: Access, timeout_s: float = 10.0) -> None:
        """timeout_s: limit in seconds on each read of an answer."""
        self._access = access
        self._timeout_s = timeout_s
        self._http: http.client.HTTPConnection | None = None
        self._num_certificates = 0

    def call(self, method: str, path: str, body: object = None) -> Any:
        """Return the decoded answer to a request; ApiError if it is not success.

        A GET is repeated once if an idle connection has been closed by the server meanwhile.
        """
        try:
            response = self.open(method, path, body)
            data = response.read(MOST_BYTES + 1)
        except _FAILURES as error:
            self.close()
            raise ApiError(0, f"{method} {path}: {_checks.shown(error, 200)}") from None
        if len(data) > MOST_BYTES:
            self.close()
            raise TooLargeError(f"{method} {path}: an answer of more than {MOST_BYTES} bytes")
        return _checked(response, data, f"{method} {path}")

    def open(self, method: str, path: str, body: object = None) -> http.client.HTTPResponse:
        """Send a request, and return the answer with its body unread; OSError or HTTPException if that fails."""
        was_open = self._http is not None
        try:
            return self._sent(method, path, body)
        except _FAILURES:
            self.close()
            if not was_open or method != "GET":
                raise
        return self._sent(method, path, body)

    def _sent(self, method: str, path: str, body: object) -> http.client.HTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": "topoplace"}
        try:
            authorization = self._access.authorization()  # from now on, there may be a new certificate, too
        except KubernetesError as error:
            raise ApiError(0, str(error)) from None
        if self._num_certificates != self._access.num_certificates:
            self.close()
            self._num_certificates = self._access.num_certificates
        if authorization:
            headers["Authorization"] = authorization
        if self._http is None:
            self._http = self._connected()
        data = None
        if body is not None:
            data = json.dumps(body, separators=(",", ":")).encode()
            headers["Content-Type"] = _OTHER_TYPE
        self._http.request(method, self._access.path + path, data, headers)
        response = self._http.getresponse()
        if response.status == _UNAUTHORIZED and self._access.plugin is not None:
            self._access.plugin.forget()
        return response

    def _connected(self) -> http.client.HTTPConnection:
        made = (
            http.client.HTTPConnection(self._access.host, self._access.port, self._timeout_s)
            if self._access.tls is None
            else _Encrypted(self._access, self._access.tls, self._timeout_s)
        )
        made.connect()
        return made

    def close(self) -> None:
        """Close the connection; the next request opens it again."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def interrupt(self) -> None:
        """Stop a read by another thread from this connection."""
        connection = self._http
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)


class _Encrypted(http.client.HTTPConnection):
    """A connection with TLS, perhaps through a proxy, to a server whose certificate may have another name."""

    default_port = http.client.HTTPS_PORT

    def __init__(self, access: Access, tls: ssl.SSLContext, timeout_s: float) -> None:
        first = access.proxy or access
        super().__init__(first.host, first.port, timeout_s)
        if access.proxy is not None:
            self.set_tunnel(access.host, access.port, dict(access.proxy.headers))
        self._tls = tls
        self._server_name = access.server_name or access.host

    def connect(self) -> None:
        super().connect()
        self.sock = self._tls.wrap_socket(self.sock, server_hostname=self._server_name)


def _checked(response: http.client.HTTPResponse, data: bytes, what: str) -> Any:
    """Return the body of an answer as JSON; ApiError for a failure, or for what is no JSON."""
    try:
        found: Any = decoded(data) if data else {}
    except ValueError:
        found = None
    if isinstance(found, TooDeep):
        raise ApiError(response.status, f"{what}: the object is nested more than {MOST_DEPTH} deep")
    if 200 <= response.status < 300 and found is not None:
        return found
    message = cast("dict[str, Any]", found).get("message") if isinstance(found, dict) else None
    retry = response.headers.get("Retry-After", "")
    seconds = float(retry) if retry.isascii() and retry.isdigit() and len(retry) < 6 else 0.0
    raise ApiError(response.status, f"{what}: {str(message or response.reason)[:300]}", seconds)
