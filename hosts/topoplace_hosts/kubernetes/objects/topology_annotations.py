"""Demands in annotations of Kueue and KAI: pods of a set that must, or should, be in one domain of a level.

An annotation names a level by the node label that gives the level's domains. Kueue's annotations are those of a pod
template. KAI's own scheduler takes its annotations from the owner of a pod, topoplace from the pod itself.
`podset-unconstrained-topology` demands nothing. `kai.scheduler/topology` has no effect, because there is only one
topology.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import mapping

_KUEUE: Final = "kueue.x-k8s.io/podset-"
_REQUIRED: Final = (f"{_KUEUE}required-topology", "kai.scheduler/topology-required-placement")
_PREFERRED: Final = (f"{_KUEUE}preferred-topology", "kai.scheduler/topology-preferred-placement")
_SLICE: Final = f"{_KUEUE}slice-required-topology"
_SLICE_SIZE: Final = f"{_KUEUE}slice-size"
_LAYERS: Final = f"{_KUEUE}slice-required-topology-constraints"
TOPOLOGY_ANNOTATIONS: Final = (*_REQUIRED, *_PREFERRED, _SLICE, _SLICE_SIZE, _LAYERS)
_MOST_CHARACTERS = 1024
_MOST_LAYERS = 3


class TopologyDemand(NamedTuple):
    """Pods that must be, or should be, in one domain of a level."""

    annotation: str
    label: str
    """The key of the node label that gives the domains."""
    pods: int | None = None
    """The number of consecutive pods that are together; None for all."""
    is_required: bool = True

    def __str__(self) -> str:
        return f"{self.annotation} = {_checks.shown(self.label)}"


def demands_of(annotations: Mapping[str, str]) -> tuple[TopologyDemand, ...]:
    """Return what the annotations of a pod demand; KubernetesError names one that is not understood."""
    found = [TopologyDemand(name, _label(annotations, name)) for name in _REQUIRED if name in annotations]
    found += [
        TopologyDemand(name, _label(annotations, name), is_required=False)
        for name in _PREFERRED
        if name in annotations
    ]
    if _SLICE in annotations:
        size = annotations.get(_SLICE_SIZE, "")
        if not (size.isascii() and size.isdigit() and len(size) < 8):
            raise KubernetesError(f"{_SLICE_SIZE} = {_checks.shown(size)} is not a number of pods")
        found.append(TopologyDemand(_SLICE, _label(annotations, _SLICE), _pods(int(size), _SLICE_SIZE)))
    elif _SLICE_SIZE in annotations:
        raise KubernetesError(f"{_SLICE_SIZE} without {_SLICE}, the level of the slices")
    return (*found, *_layers(annotations.get(_LAYERS)))


def _label(annotations: Mapping[str, str], name: str) -> str:
    label = annotations[name]
    if not label or len(label) > _MOST_CHARACTERS or not label.isprintable():
        raise KubernetesError(f"{name} = {_checks.shown(label)} is not the key of a node label")
    return label


def _pods(value: object, what: str) -> int:
    return _checks.integer(value, what, KubernetesError, low=1, high=1 << 20)


def _layers(text: str | None) -> Iterator[TopologyDemand]:
    """Yield the slices of several levels, as JSON lists them."""
    if text is None:
        return
    try:
        given: object = json.loads(text) if len(text) <= _MOST_CHARACTERS else None
    except (ValueError, RecursionError):
        given = None
    layers: list[Any] = given if isinstance(given, list) else []  # pyright: ignore[reportUnknownVariableType]
    if not 0 < len(layers) <= _MOST_LAYERS:
        raise KubernetesError(f"{_LAYERS} = {_checks.shown(text)} is not a JSON array of 1 to {_MOST_LAYERS}")
    for i, layer in enumerate(layers):
        what = f"{_LAYERS}[{i}]"
        fields = mapping(layer, what)
        if strange := sorted(fields.keys() - {"topology", "size"}):
            raise KubernetesError(f"{what}: {_checks.shown(strange[0])} cannot be honoured")
        label = _checks.text(fields.get("topology"), f"{what}: topology", KubernetesError)
        yield TopologyDemand(what, label, _pods(fields.get("size"), f"{what}: size"))
