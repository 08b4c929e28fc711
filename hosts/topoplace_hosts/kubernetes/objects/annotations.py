"""Annotations and labels that topoplace writes on pods and reads from them; users may write anything there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.requests import MOST_GPUS, Requests
from topoplace_hosts.request_fields import RequestError, checked, from_json

GPUS: Final = "topoplace.io/gpus"
"""Annotation of a bound pod: the GPUs of each container, by number on the node and in task order."""
REQUEST: Final = "topoplace.io/request"
"""Annotation by which a pod says how it communicates."""
GROUP: Final = "topoplace.io/group"
"""Label: the name of the pod's group in its namespace."""
GROUP_SIZE: Final = "topoplace.io/group-size"
"""Label: the number of pods of the group, which start together."""
KUEUE_GROUP: Final = "kueue.x-k8s.io/pod-group-name"
"""Label of Kueue for a pod's group; `GROUP` overrides it."""
KUEUE_SIZE: Final = "kueue.x-k8s.io/pod-group-total-count"
"""Annotation of Kueue: the number of pods in its group."""
JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
"""Label that Kubernetes gives a pod of an indexed Job; the end of such a pod's name is random."""
OTHER_GROUPS: Final = ("pod-group-name", "scheduling.k8s.io/group-name", "scheduling.x-k8s.io/pod-group")
"""Annotations and labels that name a PodGroup of KAI, of Volcano, and of kube-scheduler's coscheduling plugin."""

_MOST_CHARACTERS = 4096
_MOST_PODS = 4096


class Group(NamedTuple):
    """The group of a pod: all its pods start, or none."""

    namespace: str
    name: str
    size: int


def request_of(annotations: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a pod's request; KubernetesError for an invalid one."""
    given = annotations.get(REQUEST, "")
    if not given:
        return {}
    if len(given) > _MOST_CHARACTERS:
        raise KubernetesError(f"{REQUEST} has more than {_MOST_CHARACTERS} characters")
    try:
        return checked(from_json(given, REQUEST))
    except RequestError as error:
        raise KubernetesError(str(error)) from None


def group_name(labels: Mapping[str, str]) -> str:
    """Return the name of a pod's group; "" if it starts by itself."""
    return labels.get(GROUP) or labels.get(KUEUE_GROUP, "")


def group_of(namespace: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> Group | None:
    """Return the group of a pod; None if it starts by itself."""
    name = group_name(labels)
    if not name:
        return None
    given, where = (labels, GROUP_SIZE) if labels.get(GROUP) else (annotations, KUEUE_SIZE)
    size = given.get(where, "")
    if not (size.isascii() and size.isdigit() and len(size) < 6 and 1 <= int(size) <= _MOST_PODS):
        raise KubernetesError(f"{where} = {_checks.shown(size)} is not a number from 1 to {_MOST_PODS}")
    return Group(namespace, name, int(size))


def unread_group(labels: Mapping[str, str], annotations: Mapping[str, object]) -> str:
    """Return the label or annotation that names an unread PodGroup; "" without one, or if `group_of` has a group."""
    if group_name(labels):
        return ""
    named = {name: labels.get(name) or annotations.get(name) for name in OTHER_GROUPS}
    return next((f"{name} = {_checks.shown(value)}" for name, value in named.items() if value), "")


def written(requests: Requests, gpus: Sequence[int]) -> str:
    """Return the annotation's value for a pod's GPUs, given as numbers on its node in task order.

    Containers get GPUs one after another. Init containers share the first GPUs of the others, as with the kubelet.
    """
    parts: dict[str, list[int]] = {}
    taken = 0
    for position, (container, count) in enumerate(requests.gpus_of):
        start = 0 if position < requests.num_init else taken
        parts[container] = list(gpus[start : start + count])
        taken += 0 if position < requests.num_init else count
    return json.dumps(parts, separators=(",", ":"))


def by_container(annotations: Mapping[str, str]) -> dict[str, tuple[int, ...]] | None:
    """Return the GPUs of each container; None if the annotation is missing or not from `written`."""
    text = annotations.get(GPUS, "")
    if not text or len(text) > _MOST_CHARACTERS:
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict):
        return None
    parts: dict[str, tuple[int, ...]] = {}
    for container, gpus in cast("dict[str, object]", found).items():
        if not isinstance(gpus, list):
            return None
        numbers = tuple(cast("list[object]", gpus))
        if not all(type(gpu) is int and 0 <= gpu < MOST_GPUS for gpu in numbers):
            return None
        parts[container] = cast("tuple[int, ...]", numbers)
    return parts


def gpus_of(annotations: Mapping[str, str], requests: Requests) -> tuple[int, ...] | None:
    """Return the GPUs of a bound pod, in task order; None if the annotation does not match the pod's request."""
    parts = by_container(annotations)
    if parts is None or {name: len(gpus) for name, gpus in parts.items()} != dict(requests.gpus_of):
        return None
    containers = [name for name, _ in requests.gpus_of]
    init, own = containers[: requests.num_init], containers[requests.num_init :]
    gpus = tuple(gpu for container in own for gpu in parts[container])
    longest = max((parts[container] for container in init), key=len, default=())
    gpus += longest[len(gpus) :]
    same = all(parts[container] == gpus[: len(parts[container])] for container in init)
    return gpus if same and len(set(gpus)) == len(gpus) == requests.gpus else None
