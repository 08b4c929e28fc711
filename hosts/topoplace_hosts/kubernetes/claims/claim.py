"""ResourceClaims and DeviceClasses: requests, allocations, and which of their fields are not supported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import DeviceId
from topoplace_hosts.kubernetes.objects.fields import check_depth, items, mapping, text, texts, whole
from topoplace_hosts.kubernetes.objects.selectors import NodeTerm, node_terms
from topoplace_hosts.kubernetes.objects.taints import Toleration, tolerations

MOST_DEVICES: Final = 32
"""The API's limit on the devices of a claim."""
_COMMON: Final = {"deviceClassName", "selectors", "allocationMode", "count", "tolerations"}
_OF_EXACTLY: Final = _COMMON | {"adminAccess"}
_OF_SUBREQUEST: Final = _COMMON | {"name"}
_OF_CONSTRAINT: Final = {"requests", "matchAttribute", "distinctAttribute"}


class DeviceClass(NamedTuple):
    """A class of devices, to which requests refer by name."""

    name: str
    selectors: tuple[str, ...]
    config: tuple[Mapping[str, Any], ...]


class Request(NamedTuple):
    """A request of a claim, or one of its alternatives."""

    name: str
    """The request's name; request/alternative for an alternative."""
    device_class: str
    selectors: tuple[str, ...]
    num_devices: int
    """The number of devices; 0 means all devices of a node that match."""
    is_admin: bool
    """True for admin access: other claims may still get the same devices."""
    tolerations: tuple[Toleration, ...]
    written_tolerations: tuple[Mapping[str, Any], ...]


class Constraint(NamedTuple):
    """An attribute whose values must match, or must be distinct, among the devices of some requests."""

    requests: tuple[str, ...]
    """The names of these requests; () for all."""
    attribute: str
    is_distinct: bool

    def concerns(self, request: Request) -> bool:
        """Return True if the constraint applies to the devices of a request."""
        return not self.requests or bool({request.name, request.name.partition("/")[0]} & {*self.requests})


class Allocation(NamedTuple):
    """The devices of a claim, and the nodes where they can be used."""

    devices: tuple[DeviceId, ...]
    held: frozenset[DeviceId]
    """Devices that no other claim may get."""
    terms: tuple[NodeTerm, ...] | None
    """The nodes, as terms of a node selector; None for all nodes."""


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A ResourceClaim, as far as a scheduler needs it."""

    uid: str
    namespace: str
    name: str
    version: str
    """The resourceVersion; "" if it is unknown."""
    is_deleting: bool
    requests: tuple[tuple[Request, ...], ...]
    """The alternatives of each request, the preferred one first."""
    constraints: tuple[Constraint, ...]
    config: tuple[Mapping[str, Any], ...]
    allocation: Allocation | None
    reserved_for: tuple[str, ...]
    """The uids of the pods that may use the claim."""
    refused: str
    """Why the claim cannot be allocated here: a field that is not supported; "" if it can."""

    @property
    def key(self) -> tuple[str, str]:
        """Return the claim's namespace and name."""
        return self.namespace, self.name

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name}"


def device_class(value: object) -> DeviceClass:
    """Return a DeviceClass of the API; KubernetesError names the field that cannot be read."""
    found = whole(value, "DeviceClass")
    name = text(mapping(found.get("metadata"), "metadata").get("name"), "metadata.name")
    spec = mapping(found.get("spec"), "spec")
    return DeviceClass(
        name, _selectors(spec.get("selectors"), "spec.selectors"), _configs(spec.get("config"), "spec.config")
    )


def claim(value: object) -> Claim:
    """Return a ResourceClaim of the API; KubernetesError names the field that cannot be read.

    A field of its `spec` that is unreadable or not supported only sets `refused`: the claim may be allocated already.
    """
    found = mapping(value, "ResourceClaim")
    metadata, status = (mapping(found.get(part), part) for part in ("metadata", "status"))
    uid, namespace, name, version = (
        text(metadata.get(one), f"metadata.{one}") for one in ("uid", "namespace", "name", "resourceVersion")
    )
    if not uid or not namespace or not name:
        raise KubernetesError("metadata: a claim has no uid, namespace or name")
    spec = mapping(mapping(found.get("spec"), "spec").get("devices"), "spec.devices")
    requests: tuple[tuple[Request, ...], ...] = ()
    constraints: tuple[Constraint, ...] = ()
    config: tuple[Mapping[str, Any], ...] = ()
    refused = ""
    try:
        whole(value, "what it asks for")
        requests = tuple(_requests(spec))
        constraints = tuple(_constraints(spec, requests))
        config = _configs(spec.get("config"), "config")
        if strange := sorted(spec.keys() - {"requests", "constraints", "config"}):
            raise KubernetesError(f"{strange[0]} is not supported")
    except KubernetesError as error:
        refused = str(error)
    reserved = [mapping(one, "reservedFor") for one in items(status.get("reservedFor"), "reservedFor")]
    return Claim(
        uid,
        namespace,
        name,
        version,
        metadata.get("deletionTimestamp") is not None,
        requests,
        constraints,
        config,
        _allocation(status.get("allocation")),
        tuple([text(one.get("uid"), "reservedFor.uid") for one in reserved]),
        refused,
    )


# ---- what is asked for ---------------------------------------------------------------------------------------------


def _requests(spec: Mapping[str, Any]) -> Iterator[tuple[Request, ...]]:
    for i, one in enumerate(items(spec.get("requests"), "requests")):
        found = mapping(one, f"requests[{i}]")
        name = text(found.get("name"), f"requests[{i}].name")
        what = f"request {_checks.shown(name)}"
        _check_fields(found, {"name", "exactly", "firstAvailable"}, what)
        exactly, alternatives = found.get("exactly"), items(found.get("firstAvailable"), what)
        if (exactly is None) == (not alternatives):
            raise KubernetesError(f"{what} has not one of exactly and firstAvailable")
        if exactly is not None:
            yield (_request(mapping(exactly, what), name, what, _OF_EXACTLY),)
        else:
            yield tuple(_alternatives(alternatives, name, what))


def _alternatives(listed: list[Any], name: str, what: str) -> Iterator[Request]:
    for i, one in enumerate(listed):
        found = mapping(one, f"{what}.firstAvailable[{i}]")
        own = text(found.get("name"), f"{what}.firstAvailable[{i}].name")
        yield _request(found, f"{name}/{own}", f"{what}, alternative {_checks.shown(own)}", _OF_SUBREQUEST)


def _request(found: Mapping[str, Any], name: str, what: str, known: set[str]) -> Request:
    _check_fields(found, known, what)
    mode = text(found.get("allocationMode"), f"{what}.allocationMode") or "ExactCount"
    if mode not in ("ExactCount", "All"):
        raise KubernetesError(f"{what}: allocationMode {_checks.shown(mode)} is not supported")
    num_devices = 0
    if mode == "ExactCount":
        num_devices = _checks.integer(
            found.get("count", 1), f"{what}.count", KubernetesError, low=1, high=MOST_DEVICES
        )
    written = tuple(mapping(one, what) for one in items(found.get("tolerations"), f"{what}.tolerations"))
    return Request(
        name,
        text(found.get("deviceClassName"), f"{what}.deviceClassName"),
        _selectors(found.get("selectors"), f"{what}.selectors"),
        num_devices,
        found.get("adminAccess") is True,
        tolerations(found.get("tolerations"), f"{what}.tolerations"),
        written,
    )


def _check_fields(found: Mapping[str, Any], known: set[str], what: str) -> None:
    """Refuse a field that is not known: what it asks for would be ignored."""
    strange = sorted(key for key in found.keys() - known if found[key] not in (None, [], {}))
    if strange:
        raise KubernetesError(f"{what}: {strange[0]} is not supported")


def _selectors(value: object, what: str) -> tuple[str, ...]:
    found: list[str] = []
    for i, one in enumerate(items(value, what)):
        selector = mapping(one, f"{what}[{i}]")
        _check_fields(selector, {"cel"}, f"{what}[{i}]")
        expression = mapping(selector.get("cel"), f"{what}[{i}].cel").get("expression")
        if not isinstance(expression, str) or not expression:
            raise KubernetesError(f"{what}[{i}].cel.expression is missing")
        found.append(expression)
    return tuple(found)


def _configs(value: object, what: str) -> tuple[Mapping[str, Any], ...]:
    check_depth(value, what)
    return tuple([mapping(one, f"{what}[{i}]") for i, one in enumerate(items(value, what))])


def _constraints(spec: Mapping[str, Any], requests: tuple[tuple[Request, ...], ...]) -> Iterator[Constraint]:
    names = {one.name for alternatives in requests for one in alternatives}
    names |= {name.partition("/")[0] for name in names}
    for i, one in enumerate(items(spec.get("constraints"), "constraints")):
        what = f"constraints[{i}]"
        found = mapping(one, what)
        _check_fields(found, _OF_CONSTRAINT, what)
        match, distinct = (
            text(found.get(key), f"{what}.{key}") for key in ("matchAttribute", "distinctAttribute")
        )
        if bool(match) == bool(distinct):
            raise KubernetesError(f"{what} has not one of matchAttribute and distinctAttribute")
        meant = texts(found.get("requests"), f"{what}.requests")
        if strange := [name for name in meant if name not in names]:
            raise KubernetesError(f"{what}.requests: {_checks.shown(strange[0])} is no request")
        yield Constraint(meant, match or distinct, bool(distinct))


# ---- what is allocated ---------------------------------------------------------------------------------------------


def _allocation(value: object) -> Allocation | None:
    if value is None:
        return None
    found = mapping(value, "allocation")
    results = mapping(found.get("devices"), "allocation.devices").get("results")
    listed = [mapping(one, "results") for one in items(results, "allocation.devices.results")]
    devices = [
        DeviceId(*(text(one.get(key), f"results.{key}") for key in ("driver", "pool", "device")))
        for one in listed
    ]
    held = [device for device, one in zip(devices, listed, strict=True) if one.get("adminAccess") is not True]
    selector = found.get("nodeSelector")
    where = "nodeSelectorTerms"
    terms = None if selector is None else node_terms(mapping(selector, "nodeSelector").get(where), where)
    return Allocation(tuple(devices), frozenset(held), terms)
