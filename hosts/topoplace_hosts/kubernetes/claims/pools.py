"""The devices of each node, from all ResourceSlices; only a pool's newest generation counts, if it is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.claims.device import Device, DeviceId, devices
from topoplace_hosts.kubernetes.objects.fields import mapping, text, whole

_MOST_GENERATION: Final = (1 << 63) - 1
_PoolKey = tuple[str, str]
"""Driver and name of a pool."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A ResourceSlice."""

    name: str
    node: str
    """The node that has the devices; "" for devices of several nodes, which are never allocated."""
    pool: _PoolKey
    generation: int
    count: int
    """The number of slices of the pool in this generation."""
    devices: tuple[Device, ...]


def resource_slice(value: object) -> Slice:
    """Return a ResourceSlice of the API; KubernetesError names the field that cannot be read."""
    found = whole(value, "ResourceSlice")
    name = text(mapping(found.get("metadata"), "metadata").get("name"), "metadata.name")
    spec = mapping(found.get("spec"), "spec")
    driver = text(spec.get("driver"), "spec.driver")
    pool = mapping(spec.get("pool"), "spec.pool")
    pool_name = text(pool.get("name"), "spec.pool.name")
    if not name or not driver or not pool_name:
        raise KubernetesError("a ResourceSlice has no name, driver or pool")
    return Slice(
        name,
        text(spec.get("nodeName"), "spec.nodeName"),
        (driver, pool_name),
        _count(pool, "generation"),
        _count(pool, "resourceSliceCount"),
        devices(spec, driver, pool_name),
    )


def _count(pool: Mapping[str, Any], name: str) -> int:
    return _checks.integer(pool.get(name), f"spec.pool.{name}", KubernetesError, low=0, high=_MOST_GENERATION)


class Pools:
    """All ResourceSlices, and the devices that they give each node."""

    def __init__(self) -> None:
        self._slices: dict[str, Slice] = {}
        self._of_pool: dict[_PoolKey, dict[str, Slice]] = {}
        self._of_node: dict[str, dict[_PoolKey, tuple[Device, ...]]] = {}

    def names(self) -> list[str]:
        """Return the names of all slices."""
        return list(self._slices)

    def pool_of(self, name: str) -> _PoolKey | None:
        """Return the pool of a slice; None if there is no such slice."""
        known = self._slices.get(name)
        return known.pool if known else None

    def set_slice(self, one: Slice) -> frozenset[str]:
        """Record the present state of a slice; return the nodes whose devices may have changed."""
        nodes = self.remove_slice(one.name)
        self._slices[one.name] = one
        self._of_pool.setdefault(one.pool, {})[one.name] = one
        return self._renewed(one.pool, nodes)

    def remove_slice(self, name: str) -> frozenset[str]:
        """Forget a slice; return the nodes whose devices may have changed."""
        known = self._slices.pop(name, None)
        if known is None:
            return frozenset()
        del self._of_pool[known.pool][name]
        return self._renewed(known.pool, frozenset([known.node]))

    def _renewed(self, key: _PoolKey, nodes: frozenset[str]) -> frozenset[str]:
        slices = list(self._of_pool[key].values())
        nodes |= {one.node for one in slices}
        for node in nodes:
            self._of_node.setdefault(node, {}).pop(key, None)
        newest = max((one.generation for one in slices), default=0)
        current = sorted((one for one in slices if one.generation == newest), key=lambda one: one.name)
        if current and len(current) == current[0].count:
            for one in current:
                there = self._of_node.setdefault(one.node, {})
                there[key] = (*there.get(key, ()), *one.devices)
        return nodes

    def node_of(self, device: DeviceId) -> str:
        """Return the node that has a device now; "" if there is none."""
        key = device.driver, device.pool
        for one in self._of_pool.get(key, {}).values():
            if any(each.id == device for each in self._of_node.get(one.node, {}).get(key, ())):
                return one.node
        return ""

    def devices_of(self, node: str) -> tuple[Device, ...]:
        """Return the devices of a node, in the order of their names."""
        found = [one for part in self._of_node.get(node, {}).values() for one in part]
        return tuple(sorted(found, key=lambda one: _natural(one.id.name)))


def _natural(name: str) -> tuple[int, str]:
    """Return a sort key by which gpu-10 comes after gpu-9."""
    return len(name), name
