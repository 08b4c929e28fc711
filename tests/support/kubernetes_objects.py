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


def nodes_outside() -> list[dict[str, Any]]:
    """Return nodes that no topology of a test has, as real clusters have them: before, between and after the others.

    A control plane, which pods do not tolerate, and small machines without GPUs.
    """
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    return [
        node_json("control-plane", 0, cpu="4", taints=[taint]),
        node_json("n0-storage", 0, cpu="100m"),
        node_json("z-storage", 0, cpu="100m"),
    ]


# ---- Dynamic Resource Allocation -----------------------------------------------------------------------------------

DRIVER = "gpu.example.com"


def class_json(name: str = "gpu", *expressions: str, **fields: Any) -> dict[str, Any]:
    """Return a DeviceClass; expressions: its selectors, by default for the devices of `DRIVER`."""
    selectors = expressions or (f'device.driver == "{DRIVER}"',)
    return {
        "metadata": {"name": name},
        "spec": {"selectors": [{"cel": {"expression": one}} for one in selectors], **fields},
    }


def exactly(name: str, count: int = 1, *expressions: str, **fields: Any) -> dict[str, Any]:
    """Return a request of a claim; expressions: its selectors."""
    wanted = {"deviceClassName": "gpu", "count": count, **fields}
    if expressions:
        wanted["selectors"] = [{"cel": {"expression": one}} for one in expressions]
    return {"name": name, "exactly": wanted}


def every(name: str, *expressions: str, **fields: Any) -> dict[str, Any]:
    """Return a request for all devices of a node that match."""
    found = exactly(name, 1, *expressions, allocationMode="All", **fields)
    del found["exactly"]["count"]
    return found


def claim_spec(*requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the `spec` of a claim."""
    return {"devices": {"requests": list(requests), **fields}}


def claim_json(name: str, *requests: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a ResourceClaim that is not allocated; fields: of its `spec.devices`, and `status`."""
    status = fields.pop("status", {})
    return {
        "metadata": {"uid": f"uid-{name}", "namespace": "default", "name": name, "resourceVersion": "1"},
        "spec": claim_spec(*requests, **fields),
        "status": status,
    }


def claims_of(*names: str) -> list[dict[str, str]]:
    """Return the `spec.resourceClaims` of a pod that uses these claims."""
    return [{"name": f"c{i}", "resourceClaimName": name} for i, name in enumerate(names)]
