"""The allocation of a claim as it is written into its status."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from topoplace_hosts.kubernetes.claims.assignment import ClaimPart
from topoplace_hosts.kubernetes.claims.claim import Allocation, Claim, DeviceClass, Request
from topoplace_hosts.kubernetes.claims.device import Device
from topoplace_hosts.kubernetes.objects.selectors import NodeTerm, Requirement

FINALIZER = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps a deleted claim until its allocation is removed."""


class Planned(NamedTuple):
    """A claim of a pod, with the allocation that it gets or has already."""

    claim: Claim
    allocation: Allocation
    written: dict[str, Any] | None
    """The value for `status.allocation`; None if the claim has it already."""


def planned(
    claim: Claim,
    served: Sequence[tuple[ClaimPart, Sequence[Device]]],
    node: str,
    classes: dict[str, DeviceClass],
) -> Planned:
    """Return the allocation of a claim on a node. served: each request with its devices."""
    results = [_result(part.request, device) for part, devices in served for device in devices]
    requests = [part.request for part, _ in served]
    devices: dict[str, Any] = {}
    if results:
        devices["results"] = results
    if config := [*_class_configs(requests, classes), *_own_configs(claim, requests)]:
        devices["config"] = config
    written: dict[str, Any] = {"devices": devices}
    terms = None
    if results:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        written["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        terms = (NodeTerm((), (Requirement("metadata.name", "In", (node,)),)),)
    everything = [(part.request, device.id) for part, given in served for device in given]
    allocation = Allocation(
        tuple([device for _, device in everything]),
        frozenset(device for request, device in everything if not request.is_admin),
        terms,
    )
    return Planned(claim, allocation, written)


def _result(request: Request, device: Device) -> dict[str, Any]:
    found: dict[str, Any] = {
        "request": request.name,
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.name,
    }
    if request.is_admin:
        found["adminAccess"] = True
    if request.written_tolerations:
        found["tolerations"] = [dict(one) for one in request.written_tolerations]
    return found


def _class_configs(requests: Sequence[Request], classes: dict[str, DeviceClass]) -> list[dict[str, Any]]:
    return [
        {"source": "FromClass", "requests": [request.name], **config}
        for request in requests
        for config in classes[request.device_class].config
    ]


def _own_configs(claim: Claim, requests: Sequence[Request]) -> list[dict[str, Any]]:
    """Return the configuration of the claim that is about one of its requests, or about all."""
    names = {name for one in requests for name in (one.name, one.name.partition("/")[0])}
    return [
        {"source": "FromClaim", **config}
        for config in claim.config
        if not config.get("requests") or names & {str(name) for name in config["requests"]}
    ]
