"""Taints of nodes, and tolerations of pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, mapping, text

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"


class Taint(NamedTuple):
    """A taint, which keeps pods without a matching toleration away from a node."""

    key: str
    value: str
    effect: str


class Toleration(NamedTuple):
    """A toleration, which lets a pod run on nodes with certain taints; an empty key or effect means any."""

    key: str
    operator: str
    value: str
    effect: str

    def tolerates(self, taint: Taint) -> bool:
        """Return True if the toleration covers the taint."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        return self.operator == "Exists" or (bool(self.key) and self.value == taint.value)


def taints(spec: Mapping[str, object], what: str) -> tuple[Taint, ...]:
    """Return the taints of a node's `spec` that keep pods away; a cordon counts as a taint.

    PreferNoSchedule keeps no pod away, and is left out.
    """
    found = {_taint(mapping(one, what), what) for one in items(spec.get("taints"), what)}
    if spec.get("unschedulable") is True:
        found.add(Taint(UNSCHEDULABLE, "", "NoSchedule"))
    return tuple(sorted(one for one in found if one.effect in _KEEPS_AWAY))


def tolerations(value: object, what: str) -> tuple[Toleration, ...]:
    """Return the tolerations of a pod."""
    found: list[Toleration] = []
    for i, one in enumerate(items(value, what)):
        entry = mapping(one, f"{what}[{i}]")
        operator = text(entry.get("operator"), f"{what}[{i}].operator") or "Equal"
        if operator not in ("Equal", "Exists"):
            raise KubernetesError(f"{what}[{i}].operator = {_checks.shown(operator)} is not Equal or Exists")
        key, word, effect = (
            text(entry.get(name), f"{what}[{i}].{name}") for name in ("key", "value", "effect")
        )
        found.append(Toleration(key, operator, word, effect))
    return tuple(found)


def untolerated(found: Iterable[Taint], tolerated: Iterable[Toleration]) -> Taint | None:
    """Return the first of these taints that the tolerations do not cover; None if they cover all."""
    return next((taint for taint in found if not any(one.tolerates(taint) for one in tolerated)), None)


def _taint(entry: Mapping[str, object], what: str) -> Taint:
    key, value, effect = (text(entry.get(name), f"{what}.{name}") for name in ("key", "value", "effect"))
    if effect not in _EFFECTS:
        raise KubernetesError(f"{what}: effect {_checks.shown(effect)} is not one of {', '.join(_EFFECTS)}")
    return Taint(key, value, effect)
