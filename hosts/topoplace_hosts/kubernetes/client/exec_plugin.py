"""Credentials from a program, which a kubeconfig names in `users[].user.exec`."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, mapping, text

_VERSIONS: Final = tuple(f"client.authentication.k8s.io/{one}" for one in ("v1", "v1beta1"))
_TIMEOUT_S: Final = 60.0
_MOST_BYTES: Final = 1 << 20
_EARLY_S: Final = 30.0
"""Seconds before its expiry at which a credential is renewed."""


class Credential(NamedTuple):
    """The credential that a program has printed."""

    token: str
    certificate: str
    """The client certificate in PEM; "", and so is `key`, if there is only a token."""
    key: str
    ends_at: float
    """The expiry in seconds since 1970; infinite if there is none."""


class ExecPlugin:
    """A program that prints an ExecCredential; it runs on first use, and again before the credential expires."""

    def __init__(self, given: Mapping[str, Any], cluster: Mapping[str, Any], folder: Path) -> None:
        """Read which program to run, and how; KubernetesError names what cannot be used.

        given: the entry `exec`. cluster: facts about the cluster, for programs that request them. folder: the base of
        relative paths.
        """
        self._version = text(given.get("apiVersion"), "exec.apiVersion")
        if self._version not in _VERSIONS:
            raise KubernetesError(
                f"exec.apiVersion = {_checks.shown(self._version)} is not one of {', '.join(_VERSIONS)}"
            )
        command = text(given.get("command"), "exec.command")
        if not command:
            raise KubernetesError("exec has no command")
        if os.sep in command:
            command = str(folder / command)
        if text(given.get("interactiveMode"), "exec.interactiveMode") == "Always":
            raise KubernetesError(f"exec.interactiveMode: {command} wants a terminal; a service has none")
        self._command = [command, *(str(one) for one in items(given.get("args"), "exec.args"))]
        pairs = [mapping(one, "exec.env") for one in items(given.get("env"), "exec.env")]
        self._environment = {str(one.get("name")): str(one.get("value", "")) for one in pairs}
        spec: dict[str, Any] = {"interactive": False}
        self.wants_cluster = str(given.get("provideClusterInfo")).lower() == "true"
        if self.wants_cluster:
            spec["cluster"] = dict(cluster)
        self._info = {"apiVersion": self._version, "kind": "ExecCredential", "spec": spec}
        self._hint = text(given.get("installHint"), "exec.installHint")
        self._known: Credential | None = None
        self._lock = Lock()

    def credential(self) -> tuple[Credential, bool]:
        """Return a valid credential, and True if it is new; KubernetesError if there is none."""
        with self._lock:
            if self._known is not None and time.time() < self._known.ends_at - _EARLY_S:
                return self._known, False
            self._known = self._read(self._run())
            return self._known, True

    def forget(self) -> None:
        """Drop the credential, which the server rejects, so that the program runs again."""
        with self._lock:
            self._known = None

    def _run(self) -> bytes:
        environment = {
            **os.environ,
            **self._environment,
            "KUBERNETES_EXEC_INFO": json.dumps(self._info),
        }
        try:
            done = subprocess.run(
                self._command,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        except (OSError, ValueError, subprocess.TimeoutExpired) as error:
            raise KubernetesError(f"{self._command[0]}: {error}. {self._hint}".rstrip(". ")) from None
        if done.returncode or len(done.stdout) > _MOST_BYTES:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise KubernetesError(f"{self._command[0]} exited with {done.returncode}: {said}")
        return done.stdout

    def _read(self, answer: bytes) -> Credential:
        try:
            found = mapping(json.loads(answer), "its answer")
            status = mapping(found.get("status"), "status")
            ends = status.get("expirationTimestamp")
            ends_at = datetime.fromisoformat(str(ends)).astimezone(UTC).timestamp() if ends else float("inf")
        except (ValueError, RecursionError) as error:
            raise KubernetesError(f"{self._command[0]}: {error}") from None
        if found.get("apiVersion") != self._version:
            raise KubernetesError(f"{self._command[0]}: its answer is not of {self._version}")
        token, certificate, key = (
            str(status.get(name) or "") for name in ("token", "clientCertificateData", "clientKeyData")
        )
        if not token and not (certificate and key):
            raise KubernetesError(
                f"{self._command[0]}: its answer has no token and no certificate with its key"
            )
        return Credential(token, certificate, key, ends_at)
