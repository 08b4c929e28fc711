"""Amounts of resources: Kubernetes' quantities, such as 500m or 4Gi, as whole thousandths."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Final

from topoplace import _checks
from topoplace.errors import KubernetesError
from topoplace_hosts.kubernetes.objects.fields import mapping

MOST: Final = 1 << 61
"""The largest amount, in thousandths; larger ones count as this, which no node has."""
Amounts = Mapping[str, int]
"""Thousandths of each resource by its name; the units are CPUs for cpu, bytes for memory."""

_QUANTITY = re.compile(
    r"([+-]?)(\d{1,40}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE]([+-]?\d{1,2})|([numkMGTPE]|[KMGTPE]i))?", re.ASCII
)
_SUFFIXES: Final = {
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("num", -3)},
    **{suffix: Fraction(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Fraction(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}


@lru_cache(maxsize=4096)
def thousandths(quantity: str) -> int:
    """Return a quantity in thousandths, rounded up; KubernetesError for a negative quantity or other text."""
    match = _QUANTITY.fullmatch(quantity) if len(quantity) <= 64 else None
    if match is None or (match[1] == "-" and match[2].strip("0.")):
        raise KubernetesError(f"quantity {_checks.shown(quantity)} is not an amount such as 2, 500m or 4Gi")
    number = Fraction(match[2].rstrip(".") if match[2].endswith(".") else match[2])
    number *= Fraction(10) ** int(match[3]) if match[3] else _SUFFIXES[match[4]] if match[4] else 1
    return min(math.ceil(number * 1000), MOST)


def amounts(value: object, what: str) -> dict[str, int]:
    """Return the amounts in a JSON object of quantities."""
    found = mapping(value, what)
    if len(found) > 100:
        raise KubernetesError(f"{what} has {len(found)} resources, more than 100")
    return {
        name: thousandths(_quantity(one, f"{what}[{_checks.shown(name)}]")) for name, one in found.items()
    }


def _quantity(value: object, what: str) -> str:
    if type(value) is int:
        return str(value) if abs(value) < 10**18 else "1E"
    if not isinstance(value, str):
        raise KubernetesError(f"{what} = {_checks.shown(value)} is not a quantity")
    return value


def plus(one: Amounts, other: Amounts) -> dict[str, int]:
    """Return the sum of two amounts, resource by resource."""
    return {name: min(one.get(name, 0) + other.get(name, 0), MOST) for name in {**one, **other}}


def larger(one: Amounts, other: Amounts) -> dict[str, int]:
    """Return the larger of two amounts, resource by resource."""
    return {name: max(one.get(name, 0), other.get(name, 0)) for name in {**one, **other}}
