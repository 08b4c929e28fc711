"""A device as a ResourceSlice describes it: attributes, capacity, taints, and unsupported fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import items, mapping, text
from topoplace_hosts.kubernetes.objects.quantities import thousandths
from topoplace_hosts.kubernetes.objects.taints import Taint

_MOST_DEVICES: Final = 128
_LISTS: Final = {"bools": "bool", "ints": "int", "strings": "string", "versions": "version"}
_TYPES: Final[Mapping[str, type]] = {"bool": bool, "int": int, "string": str, "version": str}
_KNOWN: Final = {"name", "attributes", "capacity", "taints"}
_KEEPS_AWAY: Final = ("NoSchedule", "NoExecute")


class DeviceId(NamedTuple):
    """The name of a device, unique in a cluster."""

    driver: str
    pool: str
    name: str

    def __str__(self) -> str:
        return "/".join(self)


class Attribute(NamedTuple):
    """One or several values of a device's attribute."""

    kind: str
    """"bool", "int", "string" or "version"."""
    values: tuple[Any, ...]
    is_list: bool

    @property
    def elements(self) -> frozenset[tuple[str, Any]]:
        """Return (kind, value) pairs, which constraints compare; a single value is a list of one."""
        return frozenset((self.kind, value) for value in self.values)


Look = tuple[str, str, str]
"""A place that an expression has read: attributes or capacity, a domain, a name."""
ALL: Final = "*"
"""Stands for every domain, or every name, in a look."""
PRESENT: Final = "?"
"""Stands for a name in a look that asks only whether the domain exists."""


@dataclass(frozen=True, slots=True, eq=False)
class Device:
    """A device of a node."""

    id: DeviceId
    attributes: Mapping[str, Mapping[str, Attribute]]
    capacity: Mapping[str, Mapping[str, int]]
    """Amounts in thousandths, by domain and name."""
    taints: tuple[Taint, ...]
    """The taints that keep claims away."""
    unsupported: str
    """The unsupported field that keeps the device from being allocated; "" if there is none."""

    def attribute(self, qualified: str) -> Attribute | None:
        """Return the attribute with a name such as gpu.example.com/model; None if it is missing."""
        domain, _, name = qualified.rpartition("/")
        return self.attributes.get(domain, {}).get(name)

    def seen(self, look: Look) -> object:
        """Return what an expression reads at a place; None if there is nothing."""
        what, domain, name = look
        if what == "driver":
            return self.id.driver
        if what == "allowMultipleAllocations":
            return self.unsupported == what
        values: Mapping[str, Mapping[str, object]] = (
            self.attributes if what == "attributes" else self.capacity
        )
        if domain == ALL:
            return values
        if name == PRESENT:
            return domain in values
        within = values.get(domain, {})
        return within if name == ALL else within.get(name)

    def own(self, name: str) -> Any:
        """Return the single value of an attribute in the driver's domain; None if it is missing or a list."""
        found = self.attribute(f"{self.id.driver}/{name}")
        return found.values[0] if found and not found.is_list else None


def devices(spec: Mapping[str, Any], driver: str, pool: str) -> tuple[Device, ...]:
    """Return the devices in the `spec` of a ResourceSlice; KubernetesError names a field that cannot be read."""
    listed = items(spec.get("devices"), "spec.devices")
    if len(listed) > _MOST_DEVICES:
        raise KubernetesError(f"spec.devices has {len(listed)} items, more than {_MOST_DEVICES}")
    return tuple([_device(one, driver, pool, f"spec.devices[{i}]") for i, one in enumerate(listed)])


def _device(value: object, driver: str, pool: str, what: str) -> Device:
    found = mapping(value, what)
    name = text(found.get("name"), f"{what}.name")
    if not name:
        raise KubernetesError(f"{what}.name: a device has no name")
    unsupported = sorted(key for key in found.keys() - _KNOWN if found[key] not in (None, False, [], {}))
    return Device(
        DeviceId(driver, pool, name),
        _by_domain(found.get("attributes"), driver, f"{what}.attributes", _attribute),
        _by_domain(found.get("capacity"), driver, f"{what}.capacity", _capacity),
        _taints(found.get("taints"), f"{what}.taints"),
        unsupported[0] if unsupported else "",
    )


def _by_domain(value: object, driver: str, what: str, read: Any) -> dict[str, dict[str, Any]]:
    """Return values by domain and name; names without a domain belong to the driver."""
    found: dict[str, dict[str, Any]] = {}
    for qualified, one in mapping(value, what).items():
        domain, _, name = qualified.rpartition("/")
        found.setdefault(domain or driver, {})[name] = read(one, f"{what}[{_checks.shown(qualified)}]")
    return found


def _attribute(value: object, what: str) -> Attribute:
    given = {kind: one for kind, one in mapping(value, what).items() if one is not None}
    if len(given) != 1:
        raise KubernetesError(f"{what} has {len(given)} values, not one")
    ((kind, one),) = given.items()
    single = _LISTS.get(kind, kind)
    if single not in _TYPES:
        raise KubernetesError(f"{what}: {_checks.shown(kind)} is not one of {', '.join([*_TYPES, *_LISTS])}")
    values = tuple(items(one, what)) if kind in _LISTS else (one,)
    if not values or any(type(each) is not _TYPES[single] for each in values):
        raise KubernetesError(f"{what}.{kind} = {_checks.shown(one)} is not of its type")
    return Attribute(single, values, kind in _LISTS)


def _capacity(value: object, what: str) -> int:
    amount = mapping(value, what).get("value")
    return thousandths(str(amount) if type(amount) is int else text(amount, f"{what}.value"))


def _taints(value: object, what: str) -> tuple[Taint, ...]:
    """Return the taints that keep claims away; others, and effects that are not known, only inform."""
    found = [mapping(one, what) for one in items(value, what)]
    read = [Taint(*(text(one.get(key), what) for key in ("key", "value", "effect"))) for one in found]
    return tuple([one for one in read if one.effect in _KEEPS_AWAY])
