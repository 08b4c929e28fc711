"""Write claims to the API server before a pod is bound, and take them back if it is not bound.

Each claim is read again before it is written, and only that version is replaced. A scheduler may therefore end at any
step: the next one finds what is written, and continues it or takes it back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Event
from typing import Any, Final, NamedTuple

from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.allocation_json import FINALIZER, Planned
from topoplace_hosts.kubernetes.claims.claim import Allocation, claim
from topoplace_hosts.kubernetes.client import api
from topoplace_hosts.kubernetes.client.connection import ApiError, Connection
from topoplace_hosts.kubernetes.objects.pod import Pod
from topoplace_hosts.kubernetes.scheduler.calls import RequestOutcome, bind, settled
from topoplace_hosts.kubernetes.scheduler.claiming.placing import MOST_RESERVATIONS

_BACKOFF_S: Final = (0.05, 0.2, 1.0, 5.0)
_OF_ALLOCATION: Final = ("allocation", "devices", "reservedFor")
_GONE: Final = 404
_CONFLICT: Final = 409
_MOST_CONFLICTS: Final = 20
_NOT_YET_S: Final = 0.05
"""Seconds to wait for a claim that another pod of a group allocates at the same time."""


class Written(NamedTuple):
    """The outcome of writing a pod's claims."""

    truths: tuple[Any, ...]
    """The claims as the API server has them now, as far as they are there."""
    error: str
    """Why not all claims are as planned; "" if they are."""


class _NotAsPlannedError(Exception):
    """A claim is not any more what was decided about."""


def write(connection: Connection, pod: Pod, plans: Sequence[Planned], stopped: Event) -> Written | None:
    """Allocate claims as planned and reserve them for a pod; None if stopped before.

    If a claim has changed since the decision, or the API server refuses it, this claim and those before it are taken
    back, and `Written.error` states why.
    """
    truths: list[Any] = []
    for i, plan in enumerate(plans):
        try:
            truth = _insisted(partial(_reserved, connection, pod, plan), stopped)
        except (_NotAsPlannedError, ApiError) as error:
            taken_back = take_back(connection, pod, plans[: i + 1], stopped)
            return taken_back and Written((*truths, *taken_back.truths), f"{plan.claim}: {error}")
        if truth is None:
            return None
        truths.append(truth)
    return Written(tuple(truths), "")


def take_back(connection: Connection, pod: Pod, plans: Sequence[Planned], stopped: Event) -> Written | None:
    """Remove an unbound pod's reservations, and free the claims that no other pod uses; None if stopped before.

    What a plan did not allocate stays allocated.
    """
    truths: list[Any] = []
    for plan in plans:
        try:
            truth = _insisted(partial(_released, connection, pod, plan), stopped)
        except (_NotAsPlannedError, ApiError) as error:
            if isinstance(error, ApiError) and error.status != _GONE:
                return Written(tuple(truths), str(error))
            continue
        if truth is None:
            return None
        truths.append(truth)
    return Written(tuple(truths), "")


def bind_with_claims(
    connection: Connection, pod: Pod, plans: Sequence[Planned], annotations: dict[str, str], stopped: Event
) -> RequestOutcome | None:
    """Write the claims of a pod and bind it; take the claims back if that fails. None if stopped before."""
    written = write(connection, pod, plans, stopped)
    if written is None:
        return None
    if written.error:
        known = settled(connection, pod, written.error, stopped)
        return known and known._replace(claims=written.truths)
    outcome = bind(connection, pod, annotations, stopped)
    truths = written.truths
    if outcome is not None and outcome.result == "refused" and not outcome.truth["spec"].get("nodeName"):
        taken_back = take_back(connection, pod, plans, stopped)
        if taken_back is None:
            return None
        truths = (*truths, *taken_back.truths)
    return outcome and outcome._replace(claims=truths)


def _insisted(call: Callable[[], Any], stopped: Event) -> Any:
    """Return the result of a call, repeated after conflicts and without a clear answer; None if stopped before."""
    conflicts = 0
    for attempt in range(1 << 30):
        try:
            return call()
        except ApiError as error:
            conflicts += error.status == _CONFLICT
            is_unclear = error.status in (0, 429) or error.status >= 500
            if not is_unclear and (error.status != _CONFLICT or conflicts > _MOST_CONFLICTS):
                raise
            pause = 0.0 if error.status == _CONFLICT else _BACKOFF_S[min(attempt, len(_BACKOFF_S) - 1)]
            if stopped.wait(max(error.retry_after_s, pause)):
                return None
    return None


def _reserved(connection: Connection, pod: Pod, plan: Planned) -> Any:
    """Return the claim, allocated as planned and reserved for the pod."""
    value = _read(connection, plan)
    known = _known(value)
    if known is None and plan.written is None:
        raise ApiError(_CONFLICT, "it has no devices", _NOT_YET_S)
    if known is not None and not _is_same(known, plan.allocation):
        raise _NotAsPlannedError("it has other devices by now")
    reserved = _reservations(value)
    if known is not None and any(one.get("uid") == pod.uid for one in reserved):
        return value
    if len(reserved) >= MOST_RESERVATIONS:
        raise _NotAsPlannedError(f"it is used by {MOST_RESERVATIONS} pods")
    if known is None and FINALIZER not in _finalizers(value):
        value = _with_finalizers(connection, value, [*_finalizers(value), FINALIZER])
    status: dict[str, Any] = {**_status(value)}
    if known is None:
        status["allocation"] = plan.written
    status["reservedFor"] = [*reserved, {"resource": "pods", "name": pod.name, "uid": pod.uid}]
    return api.put_claim(connection, {**value, "status": status}, "status")


def _released(connection: Connection, pod: Pod, plan: Planned) -> Any:
    """Return the claim without the pod, and without devices if it had got them for the pod alone."""
    value = api.read_claim(connection, plan.claim.namespace, plan.claim.name)
    if value["metadata"]["uid"] != plan.claim.uid:
        raise ApiError(_GONE, "another claim has its name")
    known, reserved = _known(value), _reservations(value)
    others = [one for one in reserved if one.get("uid") != pod.uid]
    is_ours = plan.written is not None and known is not None and _is_same(known, plan.allocation)
    if is_ours and not others:
        return _freed(connection, value)
    if len(others) == len(reserved):
        return value
    status = {**_status(value), "reservedFor": others}
    return api.put_claim(connection, {**value, "status": status}, "status")


def _freed(connection: Connection, value: Any) -> Any:
    """Return the claim without devices and reservations, and without the finalizer that is for those."""
    status = {key: one for key, one in _status(value).items() if key not in _OF_ALLOCATION}
    value = api.put_claim(connection, {**value, "status": status}, "status")
    if FINALIZER not in _finalizers(value):
        return value
    return _with_finalizers(connection, value, [one for one in _finalizers(value) if one != FINALIZER])


def _status(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = value.get("status") or {}
    return found


def _reservations(value: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = _status(value).get("reservedFor") or []
    return found


def _finalizers(value: Any) -> list[str]:
    found: list[str] = value["metadata"].get("finalizers") or []
    return found


def _with_finalizers(connection: Connection, value: Any, finalizers: list[str]) -> Any:
    return api.put_claim(connection, {**value, "metadata": {**value["metadata"], "finalizers": finalizers}})


def _read(connection: Connection, plan: Planned) -> Any:
    """Return a claim as it is now, if it is the one that was decided about and stays."""
    value = api.read_claim(connection, plan.claim.namespace, plan.claim.name)
    if value["metadata"]["uid"] != plan.claim.uid:
        raise _NotAsPlannedError("another claim has its name")
    if value["metadata"].get("deletionTimestamp"):
        raise _NotAsPlannedError("it is being deleted")
    return value


def _known(value: Any) -> Allocation | None:
    try:
        return claim(value).allocation
    except KubernetesError as error:
        raise _NotAsPlannedError(str(error)) from None


def _is_same(one: Allocation, other: Allocation) -> bool:
    return sorted(one.devices) == sorted(other.devices) and one.held == other.held
