"""Calls of the API server that change something: bind, evict, describe, report; and two that read."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from topoplace_hosts.kubernetes.client.connection import ApiError, Connection

RESOURCE_API = "/apis/resource.k8s.io/v1"
_BAD_REQUEST = 400
_NOT_FOUND = 404


def _pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"


def read_pod(connection: Connection, namespace: str, name: str) -> Any:
    """Return a pod as it is now."""
    return connection.call("GET", _pod_path(namespace, name))


def bind(
    connection: Connection, namespace: str, name: str, uid: str, node: str, annotations: Mapping[str, str]
) -> None:
    """Give a pod its node and annotations: the API server writes both at once, or neither.

    ApiError 409 if the pod is bound already, is being deleted, or is another pod of this name.
    """
    metadata = {"name": name, "namespace": namespace, "uid": uid, "annotations": dict(annotations)}
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
    connection.call("POST", f"{_pod_path(namespace, name)}/binding", body)


def evict(connection: Connection, namespace: str, name: str, uid: str) -> None:
    """Request the eviction of a pod; ApiError 429 if a disruption budget does not allow it now."""
    metadata = {"name": name, "namespace": namespace}
    options = {"preconditions": {"uid": uid}}
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata, "deleteOptions": options}
    path = f"{_pod_path(namespace, name)}/eviction"
    try:
        connection.call("POST", path, body)
    except ApiError as error:
        if error.status != _BAD_REQUEST:
            raise
        connection.call("POST", path, {**body, "apiVersion": "policy/v1beta1"})  # Kubernetes before 1.22


def _claim_path(namespace: str, name: str) -> str:
    return f"{RESOURCE_API}/namespaces/{quote(namespace, safe='')}/resourceclaims/{quote(name, safe='')}"


def read_claim(connection: Connection, namespace: str, name: str) -> Any:
    """Return a ResourceClaim as it is now."""
    return connection.call("GET", _claim_path(namespace, name))


def put_claim(connection: Connection, value: Mapping[str, Any], part: str = "") -> Any:
    """Write a ResourceClaim, or its status if part is "status"; return the stored object.

    ApiError 409 if `value` is not the newest version.
    """
    path = _claim_path(value["metadata"]["namespace"], value["metadata"]["name"])
    return connection.call("PUT", f"{path}/{part}" if part else path, value)


def put_config_map(connection: Connection, namespace: str, value: Mapping[str, Any]) -> None:
    """Create or replace a ConfigMap."""
    listed = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps"
    try:
        connection.call("PUT", f"{listed}/{quote(value['metadata']['name'], safe='')}", value)
    except ApiError as error:
        if error.status != _NOT_FOUND:
            raise
        connection.call("POST", listed, value)


def report(
    connection: Connection, namespace: str, name: str, uid: str, *, reason: str, message: str, warning: bool
) -> None:
    """Write an event about a pod, which `kubectl describe` shows."""
    now = datetime.now(UTC)
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{name[:200]}.", "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1",
            "kind": "Pod",
            "namespace": namespace,
            "name": name,
            "uid": uid,
        },
        "reason": reason,
        "message": message[:1000],
        "type": "Warning" if warning else "Normal",
        "source": {"component": "topoplace"},
        "firstTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "lastTimestamp": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "count": 1,
    }
    connection.call("POST", f"/api/v1/namespaces/{quote(namespace, safe='')}/events", body)
