"""Pods and nodes as the API server writes them."""

from __future__ import annotations

from typing import Any

GPU = "nvidia.com/gpu"


def pod_json(name: str, gpus: int = 1, *, cpu: str = "1", **fields: Any) -> dict[str, Any]:
    """Return a pod that waits; fields: of its `spec`, and labels, annotations and phase."""
    metadata = {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    phase = fields.pop("phase", "Pending")
    limits = {"cpu": cpu, "memory": "1Gi"} | ({GPU: str(gpus)} if gpus else {})
    containers = [{"name": "main", "resources": {"limits": limits}}]
    return {
        "metadata": {
            "uid": f"uid-{name}",
            "namespace": "default",
            "name": name,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {"schedulerName": "topoplace", "containers": containers, **fields},
        "status": {"phase": phase},
    }


def node_json(
    name: str, gpus: int = 8, *, ready: bool = True, cpu: str = "96", **fields: Any
) -> dict[str, Any]:
    """Return a node; fields: labels, and those of its `spec`."""
    labels = {"kubernetes.io/hostname": name, **fields.pop("labels", {})}
    more = fields.pop("allocatable", {})
    return {
        "metadata": {"uid": f"uid-{name}", "name": name, "labels": labels},
        "spec": fields,
        "status": {
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "allocatable": {"cpu": cpu, "memory": "1Ti", "pods": "110", GPU: str(gpus), **more},
        },
    }
