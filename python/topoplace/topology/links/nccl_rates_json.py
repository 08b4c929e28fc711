"""Write and read the rates of a collective library as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, cast

from topoplace import _checks
from topoplace.topology.links.nccl_rates import Rates

FORMAT: Final = "topoplace.rates"
VERSION: Final = 1
_KEYS: Final = ("name", "gb_per_s", "intel_overhead", "channel_gb_per_s", "achieved")
_NEWER_KEYS: Final = ("nvls_efficiency",)
"""Keys that texts of earlier releases lack; such a text keeps its meaning."""


def written(rates: Rates) -> str:
    """Return `rates` as JSON: ASCII, keys sorted, no blanks between values."""
    return json.dumps(record_of(rates), sort_keys=True, separators=(",", ":"))


def record_of(rates: Rates) -> dict[str, Any]:
    """Return the JSON object of `rates`."""
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": rates.name,
        "gb_per_s": dict(rates.gb_per_s),
        "intel_overhead": rates.intel_overhead,
        "channel_gb_per_s": {str(least): list(steps) for least, steps in rates.channel_gb_per_s.items()},
        "achieved": dict(rates.achieved),
        "nvls_efficiency": {str(least): share for least, share in rates.nvls_efficiency.items()},
    }


def parsed(text: str) -> Rates:
    """Return the rates that `text` describes; ValueError names the fault of any other text."""
    return of_record(json_object(text))


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object in `text`; ValueError for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    return _object(found, "the text")


def of_record(record: Mapping[str, Any]) -> Rates:
    """Return the rates of a JSON object that `record_of` returned; ValueError names the fault of any other one."""
    check_keys(record, FORMAT, VERSION, _KEYS, _NEWER_KEYS)
    steps = _object(record["channel_gb_per_s"], "channel_gb_per_s")
    return Rates(
        _checks.text(record["name"], "name", ValueError),
        MappingProxyType(_object(record["gb_per_s"], "gb_per_s")),
        record["intel_overhead"],
        MappingProxyType(dict(_channels(key, listed) for key, listed in steps.items())),
        MappingProxyType(_object(record["achieved"], "achieved")),
        MappingProxyType(_by_capability(record.get("nvls_efficiency", {}), "nvls_efficiency")),
    )


def check_keys(
    record: Mapping[str, Any], form: str, version: int, keys: tuple[str, ...], others: tuple[str, ...] = ()
) -> None:
    """Raise ValueError unless a JSON object has this format and version, all of `keys`, and no others but `others`."""
    found = record.get("format"), record.get("version")
    if found != (form, version) or isinstance(found[1], bool):
        raise ValueError(f"format and version = {_checks.shown(found)}, not {(form, version)}")
    wanted = {"format", "version", *keys}
    if strange := sorted(record.keys() - wanted - set(others)):
        raise ValueError(f"the text has the unknown key {_checks.shown(strange[0])}")
    if missing := sorted(wanted - record.keys()):
        raise ValueError(f"the text has no key {missing[0]!r}")


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what} = {_checks.shown(value)} is not an object")
    return cast("dict[str, Any]", value)


def _channels(key: str, listed: object) -> tuple[int, tuple[float, ...]]:
    what = f"channel_gb_per_s[{key!r}]"
    return _capability(key, what), tuple(_checks.ordered(listed, what, ValueError))


def _by_capability(value: object, what: str) -> dict[int, Any]:
    return {_capability(key, f"{what}[{key!r}]"): found for key, found in _object(value, what).items()}


def _capability(key: str, what: str) -> int:
    if not (key.isascii() and key.isdigit() and len(key) < 6):
        raise ValueError(f"{what}: the key is not a compute capability times ten")
    return int(key)
