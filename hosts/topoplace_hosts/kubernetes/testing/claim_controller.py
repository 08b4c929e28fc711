"""One step of kube-controller-manager for claims: it makes them, and frees those of finished pods."""

from __future__ import annotations

import copy

from topoplace_hosts.kubernetes.testing.objects import Json, ObjectStore, listed_in, part_of

_ENDED = ("Succeeded", "Failed")


def control_claims(store: ObjectStore) -> None:
    """Make the claims of new pods from templates, and free the claims of pods that are finished or gone.

    Templates are in the store's `templates`.
    """
    pods = store.pods()
    for pod in pods.values():
        if pod["status"].get("phase") not in _ENDED:
            _make(store, pod)
    alive = {pod["metadata"]["uid"] for pod in pods.values() if pod["status"].get("phase") not in _ENDED}
    for claim in store.listed("resourceclaims")[0]:
        _free(store, claim, alive)


def _make(store: ObjectStore, pod: Json) -> None:
    made = {one["name"] for one in listed_in(pod["status"], "resourceClaimStatuses")}
    for entry in listed_in(pod["spec"], "resourceClaims"):
        template = entry.get("resourceClaimTemplateName")
        if not template or entry["name"] in made:
            continue
        name = f"{pod['metadata']['name']}-{entry['name']}"
        owner = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "ownerReferences": [owner]}
        store.add("resourceclaims", {"metadata": metadata, "spec": copy.deepcopy(store.templates[template])})
        status = {"name": entry["name"], "resourceClaimName": name}

        def note(value: Json, status: Json = status) -> None:
            value["status"].setdefault("resourceClaimStatuses", []).append(status)

        store.change("pods", pod["metadata"]["name"], note)


def _free(store: ObjectStore, claim: Json, alive: set[str]) -> None:
    name = claim["metadata"]["name"]
    reserved = listed_in(part_of(claim, "status"), "reservedFor")
    left = [one for one in reserved if one["uid"] in alive]
    if reserved and len(left) < len(reserved):
        store.change("resourceclaims", name, lambda value: _release(value, alive))
    owners = listed_in(claim["metadata"], "ownerReferences")
    if owners and not any(one["uid"] in alive for one in owners) and not left:
        store.remove("resourceclaims", name)


def _release(claim: Json, alive: set[str]) -> None:
    """Take ended pods off a claim as it is now; without pods, it has no devices."""
    status = claim["status"]
    status["reservedFor"] = [one for one in status["reservedFor"] if one["uid"] in alive]
    if not status["reservedFor"]:
        status.pop("allocation", None)
        claim["metadata"]["finalizers"] = []
