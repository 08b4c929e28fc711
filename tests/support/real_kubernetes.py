"""A real etcd and kube-apiserver on the loopback interface, with TLS and RBAC; nodes that no kubelet has."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import Popen
from threading import Event, Thread
from typing import Any, Self

import pytest

from certificates import write_certificates
from topoplace_hosts.kubernetes.client import access
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.slurm.testing.daemons import free_ports, started
from waiting import WAIT, until

FOLDER = "TOPOPLACE_KUBERNETES_BINARIES"
SUBJECTS = {"server": "/CN=server", "admin": "/O=system:masters/CN=admin", "account": "/CN=account"}
NOW = {"gracePeriodSeconds": 0}


def binaries() -> Path:
    """Return the folder with the programs of Kubernetes; without one, the test is skipped."""
    folder = os.environ.get(FOLDER)
    if not folder:
        pytest.skip(f"needs a real API server: make test-kubernetes, or {FOLDER}")
    return Path(folder)


class RealCluster:
    """A cluster without kubelets: its pods run once they are bound, and end when somebody says so.

    Admission does not demand a service account of pods, and does not taint new nodes: there is no controller that would
    make the one and take away the other.
    """

    def __init__(self, programs: Path, folder: Path) -> None:
        self.folder = folder
        self._programs = programs
        self._etcd_port, self._peer_port, self.port = free_ports(3)
        self._processes: dict[str, Popen[bytes]] = {}
        self._stop = Event()
        self._ends = Thread(target=self._end_pods, daemon=True)

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._kill_all()
            raise
        return self

    def _start(self) -> None:
        write_certificates(self.folder, SUBJECTS)
        client, peer = (f"http://127.0.0.1:{port}" for port in (self._etcd_port, self._peer_port))
        self.start(
            *("etcd", "--data-dir", str(self.folder / "etcd"), "--listen-client-urls", client),
            *("--advertise-client-urls", client, "--listen-peer-urls", peer, "--initial-cluster"),
            *(f"default={peer}", "--initial-advertise-peer-urls", peer),
        )
        self.admin = Connection(access.from_kubeconfig(self.kubeconfig("admin")))
        self.start_api_server()
        self._ends.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._ends.join(WAIT)
        self.admin.close()
        self._kill_all()

    def _kill_all(self) -> None:
        for name in reversed(self._processes):
            self.kill(name)

    # ---- programs --------------------------------------------------------------------------------------------

    def start(self, name: str, *words: str) -> None:
        """Start a program of Kubernetes; it ends with this process."""
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        logged = 'exec "$@" >>"$0" 2>&1'
        log = str(self.folder / f"{name}.log")
        command = ["sh", "-c", logged, log, str(self._programs / name), *words]
        self._processes[name] = started(command, environment)

    def kill(self, name: str) -> None:
        """Kill a program with -9."""
        self._processes[name].kill()
        self._processes[name].wait()

    def log(self, name: str) -> str:
        """Return what a program has written."""
        return (self.folder / f"{name}.log").read_text("utf-8", "replace")

    def _file(self, name: str) -> str:
        return str(self.folder / name)

    def start_api_server(self) -> None:
        """Start the API server, and wait until it serves."""
        self.start(
            *("kube-apiserver", "--etcd-servers", f"http://127.0.0.1:{self._etcd_port}"),
            *(
                "--bind-address",
                "127.0.0.1",
                "--secure-port",
                str(self.port),
                "--external-hostname",
                "127.0.0.1",
            ),
            *(
                "--tls-cert-file",
                self._file("server.crt"),
                "--tls-private-key-file",
                self._file("server.key"),
            ),
            *(
                "--client-ca-file",
                self._file("ca.crt"),
                "--anonymous-auth=false",
                "--authorization-mode",
                "RBAC",
            ),
            *("--service-account-issuer", "https://topoplace.test", "--api-audiences", "test"),
            *("--service-account-key-file", self._file("account.crt")),
            *("--service-account-signing-key-file", self._file("account.key")),
            *("--service-cluster-ip-range", "10.0.0.0/24", "--endpoint-reconciler-type", "none"),
            "--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        )
        connection = Connection(access.from_kubeconfig(self.kubeconfig("admin")))
        until(lambda: self._serves(connection))
        connection.close()
        self.admin.close()  # what is left of an earlier one

    def _serves(self, connection: Connection) -> bool:
        assert self._processes["kube-apiserver"].poll() is None, self.log("kube-apiserver")[-3000:]
        with suppress(ApiError):
            for namespace in ("default", "kube-system"):
                connection.call("GET", f"/api/v1/namespaces/{namespace}")
            connection.call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:kube-scheduler")
            connection.call("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-cluster-critical")
            return True
        return False

    # ---- who asks --------------------------------------------------------------------------------------------

    def kubeconfig(self, name: str, **user: str) -> Path:
        """Write a kubeconfig and return its name; user: its credentials, else the certificate of this name."""
        given = user or {"client-certificate": f"{name}.crt", "client-key": f"{name}.key"}
        server = {"server": f"https://127.0.0.1:{self.port}", "certificate-authority": "ca.crt"}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": server}],
            "users": [{"name": "u", "user": given}],
        }
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(config), "utf-8")
        return path

    def token(self, account: str, namespace: str = "kube-system") -> str:
        """Return a token of a service account, as its pods get it."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        return str(self.admin.call("POST", path, body)["status"]["token"])

    # ---- objects ---------------------------------------------------------------------------------------------

    def create(self, path: str, value: Mapping[str, Any], query: str = "") -> dict[str, Any]:
        """Create an object, and return it as the API server has it."""
        found: dict[str, Any] = self.admin.call("POST", f"{path}{query}", value)
        return found

    def create_nodes(self, values: list[dict[str, Any]]) -> None:
        """Create nodes with their status, as a kubelet does."""
        for value in values:
            self.create("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", **_without_uid(value)})

    def create_pod(self, value: dict[str, Any]) -> None:
        """Create a pod."""
        spec = {**value["spec"], "automountServiceAccountToken": False}
        spec["containers"] = [{"image": "none", **one} for one in spec["containers"]]
        whole = {"apiVersion": "v1", "kind": "Pod", **_without_uid(value), "spec": spec}
        self.create("/api/v1/namespaces/default/pods", whole)

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods by name."""
        found = self.admin.call("GET", "/api/v1/namespaces/default/pods")["items"]
        return {one["metadata"]["name"]: one for one in found}

    def finish(self, name: str) -> None:
        """Let a pod end, as its kubelet would say."""
        path = f"/api/v1/namespaces/default/pods/{name}"
        pod = self.admin.call("GET", path)
        pod["status"]["phase"] = "Succeeded"
        self.admin.call("PUT", f"{path}/status", pod)

    def _end_pods(self) -> None:
        """Delete the pods whose deletion was asked for, as their kubelets would do."""
        connection = Connection(access.from_kubeconfig(self.kubeconfig("admin")))
        while not self._stop.wait(0.1):
            with suppress(ApiError):
                for pod in connection.call("GET", "/api/v1/pods")["items"]:
                    metadata = pod["metadata"]
                    if metadata.get("deletionTimestamp"):
                        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
                        connection.call("DELETE", path, NOW)
        connection.close()


def _without_uid(value: dict[str, Any]) -> dict[str, Any]:
    """Return an object without what the API server writes."""
    metadata = {key: one for key, one in value["metadata"].items() if key not in ("uid", "creationTimestamp")}
    return {**value, "metadata": metadata}
