"""The machine of a node as a ConfigMap; its content is not trusted, because anyone with access may have written it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from topoplace import _checks
from topoplace.engine.memo import Memo
from topoplace.errors import KubernetesError, TopologyError
from topoplace.topology.links.distance import DISTANCES
from topoplace.topology.topology import Topology
from topoplace_hosts.kubernetes.objects.fields import mapping, text, whole
from topoplace_hosts.kubernetes.objects.requests import MOST_GPUS

NAMESPACE: Final = "topoplace"
"""The default namespace of these ConfigMaps."""
LABELS: Final = {"topoplace.io/holds": "machine"}
"""The labels by which these ConfigMaps are found."""
KEY: Final = "machine.json"
_PREFIX = "machine."
_ANY = "machine"
"""The name of the machine in its text; the ConfigMap's name identifies the node."""
_MOST_BYTES = 256 << 10
"""Limit on a machine's text; a ConfigMap holds 1 MiB. The largest built-in machine of 72 GPUs has 2 kB."""
_MOST_NAME = 253
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def checked_namespace(name: str, what: str) -> str:
    """Return the name of a namespace; ValueError if it cannot be one."""
    if not _NAMESPACE.fullmatch(name):
        raise ValueError(f"{what} = {_checks.shown(name)} is not the name of a namespace")
    return name


def config_map(node: str, topology: Topology) -> dict[str, Any]:
    """Return the ConfigMap that describes a node's machine; its GPUs have no UUIDs, only numbers.

    ValueError if `node` is not the name of a node, or `topology` is not one machine with a text of up to 256 KiB.
    """
    name = f"{_PREFIX}{node}"
    if not _NAME.fullmatch(node) or len(name) > _MOST_NAME:
        longest = _MOST_NAME - len(_PREFIX)
        raise ValueError(
            f"node = {_checks.shown(node)} is not the name of a node of up to {longest} characters"
        )
    if why := _unfit(topology):
        raise ValueError(f"topology = {_checks.shown(topology.name)} {why}")
    written = _plain(topology).to_json()
    if len(written) > _MOST_BYTES:
        raise ValueError(
            f"topology = {_checks.shown(topology.name)} has {len(written)} bytes, more than {_MOST_BYTES}"
        )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": dict(LABELS)},
        "data": {KEY: written},
    }


class MachineTexts:
    """Reads machines, and parses equal texts once."""

    def __init__(self) -> None:
        self._known: Memo[str, Topology] = Memo(1024)

    def machine(self, value: object) -> tuple[str, Topology]:
        """Return the node name and the machine in a ConfigMap; KubernetesError says what is wrong."""
        found = whole(value, "ConfigMap")
        data = mapping(found.get("data"), "data")
        node = node_of(found)
        given = data.get(KEY)
        if not isinstance(given, str) or len(given) > _MOST_BYTES:
            raise KubernetesError(f"data[{KEY!r}] is not a text of up to {_MOST_BYTES} characters")
        return node, self._known.get_or_build(given, lambda: _parsed(given))


def machine(value: object) -> tuple[str, Topology]:
    """Return the node name and the machine in a ConfigMap; KubernetesError says what is wrong."""
    return MachineTexts().machine(value)


def node_of(value: Mapping[str, Any]) -> str:
    """Return the name of the node that a ConfigMap describes; KubernetesError if topoplace gives no such name."""
    name = text(mapping(value.get("metadata"), "metadata").get("name"), "metadata.name")
    node = name.removeprefix(_PREFIX)
    if node == name or not _NAME.fullmatch(node):
        raise KubernetesError(f"metadata.name = {_checks.shown(name)} is not {_PREFIX}NODE")
    return node


def _parsed(given: str) -> Topology:
    """Return the machine in a text; KubernetesError if it is none."""
    try:
        topology = Topology.from_json(given)
    except TopologyError as error:
        raise KubernetesError(f"data[{KEY!r}]: {error}") from None
    if why := _unfit(topology):
        raise KubernetesError(f"data[{KEY!r}] {why}")
    return _plain(topology)


def _unfit(topology: Topology) -> str:
    """Return why a topology is not the machine of a node; "" if it is."""
    if topology.num_machines != 1 or topology.fabric is not None:
        return f"has {topology.num_machines} machines, not one machine without a network"
    return f"has {topology.num_gpus} GPUs, more than {MOST_GPUS}" if topology.num_gpus > MOST_GPUS else ""


def _plain(topology: Topology) -> Topology:
    """Return a machine without what is not the same on its like, or could contradict others.

    That are names, UUIDs, remarks, and weights of distances.
    """
    gpus = tuple([replace(gpu, machine=_ANY, uuid=None) for gpu in topology.gpus])
    return replace(topology, gpus=gpus, notes=(), name=_ANY, distances=DISTANCES["sc17"])
