"""Leader election: among several programs, only the one that holds and renews a Lease works."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from threading import Event, Thread
from typing import Any, Final
from urllib.parse import quote

from topoplace_hosts import log
from topoplace_hosts.kubernetes.client.access import Access
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection

DURATION_S: Final = 30.0
"""Seconds for which a Lease is valid after its renewal."""
_NOT_FOUND = 404
_TIMEOUT_S = 3.0


class Leadership:
    """Lets a program work while it holds a Lease.

    The clocks of other hosts are not trusted: a Lease expires when it has not changed for its duration by the local
    clock. A leader that cannot renew it for a third of that time stops, before another one begins.
    """

    def __init__(
        self,
        access: Access,
        namespace: str,
        name: str,
        *,
        identity: str = "",
        duration_s: float = DURATION_S,
        write_log: log.Log = log.nowhere,
    ) -> None:
        """identity: a name that no other program has; the default is made of host and process."""
        self._access = access
        self._listed = f"/apis/coordination.k8s.io/v1/namespaces/{quote(namespace, safe='')}/leases"
        self._path = f"{self._listed}/{quote(name, safe='')}"
        self._name = name
        self._identity = identity or f"{socket.gethostname()}-{os.getpid()}-{os.urandom(4).hex()}"
        self._duration_s = duration_s
        self._log = write_log
        self._seen: tuple[str, float] = "", 0.0
        """The version of the Lease that was seen last, and since when."""

    def run(self, work: Callable[[Event], None], stop: Event) -> None:
        """Call `work` whenever this program is the leader, until `stop` is set.

        The event passed to `work` is set when this program is no longer the leader, or `stop` is set. The Lease is
        given back at the end.
        """
        with closing(Connection(self._access, _TIMEOUT_S)) as connection:
            waits = False
            while not stop.is_set():
                if self._tried(connection):
                    waits = False
                    self._log("leads", identity=self._identity)
                    self._lead(connection, work, stop)
                    self._log("leads_no_more", identity=self._identity)
                elif not waits:
                    waits = True
                    self._log("follows", identity=self._identity)
                stop.wait(self._duration_s / 6)

    # ---- inside ----------------------------------------------------------------------------------------------

    def _lead(self, connection: Connection, work: Callable[[Event], None], stop: Event) -> None:
        end = Event()
        renewing = Thread(target=self._renew, args=(connection, end, stop), name="lease", daemon=True)
        renewing.start()
        try:
            work(end)
        finally:
            end.set()
            renewing.join()
        self._give_back(connection)

    def _renew(self, connection: Connection, end: Event, stop: Event) -> None:
        """Renew the Lease until `end` or `stop` is set, or that fails for too long; then set `end`."""
        renewed = tried = time.monotonic()
        while not (end.is_set() or stop.is_set()):
            end.wait(min(0.1, self._duration_s / 60))
            now = time.monotonic()
            if now - tried >= self._duration_s / 10:
                tried = now
                renewed = now if self._tried(connection) else renewed
            if now - renewed >= self._duration_s / 3:
                break
        end.set()

    def _tried(self, connection: Connection) -> bool:
        """Return True if the Lease is ours for its whole duration from now on."""
        try:
            return self._taken(connection)
        except ApiError as error:
            self._log("lease_failed", error=str(error))
            return False

    def _taken(self, connection: Connection) -> bool:
        try:
            lease: dict[str, Any] = connection.call("GET", self._path)
        except ApiError as error:
            if error.status != _NOT_FOUND:
                raise
            metadata = {"name": self._name}
            connection.call("POST", self._listed, {**_EMPTY, "metadata": metadata, "spec": self._spec({})})
            return True
        spec: dict[str, Any] = lease.get("spec") or {}
        version = str(lease["metadata"]["resourceVersion"])
        if version != self._seen[0]:
            self._seen = version, time.monotonic()
        has_run_out = time.monotonic() - self._seen[1] >= self._duration_s
        if spec.get("holderIdentity") not in (None, "", self._identity) and not has_run_out:
            return False
        connection.call(
            "PUT", self._path, {**lease, "spec": self._spec(spec)}
        )  # 409 if another one was faster
        return True

    def _spec(self, spec: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_ours = spec.get("holderIdentity") == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(round(self._duration_s), 1),
            "acquireTime": spec.get("acquireTime", now) if is_ours else now,
            "renewTime": now,
            "leaseTransitions": int(spec.get("leaseTransitions") or 0) + (not is_ours and bool(spec)),
        }

    def _give_back(self, connection: Connection) -> None:
        """Let another one lead at once, if the Lease is still ours."""
        try:
            lease: dict[str, Any] = connection.call("GET", self._path)
            if lease["spec"].get("holderIdentity") == self._identity:
                connection.call("PUT", self._path, {**lease, "spec": {**lease["spec"], "holderIdentity": ""}})
        except ApiError as error:
            self._log("lease_failed", error=str(error))


_EMPTY: Final = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
