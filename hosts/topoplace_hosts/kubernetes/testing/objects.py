"""The objects of a simulated API server, with versions, history, and the rules of binding."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from threading import Condition
from typing import Any, NamedTuple

Json = dict[str, Any]
_ENDED = ("Succeeded", "Failed")
_KINDS = ("pods", "nodes", "configmaps", "leases", "resourceslices", "deviceclasses", "resourceclaims")


_NESTED = re.compile(rb'"@nested ([0-9]+)"')


def nested(depth: int) -> str:
    """Return a stand-in for objects nested this deep, which Python cannot encode."""
    return f"@nested {depth}"


def encoded(value: object) -> bytes:
    """Return a value as JSON, with the objects for which `nested` stands."""

    def in_full(match: re.Match[bytes]) -> bytes:
        depth = int(match[1])
        return b'{"a":' * depth + b"1" + b"}" * depth

    return _NESTED.sub(in_full, json.dumps(value).encode())


class ObjectChange(NamedTuple):
    """An entry of the history."""

    version: int
    kind: str
    line: bytes
    """The event as a watch shows it."""


class StoreError(Exception):
    """A refusal, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ObjectStore:
    """Pods, nodes, ConfigMaps, Leases, events, and objects of resource.k8s.io, for any number of threads.

    A pod is bound only once, as in a real API server, and never while it is being deleted. Its node and the annotations
    of the binding are written together.
    """

    def __init__(self) -> None:
        self.changed = Condition()
        self.version = 1
        self.oldest = 1
        """The first version from which a watch can resume."""
        self.history: list[ObjectChange] = []
        self.events: list[Json] = []
        self.bound: list[str] = []
        """The names of pods in the order in which they were bound."""
        self.twice: list[str] = []
        """Bindings to GPUs that another pod held, and devices allocated twice; correct schedulers leave it empty."""
        self.templates: dict[str, Json] = {}
        """The `spec` of ResourceClaimTemplates, by name."""
        self._objects: dict[str, dict[str, Json]] = {kind: {} for kind in _KINDS}
        self._holders: dict[tuple[str, int], str] = {}

    # ---- what tests do -----------------------------------------------------------------------------------------

    def add(self, kind: str, value: Json) -> None:
        """Create an object; StoreError 409 if a Lease is there already."""
        with self.changed:
            if kind == "leases" and value["metadata"]["name"] in self._objects[kind]:
                raise StoreError(409, f"{kind} {value['metadata']['name']} already exists")
            self._put(kind, copy.deepcopy(value), "ADDED")

    def replace(self, kind: str, name: str, value: Json) -> None:
        """Replace an object; StoreError 404 if it is missing, 409 if it is not the version that `value` names."""
        with self.changed:
            known = self._found(kind, name)["metadata"]["resourceVersion"]
            if value["metadata"].get("resourceVersion", known) != known:
                raise StoreError(409, f"{kind} {name} has been modified")
            self._put(kind, copy.deepcopy(value), "MODIFIED")

    def replace_claim(self, name: str, value: Json, part: str) -> Json:
        """Replace the metadata of a ResourceClaim, or its status if `part` is "status"; return the claim.

        StoreError 404 if it is missing, 409 if it is not the version that `value` names, and 422 for a wrong status. An
        allocation is set or removed, never changed. A claim is only reserved while it has an allocation.
        """
        with self.changed:
            known = self._found("resourceclaims", name)
            metadata = value["metadata"]
            if (
                metadata.get("resourceVersion", known["metadata"]["resourceVersion"])
                != (known["metadata"]["resourceVersion"])
            ):
                raise StoreError(409, f"resourceclaims {name} has been modified")
            new = copy.deepcopy(known)
            if part == "status":
                new["status"] = copy.deepcopy(part_of(value, "status"))
                _check_claim_status(part_of(known, "status"), new["status"])
            else:
                new["metadata"] = copy.deepcopy(metadata)
            self._put("resourceclaims", new, "MODIFIED")
            return copy.deepcopy(new)

    def allocated(self) -> dict[tuple[str, str, str], list[str]]:
        """Return the claims that hold each device exclusively, by driver, pool and device name."""
        found: dict[tuple[str, str, str], list[str]] = {}
        with self.changed:
            for name, claim in self._objects["resourceclaims"].items():
                for device in _devices(claim):
                    found.setdefault(device, []).append(name)
        return found

    def change(self, kind: str, name: str, change: Callable[[Json], None]) -> None:
        """Change an object in place; StoreError 404 if it is missing."""
        with self.changed:
            value = copy.deepcopy(self._found(kind, name))
            change(value)
            self._put(kind, value, "MODIFIED")

    def remove(self, kind: str, name: str) -> None:
        """Delete an object at once."""
        with self.changed:
            value = self._objects[kind].pop(name)
            self._release(kind, value)
            self._note(kind, "DELETED", value)

    def finish(self, name: str, phase: str = "Succeeded") -> None:
        """Set the phase of a pod that is finished."""
        self.change("pods", name, lambda pod: pod["status"].update(phase=phase))

    def forget_history(self) -> None:
        """Make every watch that resumes from an older version fail with 410."""
        with self.changed:
            self.version += 1
            self.history.clear()
            self.oldest = self.version
            self.changed.notify_all()

    def pods(self) -> dict[str, Json]:
        """Return all pods by name."""
        with self.changed:
            return dict(self._objects["pods"])

    def waiting(self) -> list[str]:
        """Return the names of pods that are neither bound nor finished."""
        return [
            name
            for name, pod in self.pods().items()
            if not pod["spec"].get("nodeName") and pod["status"].get("phase") not in _ENDED
        ]

    def held(self) -> list[tuple[str, int, str]]:
        """Return the node, the GPU's number there, and the pod, for each GPU that a bound pod's annotation names."""
        with self.changed:
            return [(node, gpu, pod) for (node, gpu), pod in self._holders.items()]

    # ---- what the server does ------------------------------------------------------------------------------------

    def get(self, kind: str, name: str) -> Json:
        """Return an object; StoreError 404 if it is missing."""
        with self.changed:
            return self._found(kind, name)

    def listed(self, kind: str) -> tuple[list[Json], int]:
        """Return all objects of one kind, and the version of the list."""
        with self.changed:
            return list(self._objects[kind].values()), self.version

    def bind(self, name: str, binding: Json) -> None:
        """Give a pod its node and annotations; StoreError 404 or 409, like a real server."""
        with self.changed:
            pod = copy.deepcopy(self._found("pods", name))
            metadata = binding["metadata"]
            if metadata.get("uid") not in (None, "", pod["metadata"]["uid"]):
                raise StoreError(409, f"precondition failed: uid of pod {name}")
            if pod["metadata"].get("deletionTimestamp"):
                raise StoreError(409, f"pod {name} is being deleted, cannot be assigned to a host")
            if pod["spec"].get("nodeName"):
                raise StoreError(409, f"pod {name} is already assigned to node {pod['spec']['nodeName']}")
            pod["spec"]["nodeName"] = binding["target"]["name"]
            pod["metadata"].setdefault("annotations", {}).update(metadata.get("annotations") or {})
            pod["status"]["phase"] = "Running"
            for gpu in _gpus(pod):
                if holder := self._holders.get((pod["spec"]["nodeName"], gpu)):
                    self.twice.append(f"GPU {gpu} of {pod['spec']['nodeName']}: {holder} and {name}")
            self._put("pods", pod, "MODIFIED")
            self.bound.append(name)

    def evict(self, name: str, uid: str | None) -> None:
        """Delete a pod, as an eviction finally does."""
        with self.changed:
            pod = self._found("pods", name)
            if uid not in (None, pod["metadata"]["uid"]):
                raise StoreError(409, f"precondition failed: uid of pod {name}")
        self.remove("pods", name)

    def after(self, kind: str, version: int) -> list[ObjectChange]:
        """Return the changes of objects of one kind after a version; StoreError 410 if the version is too old."""
        if version < self.oldest:
            raise StoreError(410, f"too old resource version: {version} ({self.oldest})")
        found: list[ObjectChange] = []
        for change in reversed(self.history):
            if change.version <= version:
                break
            if change.kind == kind:
                found.append(change)
        return found[::-1]

    # ---- inside --------------------------------------------------------------------------------------------------

    def _found(self, kind: str, name: str) -> Json:
        if name not in self._objects[kind]:
            raise StoreError(404, f'{kind} "{name}" not found')
        return self._objects[kind][name]

    def _put(self, kind: str, value: Json, what: str) -> None:
        name = value["metadata"]["name"]
        if old := self._objects[kind].get(name):
            self._release(kind, old)
        self._objects[kind][name] = value
        if kind == "resourceclaims":
            for device, claims in self.allocated().items():
                if len(claims) > 1 and name in claims:
                    self.twice.append(f"device {'/'.join(device)}: {' and '.join(claims)}")
        if kind == "pods" and value["spec"].get("nodeName") and value["status"].get("phase") not in _ENDED:
            for gpu in _gpus(value):
                self._holders[value["spec"]["nodeName"], gpu] = name
        self._note(kind, what, value)

    def _release(self, kind: str, value: Json) -> None:
        if kind == "pods":
            for gpu in _gpus(value):
                if self._holders.get((value["spec"].get("nodeName", ""), gpu)) == value["metadata"]["name"]:
                    del self._holders[value["spec"]["nodeName"], gpu]

    def _note(self, kind: str, what: str, value: Json) -> None:
        self.version += 1
        value["metadata"]["resourceVersion"] = str(self.version)
        line = encoded({"type": what, "object": value}) + b"\n"
        self.history.append(ObjectChange(self.version, kind, line))
        self.changed.notify_all()


def part_of(value: Json, name: str) -> Json:
    """Return an object within an object; empty if it is missing."""
    found: Json = value.get(name) or {}
    return found


def listed_in(value: Json, name: str) -> list[Json]:
    """Return a list of objects within an object; empty if it is missing."""
    found: list[Json] = value.get(name) or []
    return found


def _check_claim_status(old: Json, new: Json) -> None:
    """Refuse what a real API server does not take as the status of a claim."""
    before, after, reserved = old.get("allocation"), new.get("allocation"), listed_in(new, "reservedFor")
    if before and after and before != after:
        raise StoreError(422, "status.allocation: field is immutable")
    if reserved and not after:
        raise StoreError(422, "status.reservedFor: only an allocated claim is reserved")
    if len(reserved) > 256 or len({one["uid"] for one in reserved}) < len(reserved):
        raise StoreError(422, "status.reservedFor: too many, or one twice")


def _devices(claim: Json) -> list[tuple[str, str, str]]:
    allocation = part_of(part_of(claim, "status"), "allocation")
    results = listed_in(part_of(allocation, "devices"), "results")
    return [
        (one["driver"], one["pool"], one["device"]) for one in results if one.get("adminAccess") is not True
    ]


def _gpus(pod: Json) -> list[int]:
    annotations: Json = pod["metadata"].get("annotations") or {}
    parts: Json = json.loads(annotations.get("topoplace.io/gpus", "{}"))
    return sorted({gpu for gpus in parts.values() for gpu in gpus})
