"""A pod's request: the amounts of all its containers together, and the number of GPUs of each container."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, mapping, text
from topoplace_hosts.kubernetes.objects.quantities import Amounts, amounts, larger, plus

_ONE = 1000
MOST_GPUS = 256
"""Limit on the GPUs of a pod."""
_RESOURCE: Final = re.compile(r"[a-z0-9][a-z0-9.-]*/[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")


def checked_resource(name: str, what: str) -> str:
    """Return `name`; ValueError unless it has the form of an extended resource."""
    if not _RESOURCE.fullmatch(name):
        raise ValueError(f"{what} = {_checks.shown(name)} is not like 'nvidia.com/gpu'")
    return name


@dataclass(frozen=True, slots=True)
class Requests:
    """A pod's request to its node."""

    amounts: tuple[tuple[str, int], ...]
    """Thousandths of each resource, sorted by name; `pods` is 1."""
    gpus: int
    """The number of GPUs that the pod holds; init containers share those of the others."""
    gpus_of: tuple[tuple[str, int], ...]
    """(container, number of GPUs) for each container with GPUs, init containers first."""
    num_init: int
    """The number of init containers in `gpus_of`."""


def requests(spec: Mapping[str, Any], gpu_resource: str) -> Requests:
    """Return what the pod with this `spec` asks for; gpu_resource: the resource that counts its GPUs.

    Init containers run one after another, then all containers together. Init containers with `restartPolicy: Always`
    keep running next to all that follow. KubernetesError names a field that cannot be read.
    """
    beside: dict[str, int] = {}
    peak: dict[str, int] = {}
    init = _containers(spec, "initContainers")
    own = _containers(spec, "containers")
    for _, wanted, stays in init:
        now = plus(beside, wanted)
        peak = larger(peak, now)
        if stays:
            beside = now
            if wanted.get(gpu_resource):
                raise KubernetesError("an init container with restartPolicy Always asks for GPUs")
    total = beside
    for _, wanted, _ in own:
        total = plus(total, wanted)
    total = larger(total, peak)
    total.update(
        amounts(mapping(spec.get("resources"), "spec.resources").get("requests"), "spec.resources.requests")
    )
    total = plus(total, amounts(spec.get("overhead"), "spec.overhead"))
    gpus = _whole(total.get(gpu_resource, 0), gpu_resource)
    total["pods"] = _ONE
    counted = [_gpus_of(one, gpu_resource) for one in (init, own)]
    return Requests(
        tuple(sorted((name, amount) for name, amount in total.items() if amount)),
        gpus,
        (*counted[0], *counted[1]),
        len(counted[0]),
    )


_Container = tuple[str, Amounts, bool]


def _containers(spec: Mapping[str, Any], which: str) -> list[_Container]:
    """Return the name of each container, what it asks for, and True if it goes on next to those that follow."""
    found: list[_Container] = []
    for i, one in enumerate(items(spec.get(which), f"spec.{which}")):
        what = f"spec.{which}[{i}]"
        container = mapping(one, what)
        resources = mapping(container.get("resources"), f"{what}.resources")
        limits = amounts(resources.get("limits"), f"{what}.resources.limits")
        wanted = {**limits, **amounts(resources.get("requests"), f"{what}.resources.requests")}
        stays = container.get("restartPolicy") == "Always"
        found.append((text(container.get("name"), f"{what}.name"), wanted, stays))
    return found


def _gpus_of(containers: Sequence[_Container], gpu_resource: str) -> list[tuple[str, int]]:
    counts = [(name, _whole(wanted.get(gpu_resource, 0), gpu_resource)) for name, wanted, _ in containers]
    return [(name, count) for name, count in counts if count]


def _whole(amount: int, resource: str) -> int:
    count, rest = divmod(amount, _ONE)
    if rest or count > MOST_GPUS:
        raise KubernetesError(
            f"{_checks.shown(amount / _ONE)} of {resource} is not a count of up to {MOST_GPUS}"
        )
    return count
