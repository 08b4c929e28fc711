"""Functions that Kubernetes adds to CEL for devices: quantities, semantic versions, texts; and limits on sizes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from celpy import celtypes
from celpy.evaluation import operator_in

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.quantities import thousandths

_MOST_SIZE: Final = 1 << 16
"""Limit on the characters of a text, or the items of a list, that an expression makes."""
_VERSION: Final = re.compile(
    r"(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})\.(0|[1-9]\d{0,18})(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?",
    re.ASCII,
)


class Quantity:
    """An amount such as 80Gi."""

    def __init__(self, thousandths: int) -> None:
        self.thousandths = thousandths

    @property
    def key(self) -> int:
        """Return the key of comparisons."""
        return self.thousandths

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.thousandths == other.thousandths

    def __hash__(self) -> int:
        return hash(self.thousandths)


class Version:
    """A semantic version such as 1.2.3-beta.1, compared by the rules of semver.org; build metadata is ignored."""

    def __init__(self, text: str) -> None:
        match = _VERSION.fullmatch(text) if len(text) <= 64 else None
        if match is None:
            raise ValueError(f"{_checks.shown(text)} is not a semantic version")
        self.numbers = tuple(int(match[i]) for i in (1, 2, 3))
        before = match[4].split(".") if match[4] else []
        self.before = tuple(
            [(0, int(word), "") if word.isdigit() and len(word) < 20 else (1, 0, word) for word in before]
        )

    @property
    def key(self) -> tuple[object, ...]:
        """Return the key of comparisons; a pre-release is smaller than its release."""
        return (*self.numbers, not self.before, self.before)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


def _quantity(given: object) -> Quantity:
    if not isinstance(given, str):
        raise TypeError("quantity() takes a text")
    return Quantity(thousandths(str(given)))


def _version(given: object) -> Version:
    if not isinstance(given, str):
        raise TypeError("semver() takes a text")
    return Version(str(given))


def _keys(one: Any, other: Any) -> tuple[Any, Any]:
    if type(one) is not type(other) or not isinstance(one, Quantity | Version):
        raise TypeError("quantities compare with quantities, and versions with versions")
    return one.key, other.key


def _compared(one: Any, other: Any) -> celtypes.IntType:
    a, b = _keys(one, other)
    return celtypes.IntType((a > b) - (a < b))


def _greater(one: Any, other: Any) -> celtypes.BoolType:
    return celtypes.BoolType(_compared(one, other) > 0)


def _less(one: Any, other: Any) -> celtypes.BoolType:
    return celtypes.BoolType(_compared(one, other) < 0)


def _is(read: Callable[[object], object]) -> Callable[[object], celtypes.BoolType]:
    def is_one(given: object) -> celtypes.BoolType:
        try:
            read(given)
        except (ValueError, KubernetesError):
            return celtypes.BoolType(False)
        return celtypes.BoolType(True)

    return is_one


def _amount(one: object) -> int:
    if not isinstance(one, Quantity):
        raise TypeError("this is not a quantity")
    return one.thousandths


def _other_amount(one: object) -> int:
    return 1000 * int(one) if isinstance(one, celtypes.IntType) else _amount(one)


def _sign(one: object) -> celtypes.IntType:
    return celtypes.IntType(bool(_amount(one)))


def _is_integer(one: object) -> celtypes.BoolType:
    return celtypes.BoolType(_amount(one) % 1000 == 0)


def _as_float(one: object) -> celtypes.DoubleType:
    return celtypes.DoubleType(_amount(one) / 1000)


def _added(one: object, other: object) -> Quantity:
    return Quantity(_amount(one) + _other_amount(other))


def _subtracted(one: object, other: object) -> Quantity:
    return Quantity(_amount(one) - _other_amount(other))


def _lower(one: str) -> celtypes.StringType:
    return celtypes.StringType(one.lower())


def _upper(one: str) -> celtypes.StringType:
    return celtypes.StringType(one.upper())


def _as_integer(one: object) -> celtypes.IntType:
    whole, rest = divmod(_amount(one), 1000)
    if rest:
        raise ValueError("the quantity is not an integer")
    return celtypes.IntType(whole)


def _number(position: int) -> Callable[[Version], celtypes.IntType]:
    return lambda version: celtypes.IntType(version.numbers[position])


def _includes(one: Any, value: Any) -> celtypes.BoolType:
    """`includes`: True for a list that has the value, or for the value alone."""
    return celtypes.BoolType(value in one if isinstance(one, list) else bool(one == value))


def _in(item: Any, container: Any) -> Any:
    if isinstance(container, celtypes.MapType):
        return container.contains(item)  # it may note what is looked at
    return operator_in(item, container)


def _sum(one: Any, other: Any) -> Any:
    if hasattr(one, "__len__") and len(one) + len(other) > _MOST_SIZE:
        raise ValueError(f"a text or list of more than {_MOST_SIZE}")
    return one + other


def _product(one: Any, other: Any) -> Any:
    if isinstance(one, str | list | bytes) or isinstance(other, str | list | bytes):
        raise TypeError("only numbers are multiplied")
    return one * other


CONVERTED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "bool": celtypes.BoolType,
    "int": celtypes.IntType,
    "string": celtypes.StringType,
    "version": Version,
}
FUNCTIONS: Final[dict[str, Any]] = {
    "quantity": _quantity,
    "isQuantity": _is(_quantity),
    "semver": _version,
    "isSemver": _is(_version),
    "compareTo": _compared,
    "isGreaterThan": _greater,
    "isLessThan": _less,
    "sign": _sign,
    "isInteger": _is_integer,
    "asInteger": _as_integer,
    "asApproximateFloat": _as_float,
    "add": _added,
    "sub": _subtracted,
    "major": _number(0),
    "minor": _number(1),
    "patch": _number(2),
    "includes": _includes,
    "lowerAscii": _lower,
    "upperAscii": _upper,
    "_in_": _in,
    "_+_": _sum,
    "_*_": _product,
}
