"""The variable `device` of selectors, which records what an expression reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from celpy import celtypes

from topoplace_hosts.kubernetes.claims.device import ALL, PRESENT, Attribute, Device, Look
from topoplace_hosts.kubernetes.claims.expression_functions import CONVERTED, Quantity

_DICT: Final[Any] = dict  # its methods, of which those of celpy make nothing else


class _WatchedAttributes(celtypes.MapType):
    """A mapping of CEL that notes at which of its keys an expression looks; `ALL` for all of them."""

    def __init__(self, values: Mapping[str, Any], note: Callable[[str], None]) -> None:
        super().__init__()
        _DICT.update(self, {celtypes.StringType(key): value for key, value in values.items()})
        self.note = note

    def __getitem__(self, key: Any) -> Any:
        self.note(str(key))
        return _DICT.__getitem__(self, key)

    def get(self, key: Any, default: Any = None) -> Any:
        self.note(str(key))
        return _DICT.get(self, key, default)

    def __contains__(self, key: object) -> bool:
        self.note(str(key))
        return bool(_DICT.__contains__(self, key))

    def contains(self, item: Any) -> celtypes.BoolType:
        return celtypes.BoolType(item in self)

    def __iter__(self) -> Iterator[Any]:
        self.note(ALL)
        return iter(_DICT.keys(self))

    def __len__(self) -> int:
        self.note(ALL)
        return int(_DICT.__len__(self))

    def __eq__(self, other: object) -> bool:
        self.note(ALL)
        return bool(_DICT.__eq__(self, other))

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> Any:
        self.note(ALL)
        return _DICT.keys(self)

    def values(self) -> Any:
        self.note(ALL)
        return _DICT.values(self)

    def items(self) -> Any:
        self.note(ALL)
        return _DICT.items(self)


class _Domains(_WatchedAttributes):
    """Mappings by domain: one that is not there is empty."""

    def __init__(
        self,
        values: Mapping[str, Any],
        note: Callable[[str], None],
        empty: Callable[[str], _WatchedAttributes],
    ) -> None:
        super().__init__(values, note)
        self._empty = empty

    def __getitem__(self, key: Any) -> Any:
        return _DICT.__getitem__(self, key) if _DICT.__contains__(self, key) else self._empty(str(key))

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key]


def variable(device: Device, looks: dict[Look, None]) -> celtypes.MapType:
    """Return the variable `device`; it adds to `looks` what an expression reads."""

    def note(what: str, domain: str, name: str) -> None:
        looks[what, domain, name] = None

    def domains(
        what: str, values: Mapping[str, Mapping[str, Any]], converted: Callable[[Any], Any]
    ) -> _Domains:
        def within(domain: str) -> _WatchedAttributes:
            named = {name: converted(value) for name, value in values.get(domain, {}).items()}
            return _WatchedAttributes(named, lambda name: note(what, domain, name))

        return _Domains(
            {domain: within(domain) for domain in values},
            lambda domain: note(what, domain, ALL if domain == ALL else PRESENT),
            within,
        )

    found = {
        "driver": celtypes.StringType(device.id.driver),
        "attributes": domains("attributes", device.attributes, _attribute),
        "capacity": domains("capacity", device.capacity, Quantity),
        "allowMultipleAllocations": celtypes.BoolType(device.unsupported == "allowMultipleAllocations"),
    }

    def top(name: str) -> None:
        if name in ("driver", "allowMultipleAllocations"):
            note(name, "", "")
        elif name == ALL:
            for what in ("attributes", "capacity"):
                note(what, ALL, ALL)

    return _WatchedAttributes(found, top)


def _attribute(attribute: Attribute) -> Any:
    values = [CONVERTED[attribute.kind](value) for value in attribute.values]
    return celtypes.ListType(values) if attribute.is_list else values[0]
